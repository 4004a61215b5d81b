"""Groupings whose windows can be kept in columns: which ones they are, and the few facts that say when they fire.

Windows of such a grouping do not merge, output times are the windows' ends, and nothing is retracted. The trigger is
the common one, early, at the end and late; or one that repeats, in windows that take nothing after their end, such as
the global one. So all keys of a window wait for its end, and what differs from key to key is a handful of numbers,
which need no machine for each key (see `penstock.machines.window_machine`).
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.machines.composite_triggers import AfterWatermarkMachine, RepeatedlyMachine
from penstock.machines.program import GroupingProgram, program_of
from penstock.machines.simple_triggers import (
    AfterCountMachine,
    AfterProcessingTimeMachine,
    EndOfWindowMachine,
    NeverMachine,
)
from penstock.machines.trigger_machine import TriggerMachine
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming
from penstock.windows.triggers import DataLossReason
from penstock.windows.windowing import Windowing

SimpleTrigger = AfterCountMachine | AfterProcessingTimeMachine
"""A trigger by which windows may fire repeatedly."""


@dataclass(frozen=True)
class WindowRule:
    """Says when the windows of a grouping fire.

    The first element of a key in a window whose end has passed fires in any case.

    The watermark goes back where a source is added to a stream. A window that had ended may then be open again: it has
    ended for the keys that it had, and a new key waits for its end.
    """

    program: GroupingProgram
    early: SimpleTrigger | None  # What fires repeatedly before the end; None if nothing does.
    late: SimpleTrigger  # The rule for elements after the end.
    # True if a key has a pane at the end of a window in which nothing is new for it.
    fires_empty_at_end: bool
    # True if late elements fire because the watermark is past the end. If it has gone back, they wait for it.
    late_waits_for_end: bool


def window_rule(windowing: Windowing, combine: object, input_retracts: bool) -> WindowRule | None:
    """Returns when the windows of a grouping fire; None if it needs a machine for each key.

    >>> from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
    >>> from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions
    >>> window_rule(Windowing(FixedWindows(60)), None, False).late
    AfterCountMachine(enough=1, weight=None)
    >>> early = AfterWatermark(early=AfterCount(5))
    >>> window_rule(Windowing(FixedWindows(60), early, AccumulationMode.DISCARDING), None, False).early
    AfterCountMachine(enough=5, weight=None)
    >>> nines = Windowing(GlobalWindows(), Repeatedly(AfterCount(9)), AccumulationMode.DISCARDING)
    >>> window_rule(nines, None, False).early
    AfterCountMachine(enough=9, weight=None)
    >>> window_rule(Windowing(Sessions(60)), None, False) is None
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
    return WindowRule(program, early, late or AfterCountMachine(1), program.fires_empty_at_end, late is None)


def _early_and_late(
    trigger: TriggerMachine,
) -> (
    tuple[
        SimpleTrigger | None,
        SimpleTrigger | None,
    ]
    | None
):
    """Returns what fires before the end and after it, if that is simple enough; None stands for the end alone."""
    match trigger:
        case RepeatedlyMachine(EndOfWindowMachine(1.0)) | EndOfWindowMachine(1.0):
            # Both fire at every element after the end.
            return None, None
        case AfterWatermarkMachine(early, late):
            before = None if isinstance(early, NeverMachine) else _simple(early)
            # Without a late trigger no window outlives its end, and so nothing comes late.
            after = AfterCountMachine(1) if late is None else _simple(late)
            if after is None or (before is None and not isinstance(early, NeverMachine)):
                return None
            return before, after
    return None


def _simple(trigger: TriggerMachine) -> SimpleTrigger | None:
    match trigger:
        case RepeatedlyMachine(AfterCountMachine(enough, None) as total) if enough >= 1:
            return total
        case RepeatedlyMachine(AfterProcessingTimeMachine() as delay):
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
