"""Groupings whose windows can be kept in columns: which ones they are, and the few facts that say when they fire.

Where windows do not merge, output times are the windows' ends, nothing is taken back, and the trigger is the common
one, early, at the end and late, the end of a window is what all of its keys wait for. What differs from key to key is a
handful of numbers, for which no machine of the key's own is needed (see `penstock.machines.window_columns`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.machines.composite_triggers import EarlyAndLate, Repeat
from penstock.machines.contents import Contents
from penstock.machines.program import GroupingProgram, program_of
from penstock.machines.simple_triggers import ClockDelay, EndOfWindow, Never, Total
from penstock.machines.trigger_machine import TriggerMachine
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming
from penstock.windows.triggers import DataLossReason
from penstock.windows.windowing import Windowing


@dataclass(frozen=True)
class Holding:
    """The operations on what a key holds in a window; nothing is never held, but asked for.

    Attributes:
        add: What is held, with one more value.
        first: What is held of a first value.
        merge: What is held of two parts; the first may change.
        result: The value of a pane.
        nothing: The value of a pane in which there is nothing.
    """

    add: Callable[[Any, Any], Any]
    first: Callable[[Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    nothing: Callable[[], Any]


def holding_of(contents: Contents, keeps: bool) -> Holding:
    """The operations of a grouping of any kind.

    Args:
        contents: Those of its machine.
        keeps: Whether a window still holds its elements after a pane.
    """
    return Holding(
        add=contents.add,
        first=lambda value: contents.add(contents.empty(), value),
        merge=lambda one, other: contents.merge([one, other]),
        result=lambda held: contents.result(held, keeps),
        nothing=lambda: contents.result(contents.empty(), keeps),
    )


SUMS = Holding(
    add=operator.add,
    first=lambda value: 0 + value,
    merge=operator.add,
    result=lambda held: 0 + held,
    nothing=lambda: 0,
)
"""The operations of sums that are held as what they come to.

>>> SUMS.result(SUMS.merge(2, 3))
5
"""

COUNTS = Holding(
    add=lambda held, value: held + 1,
    first=lambda value: 1,
    merge=operator.add,
    result=lambda held: held,
    nothing=lambda: 0,
)
"""The operations of counts."""


@dataclass(frozen=True)
class ColumnRule:
    """When the windows of a grouping fire.

    Attributes:
        program: That of its machine, which says the same of one key.
        early: What makes a window fire again and again before its end; None if nothing does.
        late: The same for what comes after its end; the first element of a key in a window fires in any case.
        fires_empty_at_end: Whether a key has a pane at the end of a window in which nothing is new for it.
    """

    program: GroupingProgram
    early: Total | ClockDelay | None
    late: Total | ClockDelay
    fires_empty_at_end: bool


def column_rule(windowing: Windowing, combine: Any, input_retracts: bool) -> ColumnRule | None:
    """When the windows of a grouping fire; None if it needs a machine for each key.

    Args:
        windowing: Its input's.
        combine: Its CombineFn; None for a raw group.
        input_retracts: Whether elements may take back earlier ones.

    >>> from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
    >>> from penstock.transforms.window import FixedWindows, Sessions
    >>> column_rule(Windowing(FixedWindows(60)), None, False).late
    Total(enough=1, weight=None)
    >>> early = AfterWatermark(early=AfterCount(5))
    >>> column_rule(Windowing(FixedWindows(60), early, AccumulationMode.DISCARDING), None, False).early
    Total(enough=5, weight=None)
    >>> column_rule(Windowing(Sessions(60)), None, False) is None
    True
    """
    program = program_of(windowing, combine, input_retracts)
    loses = DataLossReason.MAY_FINISH in windowing.triggerfn.may_lose_data(windowing)
    is_together = program.output_times.together is not None
    if program.merges or program.retracts or input_retracts or is_together or loses:
        return None
    found = _early_and_late(program.trigger)
    if found is None:
        return None
    early, late = found
    return ColumnRule(program, early, late, program.fires_empty_at_end)


def _early_and_late(trigger: TriggerMachine) -> tuple[Total | ClockDelay | None, Total | ClockDelay] | None:
    """What fires before the end and after it, if that is simple enough."""
    match trigger:
        case Repeat(EndOfWindow(1.0)):
            # After the end it fires whenever it is asked, and so does this.
            return None, Total(1)
        case EndOfWindow(1.0):
            return None, Total(1)
        case EarlyAndLate(early, late):
            before = None if isinstance(early, Never) else _simple(early)
            # Without a late trigger nothing comes late, as no window outlives its end.
            after = Total(1) if late is None else _simple(late)
            if after is None or (before is None and not isinstance(early, Never)):
                return None
            return before, after
    return None


def _simple(trigger: TriggerMachine) -> Total | ClockDelay | None:
    match trigger:
        case Repeat(Total(enough, None) as total) if enough >= 1:
            return total
        case Repeat(ClockDelay() as delay):
            return delay
    return None


class Numbering(dict[tuple[int, int], PaneInfo]):
    """The pane information of one firing, by the number of panes before and of those that were not early.

    Args:
        timing: A constant of `PaneInfoTiming`.
        is_last: Whether no pane follows.

    >>> Numbering(PaneInfoTiming.LATE, True)[3, 1]
    PaneInfo(first: False, last: True, timing: LATE, index: 3, nonspeculative_index: 1)
    """

    def __init__(self, timing: int, is_last: bool) -> None:
        super().__init__()
        self.timing = timing
        self.is_last = is_last

    def __missing__(self, numbers: tuple[int, int]) -> PaneInfo:
        panes, nonspeculative = numbers
        number = -1 if self.timing == PaneInfoTiming.EARLY else nonspeculative
        info = self[numbers] = PaneInfo(panes == 0, self.is_last, self.timing, panes, number)
        return info
