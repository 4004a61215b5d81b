"""What panes hold, take back and are labelled with, and what they hold back; each rule with its source."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Pane, Signal
from penstock.machines.reference_engine import ReferenceEngine
from penstock.transforms.trigger import (
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    ClosingBehavior,
    Never,
    OnTimeBehavior,
    Repeatedly,
)
from penstock.transforms.window import (
    Sessions,
    SlidingWindows,
    TimestampCombiner,
)
from penstock.utils.windowed_value import ValueKind
from penstock.windows.windowing import Windowing
from tests.machines.generated import Listing, ReversibleSum, Sum
from tests.machines.shorthand import (
    ACCUMULATING,
    DISCARDING,
    RETRACTING,
    clock,
    element,
    in_tens,
    micros,
    outcome,
    shown,
    taken_back,
    told,
    watermark,
    windowed,
)

EACH = Repeatedly(AfterCount(1))
EACH_UNTIL_THE_END = AfterWatermark(early=AfterCount(1))


# Panes.


def test_there_is_a_pane_at_the_end_without_anything_new_if_the_windowing_says_so() -> None:
    """Beam's on-time pane, which the figures do not have."""
    trigger = AfterWatermark(early=AfterCount(1))
    events = (element("a", 3), watermark(10))
    early = "0: ['a'] [0.0, 10.0) early"
    always = OnTimeBehavior.FIRE_ALWAYS
    assert told(in_tens(trigger), *events) == [early]
    assert told(in_tens(trigger, on_time_behavior=always), *events) == [early, "1: ['a'] [0.0, 10.0) on time"]
    assert told(in_tens(trigger, DISCARDING, on_time_behavior=always), *events) == [
        early,
        "1: [] [0.0, 10.0) on time",
    ]


def test_a_combine_fn_that_has_no_result_of_nothing_gives_no_empty_pane() -> None:
    windowing = in_tens(
        AfterWatermark(early=AfterCount(1)), DISCARDING, on_time_behavior=OnTimeBehavior.FIRE_ALWAYS
    )
    events = (element(3, 3), watermark(10))
    assert shown(windowing, *events, combine=Sum()) == [(0, 3), (1, 0)]
    assert shown(windowing, *events, combine=CombineFn.from_callable(max)) == [(0, 3)]


def test_what_has_not_fired_comes_when_the_window_closes() -> None:
    """Beam's closing pane."""
    events = (element("a", 3), watermark(10), watermark(15))
    assert told(in_tens(Never(), lateness=5), *events) == ["2: ['a'] [0.0, 10.0) late"]
    default = in_tens(None, lateness=5)
    assert told(default, *events) == ["1: ['a'] [0.0, 10.0) on time"]
    closing = in_tens(None, lateness=5, closing_behavior=ClosingBehavior.FIRE_ALWAYS)
    [on_time, last] = [one.emitted for one in outcome(closing, *events)]
    assert isinstance(last, Pane)
    assert isinstance(on_time, Pane)
    assert (on_time.info.is_last, last.info.is_last, last.value) == (False, True, ["a"])


def test_panes_of_one_moment_come_in_order_of_the_windows_ends() -> None:
    """Paper, figure 10: windows are emitted as the watermark advances."""
    events = [element(number, seconds) for number, seconds in enumerate((25, 5, 15))]
    for engine in ("streaming", "micro_batch", "batch"):
        assert [value for _, value in shown(in_tens(None), *events, engine=engine, finish=True)] == [
            [1],
            [2],
            [0],
        ]


def test_elements_come_before_the_watermark_and_the_watermark_before_timers() -> None:
    """The figures of the paper and of Streaming Systems: the order at one instant."""
    windowing = in_tens(AfterWatermark(early=AfterProcessingTime(5)), DISCARDING)
    events = (element("a", 3, 0), element("b", 4, 5), watermark(10, 5), clock(5))
    assert told(windowing, *events) == ["2: ['a', 'b'] [0.0, 10.0) on time"]


