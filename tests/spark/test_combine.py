"""Combining on Spark: defaults, fan-out, the life of a CombineFn, and windows."""

import operator
import traceback
from typing import Any

import pytest

import penstock as beam
from penstock.pvalue import AsSingleton
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import (
    FixedWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    TimestampedValue,
)
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp

pytestmark = pytest.mark.spark


def timed(p, label, pairs):
    return p | label >> beam.Create([TimestampedValue(value, at) for value, at in pairs]).with_output_types(
        Any
    )


def reified(x, t=beam.DoFn.TimestampParam, w=beam.DoFn.WindowParam):
    return x, t.micros / 1_000_000, int(w.start), int(w.end)


class Noted(beam.CombineFn):
    """A mean that writes down what is called, and checks that it was set up."""

    def __init__(self, log, fails=()):
        super().__init__()
        self.log = str(log)
        self.fails = fails
        self.ready = False

    def _called(self, name):
        assert self.ready or name == "setup"
        with open(self.log, "a") as log:
            log.write(name + "\n")
        if name in self.fails:
            raise ArithmeticError(f"{name} broke")

    def setup(self):
        self._called("setup")
        self.ready = True

    def create_accumulator(self):
        self._called("create_accumulator")
        return [0, 0]

    def add_input(self, accumulator, element):
        self._called("add_input")
        return [accumulator[0] + element, accumulator[1] + 1]

    def merge_accumulators(self, accumulators):
        self._called("merge_accumulators")
        sums, counts = zip(*accumulators, strict=True)
        return [sum(sums), sum(counts)]

    def compact(self, accumulator):
        self._called("compact")
        return tuple(accumulator)

    def extract_output(self, accumulator):
        self._called("extract_output")
        assert isinstance(accumulator, (tuple, list))
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def teardown(self):
        self._called("teardown")


def test_a_combine_fn_lives_from_setup_to_teardown_and_every_method_is_called(tmp_path):
    log = tmp_path / "log"
    with TestPipeline() as p:
        pairs = p | beam.Create([("a", 1), ("b", 10), ("a", 2), ("a", 6)])
        assert_that(pairs | beam.CombinePerKey(Noted(log)), equal_to([("a", 3.0), ("b", 10.0)]))
    events = log.read_text().split()
    assert events.count("add_input") == 4
    assert events.count("extract_output") == 2
    assert events.count("setup") == events.count("teardown") > 0
    assert {"compact", "create_accumulator"} <= set(events)


METHODS = [
    "setup",
    "create_accumulator",
    "add_input",
    "merge_accumulators",
    "compact",
    "extract_output",
    "teardown",
]


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_in_any_method_is_raised_as_it_is_and_names_the_step(method, tmp_path):
    p = TestPipeline()
    # Values of one key from two partitions, so that accumulators have to be merged.
    pairs = p | beam.Create([("a", 1), ("a", 2)]) | beam.Reshuffle()
    _ = pairs | "The combine" >> beam.CombinePerKey(Noted(tmp_path / "log", [method])) | beam.Map(len)
    with pytest.raises(ArithmeticError, match=rf"^{method} broke") as caught:
        p.run()
    text = "".join(traceback.format_exception(caught.value))
    assert "The combine" in text
    assert "test_combine.py:" in text


def test_the_same_combine_fn_in_two_steps_is_two_instances(tmp_path):
    fn = Noted(tmp_path / "log")
    with TestPipeline() as p:
        pairs = p | beam.Create([("a", 1), ("a", 3)])
        assert_that(pairs | "One" >> beam.CombinePerKey(fn), equal_to([("a", 2.0)]), label="one")
        assert_that(pairs | "Two" >> beam.CombinePerKey(fn), equal_to([("a", 2.0)]), label="two")


