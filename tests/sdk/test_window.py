"""Windows and the functions that assign and merge them."""

import copy
import pickle
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.window import (
    BoundedWindow,
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    NonMergingWindowFn,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    TimestampedValue,
    WindowFn,
)
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from penstock.windows.output_times import output_times_of
from penstock.windows.windowing import Windowing

MICROS = st.integers(MIN_TIMESTAMP.micros, MAX_TIMESTAMP.micros - 1)
LENGTHS = st.integers(1, 10**13)
OFFSETS = st.integers(-(10**13), 10**13)
SMALL_WINDOWS = st.builds(
    lambda start, length: IntervalWindow.from_micros(start, start + length),
    st.integers(-20, 20),
    st.integers(1, 9),
)
intervals = IntervalWindow.from_micros


def _moments(window: IntervalWindow) -> set[int]:
    return set(range(window.start_micros, window.end_micros))


@given(MICROS, LENGTHS, OFFSETS)
def test_a_timestamp_is_in_its_fixed_window_which_starts_on_the_grid(time, size, offset) -> None:
    window_fn = FixedWindows(Duration(micros=size), Timestamp(micros=offset))
    (window,) = window_fn.assign_micros(time)
    assert window.start_micros <= time < window.end_micros
    if window.start > MIN_TIMESTAMP and window.end < MAX_TIMESTAMP:
        assert window.end_micros - window.start_micros == size
        assert (window.start_micros - offset) % size == 0
    assert 0 <= window_fn.offset_micros < size