def test_elements_come_before_timers_also_after_a_signal_at_the_same_instant() -> None:
    windowing = in_tens(Repeatedly(AfterProcessingTime(5)), DISCARDING)
    signal = Signal("which nobody waits for", micros(5))
    assert shown(windowing, element("a", 3, 0), signal, element("b", 3, 5), clock(5)) == [(3, ["a", "b"])]


def test_the_numbers_of_panes_start_anew_when_windows_merge() -> None:
    windowing = windowed(Sessions(10), EACH)
    panes = [one.emitted for one in outcome(windowing, element(1, 0), element(2, 0), element(3, 5))]
    numbers = [(pane.info.is_first, pane.info.index) for pane in panes if isinstance(pane, Pane)]
    assert numbers == [(True, 0), (False, 1), (True, 0)]


def test_a_pane_keeps_its_value_when_more_elements_come() -> None:
    played = outcome(in_tens(EACH), element(1), element(2), combine=Listing())
    assert [one.emitted.value for one in played if isinstance(one.emitted, Pane)] == [[1], [1, 2]]


# Refinement.


def test_a_pane_takes_back_the_one_before_it_first() -> None:
    """Paper, section 2.3."""
    played = outcome(in_tens(EACH, RETRACTING), element(5, 1), element(9, 2), combine=Sum())
    panes = [one.emitted for one in played if isinstance(one.emitted, Pane)]
    assert [(pane.kind, pane.value) for pane in panes] == [
        (ValueKind.INSERT, 5),
        (ValueKind.UPDATE_BEFORE, 5),
        (ValueKind.UPDATE_AFTER, 14),
    ]


def test_a_session_takes_back_those_that_merged_under_their_own_windows() -> None:
    """Paper, figure 14: one new window replaces several, each of which is taken back in its own window."""
    windowing = windowed(Sessions(10), EACH, RETRACTING)
    events = (element(7, 0), element(10, 15), element(8, 8))
    assert told(windowing, *events, combine=Sum()) == [
        "0: 7 [0.0, 10.0) early",
        "1: 10 [15.0, 25.0) early",
        "2: -7 [0.0, 10.0) early",
        "2: -10 [15.0, 25.0) early",
        "2: 25 [0.0, 25.0) early",
    ]
    kinds = [one.emitted.kind for one in outcome(windowing, *events) if isinstance(one.emitted, Pane)]
    assert kinds[2:] == [ValueKind.DELETE, ValueKind.DELETE, ValueKind.INSERT]


def test_a_retraction_has_the_timestamp_of_what_it_takes_back() -> None:
    """It refers to that value; so a later step puts both into the same window."""
    windowing = in_tens(EACH, RETRACTING, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    played = outcome(windowing, element(1, 3), element(2, 4))
    assert [one.emitted.timestamp_micros for one in played if isinstance(one.emitted, Pane)] == [
        micros(3),
        micros(3),
        micros(4),
    ]


@pytest.mark.parametrize("combine", [None, Sum(), CombineFn.from_callable(max)])
def test_a_window_whose_elements_are_all_taken_back_only_takes_back(combine: Any) -> None:
    """Paper, section 2.3: also without ``subtract_input``."""
    played = outcome(in_tens(EACH, RETRACTING), element(5), taken_back(5), element(6), combine=combine)
    kinds = [one.emitted.kind for one in played if isinstance(one.emitted, Pane)]
    assert kinds == [ValueKind.INSERT, ValueKind.DELETE, ValueKind.INSERT]


def test_a_discarding_pane_gives_what_was_taken_back_since_as_a_retraction() -> None:
    """Paper, section 2.3: retractions flow through the groupings that follow."""
    assert told(in_tens(EACH, DISCARDING), element("a"), taken_back("a"), element("b")) == [
        "0: ['a'] [0.0, 10.0) early",
        "1: -['a'] [0.0, 10.0) early",
        "2: ['b'] [0.0, 10.0) early",
    ]


@pytest.mark.parametrize("mode", [DISCARDING, ACCUMULATING, RETRACTING])
def test_a_window_whose_elements_were_taken_back_before_its_first_pane_gives_none(mode: Any) -> None:
    events = (element("a"), taken_back("a"), watermark(10))
    assert told(in_tens(None, mode), *events) == []


def test_what_is_taken_back_before_it_comes_is_not_forgotten_with_a_pane_that_is_left_out() -> None:
    windowing = in_tens(Repeatedly(AfterCount(2)), DISCARDING)
    events = (taken_back(5), element(3), element(5), element(4))
    assert shown(windowing, *events, combine=ReversibleSum()) == [(3, 7)]


# Timestamps and holds.


def timestamps(windowing: Windowing, *events: Any) -> list[float]:
    played = outcome(windowing, *events)
    return [one.emitted.timestamp_micros / 1_000_000 for one in played if isinstance(one.emitted, Pane)]


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        (TimestampCombiner.OUTPUT_AT_EOW, 9.999999),
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 5),
        (TimestampCombiner.OUTPUT_AT_LATEST, 7),
    ],
)
def test_the_timestamp_of_a_pane_is_not_of_a_late_element(combiner: Any, expected: float) -> None:
    """Streaming Systems, chapter 3: not before the earliest record that is not late."""
    windowing = in_tens(None, timestamp_combiner=combiner)
    events = (watermark(4), element("late", 3), element("a", 7), element("b", 5), watermark(10))
    assert timestamps(windowing, *events) == [expected]


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        (TimestampCombiner.OUTPUT_AT_EOW, 24.999999),
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 0),
        (TimestampCombiner.OUTPUT_AT_LATEST, 15),
    ],
)
def test_the_timestamp_of_a_merged_pane_is_that_of_one_window_with_all_elements(
    combiner: Any, expected: float
) -> None:
    windowing = windowed(Sessions(10), timestamp_combiner=combiner)
    assert timestamps(windowing, element(1, 0), element(2, 15), element(3, 8), watermark(25)) == [expected]


