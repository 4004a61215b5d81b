"""Windows on Spark: assigned, merged, seen by DoFns, and assigned again."""

import traceback
from typing import Any

import pytest

import penstock as beam
from penstock.coders import IntervalWindowCoder, PickleCoder
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to, equal_to_per_window
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

pytestmark = pytest.mark.spark


def timed(p, pairs, label="Timed"):
    return p | label >> beam.Create([TimestampedValue(value, at) for value, at in pairs]).with_output_types(
        Any
    )


def bounds(x, w=beam.DoFn.WindowParam):
    return x, (float(w.start), float(w.end))


def groups(pcoll, windowfn, label, **arguments):
    """All elements of each window, with the window's bounds."""
    windowed = pcoll | f"{label} windows" >> beam.WindowInto(windowfn, **arguments)
    keyed = (
        windowed | f"{label} key" >> beam.Map(lambda x: (None, x)) | f"{label} groups" >> beam.GroupByKey()
    )
    return keyed | f"{label} seen" >> beam.MapTuple(
        lambda _, v, w=beam.DoFn.WindowParam: bounds(sorted(v), w)
    )


def test_windows_of_every_kind_hold_the_elements_of_their_times():
    elements = [("a", 0), ("b", 9.999999), ("c", 10), ("d", -0.000001), ("e", -10), ("f", -11)]
    with TestPipeline() as p:
        made = timed(p, elements)
        fixed = [(["a", "b"], (0, 10)), (["c"], (10, 20)), (["d", "e"], (-10, 0)), (["f"], (-20, -10))]
        assert_that(groups(made, FixedWindows(10), "fixed"), equal_to(fixed), label="fixed")
        moved = [(["a", "d"], (-7, 3)), (["b", "c"], (3, 13)), (["e", "f"], (-17, -7))]
        assert_that(groups(made, FixedWindows(10, offset=3), "offset"), equal_to(moved), label="offset")
        sliding = [(["a", "d"], (-8, 2)), (["a", "b"], (0, 10)), (["b", "c"], (8, 18))]
        few = made | beam.Filter(lambda x: x in "abcd")
        found = groups(few, SlidingWindows(10, 4), "sliding")
        kept = found | beam.Filter(lambda pair: pair[1][0] in (-8, 0, 8))
        assert_that(kept, equal_to(sliding), label="sliding")
        sparse = groups(few, SlidingWindows(2, 10), "gaps")
        assert_that(sparse, equal_to([(["a"], (0, 2)), (["c"], (10, 12))]), label="gaps lose elements")
        everything = [(["a", "b", "c", "d", "e", "f"], GlobalWindow())]
        whole = made | beam.Map(lambda x: (None, x)) | beam.GroupByKey()
        whole |= beam.MapTuple(lambda _, v, w=beam.DoFn.WindowParam: (sorted(v), w))
        assert_that(whole, equal_to(everything), label="global")


def test_sessions_merge_what_overlaps_but_not_what_only_touches():
    with TestPipeline() as p:
        times = [("a", 0), ("b", 9), ("c", 19), ("d", 40), ("e", -5), ("f", 49.999999), ("g", 59.999999)]
        expected = [(["a", "b", "e"], (-5, 19)), (["c"], (19, 29)), (["d", "f"], (40, 59.999999))]
        expected.append((["g"], (59.999999, 69.999999)))
        assert_that(groups(timed(p, times), Sessions(10), "sessions"), equal_to(expected), label="merged")
        keyed = timed(p, [(("k", 1), 0), (("j", 2), 5), (("k", 3), 12), (("k", 4), 6)], "Keyed")
        apart = (
            keyed
            | beam.WindowInto(Sessions(10))
            | beam.GroupByKey()
            | beam.MapTuple(lambda k, v, w=beam.DoFn.WindowParam: (k, *bounds(sorted(v), w)))
        )
        sessions = [("k", [1, 3, 4], (0, 22)), ("j", [2], (5, 15))]
        assert_that(apart, equal_to(sessions), label="by key")


