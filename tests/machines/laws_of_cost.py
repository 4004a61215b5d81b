"""The laws of cost: the work for an element does not grow with the windows, nor the state with the elements."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from types import FrameType
from typing import Any

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MIN_MICROS, Element, Times
from penstock.transforms.trigger import (
    AfterAny,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import (
    BoundedSessions,
    FixedWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    WindowFn,
)
from penstock.windows.windowing import Windowing
from tests.machines.generated import ReversibleSum
from tests.machines.generated_events import SECOND
from tests.machines.generated_triggers import AfterQuiet
from tests.machines.law_book import law_of_each
from tests.machines.outcomes import ACCUMULATING, DISCARDING, RETRACTING

WINDOWS: tuple[WindowFn, ...] = (
    Sessions(10),
    BoundedSessions(10, 15),
    FixedWindows(10),
    SlidingWindows(10, 5),
)
TRIGGERS: tuple[TriggerFn, ...] = (
    DefaultTrigger(),
    AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    Repeatedly(AfterProcessingTime(5)),
    Repeatedly(AfterAny(AfterCount(3), AfterProcessingTime(10))),
    Repeatedly(AfterQuiet(3)),
)


def work_of(action: Callable[[], None]) -> int:
    """How many lines of Python an action runs, each turn of a loop anew: a measure that no other process disturbs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@dataclass(frozen=True)
class Crowd:
    """A grouping of one key that has many windows open, in streaming or in micro-batches."""

    windowing: Windowing
    is_in_rounds: bool


class CrowdedKey:
    """That key: every step opens one more window, adds to one that is open, and lets go of the oldest.

    Args:
        crowd: The grouping.
        windows: How many windows are open.
    """

    def __init__(self, crowd: Crowd, windows: int) -> None:
        self._machine = GroupingMachine(crowd.windowing, ReversibleSum())
        self._key = self._machine.new_key()
        self._windows = windows
        self._times = Times(MIN_MICROS, 0, expiry_micros=MIN_MICROS if crowd.is_in_rounds else None)
        if isinstance(crowd.windowing.windowfn, Sessions):
            # One that is longer than all others together is no neighbour of theirs.
            long = IntervalWindow(-60 * windows, -20)
            self._machine.element(self._key, Element(1, long.start_micros, (long,)), self._times)
        for number in range(windows):
            self._open(number)
        self._end_micro_batch()

    def _open(self, number: int) -> None:
        self._times = self._times._replace(clock_micros=number * SECOND)
        self._add(20 * number * SECOND)
        self._machine.advance_clock(self._key, self._times)

    def _add(self, timestamp_micros: int) -> None:
        element = Element(1, timestamp_micros, self._machine.assign(timestamp_micros))
        self._machine.element(self._key, element, self._times)
        self._machine.hold_micros(self._key)

    def _end_micro_batch(self) -> None:
        if self._times.expiry_micros is not None:
            self._machine.end_micro_batch(self._key, self._times)

    def step(self, number: int) -> None:
        """One step."""
        self._open(self._windows + number)
        self._add((20 * (number + self._windows // 2) + 3) * SECOND)
        self._end_micro_batch()
        name = "watermark_micros" if self._times.expiry_micros is None else "expiry_micros"
        self._times = self._times._replace(**{name: (20 * number + 14) * SECOND})
        self._machine.advance(self._key, self._times)


CROWDS = [
    Crowd(Windowing(windowfn, trigger, ACCUMULATING), is_in_rounds)
    for windowfn, (trigger, is_in_rounds) in product(
        WINDOWS, ((TRIGGERS[0], True), (TRIGGERS[1], False), (TRIGGERS[3], False), (TRIGGERS[4], False))
    )
]


@law_of_each(CROWDS)
def the_work_does_not_grow_with_the_windows(crowd: Crowd) -> None:
    """An element, a step of the watermark and one of the clock take as long with 500 open windows as with 10.

    Counted in lines of Python, and at most half as much again; for fixed and sliding windows and for sessions, and for
    the end of a round in which few windows changed. (Design, section 5: a shard holds many windows; the patent bounds
    the state by them, and the work must not follow.)
    """
    work = []
    for windows in (10, 500):
        key = CrowdedKey(crowd, windows)
        for number in range(6):
            key.step(number)
        work.append(sum(work_of(functools.partial(key.step, number)) for number in range(6, 22)))
    few, many = work
    assert many <= 1.5 * few, f"{few} lines with 10 windows, {many} with 500"


def in_three_windows(number: int) -> int:
    return number % 3 * 100_000


def in_growing_sessions(number: int) -> int:
    return number % 3 * 100_000 + number


def in_a_session_that_grows_backwards(number: int) -> int:
    return -number


def in_sessions_that_are_bridged(number: int) -> int:
    """Two sessions and then the element between them, which also joins what was before."""
    return number // 3 * 18 + (12, 0, 6)[number % 3]


@dataclass(frozen=True)
class Flow:
    """A grouping and the event times of its elements, in seconds, by their numbers."""

    windowing: Windowing
    seconds: Callable[[int], int]


def sizes_of(flow: Flow, counts: tuple[int, ...]) -> list[int]:
    """The sizes of the stored state of a key, in bytes, after so many elements."""
    machine = GroupingMachine(flow.windowing, ReversibleSum())
    key = machine.new_key()
    sizes = []
    for number in range(max(counts)):
        micros = flow.seconds(number) * SECOND
        times = Times(min(micros, 99_000 * SECOND) - 50 * SECOND, number * SECOND // 4)
        if flow.seconds is not in_sessions_that_are_bridged:
            times = times._replace(watermark_micros=MIN_MICROS)
        machine.element(key, Element(1, micros, machine.assign(micros)), times)
        machine.advance(key, times)
        machine.hold_micros(key)
        if number + 1 in counts:
            sizes.append(len(machine.snapshot(key)))
    return sizes


SHAPES = (
    (FixedWindows(50_000), in_three_windows),
    (Sessions(10), in_growing_sessions),
    (Sessions(10), in_a_session_that_grows_backwards),
    (Sessions(10), in_sessions_that_are_bridged),
)
EARLIEST, END = TimestampCombiner.OUTPUT_AT_EARLIEST, TimestampCombiner.OUTPUT_AT_EOW
FLOWS = [
    Flow(Windowing(windowfn, trigger, mode, combiner), seconds)
    for (windowfn, seconds), (trigger, mode, combiner) in product(
        SHAPES,
        (
            (TRIGGERS[0], DISCARDING, EARLIEST),
            (TRIGGERS[1], RETRACTING, EARLIEST),
            (TRIGGERS[3], ACCUMULATING, END),
        ),
    )
]


@law_of_each(FLOWS)
def the_state_does_not_grow_with_the_elements(flow: Flow) -> None:
    """With a CombineFn that keeps one number, the state after 2,000 elements is as large as after 100.

    In as many windows; also for sessions that grow, forwards, backwards and by merging. (Patent: with a combiner the
    state is the partial aggregate of each window within the lateness; Streaming Systems, chapter 1.)
    """
    few, many = sizes_of(flow, (100, 2_000))
    # A few larger numbers take a few bytes more.
    assert many <= 1.1 * few + 64, f"{few} bytes after 100 elements, {many} after 2,000"