@given(MICROS, st.integers(1, 50), LENGTHS, st.data())
def test_a_timestamp_is_in_each_of_its_sliding_windows(time, most, period, data) -> None:
    size, offset = data.draw(st.integers(1, most * period)), data.draw(OFFSETS)
    window_fn = SlidingWindows(Duration(micros=size), Duration(micros=period), Timestamp(micros=offset))
    windows = window_fn.assign_micros(time)
    assert all(window.start_micros <= time < window.end_micros for window in windows)
    assert len(windows) in (size // period, -(-size // period))


@given(st.integers(-99, 99), st.integers(1, 30), st.integers(1, 30), st.integers(-30, 30))
def test_all_windows_of_the_grid_that_contain_a_timestamp_are_assigned(time, size, period, offset) -> None:
    window_fn = SlidingWindows(Duration(micros=size), Duration(micros=period), Timestamp(micros=offset))
    grid = [start for start in range(time, time - size, -1) if (start - offset) % period == 0]
    assert window_fn.assign_micros(time) == tuple(intervals(start, start + size) for start in grid)


@given(MICROS, LENGTHS, OFFSETS)
def test_sliding_windows_as_long_as_their_period_are_fixed_windows(time, size, offset) -> None:
    size, offset = Duration(micros=size), Timestamp(micros=offset)
    fixed, sliding = FixedWindows(size, offset), SlidingWindows(size, size, offset)
    assert fixed.assign_micros(time) == sliding.assign_micros(time)


@given(st.integers(-99, 99), st.integers(1, 30), st.integers(1, 30), st.integers(-30, 30))
def test_an_element_counts_in_a_sliding_window_only_after_the_windows_before_it(
    time, size, period, offset
) -> None:
    window_fn = SlidingWindows(Duration(micros=size), Duration(micros=period), Timestamp(micros=offset))
    for window in window_fn.assign_micros(time):
        before = range(window.start_micros - period, time - size, -period)
        taken = {moment for start in before for moment in range(start, start + size)}
        moved = next(moment for moment in range(time, window.end_micros) if moment not in taken)
        assert window_fn.get_transformed_output_time(window, Timestamp(micros=time)).micros == moved


def test_sliding_windows_do_not_hold_one_another_back() -> None:
    window_fn = SlidingWindows(60, 20, offset=5)
    times = {
        float(window.start): float(window_fn.get_transformed_output_time(window, Timestamp(-3)))
        for window in window_fn.assign_micros(-3_000_000)
    }
    assert times == {-15: 25, -35: 5, -55: -3}


def test_elements_between_sliding_windows_with_gaps_are_in_none() -> None:
    assert SlidingWindows(5, 10).assign(WindowFn.AssignContext(7)) == []
    assert SlidingWindows(5, 10).assign(WindowFn.AssignContext(-6)) == [IntervalWindow(-10, -5)]


@given(SMALL_WINDOWS, SMALL_WINDOWS)
def test_intersection_union_and_order_are_those_of_sets_of_moments(first, second) -> None:
    assert first.intersects(second) == second.intersects(first) == bool(_moments(first) & _moments(second))
    union = first.union(second)
    assert _moments(union) >= _moments(first) | _moments(second)
    assert union in {
        intervals(a.start_micros, b.end_micros) for a in (first, second) for b in (first, second)
    }
    assert (first == second) == (_moments(first) == _moments(second))
    assert (first < second) + (second < first) + (first == second) == 1
    assert (first <= second, first >= second) == (not second < first, not first < second)
    if first.end < second.end:
        assert first < second


class Merging(WindowFn.MergeContext):
    """Applies merges as a runner does."""

    def merge(self, to_be_merged, merge_result) -> None:
        to_be_merged = list(to_be_merged)
        assert len(to_be_merged) > 1
        assert all(window in self.windows for window in to_be_merged)
        self.windows = [window for window in self.windows if window not in to_be_merged] + [merge_result]


def _merge(window_fn: Sessions, windows) -> list[IntervalWindow]:
    context = Merging(windows)
    window_fn.merge(context)
    return sorted(set(context.windows))


@pytest.mark.parametrize("touching", [False, True])
@given(st.lists(SMALL_WINDOWS, max_size=8), st.randoms())
def test_merged_sessions_are_the_connected_runs_whatever_the_order(touching, windows, random) -> None:
    sessions = Sessions(Duration(micros=1), merge_touching=touching)
    merged = _merge(sessions, windows)
    shuffled = random.sample(windows, len(windows))
    assert merged == _merge(sessions, shuffled) == _merge(sessions, merged)
    half = len(windows) // 2
    assert merged == _merge(sessions, _merge(sessions, shuffled[:half]) + _merge(sessions, shuffled[half:]))
    assert reduce(set.union, map(_moments, merged), set()) == reduce(set.union, map(_moments, windows), set())
    for earlier, later in pairwise(merged):
        assert earlier.end < later.start or (earlier.end == later.start and not touching)


def test_sessions_that_touch_merge_only_where_asked_to() -> None:
    windows = [
        window for time in (-10, 0, 11) for window in Sessions(10).assign(WindowFn.AssignContext(time))
    ]
    assert _merge(Sessions(10), windows) == windows
    joined = [IntervalWindow(-10, 10), IntervalWindow(11, 21)]
    assert _merge(Sessions(10, merge_touching=True), windows) == joined


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("GlobalWindows", ()),
        ("FixedWindows", (10,)),
        ("FixedWindows", (0.3, 0.1)),
        ("FixedWindows", (7, -3)),
        ("SlidingWindows", (60, 7)),
        ("SlidingWindows", (60, 7, -5.5)),
        ("Sessions", (2.5,)),
    ],
)
def test_windows_are_assigned_as_beam_assigns_them(name, arguments) -> None:
    beam = pytest.importorskip("apache_beam.transforms.window")
    import penstock.transforms.window as penstock

    for time in (0, 1, -1, -0.000001, 6.9, 59.9999, -100.25, 1458343379.123456):
        assigned = [
            [
                (window.start.micros, window.end.micros, window.max_timestamp().micros, repr(window))
                for window in getattr(module, name)(*arguments).assign(module.WindowFn.AssignContext(time))
            ]
            for module in (penstock, beam)
        ]
        assert assigned[0] == assigned[1]


def test_windows_beyond_the_bounds_of_time_are_those_at_the_bounds() -> None:
    (first,) = FixedWindows(10).assign_micros(MIN_TIMESTAMP.micros)
    (last,) = FixedWindows(10).assign_micros(MAX_TIMESTAMP.micros - 1)
    assert (first.start, last.end) == (MIN_TIMESTAMP, MAX_TIMESTAMP)
    assert last == IntervalWindow(last.start, last.start + 10)
    assert first == IntervalWindow(first.end - 10, first.end)