@pytest.mark.parametrize(
    ("combiner", "seconds"),
    [
        (TimestampCombiner.OUTPUT_AT_EARLIEST, -5),
        (TimestampCombiner.OUTPUT_AT_LATEST, 9),
        (TimestampCombiner.OUTPUT_AT_EOW, 18.999999),
    ],
)
def test_a_merged_session_leaves_at_the_time_of_all_its_elements(combiner, seconds):
    with TestPipeline() as p:
        pairs = timed(p, [(("k", 1), 0), (("k", 2), 9), (("k", 3), -5)])
        windowed = pairs | beam.WindowInto(Sessions(10), timestamp_combiner=combiner)
        for name, transform in (("groups", beam.GroupByKey()), ("sums", beam.CombinePerKey(sum))):
            times = (
                windowed
                | name >> transform
                | f"{name} at" >> beam.Map(lambda x, t=beam.DoFn.TimestampParam: t)
            )
            assert_that(times, equal_to([Timestamp(seconds)]), label=f"times of {name}")


class ByLength(NonMergingWindowFn):
    """Looks at the element: a long one gets a long window, one without a length none at all."""

    def assign(self, context):
        length = len(context.element)
        return [IntervalWindow(0, 10 * length)] if length else []

    def get_window_coder(self):
        return IntervalWindowCoder()


class Named(BoundedWindow):
    """A window with a name, and no start."""

    def __init__(self, name, end):
        super().__init__(end)
        self.name = name

    def __eq__(self, other):
        return type(self) is type(other) and (self.name, self.end) == (other.name, other.end)

    def __hash__(self):
        return hash((self.name, self.end))

    def __repr__(self):
        return f"Named({self.name}, {self.end})"


class ByFirstLetter(NonMergingWindowFn):
    def assign(self, context):
        return [Named(context.element[0], 100), Named("every", 100)]

    def get_window_coder(self):
        return PickleCoder()


class Pairs(WindowFn):
    """Merges windows two by two, in order of their starts."""

    def assign(self, context):
        return [IntervalWindow(context.timestamp, context.timestamp + Duration(1))]

    def merge(self, merge_context):
        ordered = sorted(merge_context.windows, key=lambda window: window.start)
        for first, second in zip(ordered[::2], ordered[1::2], strict=False):
            merge_context.merge([first, second], IntervalWindow(first.start, second.end))

    def get_window_coder(self):
        return IntervalWindowCoder()


class MergesNamed(ByFirstLetter):
    """Merges all windows of a custom type into one."""

    def is_merging(self):
        return True

    def merge(self, merge_context):
        merge_context.merge(
            merge_context.windows, Named("+".join(sorted({w.name for w in merge_context.windows})), 100)
        )


def test_window_fns_of_users_assign_by_element_and_may_have_windows_of_their_own():
    with TestPipeline() as p:
        words = timed(p, [("a", 1), ("bb", 2), ("cc", 3), ("", 4)])
        by_length = groups(words, ByLength(), "length")
        assert_that(by_length, equal_to([(["a"], (0, 10)), (["bb", "cc"], (0, 20))]), label="by length")
        some = words | beam.Filter(len)
        named = some | beam.WindowInto(ByFirstLetter()) | beam.Map(lambda x: (None, x)) | beam.GroupByKey()
        named |= beam.MapTuple(lambda _, v, w=beam.DoFn.WindowParam: (sorted(v), w.name))
        expected = [(["a"], "a"), (["bb"], "b"), (["cc"], "c"), (["a", "bb", "cc"], "every")]
        assert_that(named, equal_to(expected), label="windows with names")


