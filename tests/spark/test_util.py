"""The small composites on Spark: one pipeline per family, several assertions in each."""

import logging

import pytest

import penstock as beam
from penstock.metrics.metric import Metrics
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms import error_handling
from penstock.transforms.deduplicate import Deduplicate, DeduplicatePerKey
from penstock.transforms.util import (
    BatchElements,
    GroupIntoBatches,
    LogElements,
    Reify,
    ReshufflePerKey,
    SortAndBatchElements,
    Tee,
    ToString,
    WaitOn,
    WithKeys,
)
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow, TimestampedValue
from penstock.utils.timestamp import Timestamp

pytestmark = pytest.mark.spark

PAIRS = [("a", 1), ("b", 5), ("a", 4)]


def at(seconds, value):
    return TimestampedValue(value, seconds)


def seconds_of(element, timestamp=beam.DoFn.TimestampParam):
    return element, int(timestamp)


def test_keys_values_and_distinct_elements():
    with TestPipeline() as p:
        pairs = p | "Pairs" >> beam.Create(PAIRS)
        words = p | "Words" >> beam.Create(["x", "yy", "x", "zz"])
        base = p | "Base" >> beam.Create([10])
        assert_that(pairs | beam.Keys(), equal_to(["a", "b", "a"]), label="keys")
        assert_that(pairs | beam.Values(), equal_to([1, 5, 4]), label="values")
        assert_that(pairs | beam.KvSwap(), equal_to([(1, "a"), (5, "b"), (4, "a")]), label="swapped")
        assert_that(words | beam.Distinct(), equal_to(["x", "yy", "zz"]), label="distinct")
        mixed = p | "Mixed" >> beam.Create([1, "1", (1, "x"), (1, "x"), None, None])
        assert_that(
            mixed | "Dm" >> beam.Distinct(), equal_to([1, "1", (1, "x"), None]), label="distinct mixed"
        )
        constant = words | "Constant" >> WithKeys("k")
        assert_that(constant, equal_to([("k", "x"), ("k", "yy"), ("k", "x"), ("k", "zz")]), label="constant")
        computed = (
            words
            | "Computed" >> WithKeys(len)
            | beam.GroupByKey()
            | beam.MapTuple(lambda k, vs: (k, sorted(vs)))
        )
        assert_that(computed, equal_to([(1, ["x", "x"]), (2, ["yy", "zz"])]), label="computed")
        plus = words | "Plus" >> WithKeys(lambda word, more: len(word) + more, 5)
        assert_that(plus, equal_to([(6, "x"), (7, "yy"), (6, "x"), (7, "zz")]), label="argument")
        side = words | "Side" >> WithKeys(
            lambda word, more: len(word) + more, more=beam.pvalue.AsSingleton(base)
        )
        assert_that(side, equal_to([(11, "x"), (12, "yy"), (11, "x"), (12, "zz")]), label="side input")
        assert_that(pairs | ToString.Kvs(), equal_to(["a,1", "b,5", "a,4"]), label="kvs")
        assert_that(
            pairs | "Semi" >> ToString.Iterables(";"), equal_to(["a;1", "b;5", "a;4"]), label="iterables"
        )
        assert_that(
            pairs | "V" >> beam.Values() | ToString.Element(), equal_to(["1", "5", "4"]), label="element"
        )


def test_reshuffling_keeps_elements_timestamps_and_windows():
    with TestPipeline() as p:
        pairs = p | beam.Create(PAIRS) | beam.Map(lambda kv: at(kv[1], kv))
        windowed = pairs | beam.WindowInto(FixedWindows(2))
        expected = [(pair, pair[1]) for pair in PAIRS]
        shuffled = windowed | beam.Reshuffle() | "S" >> beam.Map(seconds_of)
        assert_that(shuffled, equal_to(expected), label="all")
        few = windowed | "Few" >> beam.Reshuffle(num_buckets=1) | "F" >> beam.Map(seconds_of)
        assert_that(few, equal_to(expected), label="buckets")
        per_key = windowed | ReshufflePerKey() | "P" >> beam.Map(seconds_of)
        assert_that(per_key, equal_to(expected), label="per key")
        counted = windowed | "Again" >> beam.Reshuffle() | beam.combiners.Count.PerKey()
        assert_that(counted, equal_to([("a", 1), ("b", 1), ("a", 1)]), label="windows")