@given(LENGTHS, LENGTHS, st.integers(0, 10**13))
def test_at_the_bounds_of_time_windows_are_cut_and_still_hold_their_elements(size, period, inwards) -> None:
    size, period = Duration(micros=size), Duration(micros=max(period, size // 50))
    for time in (MIN_TIMESTAMP.micros + inwards, MAX_TIMESTAMP.micros - 1 - inwards):
        for window_fn in (FixedWindows(size), SlidingWindows(size, period), Sessions(size)):
            for window in window_fn.assign_micros(time):
                assert MIN_TIMESTAMP <= window.start <= Timestamp(micros=time) < window.end <= MAX_TIMESTAMP
                moved = window_fn.get_transformed_output_time(window, Timestamp(micros=time))
                assert Timestamp(micros=time) <= moved <= window.max_timestamp()


def test_the_global_window_is_one_object_and_contains_all_that_windows_into_it() -> None:
    window = GlobalWindow()
    assert window is pickle.loads(pickle.dumps(window)) is copy.deepcopy(window)
    assert (window.start, window.end.micros, window.start_micros) == (
        MIN_TIMESTAMP,
        9223371950454775000,
        MIN_TIMESTAMP.micros,
    )
    assert window.max_timestamp() == window.end.predecessor()
    assert window != IntervalWindow(MIN_TIMESTAMP, window.end)
    assert IntervalWindow(0, 1) < window
    assert len({window, IntervalWindow(0, 1), IntervalWindow(0, 1)}) == 2
    assert GlobalWindows.windowed_value_at_end_of_window(1).timestamp == window.max_timestamp()
    assert GlobalWindows.windowed_batch([1]).windows == GlobalWindows.windowed_value(1).windows == (window,)


class Labelled(IntervalWindow):
    """A user's window with an attribute of its own."""

    def __init__(self, start, end, label) -> None:
        super().__init__(start, end)
        self.label = label


def test_windows_survive_pickling_with_what_a_subclass_adds() -> None:
    window, labelled = IntervalWindow(-1, 2), Labelled(-1, 2, "a")
    assert pickle.loads(pickle.dumps(window)) == window
    again = pickle.loads(pickle.dumps(labelled))
    assert (type(again), again.start, again.end, again.label) == (Labelled, -1, 2, "a")
    assert window != labelled


class Padded(FixedWindows):
    """A user's WindowFn with an attribute of its own."""

    def __init__(self, size, padding) -> None:
        super().__init__(size)
        self.padding = padding


def test_window_fns_are_values() -> None:
    fns = [
        GlobalWindows(),
        FixedWindows(10),
        FixedWindows(10, 5),
        Padded(10, 1),
        Padded(10, 2),
        SlidingWindows(10, 5),
        SlidingWindows(10, 5, 1),
        SlidingWindows(10, 10),
        Sessions(10),
        Sessions(10, merge_touching=True),
    ]
    assert len(set(fns)) == len(fns)
    for window_fn in fns:
        again = pickle.loads(pickle.dumps(window_fn))
        assert (again, hash(again), repr(again)) == (window_fn, hash(window_fn), repr(window_fn))
        assert window_fn.is_merging() == isinstance(window_fn, Sessions)
    assert FixedWindows(10, 15) == FixedWindows(Duration(10), Duration(5)) == FixedWindows(10.0, -5)
    with pytest.raises(AttributeError):
        FixedWindows(10).size = 5
    assert eval(repr(fns[6])) == fns[6]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: FixedWindows(0), "size parameter must be strictly positive"),
        (lambda: FixedWindows(-1), "size parameter must be strictly positive"),
        (lambda: FixedWindows(1e-9), "size parameter must be strictly positive"),
        (lambda: FixedWindows(float("nan")), "size parameter must be finite, but is nan"),
        (lambda: FixedWindows(1, float("inf")), "offset parameter must be finite, but is inf"),
        (lambda: SlidingWindows(float("inf"), 1), "size parameter must be finite"),
        (lambda: SlidingWindows(1, -1), "period parameter must be strictly positive"),
        (lambda: SlidingWindows(1, float("-inf")), "period parameter must be finite"),
        (lambda: SlidingWindows(1, 1, float("nan")), "offset parameter must be finite"),
        (lambda: Sessions(-0.5), "gap_size parameter must be strictly positive"),
        (lambda: SlidingWindows(0, 1), "size parameter must be strictly positive"),
        (lambda: SlidingWindows(1, 0), "period parameter must be strictly positive"),
        (lambda: Sessions(0), "gap_size parameter must be strictly positive"),
        (lambda: Windowing(GlobalWindows(), timestamp_combiner=7), "invalid TimestampCombiner"),
        (lambda: TimeDomain.from_string("NO_SUCH"), "unknown time domain"),
    ],
)
def test_what_is_refused_is_named_and_comes_with_a_hint(call, part) -> None:
    with pytest.raises(ValueError, match=part) as caught:
        call()
    assert "\n  hint: " in str(caught.value)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: FixedWindows("60"), "size parameter must be a duration, but is '60'"),
        (lambda: FixedWindows(Timestamp(60)), "size parameter must be a duration"),
        (lambda: FixedWindows(60, None), "offset parameter must be a duration, but is None"),
        (lambda: SlidingWindows([60], 60), "size parameter must be a duration"),
        (lambda: SlidingWindows(60, None), "period parameter must be a duration"),
        (lambda: Sessions(None), "gap_size parameter must be a duration"),
    ],
)
def test_what_is_no_time_is_refused_with_its_place(call, part) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    what, where, hint = str(caught.value).split("\n")
    assert part in what
    assert where.startswith("  at test_window.py:")
    assert hint.startswith("  hint: ")


