"""Sessions that never grow past a bound, and what a new session has to do with those that are there."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.transforms.window import BoundedSessions, IntervalWindow, Sessions, WindowFn
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration

GAP = 10
TIMES = st.lists(st.integers(0, 120), max_size=14)
MOST = st.integers(GAP, 45)


def microseconds(gap: int, most: int | None, touching: bool):
    gap_size = Duration(micros=gap)
    return (
        Sessions(gap_size, touching)
        if most is None
        else BoundedSessions(gap_size, Duration(micros=most), touching)
    )


class Merging(WindowFn.MergeContext):
    """Applies merges as a runner does."""

    def merge(self, to_be_merged, merge_result):
        to_be_merged = set(to_be_merged)
        assert to_be_merged <= set(self.windows)
        self.windows = [window for window in self.windows if window not in to_be_merged] + [merge_result]


def merged(window_fn, windows) -> list[IntervalWindow]:
    context = Merging(dict.fromkeys(windows))
    window_fn.merge(context)
    assert len(set(context.windows)) == len(context.windows)
    return sorted(context.windows, key=lambda window: window.start)


def assigned(window_fn, times) -> list[IntervalWindow]:
    return [window for time in times for window in window_fn.assign_micros(time)]


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(GAP, 45)), max_size=14),
    MOST,
    st.booleans(),
    st.randoms(),
)
def test_no_bounded_session_is_longer_than_its_bound_and_none_loses_a_moment(
    parts, most, touching, random
) -> None:
    # Windows of several lengths: some have been merged before.
    windows = [IntervalWindow.from_micros(start, start + min(length, most)) for start, length in parts]
    sessions = microseconds(GAP, most, touching)
    results = merged(sessions, windows)
    assert all(window.end_micros - window.start_micros <= most for window in results)
    assert {moment for window in windows for moment in moments(window)} == {
        moment for window in results for moment in moments(window)
    }
    assert results == merged(sessions, random.sample(windows, len(windows))) == merged(sessions, results)


def moments(window: IntervalWindow) -> range:
    return range(window.start_micros, window.end_micros)


@given(TIMES, MOST, st.booleans())
def test_sessions_stay_apart_only_if_together_they_were_too_long(times, most, touching) -> None:
    sessions = microseconds(GAP, most, touching)
    results = merged(sessions, assigned(sessions, times))
    for place, window in enumerate(results):
        for other in results[place + 1 :]:
            if window.intersects(other) or (touching and window.end == other.start):
                union = window.union(other)
                assert union.end_micros - union.start_micros > most


@given(TIMES, st.booleans())
def test_a_bound_that_is_never_reached_changes_nothing(times, touching) -> None:
    bounded, unbounded = microseconds(GAP, 10**6, touching), microseconds(GAP, None, touching)
    assert merged(bounded, assigned(bounded, times)) == merged(unbounded, assigned(unbounded, times))


@given(TIMES, st.one_of(st.none(), MOST), st.booleans(), st.sampled_from([0, MAX_TIMESTAMP.micros - 130]))
def test_a_new_session_can_merge_only_with_those_it_overlaps_or_touches(times, most, touching, start) -> None:
    sessions = microseconds(GAP, most, touching)
    present: list[IntervalWindow] = []
    for time in times:
        (new,) = sessions.assign_micros(start + time)
        near = [window for window in present if window.start <= new.end and new.start <= window.end]
        apart = [window for window in present if window not in near]
        narrow = sorted([*merged(sessions, [*near, new]), *apart], key=lambda window: window.start)
        assert narrow == merged(sessions, [*present, new])
        present = narrow


SCORES = [
    (5, 26),
    (7, 146),
    (3, 219),
    (4, 259),
    (8, 186),
    (3, 399),
    (9, 86),
    (8, 446),
    (1, 466),
]
"""The scores of Streaming Systems' running example in the order of their arrival, at seconds after noon."""


def sums(windows: list[IntervalWindow], owner) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for score, time in SCORES:
        window = next(window for window in windows if window == owner[time])
        found[int(window.start), int(window.end)] += score
    return dict(found)


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        # Figure 4-11: the 9 comes last, when the session of 22 is there already.
        (False, {(26, 146): 14, (146, 319): 22, (399, 526): 12}),
        (True, {(26, 206): 21, (186, 319): 15, (399, 526): 12}),
    ],
)
def test_bounded_sessions_cut_the_running_example_as_the_order_of_merging_says(at_once, expected) -> None:
    sessions = BoundedSessions(60, 180, merge_touching=True)
    owner: dict[int, IntervalWindow] = {}

    class Owning(Merging):
        def merge(self, to_be_merged, merge_result):
            to_be_merged = list(to_be_merged)
            super().merge(to_be_merged, merge_result)
            owner.update({time: merge_result for time, window in owner.items() if window in to_be_merged})

    for _, time in SCORES:
        owner[time] = IntervalWindow(time, time + 60)
        if not at_once:
            sessions.merge(Owning(set(owner.values())))
    if at_once:
        sessions.merge(Owning(set(owner.values())))
    assert sums(list(owner.values()), owner) == expected


def test_bounded_sessions_are_values() -> None:
    fns = [
        BoundedSessions(10, 20),
        BoundedSessions(10, 30),
        BoundedSessions(5, 20),
        BoundedSessions(10, 20, merge_touching=True),
    ]
    assert len({*fns, Sessions(10)}) == 5
    for window_fn in fns:
        again = pickle.loads(pickle.dumps(window_fn))
        assert again == eval(repr(window_fn)) == window_fn
        assert hash(again) == hash(window_fn)
        assert window_fn.is_merging()
    assert BoundedSessions(10, 10) == BoundedSessions(10.0, Duration(10), False)


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: BoundedSessions(0, 1), ValueError, "gap_size parameter must be strictly positive"),
        (lambda: BoundedSessions(1, -1), ValueError, "max_size parameter must be strictly positive"),
        (lambda: BoundedSessions(1, float("inf")), ValueError, "max_size parameter must be finite"),
        (lambda: BoundedSessions(2, 1), ValueError, "less than the gap_size parameter"),
        (lambda: BoundedSessions("2", 3), TypeError, "gap_size parameter must be a duration"),
        (lambda: BoundedSessions(1, 2, 1), TypeError, "merge_touching parameter must be True or False"),
        (lambda: Sessions(60, 180), TypeError, "merge_touching parameter must be True or False"),
        (lambda: Sessions(float("nan")), ValueError, "gap_size parameter must be finite"),
    ],
)
def test_what_is_refused_is_named_with_its_place_and_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    _, where, hint = str(caught.value).split("\n")
    assert where.startswith("  at test_sessions.py:")
    assert hint.startswith("  hint: ")