def test_timestamps_and_windows_made_visible():
    with TestPipeline() as p:
        plain = p | "Plain" >> beam.Create([("k", "v")])
        timed = p | "Timed" >> beam.Create([("a", 1), ("a", 12)]) | beam.Map(lambda kv: at(kv[1], kv))
        windowed = timed | beam.WindowInto(FixedWindows(10))
        start = Timestamp(1)
        windows = IntervalWindow(0, 10), IntervalWindow(10, 20)
        assert_that(timed | Reify.Timestamp(), equal_to([("a", 1), ("a", 12)]), label="timestamp")
        full = [(("a", 1), start, windows[0]), (("a", 12), Timestamp(12), windows[1])]
        assert_that(windowed | Reify.Window(), equal_to(full), label="window")
        globally = plain | "Global" >> Reify.Window() | beam.Map(lambda trio: trio[2])
        assert_that(globally, equal_to([GlobalWindow()]), label="global window")
        in_value = [("a", at(1, 1)), ("a", at(12, 12))]
        assert_that(timed | Reify.TimestampInValue(), equal_to(in_value), label="timestamp in value")
        in_value = [("a", (1, start, windows[0])), ("a", (12, Timestamp(12), windows[1]))]
        assert_that(windowed | Reify.WindowInValue(), equal_to(in_value), label="window in value")