def test_a_pane_of_late_elements_alone_has_the_end_of_its_window() -> None:
    windowing = in_tens(None, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    assert timestamps(windowing, watermark(20), element("late", 3)) == [9.999999]


def test_the_earliest_element_holds_the_output_until_its_pane_and_late_ones_do_not() -> None:
    """Streaming Systems, chapter 3."""
    windowing = in_tens(EACH, DISCARDING, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    waiting = in_tens(None, DISCARDING, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    for rule, expected in ((windowing, None), (waiting, micros(7))):
        player = ReferenceEngine(GroupingMachine(rule))
        player.play(watermark(4))
        player.play(element("a", 7))
        assert player.hold_micros == expected
        player.play(watermark(10))
        player.play(element("late", 3))
        assert player.hold_micros is None


def test_a_pane_at_the_end_is_held_for_although_nothing_waits_in_it() -> None:
    """The empty pane on time has the last moment of its window, and so must not be behind the output."""
    windowing = in_tens(EACH_UNTIL_THE_END, DISCARDING, on_time_behavior=OnTimeBehavior.FIRE_ALWAYS)
    player = ReferenceEngine(GroupingMachine(windowing))
    player.play(element("a", 3))
    assert player.hold_micros == micros(10) - 1
    player.play(watermark(10))
    assert player.hold_micros is None


@pytest.mark.parametrize("mode", [DISCARDING, ACCUMULATING, RETRACTING])
def test_a_pane_that_is_left_out_lets_go_of_its_hold(mode: Any) -> None:
    """All that the window held has been taken back: downstream must not wait for it."""
    player = ReferenceEngine(GroupingMachine(in_tens(None, mode), ReversibleSum(), input_retracts=True))
    for event in (element(5, 3), taken_back(5, 3), watermark(20)):
        assert player.play(event) == []
    assert player.hold_micros is None


def test_overlapping_windows_do_not_hold_each_other_back() -> None:
    """Streaming Systems, chapter 3: the output timestamp of a window is after the end of the one before it."""
    windowing = windowed(
        SlidingWindows(10, 5), None, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED
    )
    assert timestamps(windowing, element("a", 6), watermark(20)) == [6, 10]
    player = ReferenceEngine(GroupingMachine(windowing))
    player.play(element("a", 6))
    player.play(watermark(10))
    assert player.hold_micros == micros(10)
