"""Measures a whole process that starts Spark, does a tiny piece of work and ends: penstock's and a plain PySpark one.

Run it with ``python benchmarks/startup.py``. The processor time counts all processes, Java's and the workers' too,
until the last one has ended; the wall time is that until the program itself has ended, which its user waits for.
The first two turns do not count: the second start writes the archive of classes that later ones read.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from options import ROOT
from outcome import FOLDER, write_numbers
from stream_report import markdown

_TINY = Path(__file__).with_name("tiny.py")
_BECOME_PARENT_OF_ORPHANS = 36
_WARMING_STARTS = 2

ENTRANTS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "pyspark": ("PySpark", ("pyspark",), {}),
    "penstock": ("penstock", ("penstock",), {}),
    "no_archive": (
        "penstock, first start (no archive of classes)",
        ("penstock",),
        {"PENSTOCK_CLASS_ARCHIVE": "0"},
    ),
    "fast_start": ("penstock, `--fast_start`, for tests", ("penstock", "--fast_start"), {}),
}
"""Titles, arguments and environment; the first one is what the others are compared with."""


def adopt_orphans() -> None:
    """Makes this process the parent of what a child leaves behind, so that its processor time is known; needs Linux."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_BECOME_PARENT_OF_ORPHANS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system does not let a process adopt orphans")


def timed(
    program: Path, arguments: Sequence[str], environment: dict[str, str], log: Path
) -> tuple[float, float]:
    """The wall seconds of a program, and the processor seconds of all processes that it has started."""
    before, start = _children_seconds(), time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
        code = process.wait()
    wall = time.perf_counter() - start
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if code:
        raise RuntimeError(f"{' '.join(arguments)} ended with {code}: see {log}")
    return wall, _children_seconds() - before


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(names: Sequence[str], runs: int, folder: Path) -> dict[str, Any]:
    """All starts, in turns."""
    from penstock_spark.session.java import ensure_java

    java = {"JAVA_HOME": ensure_java(), "PYSPARK_PYTHON": sys.executable}
    # If a Java is installed, penstock finds it.
    given = {name: java if name == "pyspark" else ENTRANTS[name][2] for name in names}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for turn in range(_WARMING_STARTS + runs):
        for name in names:
            times = timed(_TINY, ENTRANTS[name][1], given[name], folder / f"startup-{name}.log")
            if turn >= _WARMING_STARTS:
                found[name].append(times)
    return {name: summary(ENTRANTS[name][0], each) for name, each in found.items()}


def summary(title: str, times: list[tuple[float, float]]) -> dict[str, Any]:
    """The medians and all runs of a contender."""
    walls, cpus = ([round(seconds, 3) for seconds in column] for column in zip(*times, strict=True))
    medians = {
        "median_wall_seconds": round(statistics.median(walls), 3),
        "median_cpu_seconds": round(statistics.median(cpus), 3),
    }
    return {"title": title, **medians, "wall_seconds": walls, "cpu_seconds": cpus}


def table(contenders: dict[str, Any]) -> str:
    """A row for each contender."""
    base = next(iter(contenders.values()))
    rows = [
        (
            found["title"],
            *(f"{found[kind]:.2f}" for kind in ("median_wall_seconds", "median_cpu_seconds")),
            *(f"{found[kind] / base[kind]:.2f}" for kind in ("median_wall_seconds", "median_cpu_seconds")),
        )
        for found in contenders.values()
    ]
    return markdown(("a whole process", "wall s", "CPU s", "times the wall s", "times the CPU s"), rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="how many starts of each to count")
    parser.add_argument("--contenders", nargs="+", choices=ENTRANTS, default=list(ENTRANTS))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for logs")
    parser.add_argument("--results", type=Path, default=FOLDER / "startup.json")
    settings = parser.parse_args(given)
    settings.folder.mkdir(parents=True, exist_ok=True)
    adopt_orphans()
    numbers = measure(settings.contenders, settings.runs, settings.folder)
    print(table(numbers))
    write_numbers(settings.results, len(os.sched_getaffinity(0)), {"contenders": numbers})


if __name__ == "__main__":
    main()
