"""The ready-made combiners on Spark: one pipeline per family, several assertions in each."""

import math

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms import combiners
from penstock.transforms.stats import ApproximateQuantiles, ApproximateUnique
from penstock.transforms.window import FixedWindows, TimestampedValue

pytestmark = pytest.mark.spark

PAIRS = [("a", 1), ("b", 5), ("a", 4), ("b", 2), ("a", 4), ("c", 9)]


def only(check):
    """A matcher for a PCollection of one element that `check` holds for."""

    def matcher(actual):
        assert len(actual) == 1
        assert check(actual[0])

    return matcher


def sorted_values(kv):
    return kv[0], sorted(kv[1])


def test_counts_and_means():
    with TestPipeline() as p:
        pairs = p | "Pairs" >> beam.Create(PAIRS)
        numbers = pairs | beam.Values()
        nothing = p | "Nothing" >> beam.Create([])
        assert_that(numbers | combiners.Count.Globally(), equal_to([6]), label="count")
        assert_that(
            pairs | combiners.Count.PerKey(), equal_to([("a", 3), ("b", 2), ("c", 1)]), label="count per key"
        )
        per_element = numbers | combiners.Count.PerElement()
        assert_that(
            per_element, equal_to([(1, 1), (5, 1), (4, 2), (2, 1), (9, 1)]), label="count per element"
        )
        assert_that(numbers | "Mean" >> combiners.Mean.Globally(), equal_to([25 / 6]), label="mean")
        assert_that(
            pairs | "Means" >> combiners.Mean.PerKey(),
            equal_to([("a", 3.0), ("b", 3.5), ("c", 9.0)]),
            label="means",
        )
        assert_that(
            nothing | "No count" >> combiners.Count.Globally(), equal_to([0]), label="count of nothing"
        )
        no_mean = nothing | "No mean" >> combiners.Mean.Globally()
        assert_that(no_mean, only(math.isnan), label="mean of nothing")
        without = nothing | "Without" >> combiners.Count.Globally().without_defaults()
        assert_that(without, equal_to([]), label="count without defaults")
        huge = p | "Huge" >> beam.Create([2**62, 2**62, 2**62])
        assert_that(
            huge | "Mean of huge" >> combiners.Mean.Globally(), equal_to([float(2**62)]), label="huge"
        )


def test_top():
    with TestPipeline() as p:
        pairs = p | "Pairs" >> beam.Create(PAIRS)
        numbers = pairs | beam.Values()
        words = p | "Words" >> beam.Create(["pear", "fig", "banana"])
        nothing = p | "Nothing" >> beam.Create([])
        assert_that(numbers | combiners.Top.Of(2), equal_to([[9, 5]]), label="of")
        assert_that(numbers | combiners.Top.Largest(3), equal_to([[9, 5, 4]]), label="largest")
        assert_that(numbers | combiners.Top.Smallest(2), equal_to([[1, 2]]), label="smallest")
        assert_that(
            words | "Longest" >> combiners.Top.Of(2, key=len), equal_to([["banana", "pear"]]), label="key"
        )
        shortest = words | "Shortest" >> combiners.Top.Of(1, key=len, reverse=True)
        assert_that(shortest, equal_to([["fig"]]), label="reverse")
        largest = pairs | combiners.Top.LargestPerKey(2)
        assert_that(largest, equal_to([("a", [4, 4]), ("b", [5, 2]), ("c", [9])]), label="largest per key")
        smallest = pairs | combiners.Top.SmallestPerKey(1)
        assert_that(smallest, equal_to([("a", [1]), ("b", [2]), ("c", [9])]), label="smallest per key")
        per_key = pairs | combiners.Top.PerKey(1, key=lambda number: -number)
        assert_that(per_key, equal_to([("a", [1]), ("b", [2]), ("c", [9])]), label="per key")
        assert_that(nothing | "None" >> combiners.Top.Of(2), equal_to([[]]), label="of nothing")