def test_nothing_combines_to_the_default_or_to_nothing():
    with TestPipeline() as p:
        empty = p | beam.Create([])
        one = p | "One" >> beam.Create(["x"])
        assert_that(empty | "Sum" >> beam.CombineGlobally(sum), equal_to([0]), label="sum")
        without = empty | "Without" >> beam.CombineGlobally(sum).without_defaults()
        assert_that(without, equal_to([]), label="without")
        assert_that(empty | beam.combiners.Mean.Globally() | beam.Map(str), equal_to(["nan"]), label="mean")
        assert_that(empty | "Per key" >> beam.CombinePerKey(sum), equal_to([]), label="per key")
        view = empty | "View" >> beam.CombineGlobally(sum).as_singleton_view()
        assert_that(one | "Seen" >> beam.Map(lambda x, s: s, view), equal_to([0]), label="view")
        fanned = empty | "Fanned" >> beam.CombineGlobally(sum).with_fanout(3)
        assert_that(fanned, equal_to([0]), label="fanned")
        late = p | "Some" >> beam.Create([1, 2]) | beam.Filter(lambda x: x > 5)
        assert_that(
            late | "Late" >> beam.CombineGlobally(max, default=-1), equal_to([-1]), label="default of max"
        )
        nones = p | "Nones" >> beam.Create([None, None]) | beam.combiners.ToList()
        assert_that(nones, equal_to([[None, None]]), label="nones are values")


def test_a_global_result_is_at_the_start_of_time_in_the_global_window():
    with TestPipeline() as p:
        numbers = timed(p, "Numbers", [(1, 5), (2, 7)])
        total = numbers | beam.CombineGlobally(sum)
        with_time = total | beam.Map(lambda x, t=beam.DoFn.TimestampParam: (x, t))
        assert_that(with_time, equal_to([(3, MIN_TIMESTAMP)]))


@pytest.mark.parametrize("options", [[], ["--without=one_round"]], ids=["one round", "two rounds"])
def test_fan_out_gives_the_same_results_as_one_round(options):
    with TestPipeline(additional_pipeline_args=options) as p:
        numbers = p | beam.Create(range(1000))
        fanned = numbers | "Fanned" >> beam.CombineGlobally(sum).with_fanout(7)
        assert_that(fanned, equal_to([sum(range(1000))]), label="globally")
        pairs = numbers | beam.Map(lambda x: (x % 3 and "hot", x))
        one_round = [(key, sum(x for x in range(1000) if (x % 3 and "hot") == key)) for key in (0, "hot")]
        for name, fanout in (
            ("number", 5),
            ("function", lambda key: 10 if key == "hot" else 1),
            ("none", None),
        ):
            hot = pairs | name >> beam.CombinePerKey(sum).with_hot_key_fanout(fanout)
            assert_that(hot, equal_to(one_round), label=f"{name} of parts")
        mean = pairs | "Mean" >> beam.CombinePerKey(beam.combiners.MeanCombineFn()).with_hot_key_fanout(4)
        plain = pairs | "Plain" >> beam.combiners.Mean.PerKey()
        both = (mean, plain) | beam.Flatten() | beam.Distinct() | beam.combiners.Count.Globally()
        assert_that(both, equal_to([2]), label="mean")


class Total:
    """A value that can be summed; `+=` changes it in place."""

    def __init__(self, amount):
        self.amount = amount

    def __radd__(self, other):
        return self

    def __add__(self, other):
        return Total(self.amount + other.amount)

    def __iadd__(self, other):
        self.amount += other.amount
        return self


def test_functions_are_combiners_and_do_not_change_the_values():
    with TestPipeline() as p:
        pairs = p | beam.Create([("a", 3), ("b", 1), ("a", 5)], reshuffle=False)
        for fn, a, b in (
            (sum, 8, 1),
            (max, 5, 1),
            (min, 3, 1),
            (any, True, True),
        ):
            label = f"{fn.__name__} of {b}"
            assert_that(
                pairs | label >> beam.CombinePerKey(fn), equal_to([("a", a), ("b", b)]), label=f"{label} seen"
            )
        joined = pairs | "Join" >> beam.CombinePerKey(lambda values: sum(values, 0))
        assert_that(joined, equal_to([("a", 8), ("b", 1)]), label="a lambda")
        longest = pairs | "Longest" >> beam.CombinePerKey(max, key=operator.neg)
        assert_that(longest, equal_to([("a", 3), ("b", 1)]), label="with an argument")
        totals = pairs | beam.MapTuple(lambda key, value: (key, Total(value)))
        summed = totals | "Totals" >> beam.CombinePerKey(sum) | beam.MapTuple(lambda k, v: (k, v.amount))
        assert_that(summed, equal_to([("a", 8), ("b", 1)]), label="objects")
        untouched = totals | "Untouched" >> beam.MapTuple(lambda k, v: v.amount)
        assert_that(untouched, equal_to([3, 1, 5]), label="untouched")


