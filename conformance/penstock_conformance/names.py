"""The names for settings of transcripts: the model's windows, triggers and joins, and custom ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.elements.bounded_window import IntervalWindow
from penstock.functions.combinefn import CombineFn
from penstock.relations.joins import JoinRows
from penstock.relations.validity import ValidFrom, ValidityJoin
from penstock.transforms import trigger, window
from penstock.transforms.combining.ready_combiners import MeanCombineFn
from penstock.transforms.elements.pardo import ParDo
from penstock.utils.timestamp import Timestamp
from penstock.windows.custom_trigger import CustomTrigger, TriggerContext, TriggerElement, TriggerTimer
from penstock.windows.time_domain import TimeDomain
from penstock.windows.window_fn import NonMergingWindowFn, WindowFn
from penstock_conformance.own_programs import Attribution, Shown, Sides, left_row, with_product, with_time


class ReversibleSum(CombineFn):
    """A sum from which a value can be subtracted without keeping the others (the paper's ``uncombine``).

    >>> ReversibleSum().subtract_input(12, 5)
    7
    """

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, mutable_accumulator: int, element: int) -> int:
        return mutable_accumulator + element

    def subtract_input(self, mutable_accumulator: int, element: int) -> int:
        return mutable_accumulator - element

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


class _ByCondition(CustomTrigger):
    def on_merge(self, states: list[Any], context: TriggerContext) -> None:
        """Keeps nothing."""

    def on_fire(self, state: object, context: TriggerContext) -> object:
        return state


@dataclass(frozen=True)
class WhenOdd(_ByCondition):
    """Fires whenever the result is odd (the patent's example ``ResultIsOdd``)."""

    def should_fire(self, state: object, context: TriggerContext) -> bool:
        return context.count > 0 and context.value % 2 == 1


@dataclass(frozen=True)
class EveryThree(_ByCondition):
    """Fires after every three elements, by the number of elements in its window."""

    def should_fire(self, state: object, context: TriggerContext) -> bool:
        return context.count >= 3


class _ByTimer(CustomTrigger):
    def start(self) -> bool:
        return False

    def on_timer(self, state: bool, timer: TriggerTimer, context: TriggerContext) -> bool:
        return True

    def should_fire(self, state: bool, context: TriggerContext) -> bool:
        return state


@dataclass(frozen=True)
class AfterQuiet(_ByTimer):
    """Fires once when no element has arrived for some seconds: each element resets the timer."""

    seconds: int

    def on_element(self, state: bool, element: TriggerElement, context: TriggerContext) -> bool:
        context.set_timer(context.clock + self.seconds)
        return state


@dataclass(frozen=True)
class AtTheMiddle(_ByTimer):
    """Fires once when the watermark passes the middle of the window, by a timer in event time."""

    def on_element(self, state: bool, element: TriggerElement, context: TriggerContext) -> bool:
        start, end = context.window.start, context.window.end
        context.set_timer(Timestamp.from_micros((start.micros + end.micros) // 2), TimeDomain.WATERMARK)
        return state


class MinutesAndHours(NonMergingWindowFn):
    """Assigns an element to its minute and its hour; an element with a negative value to no window."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        _, value = assign_context.element
        timestamp = assign_context.timestamp
        sizes = (60, 3600) if value >= 0 else ()
        starts = ((timestamp - timestamp % size, size) for size in sizes)
        return [IntervalWindow(start, start + size) for start, size in starts]


class JoinedAtMidnight(WindowFn):
    """A window of an hour for each element; windows that end on the same day merge into the day."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        return [IntervalWindow(assign_context.timestamp, assign_context.timestamp + 3600)]

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        by_day: dict[int, list[Any]] = {}
        for one in merge_context.windows:
            by_day.setdefault((one.end_micros - 1) // 86_400_000_000, []).append(one)
        for day, windows in by_day.items():
            whole = IntervalWindow(day * 86_400, (day + 1) * 86_400)
            merge_context.merge(windows, whole)


def names() -> dict[str, Any]:
    """Everything that a setting may name."""
    public = {name: getattr(module, name) for module in (window, trigger) for name in module.__all__}
    return {
        **public,
        "sum": CombineFn.from_callable(sum),
        "largest": CombineFn.from_callable(max),
        "mean": MeanCombineFn(),
        "reversible_sum": ReversibleSum(),
        **{
            one.__name__: one
            for one in (WhenOdd, EveryThree, AfterQuiet, AtTheMiddle, JoinedAtMidnight, MinutesAndHours)
        },
        **{one.__name__: one for one in (ParDo, JoinRows, ValidFrom, ValidityJoin)},
        **{one.__name__: one for one in (Sides, Shown, Attribution, left_row, with_product, with_time)},
    }