def test_batches_of_elements_respect_sizes_and_windows():
    with TestPipeline() as p:
        numbers = p | "Numbers" >> beam.Create(range(30), reshuffle=False)
        fixed = numbers | "Fixed" >> BatchElements(7, 7)
        assert_that(fixed | beam.FlatMap(iter), equal_to(list(range(30))), label="all")
        assert_that(fixed | "Large" >> beam.Filter(lambda batch: len(batch) > 7), equal_to([]), label="sizes")
        dynamic = numbers | "Dynamic" >> BatchElements(max_batch_size=10) | "D" >> beam.FlatMap(iter)
        assert_that(dynamic, equal_to(list(range(30))), label="dynamic")
        windowed = numbers | beam.Map(lambda number: at(number, number)) | beam.WindowInto(FixedWindows(10))
        batches = windowed | "Windowed" >> BatchElements(100, 100)
        same = batches | "Same" >> beam.Map(lambda batch: len({number // 10 for number in batch}))
        assert_that(
            same | "One" >> beam.Distinct() | beam.combiners.Count.PerElement(),
            equal_to([(1, 1)] * 3),
            label="w",
        )
        ends = (
            batches
            | "Ends" >> beam.Map(lambda _, at=beam.DoFn.TimestampParam: at.micros)
            | "De" >> beam.Distinct()
        )
        assert_that(ends, equal_to([9_999_999, 19_999_999, 29_999_999]), label="timestamps")
        words = p | "Words" >> beam.Create(["eeeee", "a", "ccc", "bb", "dddd"], reshuffle=False)
        sorted_batches = words | SortAndBatchElements(1, 3, 10)
        assert_that(
            sorted_batches | "Sb" >> beam.FlatMap(iter) | "Len" >> beam.Map(len),
            equal_to([1, 2, 3, 4, 5]),
            label="s",
        )
        ascending = sorted_batches | "Asc" >> beam.Filter(
            lambda batch: batch != sorted(batch, key=len) or len(batch) > 3
        )
        assert_that(ascending, equal_to([]), label="ascending")


class CountingBundles(beam.DoFn):
    def start_bundle(self):
        Metrics.counter("test", "bundles").inc()

    def process(self, element):
        yield element


@pytest.mark.parametrize(("values", "bundles"), [(1, 1), (1_000, 1), (1_001, 2)])
def test_up_to_a_thousand_values_of_the_program_are_one_bundle(values, bundles):
    with TestPipeline() as p:
        batches = (
            p
            | beam.Create(range(values))
            | beam.ParDo(CountingBundles())
            | BatchElements(1_000, 1_000)
            | beam.Map(len)
        )
        assert_that(batches, lambda sizes: sum(sizes) == values or pytest.fail(str(sizes)))
    (counted,) = p.result.metrics().query()["counters"]
    assert counted.committed == bundles


def test_values_of_a_key_in_batches():
    with TestPipeline() as p:
        pairs = p | beam.Create([(key, number) for key in "ab" for number in range(10)])
        sizes = pairs | GroupIntoBatches(4) | beam.MapTuple(lambda key, batch: (key, len(list(batch))))
        assert_that(
            sizes, equal_to([("a", 4), ("a", 4), ("a", 2), ("b", 4), ("b", 4), ("b", 2)]), label="sizes"
        )
        values = (
            pairs
            | "Waiting" >> GroupIntoBatches(3, max_buffering_duration_secs=5)
            | beam.FlatMapTuple(lambda _, b: b)
        )
        assert_that(values, equal_to([*range(10), *range(10)]), label="values")
        sharded = pairs | GroupIntoBatches.WithShardedKey(2)
        flat = sharded | "Flat" >> beam.FlatMapTuple(
            lambda sharded_key, batch: [(sharded_key.key, each) for each in batch]
        )
        assert_that(flat, equal_to([(key, number) for key in "ab" for number in range(10)]), label="sharded")
        windowed = (
            pairs
            | beam.MapTuple(lambda key, number: at(number, (key, number)))
            | beam.WindowInto(FixedWindows(5))
        )
        per_window = (
            windowed | "Per window" >> GroupIntoBatches(100) | "Pw" >> beam.MapTuple(lambda _, b: sorted(b))
        )
        assert_that(per_window, equal_to([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]] * 2), label="per window")


def test_duplicates_are_dropped_per_window_and_the_earliest_stays():
    with TestPipeline() as p:
        events = p | beam.Create([("k", "late", 5), ("k", "early", 3), ("j", "x", 4), ("k", "next", 15)])
        events |= beam.MapTuple(lambda key, value, seconds: at(seconds, (key, value)))
        windowed = events | beam.WindowInto(FixedWindows(10))
        kept = windowed | DeduplicatePerKey(event_time_duration=10) | beam.Map(seconds_of)
        assert_that(
            kept, equal_to([(("k", "early"), 3), (("j", "x"), 4), (("k", "next"), 15)]), label="per key"
        )
        once = windowed | beam.Keys() | Deduplicate(processing_time_duration=10)
        assert_that(once, equal_to(["k", "j", "k"]), label="elements")


def test_branches_logging_waiting_and_errors(tmp_path):
    class Note(beam.DoFn):
        def process(self, element):
            (tmp_path / "noted").touch()
            yield element

    with TestPipeline() as p:
        words = p | "Words" >> beam.Create(["x", "yy"])
        teed = words | Tee(
            lambda pcoll: assert_that(pcoll, equal_to(["x", "yy"]), label="branch"), beam.Map(len)
        )
        assert_that(teed, equal_to(["x", "yy"]), label="tee")
        logged = words | LogElements(prefix="> ", with_timestamp=True, with_window=True, level=logging.DEBUG)
        assert_that(logged, equal_to(["x", "yy"]), label="logged")
        noted = p | "Slow" >> beam.Create([1]) | beam.ParDo(Note())
        waited = (
            words | WaitOn(noted) | "Look" >> beam.Map(lambda word: (word, (tmp_path / "noted").exists()))
        )
        assert_that(waited, equal_to([("x", True), ("yy", True)]), label="waited")
        with error_handling.ErrorHandler("Errors" >> beam.Map(lambda record: record[0])) as handler:
            parsed = (p | "Texts" >> beam.Create(["1", "no"])) | beam.Map(int).with_exception_handling(
                error_handler=handler
            )
        assert_that(parsed, equal_to([1]), label="parsed")
        assert_that(handler.output(), equal_to(["no"]), label="dead letters")
        with error_handling.CollectingErrorHandler() as collecting:
            inverses = (p | "Numbers" >> beam.Create([1, 0])) | "Invert" >> beam.Map(
                lambda number: 1 / number
            ).with_exception_handling(error_handler=collecting)
        assert_that(inverses, equal_to([1.0]), label="inverses")
        assert_that(
            collecting.output() | "Which" >> beam.Map(lambda record: record[0]), equal_to([0]), label="which"
        )


def test_an_error_handler_left_open_stops_the_pipeline():
    p = TestPipeline()
    handler = error_handling.ErrorHandler(beam.Map(str))
    _ = (p | beam.Create(["1"])) | "Parse" >> beam.Map(int).with_exception_handling(error_handler=handler)
    with pytest.raises(RuntimeError, match="Unclosed error handler"):
        p.run()