def test_merging_window_fns_of_users_are_asked_with_all_windows_of_a_key():
    with TestPipeline() as p:
        words = timed(p, [("a", 1), ("b", 5), ("c", 9), ("d", 20), ("e", 30)])
        paired = [(["a", "b"], (1, 6)), (["c", "d"], (9, 21)), (["e"], (30, 31))]
        assert_that(groups(words, Pairs(), "pairs"), equal_to(paired), label="pairs")
        earliest = groups(words, Pairs(), "times", timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
        times = earliest | beam.Map(lambda x, t=beam.DoFn.TimestampParam: int(t))
        assert_that(times, equal_to([1, 9, 30]), label="times")
        named = words | beam.WindowInto(MergesNamed()) | beam.Map(lambda x: (None, x)) | beam.GroupByKey()
        named |= beam.MapTuple(lambda _, v, w=beam.DoFn.WindowParam: (sorted(v), w.name))
        expected = [(sorted("abcde" * 2), "a+b+c+d+e+every")]
        assert_that(named, equal_to(expected), label="named")


class Fails(NonMergingWindowFn):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def assign(self, context):
        if self.result is None:
            raise ArithmeticError("assign broke")
        return [self.result]

    def get_window_coder(self):
        return PickleCoder()


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (None, ArithmeticError, "assign broke"),
        ("no window", TypeError, "Fails.assign returned a str, not a window"),
    ],
)
def test_a_window_fn_that_fails_is_an_error_that_names_the_step(result, error, text):
    p = TestPipeline()
    _ = p | beam.Create([1]) | "The windows" >> beam.WindowInto(Fails(result)) | beam.Map(str)
    with pytest.raises(error, match=text) as caught:
        p.run()
    assert "The windows" in "".join(traceback.format_exception(caught.value))


def test_an_element_in_several_windows_counts_in_each_when_windows_are_assigned_again():
    with TestPipeline() as p:
        one = timed(p, [("x", 12)]) | "Sliding" >> beam.WindowInto(SlidingWindows(10, 5))
        counted = one | "Global" >> beam.WindowInto(GlobalWindows()) | beam.combiners.Count.Globally()
        assert_that(counted, equal_to([2]), label="once for each window, as in Beam")
        fixed = one | "Fixed" >> beam.WindowInto(FixedWindows(4)) | beam.Map(bounds)
        assert_that(fixed, equal_to([("x", (12, 16))] * 2), label="with the element's own time")


def test_windows_can_be_assigned_again_after_grouping():
    with TestPipeline() as p:
        pairs = timed(p, [(("k", 1), 1), (("k", 2), 6), (("k", 4), 14), (("k", 8), 27)])
        first = pairs | "Five" >> beam.WindowInto(FixedWindows(5)) | "Sums" >> beam.CombinePerKey(sum)
        second = first | "Twenty" >> beam.WindowInto(FixedWindows(20)) | "Lists" >> beam.GroupByKey()
        found = second | beam.MapTuple(lambda k, v, w=beam.DoFn.WindowParam: bounds(sorted(v), w))
        assert_that(found, equal_to([([1, 2, 4], (0, 20)), ([8], (20, 40))]), label="larger windows")
        sessions = first | "Sessions" >> beam.WindowInto(Sessions(6)) | "Again" >> beam.GroupByKey()
        merged = sessions | "M" >> beam.MapTuple(lambda k, v: sorted(v))
        assert_that(merged, equal_to([[1, 2, 4], [8]]), label="sessions over the ends of windows")
        twice = (
            sessions
            | "Flat" >> beam.FlatMapTuple(lambda k, v: [(k, x) for x in v])
            | "Third" >> beam.GroupByKey()
        )
        kept = twice | "K" >> beam.MapTuple(lambda k, v: sorted(v))
        assert_that(kept, equal_to([[1, 2, 4], [8]]), label="sessions keep their windows")


def test_the_ends_of_time_are_in_windows_too():
    with TestPipeline() as p:
        untimed = p | beam.Create(["x"])
        assert_that(untimed | beam.Map(lambda x, t=beam.DoFn.TimestampParam: t), equal_to([MIN_TIMESTAMP]))
        fixed = untimed | beam.WindowInto(FixedWindows(10)) | beam.Map(lambda x: (x, 1)) | beam.GroupByKey()
        assert_that(fixed | beam.MapTuple(lambda k, v: list(v)), equal_to([[1]]), label="the first")
        last = timed(p, [("y", GlobalWindow().max_timestamp()), ("z", MAX_TIMESTAMP)], "Last")
        assert_that(last | beam.combiners.Count.Globally(), equal_to([2]), label="the last")


def test_assertions_look_at_windows():
    with TestPipeline() as p:
        windowed = timed(p, [(1, 1), (2, 2), (3, 12)]) | beam.WindowInto(FixedWindows(10))
        expected = {IntervalWindow(0, 10): [1, 2], IntervalWindow(10, 20): [3]}
        assert_that(windowed, equal_to_per_window(expected), label="per window")
