"""Groupings whose windows can be kept in columns: which ones they are, and the few facts that say when they fire.

Windows of such a grouping do not merge, output times are the windows' ends, and nothing is retracted. The trigger is
the common one, early, at the end and late; or one that repeats, in windows that take nothing after their end, such as
the global one. So all keys of a window wait for its end, and what differs from key to key is a handful of numbers,
which need no machine for each key (see `penstock.machines.window_columns`).
"""

from __future__ import annotations

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
    """The operations on the partial result of a key in a window; a key without elements has none."""

    add: Callable[[Any, Any], Any]  # What is held, with one more value.
    first: Callable[[Any], Any]  # What is held of a first value.
    merge: Callable[[Any, Any], Any]  # What is held of two parts; the first may change.
    result: Callable[[Any], Any]  # The value of a pane.
    nothing: Callable[[], Any]  # The value of a pane in which there is nothing.


def holding_of(contents: Contents, keeps: bool) -> Holding:
    """Returns the operations of a grouping; `keeps` says whether windows keep their elements after a pane."""
    return Holding(
        add=contents.add,
        first=lambda value: contents.add(contents.empty(), value),
        merge=lambda one, other: contents.merge([one, other]),
        result=lambda held: contents.result(held, keeps),
        nothing=lambda: contents.result(contents.empty(), keeps),
    )


@dataclass(frozen=True)
class ColumnRule:
    """The rule by which the windows of a grouping fire.

    The first element of a key in a window whose end has passed fires in any case.

    The watermark goes back where a source is added to a stream. A window that had ended may then be open again: it has
    ended for the keys that it had, and a new key waits for its end.
    """

    program: GroupingProgram
    early: Total | ClockDelay | None  # What fires repeatedly before the end; None if nothing does.
    late: Total | ClockDelay  # The same for elements after the end.
    # True if a key has a pane at the end of a window in which it has nothing new.
    fires_empty_at_end: bool
    # True if late elements fire because the watermark is past the end. If it has gone back, they wait for it.
    late_waits_for_end: bool


def column_rule(windowing: Windowing, combine: Any, input_retracts: bool) -> ColumnRule | None:
    """Returns the rule by which the windows of a grouping fire; None if it needs a machine for each key.

    >>> from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
    >>> from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions
    >>> column_rule(Windowing(FixedWindows(60)), None, False).late
    Total(enough=1, weight=None)
    >>> early = AfterWatermark(early=AfterCount(5))
    >>> column_rule(Windowing(FixedWindows(60), early, AccumulationMode.DISCARDING), None, False).early
    Total(enough=5, weight=None)
    >>> nines = Windowing(GlobalWindows(), Repeatedly(AfterCount(9)), AccumulationMode.DISCARDING)
    >>> column_rule(nines, None, False).early
    Total(enough=9, weight=None)
    >>> column_rule(Windowing(Sessions(60)), None, False) is None
    True
    """
    # The quick checks come first: a grouping that needs a machine for each key pays for them as well.
    if windowing.windowfn.is_merging() or input_retracts:
        return None
    program = program_of(windowing, combine, input_retracts)
    loses = DataLossReason.MAY_FINISH in windowing.triggerfn.may_lose_data(windowing)
    is_together = program.output_times.together is not None
    if program.retracts or is_together or loses:
        return None
    found = _early_and_late(program.trigger)
    if found is None and not program.lateness_micros:
        # At its end a window emits its last pane, whatever its trigger says, and is over.
        repeated = _simple(program.trigger)
        found = None if repeated is None else (repeated, None)
    if found is None:
        return None
    early, late = found
    return ColumnRule(program, early, late or Total(1), program.fires_empty_at_end, late is None)


def _early_and_late(
    trigger: TriggerMachine,
) -> tuple[Total | ClockDelay | None, Total | ClockDelay | None] | None:
    """Returns what fires before and after the end, if that is simple enough; None stands for the end alone."""
    match trigger:
        case Repeat(EndOfWindow(1.0)) | EndOfWindow(1.0):
            # Both fire at every element after the end.
            return None, None
        case EarlyAndLate(early, late):
            before = None if isinstance(early, Never) else _simple(early)
            # Without a late trigger no window outlives its end, and so nothing comes late.
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
    """The pane information of one firing, by the numbers of earlier panes and of earlier panes that were not early.

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
