"""The laws of the machine hold for whatever the generators make, and each finds the breaks that it is there for."""

from __future__ import annotations

import inspect

import pytest

from tests.machines import (
    laws_of_combining,
    laws_of_cost,
    laws_of_cuts,
    laws_of_merging,
    laws_of_panes,
    laws_of_refinement,
    laws_of_retraction,
    mutants,
    mutants_of_combining,
    mutants_of_cost,
)
from tests.machines.law_book import Law
from tests.machines.mutants import Mutant

KILLED_BY: dict[Law, tuple[Mutant, ...]] = {
    laws_of_refinement.the_modes_agree: (
        mutants.discarding_panes_hold_what_was_before,
        mutants.panes_share_what_the_window_goes_on_holding,
    ),
    laws_of_refinement.the_end_is_as_reckoned: (
        mutants.merged_windows_hold_what_the_first_held,
        mutants.rounds_begin_with_empty_windows,
        mutants.there_is_no_closing_pane,
        mutants.one_retraction_is_forgotten,
    ),
    laws_of_refinement.no_value_is_taken_back_that_does_not_stand: (
        mutants.retractions_come_twice,
        mutants.panes_share_what_the_window_goes_on_holding,
    ),
    laws_of_refinement.nothing_is_lost: (
        mutants.there_is_no_closing_pane,
        mutants.elements_are_dropped_in_silence,
        mutants.whatever_is_dropped_had_expired,
        mutants.closed_windows_open_again,
        mutants.late_panes_come_twice,
    ),
    laws_of_retraction.a_second_grouping_undoes_what_the_first_takes_back: (
        mutants.retractions_count_as_elements,
        mutants.debts_are_forgotten,
        mutants.retractions_come_twice,
    ),
    laws_of_retraction.sessions_hold_what_is_not_taken_back: (
        mutants.what_has_merged_stays_merged,
        mutants.windows_in_which_nothing_is_left_reach_as_far_as_before,
        mutants.what_came_apart_has_nothing_to_take_back,
        mutants.retractions_count_as_elements,
    ),
    laws_of_cuts.storing_the_state_changes_nothing: (
        mutants.stored_triggers_start_anew,
        mutants.stored_holds_are_lost,
        mutants.stored_debts_are_lost,
        mutants.stored_alarms_are_lost,
    ),
    laws_of_cuts.keys_do_not_see_each_other: (mutants.keys_share_their_agendas,),
    laws_of_cuts.small_steps_of_time_do_what_a_large_one_does: (
        mutants.every_step_of_the_watermark_fires,
        mutants.timers_ring_when_the_step_is_over,
    ),
    laws_of_cuts.rounds_may_be_cut_anywhere: (mutants.rounds_begin_with_empty_windows,),
    laws_of_cuts.batch_is_streaming_in_order_with_a_still_watermark: (
        mutants.batch_takes_elements_as_they_come,
        mutants.the_watermark_of_a_batch_moves,
    ),
    laws_of_cuts.what_a_trigger_says_of_itself_is_true: (
        mutants_of_cost.counts_are_said_to_wait_for_time,
        mutants_of_cost.counts_are_said_to_mind_no_elements,
    ),
    laws_of_panes.no_pane_is_behind_the_output_watermark: (
        mutants.nothing_is_held,
        mutants.late_elements_set_the_timestamp,
    ),
    laws_of_panes.what_is_taken_back_is_not_too_late: (
        mutants.nothing_is_held_for_what_merged_windows_have_given,
        mutants.what_windows_owe_is_forgotten_when_they_merge_again,
    ),
    laws_of_panes.what_waits_is_held_for: (
        mutants.nothing_is_held,
        mutants.only_the_newest_element_is_held_for,
        mutants.holds_are_never_let_go,
    ),
    laws_of_panes.panes_are_numbered_and_none_follows_the_last: (
        mutants.merged_windows_go_on_counting,
        mutants.late_panes_come_twice,
        mutants.closed_windows_open_again,
    ),
    laws_of_panes.timings_tell_where_the_watermark_was: (
        mutants.the_end_is_passed_at_every_visit,
        mutants.elements_at_the_end_of_a_window_are_early,
    ),
    laws_of_merging.sessions_are_the_same_in_any_order_of_arrival: (
        mutants.only_the_window_before_is_asked,
        mutants.merged_windows_hold_what_the_first_held,
    ),
    laws_of_merging.trigger_states_merge_in_any_order: (
        mutants.counts_of_merged_windows_are_the_first_one,
        mutants.merged_turns_go_on_where_the_last_one_was,
    ),
    laws_of_merging.what_windows_hold_merges_in_any_order: (
        mutants.merged_windows_hold_what_the_first_held,
        mutants.debts_are_not_paid_by_other_windows,
    ),
    laws_of_merging.a_merged_trigger_knows_what_one_window_would: (
        mutants.counts_of_merged_windows_are_the_largest,
        mutants.counts_of_merged_windows_are_the_first_one,
    ),
    laws_of_combining.punctual_elements_may_come_together: (
        mutants_of_combining.counts_are_said_to_tell_no_one_from_many,
        mutants_of_combining.triggers_at_each_element_are_said_to_tell_no_one_from_many,
        mutants_of_combining.arrivals_replace_what_was_there,
        mutants_of_combining.triggers_hear_of_no_arrivals,
        mutants_of_combining.only_the_earliest_timestamp_is_kept,
        mutants_of_combining.only_the_latest_timestamp_is_kept,
        mutants_of_combining.sessions_that_touch_are_one,
    ),
    laws_of_combining.in_the_end_it_is_the_same_whether_elements_come_together: (
        mutants_of_combining.triggers_that_finish_are_given_arrivals,
        mutants_of_combining.arrivals_replace_what_was_there,
        mutants_of_combining.arrivals_count_as_one_element,
        mutants_of_combining.one_producer_is_enough,
        mutants_of_combining.arrivals_are_dropped_in_silence,
    ),
    laws_of_combining.a_trigger_that_tells_no_one_from_many_is_told_all_by_one: (
        mutants_of_combining.counts_are_said_to_tell_no_one_from_many,
        mutants_of_combining.any_late_trigger_is_said_to_tell_no_one_from_many,
    ),
    laws_of_cost.the_work_does_not_grow_with_the_windows: (
        mutants_of_cost.many_windows_are_asked,
        mutants_of_cost.a_long_session_is_near_to_all,
        mutants_of_cost.every_window_is_visited,
    ),
    laws_of_cost.the_state_does_not_grow_with_the_elements: (
        mutants_of_cost.alarms_pile_up,
        mutants_of_cost.holds_pile_up,
        mutants_of_cost.panes_that_were_taken_back_are_kept,
    ),
}
"""Each law, with the breaks that it has to find."""

