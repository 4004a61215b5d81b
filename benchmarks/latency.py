"""Measures how long a tiny pipeline takes in a session that is warm, as in a user's tests, and the same in PySpark.

Run it with ``python benchmarks/latency.py``. All take turns in one session.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tiny
from outcome import FOLDER, write_numbers
from penstock.testing.test_pipeline import TestPipeline
from penstock_spark.session.session import SessionOptions, session_for
from processes import tree_cpu_seconds
from stream_report import markdown

_PROFILE_LINES = 40

Run = Callable[[], None]


def entrants(spark: Any) -> dict[str, tuple[str, Run]]:
    """The entrants that take turns, with titles; the others are compared with the first one."""
    return {
        "frames": ("data frames and `mapInArrow`", lambda: tiny.frames_on(spark)),
        "penstock": ("penstock", lambda: tiny.pipeline_on(TestPipeline())),
        "columns": ("data frames, no Python", lambda: tiny.columns_on(spark)),
        "rdd": ("PySpark's RDDs", lambda: tiny.datasets_on(spark)),
    }


def timed(run: Run) -> tuple[float, float]:
    """The seconds of one run, by wall and by processors."""
    cpu, wall = tree_cpu_seconds(os.getpid()), time.perf_counter()
    run()
    return time.perf_counter() - wall, tree_cpu_seconds(os.getpid()) - cpu


def measure(contenders: dict[str, tuple[str, Run]], warming_runs: int, runs: int) -> dict[str, Any]:
    """All runs, in turns, after some that do not count."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(warming_runs + runs):
        for name, (_, run) in contenders.items():
            times = timed(run)
            if turn >= warming_runs:
                found[name].append(times)
    return {name: summary(contenders[name][0], each) for name, each in found.items()}


def summary(title: str, times: list[tuple[float, float]]) -> dict[str, Any]:
    """The median by wall and the mean by processors, whose ticks are too long for a single run."""
    walls = [round(wall, 3) for wall, _ in times]
    return {
        "title": title,
        "median_wall_seconds": round(statistics.median(walls), 3),
        "mean_cpu_seconds": round(statistics.mean(cpu for _, cpu in times), 3),
        "wall_seconds": walls,
    }


def table(contenders: dict[str, Any]) -> str:
    """A row for each contender."""
    base = next(iter(contenders.values()))["median_wall_seconds"]
    rows = [
        (
            found["title"],
            f"{found['median_wall_seconds']:.3f}",
            f"{min(found['wall_seconds']):.3f} to {max(found['wall_seconds']):.3f}",
            f"{found['mean_cpu_seconds']:.2f}",
            f"{found['median_wall_seconds'] / base:.2f}",
        )
        for found in contenders.values()
    ]
    return markdown(("a tiny pipeline", "wall s", "each run", "CPU s", "times as long"), rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many runs to count")
    parser.add_argument("--warming-runs", type=int, default=30, help="how many runs not to count before them")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--profile", action="store_true", help="show where the driver's time goes in one more run"
    )
    parser.add_argument("--results", type=Path, default=FOLDER / "latency.json")
    settings = parser.parse_args(given)
    contenders = entrants(session_for(SessionOptions(master=f"local[{settings.cores}]")))
    numbers = measure(contenders, settings.warming_runs, settings.runs)
    print(table(numbers))
    write_numbers(settings.results, settings.cores, {"contenders": numbers})
    if settings.profile:
        with cProfile.Profile() as profile:
            contenders["penstock"][1]()
        pstats.Stats(profile).sort_stats("cumulative").print_stats(_PROFILE_LINES)


if __name__ == "__main__":
    main()
