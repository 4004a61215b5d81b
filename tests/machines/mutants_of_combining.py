"""Deliberate breaks of what the machine does with combined elements, and of what triggers say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.machines import arrivals, composite_triggers, program
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Arrival, Dropped
from penstock.machines.simple_triggers import AfterCountMachine, AlwaysMachine
from penstock.windows.output_times import OutputTimes

# What triggers say of themselves.


def counts_are_said_to_tell_no_one_from_many(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AfterCountMachine, "tells_one_from_many", False)


def triggers_at_each_element_are_said_to_tell_no_one_from_many(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlwaysMachine, "tells_one_from_many", False)


def any_late_trigger_is_said_to_tell_no_one_from_many(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(composite_triggers, "_tells_one_from_many_late", lambda late: False)


def triggers_that_finish_are_given_arrivals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(program, "_may_combine", lambda windowing, machine: not machine.tells_one_from_many)


# What the machine does.


def _arriving(patch: pytest.MonkeyPatch, change: Any) -> None:
    """What arrives is changed before the machine takes it."""
    arrival = GroupingMachine.arrival
    patch.setattr(
        GroupingMachine,
        "arrival",
        lambda self, key, whole, times: arrival(self, key, change(whole), times),
    )


def arrivals_count_as_one_element(patch: pytest.MonkeyPatch) -> None:
    _arriving(patch, lambda whole: replace(whole, count=1))


def one_producer_is_enough(patch: pytest.MonkeyPatch) -> None:
    def first_of(program: Any, window: Any, group: list[Arrival]) -> Arrival:
        return replace(group[0], window=window)

    patch.setattr(arrivals, "_as_one", first_of)


def sessions_that_touch_are_one(patch: pytest.MonkeyPatch) -> None:
    runs = arrivals.merge_runs
    patch.setattr(arrivals, "merge_runs", lambda windows, merge_touching: runs(windows, True))


def arrivals_replace_what_was_there(patch: pytest.MonkeyPatch) -> None:
    take = GroupingMachine._take_together

    def replacing(self: GroupingMachine, state: Any, arrival: Arrival, status: Any) -> None:
        take(self, state, arrival, status)
        state.held = arrival.held

    patch.setattr(GroupingMachine, "_take_together", replacing)


def arrivals_are_dropped_in_silence(patch: pytest.MonkeyPatch) -> None:
    arrival = GroupingMachine.arrival

    def silent(*arguments: Any) -> Any:
        return [one for one in arrival(*arguments) if not isinstance(one, Dropped)]

    patch.setattr(GroupingMachine, "arrival", silent)


def triggers_hear_of_no_arrivals(patch: pytest.MonkeyPatch) -> None:
    take = GroupingMachine._take_together

    def in_silence(self: GroupingMachine, state: Any, arrival: Arrival, status: Any) -> None:
        trigger = state.trigger
        take(self, state, arrival, status)
        state.trigger = trigger

    patch.setattr(GroupingMachine, "_take_together", in_silence)


def only_the_earliest_timestamp_is_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputTimes, "needed", lambda self, timestamps: tuple(sorted(timestamps)[:1]))


def only_the_latest_timestamp_is_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputTimes, "needed", lambda self, timestamps: tuple(sorted(timestamps)[-1:]))
