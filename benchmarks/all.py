"""Measures everything, one program after the other, and puts the numbers into the page about speed.

Run it with ``python benchmarks/all.py``, on a machine that does nothing else; ``--streams`` adds what takes longer:
streams, Nexmark and TPC-H.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from comparisons import COMPARISONS
from outcome import FOLDER

_HERE = Path(__file__).parent
_REPLAYED = shlex.quote(str(FOLDER / "stream_replay.json"))

PROGRAMS = (
    *("construction.py", "open_windows.py", "latency.py", "startup.py"),
    *(f"run.py {comparison.name}" for comparison in COMPARISONS),
)
STREAMS = (
    # The slower of the two per-key contenders would take as long as all the others.
    f"stream_replay.py --runs 2 --contenders native_sql native_python rows penstock --results {_REPLAYED}",
    "stream_latency.py",
    "stream_empty_batches.py",
    "stream_shards.py",
    "live_view.py",
    "stream_state.py",
    "stream_stateful.py",
    "stream_join.py",
    "stream_table.py",
    "nexmark/run.py",
    "nexmark/run.py --sql",
    "sql_speed.py",
    "tpch.py",
    "tpch_views.py",
)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the programs with their own defaults, prints the time of each, and continues if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", action="store_true", help="also streams, Nexmark and TPC-H")
    settings = parser.parse_args(given)
    failed = [program for program in PROGRAMS + (STREAMS if settings.streams else ()) if not _runs(program)]
    subprocess.run([sys.executable, str(_HERE / "page.py")], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _runs(program: str) -> bool:
    """True if a program did what it had to."""
    print(f"== {program}", flush=True)
    start = time.monotonic()
    name, *arguments = shlex.split(program)
    done = subprocess.run([sys.executable, str(_HERE / name), *arguments])
    print(f"== {program} took {time.monotonic() - start:.0f} s", end="\n\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
