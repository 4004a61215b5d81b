"""Recorded streams on Spark: one Structured Streaming query, and the panes that the model asks for."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.metrics.metric import MetricsFilter
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import BeamAssertException, assert_that, equal_to
from penstock.transforms.combiners import CountCombineFn
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampedValue

ACCUMULATING = AccumulationMode.ACCUMULATING


def goals() -> TestStream:
    """Two goals on time, one late, and one far too late."""
    return (
        TestStream()
        .add_elements([TimestampedValue(("blue", 1), 1), TimestampedValue(("red", 4), 2)])
        .add_elements([TimestampedValue(("blue", 2), 2)])
        .advance_watermark_to(10)
        .add_elements([TimestampedValue(("blue", 5), 3)])
        .advance_watermark_to(200)
        .add_elements([TimestampedValue(("blue", 7), 4)])
        .advance_watermark_to_infinity()
    )


EARLY_AND_LATE = beam.WindowInto(
    FixedWindows(10),
    AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
    ACCUMULATING,
    allowed_lateness=100,
)


PANES = [
    ("blue", 1, "early"),
    ("blue", 3, "early"),
    ("blue", 3, "on time"),
    ("blue", 8, "late"),
    ("red", 4, "early"),
    ("red", 4, "on time"),
]


def timing(element, pane=beam.DoFn.PaneInfoParam):
    return *element, ("early", "on time", "late")[pane.timing]


@pytest.mark.parametrize("events_per_batch", [None, 2])
def test_early_on_time_and_late_panes_and_what_is_dropped(spark, events_per_batch):
    with TestPipeline(spark=spark, events_per_batch=events_per_batch) as pipeline:
        panes = pipeline | goals() | EARLY_AND_LATE | beam.CombinePerKey(sum) | beam.Map(timing)
        assert_that(panes, equal_to(PANES))
    dropped = pipeline.result.metrics().query(MetricsFilter().with_name("elements_dropped_as_late"))
    assert [counter.committed for counter in dropped["counters"]] == [1]


@pytest.mark.parametrize("events_per_batch", [None, 1])
def test_each_event_is_a_moment_at_whose_end_fires_what_is_due_at_once(spark, events_per_batch):
    at_once = beam.WindowInto(
        GlobalWindows(), Repeatedly(AfterProcessingTime(0)), AccumulationMode.DISCARDING
    )
    with TestPipeline(spark=spark, events_per_batch=events_per_batch) as pipeline:
        stream = TestStream().add_elements([("a", 1), ("a", 2)]).add_elements([("a", 3)])
        panes = pipeline | stream | at_once | beam.GroupByKey()
        # As Beam's own runner gives them.
        assert_that(panes, equal_to([("a", [1, 2]), ("a", [3])]))


@pytest.mark.every_spark
def test_groupings_in_a_row_and_side_by_side_and_a_flatten(spark):
    with TestPipeline(spark=spark) as pipeline:
        sums = pipeline | goals() | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum)
        by_size = sums | beam.MapTuple(lambda team, total: (total % 2, team)) | "BySize" >> beam.GroupByKey()
        teams = by_size | beam.MapTuple(lambda odd, teams: (odd, sorted(teams)))
        both = (sums, sums) | beam.Flatten() | "Both" >> beam.CombinePerKey(sum)
        names = pipeline | beam.Create(["blue", "red"])
        assert_that(teams, equal_to([(1, ["blue"]), (0, ["red"])]), label="teams")
        assert_that(both, equal_to([("blue", 6), ("red", 8)]), label="both")
        assert_that(names, equal_to(["blue", "red"]), label="names")


@pytest.mark.every_spark
def test_processing_time_fires_what_is_due(spark):
    stream = (
        TestStream()
        .add_elements([("blue", 1)])
        .advance_processing_time(5)
        .add_elements([("blue", 2)])
        .advance_processing_time(10)
        .add_elements([("blue", 4)])
        .advance_watermark_to_infinity()
    )
    each_minute = beam.WindowInto(
        GlobalWindows(), Repeatedly(AfterProcessingTime(10)), AccumulationMode.DISCARDING
    )
    with TestPipeline(spark=spark) as pipeline:
        assert_that(
            pipeline | stream | each_minute | beam.CombinePerKey(sum), equal_to([("blue", 3), ("blue", 4)])
        )


def test_a_micro_batch_is_a_round_and_batch_is_not_for_streams(spark):
    with TestPipeline(spark=spark, mode="micro_batch", events_per_batch=2) as pipeline:
        windows = beam.WindowInto(FixedWindows(10), None, ACCUMULATING, allowed_lateness=1000)
        sums = pipeline | goals() | windows | beam.CombinePerKey(sum)
        # The first round has no event but the first two goals, the second the third goal and the watermark.
        rounds = [("blue", 1), ("red", 4), ("blue", 3), ("blue", 8), ("blue", 15)]
        assert_that(sums, equal_to(rounds))
    batch = TestPipeline(spark=spark, mode="batch")
    _ = batch | goals()
    with pytest.raises(UnsupportedByRunner, match="unbounded"):
        batch.run()


def test_sessions_that_merge_are_taken_back_downstream(spark):
    retracting = beam.WindowInto(
        Sessions(10),
        AfterWatermark(early=AfterCount(1)),
        AccumulationMode.ACCUMULATING_AND_RETRACTING,
    )
    stream = (
        TestStream()
        .add_elements([TimestampedValue(("ann", "a"), 0)])
        .add_elements([TimestampedValue(("ann", "c"), 15)])
        .add_elements([TimestampedValue(("ann", "b"), 8)])
        .advance_watermark_to_infinity()
    )
    with TestPipeline(spark=spark) as pipeline:
        visits = pipeline | stream | retracting | beam.GroupByKey()
        lengths = visits | beam.MapTuple(lambda _, pages: (len(pages), 1))
        hourly = lengths | "Hours" >> beam.WindowInto(FixedWindows(3600))
        assert_that(hourly | "Count" >> beam.CombinePerKey(CountCombineFn()), equal_to([(3, 1)]))


def test_an_error_in_a_stream_names_its_step_and_keeps_its_type(spark):
    pipeline = TestPipeline(spark=spark)
    _ = (
        pipeline
        | goals()
        | EARLY_AND_LATE
        | beam.CombinePerKey(sum)
        | "Divide" >> beam.Map(lambda pair: pair[1] / 0)
    )
    with pytest.raises(ZeroDivisionError, match="while running 'Divide'"):
        pipeline.run()
    wrong = TestPipeline(spark=spark)
    assert_that(wrong | goals() | beam.Values(), equal_to([1]))
    with pytest.raises(BeamAssertException):
        wrong.run()