@pytest.mark.parametrize("values", [[0.1] * 10, [2**62, 2**62, 2**70], [1, 2.5, True], [-0.0], [1 + 2j, 3]])
def test_sums_are_those_of_python_with_its_numbers(values):
    with TestPipeline() as p:
        total = p | beam.Create(values, reshuffle=False) | beam.CombineGlobally(sum)
        assert_that(total, equal_to([sum(values)], equals_fn=lambda a, b: abs(a - b) <= 1e-12 * abs(a)))


def test_the_windows_of_the_input_are_combined_apart():
    values = [(1, 1), (2, 9), (4, 12), (8, -3)]
    with TestPipeline() as p:
        numbers = timed(p, "Numbers", values)
        fixed = numbers | "Fixed" >> beam.WindowInto(FixedWindows(10))
        total = fixed | beam.CombineGlobally(sum).without_defaults() | "R1" >> beam.Map(reified)
        expected = [(3, 9.999999, 0, 10), (4, 19.999999, 10, 20), (8, -1e-06, -10, 0)]
        assert_that(total, equal_to(expected), label="fixed")
        sliding = numbers | "Sliding" >> beam.WindowInto(SlidingWindows(10, 5)) | beam.Map(lambda x: ("k", x))
        sums = (
            sliding
            | "Sums" >> beam.CombinePerKey(sum)
            | "R2" >> beam.Map(reified)
            | beam.Map(lambda found: (found[0][1], found[2]))
        )
        assert_that(sums, equal_to([(8, -10), (9, -5), (3, 0), (6, 5), (4, 10)]), label="sliding")
        sessions = numbers | "Sessions" >> beam.WindowInto(Sessions(5)) | "K" >> beam.Map(lambda x: ("k", x))
        merged = sessions | "Merged" >> beam.CombinePerKey(sum) | "R3" >> beam.Map(reified)
        assert_that(
            merged, equal_to([(("k", 9), 5.999999, -3, 6), (("k", 6), 16.999999, 9, 17)]), label="sessions"
        )
        view = fixed | "View" >> beam.CombineGlobally(sum).as_singleton_view()
        assert isinstance(view, AsSingleton)
        seen = fixed | "Seen" >> beam.Map(lambda x, s: (x, s), view)
        assert_that(seen, equal_to([(1, 3), (2, 3), (4, 4), (8, 8)]), label="a view per window")


@pytest.mark.parametrize(
    ("combiner", "seconds"),
    [
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 1),
        (TimestampCombiner.OUTPUT_AT_LATEST, 7),
        (TimestampCombiner.OUTPUT_AT_EOW, 9.999999),
        (TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED, 1),
    ],
)
def test_results_leave_at_the_time_that_the_timestamp_combiner_says(combiner, seconds):
    with TestPipeline() as p:
        pairs = timed(p, "Pairs", [(("k", 1), 7), (("k", 2), 1), (("k", 3), 3)])
        windowed = pairs | beam.WindowInto(FixedWindows(10), timestamp_combiner=combiner)
        for name, transform in (("groups", beam.GroupByKey()), ("sums", beam.CombinePerKey(sum))):
            times = (
                windowed
                | name >> transform
                | f"{name} at" >> beam.Map(lambda x, t=beam.DoFn.TimestampParam: t)
            )
            assert_that(times, equal_to([Timestamp(seconds)]), label=f"times of {name}")


def test_very_many_keys_are_combined_in_bounded_tables():
    with TestPipeline() as p:
        pairs = p | beam.Create(range(4)) | beam.FlatMap(lambda turn: ((key, turn) for key in range(120_000)))
        sums = pairs | beam.CombinePerKey(sum) | beam.MapTuple(lambda key, total: total)
        assert_that(sums | beam.combiners.Count.PerElement(), equal_to([(6, 120_000)]))
