"""Measures a splittable DoFn of 1,000 restrictions beside a source of 1,000 pieces; both give the same numbers.

Run it with ``python benchmarks/splittable_speed.py``. Once, both claim a whole piece and give its numbers; once, both
claim each number. The same steps sum the numbers by key. The sides take turns in one session, and have to find the same
sums.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import penstock as beam
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io.custom.bounded import BoundedSource, RangeTracker, SourceBundle
from penstock.io.custom.ranges import NumberedSource, ReadFromSource, SourceRange
from penstock.io.range_trackers import OffsetRangeTracker
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.transforms.core import RestrictionProvider
from source_speed import KEYS, sums
from stream_session import start_session

PARTS = 1_000


class Numbers(NumberedSource[int]):
    """The numbers from zero on, in ranges of the same size."""

    def __init__(self, count: int) -> None:
        self.range_records = count // PARTS
        self._count = count

    def bounds(self) -> dict[str, tuple[int, int]]:
        return {"all": (0, self._count)}

    def read(self, piece: SourceRange) -> Iterator[list[int]]:
        yield list(range(piece.start, piece.end))


class NumbersClaimed(BoundedSource):
    """Numbers, each of which is claimed."""

    def __init__(self, count: int) -> None:
        self._count = count

    def estimate_size(self) -> int:
        return 8 * self._count

    def split(self, size: int, start: Any = None, stop: Any = None) -> Iterator[SourceBundle]:
        length = self._count // PARTS
        for first in range(0, self._count, length):
            yield SourceBundle(length, self, first, first + length)

    def get_range_tracker(self, start: int | None, stop: int | None) -> OffsetRangeTracker:
        return OffsetRangeTracker(start or 0, self._count if stop is None else stop)

    def read(self, tracker: RangeTracker) -> Iterator[int]:
        number = tracker.start_position()
        while tracker.try_claim(number):
            yield number
            number += 1


class Parts(RestrictionProvider):
    """Numbers in restrictions of the same size."""

    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, element)

    def split(self, element: int, restriction: OffsetRange) -> Iterator[OffsetRange]:
        return restriction.split(element // PARTS)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: int, restriction: OffsetRange) -> float:
        return restriction.size()


class Count(beam.DoFn):
    """Claims each restriction as a whole."""

    def process(self, element: int, tracker: Any = beam.DoFn.RestrictionParam(Parts())) -> Iterator[int]:
        restriction = tracker.current_restriction()
        if tracker.try_claim(restriction.stop - 1):
            yield from range(restriction.start, restriction.stop)


class CountEach(beam.DoFn):
    """Claims each number."""

    def process(self, element: int, tracker: Any = beam.DoFn.RestrictionParam(Parts())) -> Iterator[int]:
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            yield number
            number += 1


def of_number(number: int) -> tuple[int, int]:
    """A key, and the number."""
    return number % KEYS, number


class Split(beam.PTransform[Any, Any]):
    """The numbers of a splittable DoFn."""

    def __init__(self, dofn: beam.DoFn, count: int) -> None:
        super().__init__()
        self._dofn, self._count = dofn, count

    def expand(self, pbegin: Any) -> Any:
        return pbegin | beam.Create([self._count]) | beam.ParDo(self._dofn).with_output_types(int)


def main(given: Sequence[str] | None = None) -> None:
    """Prints how many times as long a splittable DoFn takes, and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=7, help="turns that count")
    parser.add_argument("--warming-turns", type=int, default=2, help="turns before them that do not")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--results", type=Path, default=FOLDER / "splittable_speed.json")
    settings = parser.parse_args(given)
    spark = start_session(settings.cores)

    count = settings.records
    numbers: dict[str, Any] = {"records": count}
    works = (
        ("pieces_claimed", ReadFromSource(Numbers(count)), Count()),
        ("records_claimed", beam.io.Read(NumbersClaimed(count)), CountEach()),
    )
    for name, read, dofn in works:

        def from_source(read: Any = read) -> dict[int, int]:
            return sums(spark, read.with_output_types(int), of_number)

        def from_dofn(dofn: beam.DoFn = dofn) -> dict[int, int]:
            return sums(spark, Split(dofn, count), of_number)

        if from_source() != from_dofn():
            raise AssertionError("the sums differ")
        found = paired(from_source, from_dofn, settings.warming_turns, settings.turns)
        numbers[name] = found
        wall, cpu = found["speed_by_wall"], found["speed_by_cpu"]
        print(f"{name}: {wall} of the speed of a source, {cpu} by CPU")
    write_numbers(settings.results, settings.cores, numbers)


if __name__ == "__main__":
    main()
