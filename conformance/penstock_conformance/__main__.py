"""The command ``python -m penstock_conformance``: plays transcripts, and says how many passed and failed."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence

from penstock_conformance import bare, pipelines
from penstock_conformance.parsing import load
from penstock_conformance.scenario import MODES, Scenario


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays transcripts, on the bare machine or on Spark.

    Args:
        arguments: Those of the command; by default the process's.

    Returns:
        The process's exit status: 0 if all passed, 1 if one failed, 2 if there is nothing to play.

    >>> main(["--mode", "batch", "figure 10"])
    1 passed, 0 failed
    0
    """
    parser = argparse.ArgumentParser(prog="penstock_conformance", description="Plays transcripts.")
    parser.add_argument("--mode", choices=MODES, help="play only what is written for this engine mode")
    parser.add_argument(
        "--spark", action="store_true", help="run them as pipelines, and not the bare machine"
    )
    parser.add_argument(
        "names", nargs="*", help="play only scenarios with one of these in their file or title"
    )
    options = parser.parse_args(arguments)
    names = [name.lower() for name in options.names]
    chosen = [
        scenario
        for scenario in load()
        if not names or any(name in f"{scenario.place} {scenario.title}".lower() for name in names)
    ]
    passed = failed = 0
    for mode in [options.mode] if options.mode else MODES:
        for difference in _on_spark(chosen, mode) if options.spark else _on_bare_machine(chosen, mode):
            passed, failed = passed + (difference is None), failed + (difference is not None)
            if difference:
                print(difference)
    print(f"{passed} passed, {failed} failed")
    return 2 if passed + failed == 0 else min(failed, 1)


def _on_spark(scenarios: Sequence[Scenario], mode: str) -> Iterator[str | None]:
    """What is wrong with each scenario that can go through a pipeline."""
    return (difference for _, difference in pipelines.reports(scenarios, mode))


def _on_bare_machine(scenarios: Sequence[Scenario], mode: str) -> Iterator[str | None]:
    return (_difference(scenario, mode) for scenario in scenarios if mode in scenario.modes)


def _difference(scenario: Scenario, mode: str) -> str | None:
    try:
        return bare.report(scenario, mode)
    except Exception:
        # Whatever one transcript meets, the others are played as well.
        return f"{scenario.place}: {scenario.title} ({mode})\n{traceback.format_exc()}"


if __name__ == "__main__":
    sys.exit(main())