def test_collections_samples_and_the_latest():
    with TestPipeline() as p:
        pairs = p | "Pairs" >> beam.Create(PAIRS)
        numbers = pairs | beam.Values()
        timed = p | "Timed" >> beam.Create([("k", "old", 1), ("k", "new", 9), ("j", "only", 5)])
        timed |= beam.MapTuple(lambda key, value, seconds: TimestampedValue((key, value), seconds))
        nothing = p | "Nothing" >> beam.Create([])
        listed = numbers | combiners.ToList() | beam.Map(sorted)
        assert_that(listed, equal_to([[1, 2, 4, 4, 5, 9]]), label="list")
        assert_that(numbers | combiners.ToSet(), equal_to([{1, 2, 4, 5, 9}]), label="set")
        as_dict = pairs | beam.Filter(lambda kv: kv[1] in (1, 5, 9)) | combiners.ToDict()
        assert_that(as_dict, equal_to([{"a": 1, "b": 5, "c": 9}]), label="dict")
        assert_that(nothing | "Empty list" >> combiners.ToList(), equal_to([[]]), label="empty list")
        assert_that(nothing | "Empty dict" >> combiners.ToDict(), equal_to([{}]), label="empty dict")
        assert_that(timed | combiners.Latest.Globally(), equal_to([("k", "new")]), label="latest")
        assert_that(
            timed | combiners.Latest.PerKey(), equal_to([("k", "new"), ("j", "only")]), label="latest per key"
        )
        sample = numbers | combiners.Sample.FixedSizeGlobally(3)
        assert_that(sample, only(lambda one: len(one) == 3 and set(one) <= {1, 2, 4, 5, 9}), label="sample")
        samples = pairs | combiners.Sample.FixedSizePerKey(5) | "Sort samples" >> beam.Map(sorted_values)
        assert_that(samples, equal_to([("a", [1, 4, 4]), ("b", [2, 5]), ("c", [9])]), label="samples")
        some = numbers | combiners.Sample.Any(4) | "Count some" >> combiners.Count.Globally()
        assert_that(some, equal_to([4]), label="any")


def test_several_combiners_at_once():
    with TestPipeline() as p:
        pairs = p | beam.Create(PAIRS)
        common = combiners.SingleInputTupleCombineFn(sum, max, combiners.MeanCombineFn())
        combined = pairs | beam.CombinePerKey(common)
        expected = [("a", (9, 4, 3.0)), ("b", (7, 5, 3.5)), ("c", (9, 9, 9.0))]
        assert_that(combined, equal_to(expected), label="common input")
        tuples = pairs | beam.CombineGlobally(combiners.TupleCombineFn(max, sum))
        assert_that(tuples, equal_to([("c", 25)]), label="tuple")


def test_combiners_work_window_by_window():
    with TestPipeline() as p:
        timed = p | beam.Create([(1, 3), (2, 4), (11, 5)])
        timed |= beam.MapTuple(lambda seconds, value: TimestampedValue(value, seconds))
        windowed = timed | beam.WindowInto(FixedWindows(10))
        counts = windowed | combiners.Count.Globally().without_defaults()
        assert_that(counts, equal_to([2, 1]), label="count")
        means = windowed | "Mean" >> combiners.Mean.Globally().without_defaults()
        assert_that(means, equal_to([3.5, 5.0]), label="mean")
        tops = windowed | combiners.Top.Of(1).without_defaults()
        assert_that(tops, equal_to([[4], [5]]), label="top")
        lists = windowed | combiners.ToList().without_defaults() | beam.Map(sorted)
        assert_that(lists, equal_to([[3, 4], [5]]), label="list")


def test_approximate_statistics():
    with TestPipeline() as p:
        numbers = p | "Numbers" >> beam.Create(range(101))
        keyed = numbers | beam.Map(lambda number: (number % 2, number % 10))
        assert_that(numbers | ApproximateUnique.Globally(size=200), equal_to([101]), label="unique")
        assert_that(
            keyed | ApproximateUnique.PerKey(error=0.1), equal_to([(0, 5), (1, 5)]), label="unique per key"
        )
        estimate = (
            p | "Many" >> beam.Create(range(5000)) | "Estimate" >> ApproximateUnique.Globally(error=0.1)
        )
        assert_that(estimate, only(lambda count: abs(count - 5000) < 500), label="estimate")
        assert_that(
            numbers | "Quartiles" >> ApproximateQuantiles.Globally(5),
            equal_to([[0, 25, 50, 75, 100]]),
            label="quartiles",
        )
        descending = numbers | "Descending" >> ApproximateQuantiles.Globally(3, reverse=True)
        assert_that(descending, equal_to([[100, 50, 0]]), label="descending")
        per_key = keyed | "Quantiles" >> ApproximateQuantiles.PerKey(3)
        assert_that(per_key, equal_to([(0, [0, 4, 8]), (1, [1, 5, 9])]), label="quantiles per key")
        weighted = p | "Weighted" >> beam.Create([(1, 1), (2, 1), (3, 6), (4, 2)])
        quartiles = weighted | "Weighted quartiles" >> ApproximateQuantiles.Globally(5, weighted=True)
        assert_that(quartiles, equal_to([[1, 3, 3, 3, 4]]), label="weighted")