class Doubling(NonMergingWindowFn):
    """A user's WindowFn that transforms output times."""

    def assign(self, context):
        return [GlobalWindow()]

    def get_transformed_output_time(self, window, input_timestamp):
        return input_timestamp + Duration(micros=input_timestamp.micros)


@pytest.mark.parametrize(
    ("combiner", "combined", "merged"),
    [
        (TimestampCombiner.OUTPUT_AT_EOW, Timestamp(9.999999), Timestamp(19.999999)),
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 2, 2),
        (TimestampCombiner.OUTPUT_AT_LATEST, 5, 5),
        (TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED, 4, 4),
    ],
)
def test_timestamp_combiners_combine_and_merge(combiner, combined, merged) -> None:
    times = output_times_of(combiner, Doubling())
    assigned = [times.of_element(Timestamp(time).micros, IntervalWindow(0, 10)) for time in (5, 2, 3)]
    together = reduce(times.together or min, assigned)
    assert together == Timestamp.of(combined).micros
    assert times.after_merge(IntervalWindow(0, 20), assigned) == Timestamp.of(merged).micros
    assert times.after_merge(IntervalWindow(0, 20), []) is None


@pytest.mark.parametrize(
    ("combiner", "combined", "merged"),
    [
        (TimestampCombiner.OUTPUT_AT_EOW, Timestamp(9.999999), Timestamp(19.999999)),
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 2, 2),
        (TimestampCombiner.OUTPUT_AT_LATEST, 5, 5),
        (TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED, 4, 4),
    ],
)
def test_beams_classes_say_what_the_rules_say(combiner, combined, merged) -> None:
    impl = TimestampCombiner.get_impl(combiner, Doubling())
    assigned = [impl.assign_output_time(IntervalWindow(0, 10), Timestamp(time)) for time in (5, 2, 3)]
    assert impl.combine_all([None, *assigned, None]) == combined
    assert impl.merge(IntervalWindow(0, 20), assigned) == merged
    assert impl.combine_all([]) is None


def test_timestamped_values_are_ordered_by_value_then_time() -> None:
    values = [TimestampedValue(value, time) for value in "ab" for time in (-1, 2)]
    backwards = values[::-1]
    assert sorted(backwards) == values
    assert TimestampedValue("a", 2.0) in set(values)
    assert values[0] != ("a", Timestamp(-1))
    assert pickle.loads(pickle.dumps(values)) == values


def test_a_window_that_only_has_an_end_is_ordered_by_it() -> None:
    class Ending(BoundedWindow):
        __slots__ = ()

        def __eq__(self, other):
            return self.end == other.end

        def __hash__(self):
            return hash(self.end)

    assert Ending(1) < Ending(2) <= Ending(2)
    assert Ending(3) > IntervalWindow(0, 2)
    assert repr(Ending(1)) == "[?, 1.0)"
    with pytest.raises(NotImplementedError):
        _ = Ending(1).start


@pytest.mark.parametrize("window_fn", [GlobalWindows(), FixedWindows(10), Sessions(10), Doubling()])
def test_a_window_fn_names_a_coder_that_its_windows_survive(window_fn) -> None:
    (window,) = window_fn.assign(WindowFn.AssignContext(-3))
    coder = window_fn.get_window_coder()
    assert coder.decode(coder.encode(window)) == window
