"""Measures what an element costs the grouping machine while few or many windows of its key are open; starts no Spark.

The elements are the same in both cases, and so are the panes: with few windows, the watermark closes each window before
the next one opens; with many, it closes all of them at the end. Run it with ``python benchmarks/open_windows.py``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from outcome import FOLDER, write_numbers
from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Element, Times
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterWatermark,
    DefaultTrigger,
    TriggerFn,
)
from penstock.transforms.window import FixedWindows, Sessions, SlidingWindows, WindowFn
from penstock.windows.windowing import Windowing

_SPACING_MICROS = 10_000_000
_OFFSETS_MICROS = (0, 1_500_000, 500_000, 3_000_000, 1_000_000)
_EARLY_AND_LATE = AfterWatermark(early=AfterCount(2), late=AfterCount(1))

CASES: dict[str, tuple[WindowFn, TriggerFn]] = {
    "fixed windows": (FixedWindows(10), DefaultTrigger()),
    "fixed windows, early and late panes": (FixedWindows(10), _EARLY_AND_LATE),
    "sliding windows, two for each element": (SlidingWindows(10, 5), DefaultTrigger()),
    "sessions": (Sessions(2), DefaultTrigger()),
    "sessions, early and late panes": (Sessions(2), _EARLY_AND_LATE),
}


class Sum(CombineFn):
    """Adds numbers up."""

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: int) -> int:
        return accumulator + element

    def merge_accumulators(self, accumulators: Any) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


def elements(machine: GroupingMachine, windows: int) -> list[list[Element]]:
    """The elements of each stretch of time that holds one session or one fixed window."""

    def stretch(start_micros: int) -> Iterator[Element]:
        for offset_micros in _OFFSETS_MICROS:
            timestamp_micros = start_micros + offset_micros
            yield Element(1, timestamp_micros, machine.assign(timestamp_micros))

    return [list(stretch(number * _SPACING_MICROS)) for number in range(windows)]


def micros_per_element(machine: GroupingMachine, stretches: list[list[Element]], open_windows: int) -> float:
    """The wall microseconds for an element, panes included; all windows close after `open_windows` stretches."""
    key, times = machine.new_key(), Times(MIN_MICROS, 0)
    panes = 0
    start = time.perf_counter()
    for number, stretch in enumerate(stretches, 1):
        for element in stretch:
            panes += len(machine.element(key, element, times))
        if number % open_windows == 0:
            times = Times(number * _SPACING_MICROS, 0)
            panes += len(machine.advance_watermark(key, times))
    panes += len(machine.advance_watermark(key, Times(MAX_MICROS, 0)))
    seconds = time.perf_counter() - start
    assert panes >= len(stretches)
    assert not key.windows
    return seconds / sum(map(len, stretches)) * 1e6


def main(given: Sequence[str] | None = None) -> None:
    """Prints the medians and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--results", type=Path, default=FOLDER / "open_windows.json")
    settings = parser.parse_args(given)
    numbers: dict[str, Any] = {"windows": settings.windows}
    for name, (windowfn, trigger) in CASES.items():
        machine = GroupingMachine(Windowing(windowfn, trigger, AccumulationMode.ACCUMULATING), Sum())
        stretches = elements(machine, settings.windows)
        runs = [
            [micros_per_element(machine, stretches, count) for count in (1, settings.windows)]
            for _ in range(settings.runs)
        ]
        few, many = (round(statistics.median(column), 2) for column in zip(*runs, strict=True))
        print(
            f"{name}: {few:.2f} µs with 1 open, {many:.2f} µs with {settings.windows:,}: {many / few:.2f} times"
        )
        numbers[name] = {"few_micros": few, "many_micros": many, "ratio": round(many / few, 2), "runs": runs}
    write_numbers(settings.results, 1, numbers)


if __name__ == "__main__":
    main()
