"""Pipelines whose shape, or whose data's shape, might cost more than it should: long chains, hot keys, wide rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cache, reduce
from typing import Any

import penstock as beam
from totals import STEPS, all_steps, step

_HOT_PARTS = 8

Body = Callable[[Any], Any]
"""A function from lines to lines."""


def run(pipeline: Any, job: str, source: str, target: str) -> None:
    """Runs a job from a text file to a folder of text files."""
    with pipeline:
        lines = pipeline | beam.io.ReadFromText(source)
        _ = JOBS[job](lines) | beam.io.WriteToText(f"{target}/part")


def many_steps(lines: Any) -> Any:
    """A chain of a `Map` for each step."""
    numbers = lines | beam.Map(int)
    stepped = reduce(lambda before, label: before | f"Step{label}" >> beam.Map(step), range(STEPS), numbers)
    return _summed(stepped)


def one_step(lines: Any) -> Any:
    """One `Map` that calls the function as often."""
    return _summed(lines | beam.Map(int) | beam.Map(all_steps))


def _summed(numbers: Any) -> Any:
    return numbers | beam.CombineGlobally(sum) | beam.Map(lambda total: f"sum\t{total}")


def combined(lines: Any) -> Any:
    """Sums by key."""
    return lines | beam.Map(_pair) | beam.CombinePerKey(sum) | beam.MapTuple(_show)


def combined_in_parts(lines: Any) -> Any:
    """Sums by key, in two rounds."""
    sums = beam.CombinePerKey(sum).with_hot_key_fanout(_HOT_PARTS)
    return lines | beam.Map(_pair) | sums | beam.MapTuple(_show)


def grouped(lines: Any) -> Any:
    """Sums by key, from groups of all values."""
    return _summed_groups(lines | beam.Map(_pair))


def moments(lines: Any) -> Any:
    """Counts by key and second, from groups in windows of a second."""

    def parse(line: str) -> Any:
        key, second = line.split(",")
        return beam.window.TimestampedValue((key, 1), int(second))

    def show(key_ones: tuple[str, Iterable[int]], window: Any = beam.DoFn.WindowParam) -> str:
        return f"{key_ones[0]} {int(window.start)}\t{sum(key_ones[1])}"

    windowed = lines | beam.Map(parse) | beam.WindowInto(beam.window.FixedWindows(1))
    return windowed | beam.GroupByKey() | beam.Map(show)


def sizes(lines: Any) -> Any:
    """Sums of lengths by key, from groups of values that are as large as the lines say."""

    def inflated(line: str) -> tuple[str, bytes]:
        key, size = _pair(line)
        return key, _noise(size)

    groups = lines | beam.Map(inflated) | beam.GroupByKey()
    return groups | beam.MapTuple(lambda key, values: _show(key, sum(map(len, values))))


def rows(lines: Any) -> Any:
    """Sums of a field by key, from groups of rows that have all fields."""

    def parse(line: str) -> tuple[str, beam.Row]:
        key, *values = line.split(",")
        return key, beam.Row(**dict(zip(_names(len(values)), map(int, values), strict=True)))

    groups = lines | beam.Map(parse) | beam.GroupByKey()
    return groups | beam.MapTuple(lambda key, found: _show(key, sum(row.field0 for row in found)))


@cache
def _noise(size: int) -> bytes:
    """Bytes that no compression makes smaller."""
    return random.Random(size).randbytes(size)


@cache
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"field{number}" for number in range(count))


def _pair(line: str) -> tuple[str, int]:
    key, number = line.split(",")
    return key, int(number)


def _show(key: str, total: int) -> str:
    return f"{key}\t{total}"


def _summed_groups(pairs: Any) -> Any:
    return pairs | beam.GroupByKey() | beam.MapTuple(lambda key, values: _show(key, sum(values)))


JOBS: dict[str, Body] = {
    "many_steps": many_steps,
    "one_step": one_step,
    "combined": combined,
    "combined_in_parts": combined_in_parts,
    "grouped": grouped,
    "moments": moments,
    "sizes": sizes,
    "rows": rows,
}
