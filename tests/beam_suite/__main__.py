"""Runs Beam's own tests on penstock: ``python -m tests.beam_suite --help`` says what can be chosen."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.beam_suite.porting import PACKAGE, Modules, port

_INI = (
    "[pytest]\npython_files = *_test.py\n"
    "addopts = -q --tb=native --import-mode=importlib -p tests.beam_suite.suite_plugin --disable-warnings\n"
)


def run(arguments: list[str], modules: list[str], *, engine: str, counts: Path | None = None) -> int:
    """Ports Beam's tests into a folder of their own and runs pytest there.

    Args:
        arguments: Further arguments of pytest.
        modules: The test modules to run, such as ``io/textio_test.py``; all where there are none.
        engine: What runs pipelines: ``spark``; ``toy``, which skips tests that it cannot run; or ``none``.
        counts: A file for the counts, as JSON.

    Returns:
        pytest's exit status: 0 if all passed but those that are expected to fail.
    """
    with tempfile.TemporaryDirectory(prefix="beam-suite-") as folder:
        package = port(Path(folder), Modules.read())
        (Path(folder) / "pytest.ini").write_text(_INI, encoding="utf-8")
        paths = [str(package / module) for module in modules or Modules.read().tests]
        known = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([folder, *([known] if known else [])]),
            "BEAM_SUITE_ENGINE": engine,
            **({"BEAM_SUITE_COUNTS": str(counts.absolute())} if counts else {}),
        }
        command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", *paths, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=f"Runs Beam's own tests, as the package {PACKAGE}.")
    parser.add_argument("modules", nargs="*", help="test modules, such as io/textio_test.py; default: all")
    parser.add_argument(
        "--engine",
        choices=("spark", "toy", "none"),
        default="spark",
        help="what runs pipelines: Spark; the quick toy engine of tests/runner, where it can; or nothing",
    )
    parser.add_argument("--counts", type=Path, help="a file for the counts and failures, as JSON")
    known, others = parser.parse_known_args()
    return run(others, known.modules, engine=known.engine, counts=known.counts)


if __name__ == "__main__":
    sys.exit(main())
