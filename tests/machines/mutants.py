"""Deliberate breaks of the machine: a law that no break offends proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.functions.folds import Fold
from penstock.machines import (
    composite_triggers,
    firing,
    folds,
    grouping,
    merging,
    reference_engine,
    separable_values,
    splitting,
    visiting,
)
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Dropped, DropReason
from penstock.machines.reference_engine import ReferenceEngine
from penstock.machines.simple_triggers import AfterCountMachine
from penstock.machines.states import AlarmQueue, KeyState
from penstock.machines.trigger_machine import select_unfinished
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind
from penstock.windows.output_times import OutputTimes

Mutant = Callable[[pytest.MonkeyPatch], None]


# What windows hold, and what they take back.


def discarding_panes_hold_what_was_before(patch: pytest.MonkeyPatch) -> None:
    def fire(program: Any, state: Any, *rest: Any) -> Any:
        held = state.held
        emitted = firing.fire(program, state, *rest)
        state.held = held
        return emitted

    patch.setattr(visiting, "fire", fire)


def merged_windows_hold_what_the_first_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fold, "merged", lambda self, several: several[0])


def _united(patch: pytest.MonkeyPatch, attribute: str) -> None:
    """One thing is not of all the windows that merge, but of the first."""
    unite = merging.unite_states

    def keeping(program: Any, key: Any, states: Any, *rest: Any) -> Any:
        kept = getattr(states[0], attribute)
        united = unite(program, key, states, *rest)
        setattr(united, attribute, kept)
        return united

    patch.setattr(merging, "unite_states", keeping)


def panes_share_what_the_window_goes_on_holding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fold, "result", lambda self, held, is_kept: self.finish(held))


def debts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    def add(held: Any, value: Any) -> Any:
        held[0].append(value)
        return held

    for module in (folds, separable_values):
        patch.setattr(module, "add_to_bag", add)


def debts_are_not_paid_by_other_windows(patch: pytest.MonkeyPatch) -> None:
    def merge(held: Any, other: Any) -> Any:
        return [*held[0], *other[0]], [*held[1], *other[1]]

    for module in (folds, separable_values):
        patch.setattr(module, "merge_bags", merge)


def retractions_count_as_elements(patch: pytest.MonkeyPatch) -> None:
    take = GroupingMachine._take
    patch.setattr(
        GroupingMachine,
        "_take",
        lambda self, state, element, *rest: take(self, state, element._replace(kind=ValueKind.INSERT), *rest),
    )


def what_has_merged_stays_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(splitting, "split_window", lambda program, key, state, *rest: [state])


def windows_in_which_nothing_is_left_reach_as_far_as_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(splitting, "is_hollow", lambda state: False)


def what_came_apart_has_nothing_to_take_back(patch: pytest.MonkeyPatch) -> None:
    parted = splitting.split_window

    def forgetting(program: Any, key: Any, state: Any, *rest: Any) -> Any:
        states = parted(program, key, state, *rest)
        for one in states[1:]:
            states[0].shown = one.shown = []
        return states

    patch.setattr(splitting, "split_window", forgetting)


def one_retraction_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    refined = firing._refined

    def forgetting(program: Any, state: Any, *rest: Any) -> Any:
        del state.shown[1:]
        return refined(program, state, *rest)

    patch.setattr(firing, "_refined", forgetting)


def retractions_come_twice(patch: pytest.MonkeyPatch) -> None:
    refined = firing._refined

    def twice(*arguments: Any) -> Any:
        emitted = refined(*arguments)
        return [pane for pane in emitted if pane.kind.is_retraction] + emitted

    patch.setattr(firing, "_refined", twice)


# What is dropped, and what comes at last.


def there_is_no_closing_pane(patch: pytest.MonkeyPatch) -> None:
    has_pane = visiting._has_pane

    def fires_only(program: Any, state: Any, fires_at_end: bool, fires: bool, is_last: bool) -> bool:
        return fires and has_pane(program, state, fires_at_end, fires, is_last)

    patch.setattr(visiting, "_has_pane", fires_only)


def elements_are_dropped_in_silence(patch: pytest.MonkeyPatch) -> None:
    element = GroupingMachine.element

    def silent(*arguments: Any) -> Any:
        return [one for one in element(*arguments) if not isinstance(one, Dropped)]

    patch.setattr(GroupingMachine, "element", silent)


def whatever_is_dropped_had_expired(patch: pytest.MonkeyPatch) -> None:
    element = GroupingMachine.element

    def expired(*arguments: Any) -> Any:
        emitted = element(*arguments)
        return [
            replace(one, reason=DropReason.EXPIRED) if isinstance(one, Dropped) else one for one in emitted
        ]

    patch.setattr(GroupingMachine, "element", expired)


def closed_windows_open_again(patch: pytest.MonkeyPatch) -> None:
    settle = visiting._settle

    def forget(program: Any, key: Any, state: Any, status: Any) -> None:
        settle(program, key, state, status)
        if state.is_closed:
            merging.remove(program, key, state)

    patch.setattr(visiting, "_settle", forget)


# What is stored, and where the input is cut.


def _restored(patch: pytest.MonkeyPatch, change: Callable[[GroupingMachine, KeyState], None]) -> None:
    restore = GroupingMachine.restore

    def changed(self: GroupingMachine, data: bytes) -> KeyState:
        key = restore(self, data)
        change(self, key)
        return key

    patch.setattr(GroupingMachine, "restore", changed)


def stored_triggers_start_anew(patch: pytest.MonkeyPatch) -> None:
    def change(machine: GroupingMachine, key: KeyState) -> None:
        for state in key.windows.values():
            if not state.is_closed:
                state.trigger = machine.program.trigger.start()

    _restored(patch, change)


def stored_holds_are_lost(patch: pytest.MonkeyPatch) -> None:
    def change(machine: GroupingMachine, key: KeyState) -> None:
        key.holds = AlarmQueue()

    _restored(patch, change)


def stored_debts_are_lost(patch: pytest.MonkeyPatch) -> None:
    def change(machine: GroupingMachine, key: KeyState) -> None:
        key.owed = {}

    _restored(patch, change)


def stored_alarms_are_lost(patch: pytest.MonkeyPatch) -> None:
    def change(machine: GroupingMachine, key: KeyState) -> None:
        key.agendas.pop("clock", None)

    _restored(patch, change)


def keys_share_their_agendas(patch: pytest.MonkeyPatch) -> None:
    new_key = GroupingMachine.new_key

    def sharing(self: GroupingMachine) -> KeyState:
        key = new_key(self)
        key.agendas = vars(self).setdefault("shared", key.agendas)
        return key

    patch.setattr(GroupingMachine, "new_key", sharing)


def timers_ring_when_the_step_is_over(patch: pytest.MonkeyPatch) -> None:
    def advance_clock(self: ReferenceEngine, clock_micros: int, to_the_end: bool, played: list[Any]) -> None:
        if to_the_end:
            self._times = self._times._replace(clock_micros=clock_micros)
            self._for_all_keys("advance_clock", played)
        else:
            self._times = self._times._replace(clock_micros=clock_micros - 1)
            self._for_all_keys("advance_clock", played)
            self._times = self._times._replace(clock_micros=clock_micros)

    patch.setattr(ReferenceEngine, "_advance_clock", advance_clock)


def every_step_of_the_watermark_fires(patch: pytest.MonkeyPatch) -> None:
    advance = GroupingMachine.advance_watermark

    def eager(self: GroupingMachine, key: KeyState, times: Any) -> Any:
        emitted = []
        for state in list(key.windows.values()):
            if state.fresh and not state.is_past_end:
                emitted += firing.fire(self.program, state, PaneInfoTiming.EARLY, False)
        return emitted + advance(self, key, times)

    patch.setattr(GroupingMachine, "advance_watermark", eager)


def rounds_begin_with_empty_windows(patch: pytest.MonkeyPatch) -> None:
    end_micro_batch = visiting.end_micro_batch

    def emptied(program: Any, key: Any, state: Any, status: Any) -> Any:
        emitted = end_micro_batch(program, key, state, status)
        state.held = program.fold.empty()
        return emitted

    patch.setattr(grouping, "end_micro_batch", emptied)


def batch_takes_elements_as_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference_engine, "sorted", lambda steps, key: list(steps), raising=False)


def the_watermark_of_a_batch_moves(patch: pytest.MonkeyPatch) -> None:
    arrive = ReferenceEngine._arrive

    def moving(self: ReferenceEngine, event: Any, played: list[Any]) -> None:
        if self.mode == "batch":
            self._set_watermark(event.timestamp_micros, {})
            self._for_all_keys("advance_watermark", played)
        arrive(self, event, played)

    patch.setattr(ReferenceEngine, "_arrive", moving)


# What panes say of themselves, and what they hold back.


def nothing_is_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visiting, "hold_of", lambda program, state: None)
    patch.setattr(grouping, "hold_of", lambda program, state: None)


def nothing_is_held_for_what_merged_windows_have_given(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merging, "find_owed_micros", lambda *arguments: None)


def what_windows_owe_is_forgotten_when_they_merge_again(patch: pytest.MonkeyPatch) -> None:
    owed_by = merging.find_owed_micros

    def of_now(program: Any, key: Any, *rest: Any) -> Any:
        key.owed.clear()
        return owed_by(program, key, *rest)

    patch.setattr(merging, "find_owed_micros", of_now)


def only_the_newest_element_is_held_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputTimes, "together_with", lambda self, before_micros, micros: micros)


def holds_are_never_let_go(patch: pytest.MonkeyPatch) -> None:
    def fire(program: Any, state: Any, *rest: Any) -> Any:
        output_micros = state.output_micros
        emitted = firing.fire(program, state, *rest)
        state.output_micros = output_micros
        return emitted

    patch.setattr(visiting, "fire", fire)


def late_elements_set_the_timestamp(patch: pytest.MonkeyPatch) -> None:
    take = GroupingMachine._take

    def take_all(self: GroupingMachine, state: Any, element: Any, *rest: Any) -> None:
        rule = self.program.output_times
        micros = rule.of_element(element.timestamp_micros, state.window)
        take(self, state, element, *rest)
        state.output_micros = rule.together_with(state.output_micros, micros)

    patch.setattr(GroupingMachine, "_take", take_all)


def merged_windows_go_on_counting(patch: pytest.MonkeyPatch) -> None:
    _united(patch, "panes")


def late_panes_come_twice(patch: pytest.MonkeyPatch) -> None:
    def fire(program: Any, state: Any, timing: int, is_last: bool) -> Any:
        emitted = firing.fire(program, state, timing, is_last)
        return emitted * 2 if timing == PaneInfoTiming.LATE else emitted

    patch.setattr(visiting, "fire", fire)


def the_end_is_passed_at_every_visit(patch: pytest.MonkeyPatch) -> None:
    def visit(program: Any, key: Any, state: Any, status: Any, has_moved: bool) -> Any:
        state.is_past_end = False
        return visiting.visit(program, key, state, status, True)

    patch.setattr(grouping, "visit", visit)


def elements_at_the_end_of_a_window_are_early(patch: pytest.MonkeyPatch) -> None:
    def fire(program: Any, state: Any, timing: int, is_last: bool) -> Any:
        return firing.fire(program, state, timing % PaneInfoTiming.LATE, is_last)

    patch.setattr(visiting, "fire", fire)


# Which windows merge, and how their triggers do.


def only_the_window_before_is_asked(patch: pytest.MonkeyPatch) -> None:
    concerned = merging.find_merge_candidates
    patch.setattr(merging, "find_merge_candidates", lambda *arguments: concerned(*arguments)[:1])


def counts_of_merged_windows_are_the_first_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AfterCountMachine, "merge", lambda self, states, status: states[0])


def counts_of_merged_windows_are_the_largest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        AfterCountMachine,
        "merge",
        lambda self, states, status: max(select_unfinished(states), default=states[0]),
    )


def merged_turns_go_on_where_the_last_one_was(patch: pytest.MonkeyPatch) -> None:
    def merge(self: Any, states: Any, status: Any) -> Any:
        return max(states, key=lambda state: sum(map(self.is_finished_part, self.parts, state)))

    patch.setattr(
        composite_triggers.AfterEachMachine,
        "is_finished_part",
        lambda self, part, state: part.is_finished(state),
        raising=False,
    )
    patch.setattr(composite_triggers.AfterEachMachine, "merge", merge)
