"""Measures how long a tiny pipeline takes in a session that is warm, as in a user's tests.

Run it with ``python benchmarks/latency.py``.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import penstock as beam
from outcome import FOLDER, write_numbers
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock_spark.session import SessionOptions, session_for

_WARMING_RUNS = 6
_PROFILE_LINES = 40


def tiny() -> None:
    """Create, Map, GroupByKey and an assertion."""
    with TestPipeline() as pipeline:
        grouped = (
            pipeline
            | beam.Create([("blue", 1), ("red", 2), ("blue", 3)])
            | beam.MapTuple(lambda team, score: (team, score + 1))
            | beam.GroupByKey()
            | beam.MapTuple(lambda team, scores: (team, sorted(scores)))
        )
        assert_that(grouped, equal_to([("blue", [2, 4]), ("red", [3])]))


def timed() -> float:
    """The wall seconds of one run."""
    start = time.perf_counter()
    tiny()
    return time.perf_counter() - start


def main(given: Sequence[str] | None = None) -> None:
    """Prints the median and every run, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many runs to count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--profile", action="store_true", help="show where the driver's time goes in one more run"
    )
    parser.add_argument("--results", type=Path, default=FOLDER / "latency.json")
    settings = parser.parse_args(given)
    session_for(SessionOptions(master=f"local[{settings.cores}]"))
    for _ in range(_WARMING_RUNS):
        tiny()
    runs = [round(timed(), 3) for _ in range(settings.runs)]
    median = round(statistics.median(runs), 3)
    print(f"a tiny pipeline: median of {len(runs)}: {median:.3f} s")
    print(" ".join(f"{seconds:.3f}" for seconds in runs))
    write_numbers(settings.results, settings.cores, {"median_wall_seconds": median, "wall_seconds": runs})
    if settings.profile:
        with cProfile.Profile() as profile:
            tiny()
        pstats.Stats(profile).sort_stats("cumulative").print_stats(_PROFILE_LINES)


if __name__ == "__main__":
    main()
