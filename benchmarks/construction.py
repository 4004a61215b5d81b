"""Measures how long 1,000 transforms take to be built and explained, which starts no Spark.

Run it with ``python benchmarks/construction.py``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import penstock as beam
from outcome import FOLDER, write_numbers

_BRANCH_TRANSFORMS = 10


def chain(start: Any, transforms: int) -> None:
    """One transform after the other."""
    for number in range(transforms):
        start |= f"Step{number}" >> beam.Map(lambda value: value)


def branches(start: Any, transforms: int) -> None:
    """Many small pipelines from one input, of the kinds of transform that programs are made of."""
    for number in range(transforms // _BRANCH_TRANSFORMS):
        even = start | f"Even{number}" >> beam.Filter(lambda value: value % 2 == 0)
        odd = start | f"Odd{number}" >> beam.Filter(lambda value: value % 2 == 1)
        both = (even, odd) | f"Both{number}" >> beam.Flatten()
        keyed = both | f"Key{number}" >> beam.Map(lambda value: (value % 10, value))
        windowed = keyed | f"Window{number}" >> beam.WindowInto(beam.window.FixedWindows(60))
        groups = windowed | f"Group{number}" >> beam.GroupByKey()
        sums = windowed | f"Sum{number}" >> beam.CombinePerKey(sum)
        sizes = groups | f"Size{number}" >> beam.MapTuple(lambda key, values: (key, len(list(values))))
        joined = {"sums": sums, "sizes": sizes} | f"Join{number}" >> beam.CoGroupByKey()
        _ = joined | f"Show{number}" >> beam.Map(str)


def timed(build: Callable[[Any, int], None], transforms: int) -> tuple[float, float]:
    """The wall seconds of building and of explaining."""
    start = time.perf_counter()
    pipeline = beam.Pipeline()
    build(pipeline | beam.Create(range(10)), transforms)
    built = time.perf_counter()
    pipeline.explain()
    return built - start, time.perf_counter() - built


def main(given: Sequence[str] | None = None) -> None:
    """Prints the medians and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transforms", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5, help="how many runs to count, after one that is not")
    parser.add_argument("--results", type=Path, default=FOLDER / "construction.json")
    settings = parser.parse_args(given)
    numbers: dict[str, Any] = {"transforms": settings.transforms}
    for build in (chain, branches):
        runs = [timed(build, settings.transforms) for _ in range(settings.runs + 1)][1:]
        built, explained = (round(statistics.median(column), 3) for column in zip(*runs, strict=True))
        print(
            f"{build.__name__}: {settings.transforms:,} built in {built:.3f} s, explained in {explained:.3f} s"
        )
        numbers[build.__name__] = {"build_seconds": built, "explain_seconds": explained}
    write_numbers(settings.results, 1, numbers)


if __name__ == "__main__":
    main()
