"""What is held back until the panes of sessions that have merged are taken back; times are in seconds."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Event
from penstock.machines.reference_engine import ReferenceEngine
from penstock.transforms.trigger import AfterCount, AfterWatermark
from penstock.transforms.window import Sessions, TimestampCombiner
from penstock.windows.windowing import Windowing
from tests.machines.shorthand import (
    ACCUMULATING,
    DISCARDING,
    RETRACTING,
    SECOND,
    element,
    told,
    watermark,
    windowed,
)


def sessions(early: int, lateness: float = 0, mode: Any = RETRACTING, **more: Any) -> Windowing:
    """Sessions with a gap of ten seconds, an early pane of so many elements, and late ones of nine."""
    trigger = AfterWatermark(early=AfterCount(early), late=AfterCount(9))
    return windowed(Sessions(10), trigger, mode, lateness, **more)


def several(*seconds: float) -> list[Event]:
    return [element("a", moment) for moment in seconds]


def holds(windowing: Windowing, *events: Event) -> list[float | None]:
    """What is held back after each event, before which the state is stored and read again."""
    player = ReferenceEngine(GroupingMachine(windowing))
    found = []
    for event in events:
        player.play(event)
        player.cut()
        hold_micros = player.hold_micros
        found.append(None if hold_micros is None else hold_micros / SECOND)
    return found


def test_an_old_session_is_held_for_until_the_longer_one_takes_it_back() -> None:
    """Otherwise the watermark would pass its end, and whatever follows in the same windows would find it over."""
    events = [*several(0, 1, 8), watermark(12), watermark(18)]
    assert told(sessions(2), *events) == [
        "1: ['a', 'a'] [0.0, 11.0) early",
        "4: -['a', 'a'] [0.0, 11.0) on time",
        "4: ['a', 'a', 'a'] [0.0, 18.0) on time",
    ]
    assert holds(sessions(2), *events) == [9.999999, None, 10.999999, 10.999999, None]


def test_an_early_pane_of_the_longer_session_lets_go_of_the_old_one() -> None:
    assert holds(sessions(2), *several(0, 1, 8, 9)) == [9.999999, None, 10.999999, None]


def test_the_earliest_of_the_old_sessions_is_held_for() -> None:
    events = [*several(15, 15, 0, 0, 8), watermark(12), element("a", 16)]
    assert holds(sessions(2), *events) == [24.999999, None, 9.999999, None, 9.999999, 9.999999, None]


def test_what_is_owed_stays_owed_when_sessions_merge_again() -> None:
    events = [*several(0, 0, 0, 8), watermark(12), element("a", 15), watermark(20), watermark(25)]
    assert holds(sessions(3), *events)[2:] == [None, *[9.999999] * 4, None]


def test_an_old_session_whose_end_has_passed_is_held_for_within_the_lateness() -> None:
    """The output may have passed its end, and does not go back."""
    events = [element("a", 0), watermark(12), element("late", 9), watermark(16), watermark(19)]
    assert told(sessions(5, lateness=5), *events) == [
        "1: ['a'] [0.0, 10.0) on time",
        "4: -['a'] [0.0, 10.0) on time",
        "4: ['a', 'late'] [0.0, 19.0) on time",
    ]
    assert holds(sessions(5, lateness=5), *events) == [9.999999, None, 14.999999, 14.999999, None]


def test_a_retraction_is_held_for_at_its_timestamp_unless_that_has_passed() -> None:
    windowing = sessions(2, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    assert holds(windowing, *several(1, 2, 8)) == [1, None, 1]
    assert holds(windowing, *several(1, 2), watermark(5), *several(11.5)) == [1, None, None, 11.5]


def test_what_is_owed_is_found_when_what_was_held_for_before_has_gone() -> None:
    windowing = sessions(4, timestamp_combiner=TimestampCombiner.OUTPUT_AT_LATEST)
    # The old session ends at 12.
    events = [*several(1, 1, 2, 2), watermark(5), *several(8, 11, 17)]
    assert holds(windowing, *events)[3:] == [None, None, 8, 11, 11.999999]
    player = ReferenceEngine(GroupingMachine(windowing))
    for event in events:
        player.play(event)
    assert player.hold_micros == 12 * SECOND - 1


def test_a_pane_of_the_same_session_needs_no_hold_of_its_own() -> None:
    assert holds(sessions(2), *several(0, 1, 0.5)) == [9.999999, None, 10.999999]
    assert holds(sessions(2, 5), *several(0, 1), watermark(12), *several(0.5))[-1] is None


@pytest.mark.parametrize("mode", [DISCARDING, ACCUMULATING])
def test_a_grouping_that_does_not_retract_owes_nothing(mode: Any) -> None:
    assert holds(sessions(2, mode=mode), *several(0, 1, 8)) == [9.999999, None, 17.999999]
