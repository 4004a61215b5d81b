"""Defines what the machines of one grouping share: its windowing and its combiner, prepared for quick use."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.elements.bounded_window import BoundedWindow
from penstock.functions.folds import Fold
from penstock.machines.folds import fold_for
from penstock.machines.records import MAX_MICROS
from penstock.machines.separable_values import separable_fold
from penstock.machines.trigger_machine import TriggerMachine
from penstock.machines.triggers import looks_at_last_pane, machine_of, waits_for_arrivals
from penstock.windows.output_times import OutputTimes, output_times_of
from penstock.windows.triggers import AccumulationMode, ClosingBehavior, DataLossReason, OnTimeBehavior
from penstock.windows.window_fn import MergeScope, Sessions, WindowFn
from penstock.windows.windowing import Windowing


@dataclass(frozen=True)
class GroupingProgram:
    """A grouping, prepared."""

    windowfn: WindowFn
    trigger: TriggerMachine
    fold: Fold  # Makes what a window holds of its elements.
    output_times: OutputTimes
    lateness_micros: int  # How long after its end a window takes elements.
    keeps: bool  # Whether a window still holds its elements after a pane.
    retracts: bool  # Whether a pane retracts the one before.
    remembers: bool  # Whether the trigger looks at the last pane.
    fires_empty_at_end: bool  # Whether there is a pane at the end of a window in which nothing is new.
    fires_empty_when_closing: bool  # Whether there is a last pane in which nothing is new.
    merges: bool  # Whether windows may merge.
    merges_in_order: bool  # Whether they merge only with windows near them, so that their order is kept.
    takes_arrivals: bool  # Whether elements of one logical time may come combined.
    # True if single elements of one logical time, some of which may be retractions, fire a window once, together.
    answers_together: bool
    # The fold of all elements of a window, if merged windows come apart when elements are retracted; otherwise None.
    together: Fold | None = None

    def expiry_micros(self, window: BoundedWindow) -> int:
        """Returns the watermark at which the window takes no more elements."""
        return min(window.end_micros + self.lateness_micros, MAX_MICROS)


def program_of(windowing: Windowing, combine: object, input_retracts: bool) -> GroupingProgram:
    """Prepares a grouping of windows with a CombineFn, or without one if `combine` is None."""
    trigger, mode = windowing.triggerfn, windowing.accumulation_mode
    always_at_end = windowing.on_time_behavior == OnTimeBehavior.FIRE_ALWAYS
    merges = windowing.windowfn.is_merging()
    machine = machine_of(trigger)
    keeps = mode != AccumulationMode.DISCARDING
    fold = fold_for(combine, input_retracts, keeps)
    # In discarding mode a window does not keep what it has given, and so cannot give it again for other windows.
    comes_apart = merges and input_retracts and keeps
    return GroupingProgram(
        windowfn=windowing.windowfn,
        trigger=machine,
        fold=separable_fold(fold) if comes_apart else fold,
        output_times=output_times_of(windowing.timestamp_combiner, windowing.windowfn),
        lateness_micros=windowing.allowed_lateness.micros,
        keeps=keeps,
        retracts=mode == AccumulationMode.ACCUMULATING_AND_RETRACTING,
        remembers=looks_at_last_pane(trigger),
        fires_empty_at_end=always_at_end and trigger.has_ontime_pane(),
        fires_empty_when_closing=windowing.closing_behavior == ClosingBehavior.FIRE_ALWAYS,
        merges=merges,
        merges_in_order=merges and windowing.windowfn.merge_scope is not MergeScope.ALL,
        takes_arrivals=not input_retracts and _may_combine(windowing, machine),
        answers_together=not merges and waits_for_arrivals(trigger) and _may_combine(windowing, machine),
        together=fold if comes_apart else None,
    )


def _may_combine(windowing: Windowing, machine: TriggerMachine) -> bool:
    """True if the elements of one logical time may be combined before windows and triggers see them."""
    # The first late element may be the last that a window takes, and then the others must be dropped.
    if DataLossReason.MAY_FINISH in windowing.triggerfn.may_lose_data(windowing):
        return False
    # A WindowFn of the user's may merge windows in an order that matters; sessions do not.
    merges_freely = type(windowing.windowfn) is Sessions or not windowing.windowfn.is_merging()
    return merges_freely and not machine.tells_one_from_many
