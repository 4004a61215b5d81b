"""Groupings made at random: windows and triggers of all kinds, modes, lateness, and ways of combining."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Event
from penstock.transforms.trigger import (
    AccumulationMode,
    ClosingBehavior,
    DataLossReason,
    OnTimeBehavior,
    Repeatedly,
)
from penstock.transforms.window import (
    BoundedSessions,
    CalendarWindows,
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    PerElementFixedWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    UnalignedFixedWindows,
    WindowFn,
)
from penstock.windows.windowing import Windowing
from tests.machines.generated_triggers import random_trigger

FOREVER = 10**9
"""An allowed lateness, in seconds, that no generated watermark comes to the end of before the input ends."""


class Sum(CombineFn):
    """Adds numbers; what is not a number counts nothing."""

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: Any) -> int:
        return accumulator + (element or 0)

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


class ReversibleSum(Sum):
    """The same, and can take a number back."""

    def subtract_input(self, accumulator: int, element: Any) -> int:
        return accumulator - (element or 0)


class Listing(CombineFn):
    """Gives out its very accumulator, and goes on changing it in place."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        accumulator.append(element)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        first, *others = accumulators
        for other in others:
            first.extend(other)
        return first

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        return accumulator


class Largest(CombineFn):
    """The largest number; None of none."""

    def create_accumulator(self) -> None:
        return None

    def add_input(self, accumulator: int | None, element: Any) -> int | None:
        return self.merge_accumulators((accumulator, element))

    def merge_accumulators(self, accumulators: Iterable[int | None]) -> int | None:
        return max((number for number in accumulators if number is not None), default=None)

    def extract_output(self, accumulator: int | None) -> int | None:
        return accumulator


COMBINES: dict[str, CombineFn | None] = {
    "values": None,
    "sum": Sum(),
    "reversible sum": ReversibleSum(),
    "listing": Listing(),
    "largest": Largest(),
}


class LabelledWindow(IntervalWindow):
    """A window that carries data of its element."""

    def __init__(self, start: Any, end: Any, label: int) -> None:
        super().__init__(start, end)
        self.label = label

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and getattr(other, "label", None) == self.label

    def __hash__(self) -> int:
        return hash((self.start_micros, self.end_micros, self.label))


class LabelledSessions(WindowFn):
    """Sessions of odd and of even values, which do not mind each other: a custom WindowFn that is asked about all."""

    def assign(self, context: WindowFn.AssignContext) -> list[LabelledWindow]:
        _, value = context.element
        return [LabelledWindow(context.timestamp, context.timestamp + 3, (value or 0) % 2)]

    def merge(self, context: WindowFn.MergeContext) -> None:
        for label in (0, 1):
            self._merge([window for window in context.windows if window.label == label], label, context)

    def _merge(self, windows: list[Any], label: int, context: WindowFn.MergeContext) -> None:
        run: list[Any] = []
        for window in sorted(windows, key=lambda window: window.start_micros):
            if run and window.start_micros >= max(one.end_micros for one in run):
                self._close(run, label, context)
                run = []
            run.append(window)
        self._close(run, label, context)

    def _close(self, run: list[Any], label: int, context: WindowFn.MergeContext) -> None:
        if len(run) > 1:
            latest = max(run, key=lambda window: window.end_micros)
            context.merge(run, LabelledWindow(run[0].start, latest.end, label))

    def __repr__(self) -> str:
        return "LabelledSessions()"


def seconds_of(element: Any) -> int:
    _, value = element
    return 4 if value is None or value % 3 else 7


WindowFnMaker = Callable[[Random], WindowFn]

OF_SECONDS: tuple[WindowFnMaker, ...] = (
    lambda random: FixedWindows(random.choice((3, 10)), random.choice((0, 1))),
    lambda random: FixedWindows(5),
    lambda random: SlidingWindows(6, 2),
    lambda random: SlidingWindows(5, 5, 1),
    lambda random: SlidingWindows(3, 5),
    lambda random: GlobalWindows(),
    lambda random: UnalignedFixedWindows(6),
    lambda random: PerElementFixedWindows(seconds_of),
)
FIXED: tuple[WindowFnMaker, ...] = (*OF_SECONDS, lambda random: CalendarWindows.days(1))
SESSIONS: tuple[WindowFnMaker, ...] = (lambda random: Sessions(random.choice((1, 3)), random.random() < 0.5),)
OTHER_MERGING: tuple[WindowFnMaker, ...] = (
    lambda random: BoundedSessions(3, 8, random.random() < 0.5),
    lambda random: LabelledSessions(),
)
ALL_WINDOWS = (FIXED, SESSIONS, OTHER_MERGING)


@dataclass(frozen=True)
class Case:
    """A grouping and a recorded input."""

    windowing: Windowing
    combine: str
    events: tuple[Event, ...]

    def machine(self, mode: AccumulationMode | None = None, input_retracts: bool = False) -> GroupingMachine:
        """Its machine, in its own accumulation mode or another one."""
        windowing = self.windowing if mode is None else replace(self.windowing, accumulation_mode=mode)
        return GroupingMachine(windowing, COMBINES[self.combine], input_retracts)

    def __str__(self) -> str:
        events = "".join(f"\n    {event}," for event in self.events)
        return f"{self.windowing}\ncombine: {self.combine}\nevents: [{events}\n]"


def may_finish(windowing: Windowing) -> bool:
    """True if its trigger may fire for the last time while elements still come."""
    return DataLossReason.MAY_FINISH in windowing.triggerfn.may_lose_data(windowing)


def may_open_again(windowing: Windowing) -> bool:
    """True if a second window may have the same bounds: closed ones merge no more, so that others form anew."""
    return windowing.windowfn.is_merging() and may_finish(windowing)


def random_windowing(
    random: Random,
    windows: Sequence[Sequence[WindowFnMaker]] = ALL_WINDOWS,
    is_endless: bool = False,
    lateness: Sequence[float] = (0, 4, FOREVER),
) -> Windowing:
    """Any windowing.

    Args:
        random: Decides.
        windows: Groups of windows to choose from.
        is_endless: Whether the trigger has to go on for ever.
        lateness: To choose from, in seconds.
    """
    windowfn = random.choice(random.choice(windows))(random)
    trigger = random_trigger(random)
    arguments = {
        "accumulation_mode": random.choice(tuple(AccumulationMode)),
        "timestamp_combiner": random.choice(
            (
                TimestampCombiner.OUTPUT_AT_EOW,
                TimestampCombiner.OUTPUT_AT_EARLIEST,
                TimestampCombiner.OUTPUT_AT_LATEST,
                TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED,
            )
        ),
        "allowed_lateness": random.choice(lateness),
        "on_time_behavior": random.choice(tuple(OnTimeBehavior)),
        "closing_behavior": random.choice(tuple(ClosingBehavior)),
    }
    windowing = Windowing(windowfn, trigger, **arguments)
    if is_endless and may_finish(windowing):
        return replace(windowing, triggerfn=Repeatedly(trigger))
    return windowing
