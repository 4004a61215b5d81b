"""The figures of the Dataflow paper that are about windows alone: 1, the patterns, 3, assigning, and 4, merging."""

from collections import defaultdict

import pytest

from penstock.transforms.grouping.windowing import WindowIntoFn
from penstock.transforms.window import (
    FixedWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampedValue,
    WindowFn,
)
from penstock.windows.windowing import Windowing

U = 1000
"""The length of one fixed window of figure 1, in seconds; the figure has no scale."""


def window(start: float, end: float) -> IntervalWindow:
    return IntervalWindow(start * U, end * U)


def keys_by_window(window_fn: WindowFn, elements) -> dict[IntervalWindow, set[str]]:
    """The keys in each window, after the windows of each key have been merged."""
    found: dict[IntervalWindow, set[str]] = defaultdict(set)
    for key in {key for key, _ in elements}:
        times = [time for other, time in elements if other == key]
        for each in grouped(window_fn, key, times):
            found[each].add(key)
    return dict(found)


class Merging(WindowFn.MergeContext):
    """Applies merges as a runner does."""

    def merge(self, to_be_merged, merge_result):
        self.windows = [*(set(self.windows) - set(to_be_merged)), merge_result]


def grouped(window_fn: WindowFn, key: str, times) -> set[IntervalWindow]:
    context = Merging(
        {each for time in times for each in window_fn.assign(WindowFn.AssignContext(time, (key, time)))}
    )
    window_fn.merge(context)
    return set(context.windows)


EVERYWHERE = [(key, time) for key in ("K1", "K2", "K3") for time in range(0, 3 * U, 25)]


@pytest.mark.parametrize(
    ("window_fn", "expected"),
    [
        (FixedWindows(U), {window(0, 1), window(1, 2), window(2, 3)}),
        (
            SlidingWindows(1.5 * U, 0.375 * U),
            {window(start * 0.375, start * 0.375 + 1.5) for start in range(-3, 8)},
        ),
    ],
)
def test_figure_1_aligned_windows_are_the_same_for_all_keys(window_fn, expected) -> None:
    assert keys_by_window(window_fn, EVERYWHERE) == {each: {"K1", "K2", "K3"} for each in expected}


SESSIONS = {
    ("K1", window(0.3, 1.725)),
    ("K2", window(1.35, 2.55)),
    ("K3", window(0.075, 1.05)),
    ("K3", window(2.25, 3)),
}


def test_figure_1_sessions_are_of_one_key_each() -> None:
    gap = 0.25 * U
    elements = [
        (key, time)
        for key, session in SESSIONS
        for time in [*range(int(session.start), int(session.end - gap), 100), int(session.end - gap)]
    ]
    found = keys_by_window(Sessions(gap), elements)
    assert {(key, each) for each, keys in found.items() for key in keys} == SESSIONS


def at(text: str) -> int:
    """Seconds since midnight."""
    hours, minutes = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60


def interval(start: str, end: str) -> IntervalWindow:
    return IntervalWindow(at(start), at(end))


def test_figure_3_an_element_is_copied_into_each_of_its_sliding_windows() -> None:
    assign = WindowIntoFn(Windowing(SlidingWindows(120, 60)))
    assigned = []
    for element in (TimestampedValue(("k", "v1"), at("12:00")), TimestampedValue(("k", "v2"), at("12:01"))):
        (made,) = assign.process(element.value, element.timestamp, None)
        # Beam gives the latest window first, and the figure the earliest.
        assigned += [(made.value, made.timestamp, each) for each in reversed(made.windows)]
    assert assigned == [
        (("k", "v1"), at("12:00"), interval("11:59", "12:01")),
        (("k", "v1"), at("12:00"), interval("12:00", "12:02")),
        (("k", "v2"), at("12:01"), interval("12:00", "12:02")),
        (("k", "v2"), at("12:01"), interval("12:01", "12:03")),
    ]


def test_figure_4_sessions_merge_within_a_key() -> None:
    sessions = Sessions(30 * 60)
    assert grouped(sessions, "k1", map(at, ("13:02", "13:57", "13:20"))) == {
        interval("13:02", "13:50"),
        interval("13:57", "14:27"),
    }
    assert grouped(sessions, "k2", [at("13:14")]) == {interval("13:14", "13:44")}
