"""WindowFns of a user's own: what they see, and what they promise about merging."""

import pickle

import pytest

from penstock.transforms.grouping.windowing import WindowIntoFn
from penstock.transforms.window import (
    BoundedSessions,
    BoundedWindow,
    CalendarWindows,
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    MergeScope,
    NonMergingWindowFn,
    Sessions,
    WindowFn,
)
from penstock.windows.windowing import Windowing


class Shifted(Sessions):
    """Assigns otherwise, and merges as sessions do."""

    def assign_micros(self, timestamp_micros):
        return super().assign_micros(timestamp_micros + 1)


class Lazy(Sessions):
    """Merges otherwise, and says nothing about it."""

    def merge(self, merge_context):
        pass


class LazyOnce(Lazy):
    """Inherits a merge that says nothing."""


class Declared(Lazy):
    """Says itself what its inherited merge needs."""

    merge_scope = MergeScope.OVERLAPPING


class MergesElsewhere:
    """Brings a merge along, and is not a WindowFn."""

    def merge(self, merge_context):
        pass


class Mixed(MergesElsewhere, Sessions):
    """Merges as its first base does."""


class MixedBehind(Sessions, MergesElsewhere):
    """Merges as sessions do."""


class Own(WindowFn):
    """A user's WindowFn that says nothing."""

    def assign(self, context):
        return [GlobalWindow()]

    def merge(self, context):
        pass


@pytest.mark.parametrize(
    ("window_fn", "scope"),
    [
        (Sessions(1), MergeScope.NEIGHBOURS),
        (Shifted(1), MergeScope.NEIGHBOURS),
        (MixedBehind(1), MergeScope.NEIGHBOURS),
        (BoundedSessions(1, 2), MergeScope.OVERLAPPING),
        (Declared(1), MergeScope.OVERLAPPING),
        (Lazy(1), MergeScope.ALL),
        (LazyOnce(1), MergeScope.ALL),
        (Mixed(1), MergeScope.ALL),
        (Own(), MergeScope.ALL),
        (FixedWindows(1), MergeScope.ALL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_class_that_merges_otherwise_loses_the_scope_it_inherits(window_fn, scope) -> None:
    assert window_fn.merge_scope is type(window_fn).merge_scope is scope
    assert "merge_scope" not in vars(window_fn)


class Seeing(NonMergingWindowFn):
    """Notes what it is given."""

    def __init__(self):
        self.seen = []

    def assign(self, context):
        self.seen.append((context.timestamp, context.element, context.window))
        return [IntervalWindow(context.timestamp, context.timestamp + len(context.element[1]))]


def test_assign_sees_the_timestamp_the_element_and_its_present_window() -> None:
    seeing = Seeing()
    (assigned,) = WindowIntoFn(Windowing(seeing)).process(("k", "abc"), 5, IntervalWindow(0, 60))
    assert seeing.seen == [(5, ("k", "abc"), IntervalWindow(0, 60))]
    assert assigned.windows == (IntervalWindow(5, 8),)


class Round(BoundedWindow):
    """A window of a game's round: it carries the round's name, and has no start."""

    __slots__ = ("name",)

    def __init__(self, end, name):
        super().__init__(end)
        self.name = name

    def __eq__(self, other):
        return type(other) is Round and (self.end, self.name) == (other.end, other.name)

    def __hash__(self):
        return hash((self.end, self.name))


class Rounds(WindowFn):
    """A round ends when its last element says so: windows of one name become the longest of them."""

    def assign(self, context):
        _, (name, seconds) = context.element
        return [Round(context.timestamp + seconds, name)]

    def merge(self, context):
        for name in {window.name for window in context.windows}:
            rounds = [window for window in context.windows if window.name == name]
            if len(rounds) > 1:
                context.merge(rounds, max(rounds))


class Merging(WindowFn.MergeContext):
    """Applies merges as a runner does."""

    def merge(self, to_be_merged, merge_result):
        assert set(to_be_merged) <= set(self.windows)
        self.windows = [window for window in self.windows if window not in to_be_merged] + [merge_result]


def test_windows_that_carry_data_of_the_element_merge_by_it() -> None:
    rounds = Rounds()
    elements = [(0, ("ann", ("final", 60))), (10, ("ann", ("final", 90))), (20, ("ann", ("first", 30)))]
    context = Merging(
        window
        for time, element in elements
        for window in rounds.assign(WindowFn.AssignContext(time, element))
    )
    rounds.merge(context)
    assert sorted(context.windows) == [Round(50, "first"), Round(100, "final")]
    coder = rounds.get_window_coder()
    for window in context.windows:
        assert coder.decode(coder.encode(window)) == pickle.loads(pickle.dumps(window)) == window


@pytest.mark.parametrize(
    ("window_fn", "fast"),
    [
        (GlobalWindows(), False),
        (CalendarWindows.days(), True),
        (FixedWindows(1), True),
        (BoundedSessions(1, 1), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_the_timestamp_alone_decides_microseconds_are_enough(window_fn, fast) -> None:
    assert hasattr(window_fn, "assign_micros") is fast
    if fast:
        assert list(window_fn.assign_micros(-1)) == window_fn.assign(WindowFn.AssignContext(-0.000001))