LAW_MODULES = (
    laws_of_refinement,
    laws_of_retraction,
    laws_of_cuts,
    laws_of_panes,
    laws_of_merging,
    laws_of_combining,
    laws_of_cost,
)
PAIRS = [(law, mutant) for law, killers in KILLED_BY.items() for mutant in killers]


@pytest.mark.parametrize("law", KILLED_BY, ids=lambda law: law.name)
def test_the_law_holds(law: Law) -> None:
    law.hold()


@pytest.mark.soak
@pytest.mark.parametrize("law", KILLED_BY, ids=lambda law: law.name)
def test_the_law_holds_for_more_cases(law: Law) -> None:
    law.hold(law.usual_cases, law.cases)


@pytest.mark.parametrize(("law", "mutant"), PAIRS, ids=lambda one: getattr(one, "name", None) or one.__name__)
def test_the_law_finds_the_break(law: Law, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert law.broken() is not None


def test_every_law_finds_a_break_and_every_break_offends_a_law() -> None:
    laws = {value for module in LAW_MODULES for value in vars(module).values() if isinstance(value, Law)}
    assert laws == set(KILLED_BY)
    assert all(KILLED_BY.values())
    breaks = {
        value
        for module in (mutants, mutants_of_combining, mutants_of_cost)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert breaks == {mutant for killers in KILLED_BY.values() for mutant in killers}


def test_every_law_says_where_it_is_from() -> None:
    assert [law.name for law in KILLED_BY if "(" not in law.says] == []
