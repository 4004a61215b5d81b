"""What windows do: which elements they take, and which of them become one; each rule with its source."""

from __future__ import annotations

import pytest

from penstock.functions.combinefn import CombineFn
from penstock.transforms.trigger import (
    AfterCount,
    Repeatedly,
)
from penstock.transforms.window import (
    BoundedSessions,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    WindowFn,
)
from tests.machines.shorthand import (
    DISCARDING,
    RETRACTING,
    element,
    in_tens,
    shown,
    taken_back,
    told,
    watermark,
    windowed,
)

EACH = Repeatedly(AfterCount(1))


def test_a_window_closes_when_the_watermark_comes_to_its_end_and_the_lateness() -> None:
    """Streaming Systems, chapter 2: the horizon is measured in event time, by the watermark."""
    windowing = in_tens(None, DISCARDING, lateness=5)
    events = (element("a", 3), watermark(14.999999), element("b", 4), watermark(15), element("c", 5))
    assert told(windowing, *events) == [
        "1: ['a'] [0.0, 10.0) on time",
        "2: ['b'] [0.0, 10.0) late",
        "4: EXPIRED 'c'",
    ]


def test_an_element_behind_the_watermark_is_not_late_for_a_window_that_has_not_ended() -> None:
    """Streaming Systems, chapter 2: it is the window that closes, not the element that comes late."""
    windowing = in_tens(None, lateness=0)
    assert told(windowing, watermark(8), element("a", 1), watermark(10)) == ["2: ['a'] [0.0, 10.0) on time"]


def test_an_element_may_be_late_for_one_of_its_windows_only() -> None:
    """Paper, section 2.2.1: an element in several windows is as many elements."""
    windowing = windowed(SlidingWindows(10, 5), None, lateness=0)
    assert told(windowing, watermark(10), element("a", 8), watermark(15)) == [
        "1: EXPIRED 'a'",
        "2: ['a'] [5.0, 15.0) on time",
    ]


def test_an_element_in_no_window_is_in_no_pane_and_not_dropped() -> None:
    """Paper, section 2.2: zero or more windows."""
    assert told(windowed(SlidingWindows(3, 10)), element("a", 5), finish=True) == []


def test_an_old_element_joins_a_session_that_is_still_open() -> None:
    """Streaming Systems, chapter 4: sessions merge in any order of arrival; the end of the merged one counts."""
    windowing = windowed(Sessions(10), None, lateness=0)
    assert told(windowing, element("a", 9), watermark(15), element("b", 1), watermark(19)) == [
        "3: ['a', 'b'] [1.0, 19.0) on time"
    ]


# Windows that merge.


def test_elements_one_gap_apart_are_two_sessions_unless_touching_ones_merge() -> None:
    """Paper, section 1.2; its figures have sessions that touch and merge."""
    events = (element("a", 0), element("b", 10))
    assert told(windowed(Sessions(10)), *events, finish=True) == [
        "2: ['a'] [0.0, 10.0) on time",
        "2: ['b'] [10.0, 20.0) on time",
    ]
    touching = windowed(Sessions(10, merge_touching=True))
    assert told(touching, *events, finish=True) == ["2: ['a', 'b'] [0.0, 20.0) on time"]


def test_a_bounded_session_grows_up_to_its_bound() -> None:
    """Streaming Systems, chapter 4: a bound of the merging, not a cut afterwards."""
    events = [element(number, 4 * number) for number in range(5)]
    assert told(windowed(BoundedSessions(5, 14)), *events, finish=True) == [
        "5: [0, 1, 2] [0.0, 13.0) on time",
        "5: [3, 4] [12.0, 21.0) on time",
    ]


def test_sessions_that_have_given_all_away_merge_with_what_comes() -> None:
    windowing = windowed(Sessions(10), EACH, DISCARDING)
    events = (element(1, 0), element(2, 15), element(3, 8))
    assert shown(windowing, *events, combine=CombineFn.from_callable(max)) == [(0, 1), (1, 2), (2, 3)]


def test_sessions_that_merged_reach_as_far_as_what_is_left_of_them() -> None:
    windowing = windowed(Sessions(10), None, RETRACTING)
    events = (
        element(1, 0),
        element(2, 15),
        element(4, 8),
        taken_back(1, 0),
        taken_back(2, 15),
        watermark(25),
    )
    assert told(windowing, *events) == ["5: [4] [8.0, 18.0) on time"]


def test_closed_sessions_merge_no_more() -> None:
    """Beam's rule for windows that have had their last pane."""
    windowing = windowed(Sessions(10), AfterCount(2))
    events = [element(number, seconds) for number, seconds in enumerate((0, 1, 12, 8, 0))]
    assert told(windowing, *events, finish=True) == [
        "1: [0, 1] [0.0, 11.0) early",
        "3: [2, 3] [8.0, 22.0) early",
        "5: [4] [0.0, 10.0) on time",
    ]


class PairUp(WindowFn):
    """The two first windows become one as soon as there are three: the third is in neither."""

    def assign(self, context: WindowFn.AssignContext) -> list[IntervalWindow]:
        return [IntervalWindow(context.timestamp, context.timestamp + 5)]

    def merge(self, context: WindowFn.MergeContext) -> None:
        first = sorted(context.windows)[:2]
        if len(context.windows) == 3:
            context.merge(first, first[0].union(first[1]))


def test_windows_may_merge_because_of_one_that_does_not() -> None:
    events = [element(number, 20 * number) for number in range(3)]
    assert told(windowed(PairUp(), Repeatedly(AfterCount(2))), *events, finish=True) == [
        "2: [0, 1] [0.0, 25.0) early",
        "3: [2] [40.0, 45.0) on time",
    ]
    closed = told(windowed(PairUp(), AfterCount(1)), *events, finish=True)
    assert [line[:6] for line in closed] == ["0: [0]", "1: [1]", "2: [2]"]


class Stretch(PairUp):
    """A window that does not begin at a full minute is one that does."""

    def merge(self, context: WindowFn.MergeContext) -> None:
        minutes = {window: window.start - window.start % 60 for window in context.windows}
        for minute in set(minutes.values()):
            window = IntervalWindow(minute, minute + 60)
            context.merge([one for one in minutes if minutes[one] == minute], window)


def test_a_window_alone_may_become_another() -> None:
    events = [element(number, seconds) for number, seconds in enumerate((30, 70, 50))]
    assert told(windowed(Stretch()), *events, finish=True) == [
        "3: [0, 2] [0.0, 60.0) on time",
        "3: [1] [60.0, 120.0) on time",
    ]


def test_a_window_fn_may_only_merge_windows_that_there_are() -> None:
    class Inventive(PairUp):
        def merge(self, context: WindowFn.MergeContext) -> None:
            context.merge([IntervalWindow(1, 2)], IntervalWindow(0, 3))

    with pytest.raises(ValueError, match="which has no elements"):
        told(windowed(Inventive()), element(1), element(2, 20))
