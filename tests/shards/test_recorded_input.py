"""A TestStream says which groupings signals and watermarks of percentiles reach, when, and what comes first."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.grouping.windowing import Windowing
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterSignal,
    AfterWatermarkPercentile,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, TimestampedValue
from penstock_figures import recording_of_test_stream
from tests.shards.toy_query import ToyQuery

BY_SIGNAL = beam.WindowInto(GlobalWindows(), Repeatedly(AfterSignal("now")), AccumulationMode.DISCARDING)
BY_HALF = beam.WindowInto(FixedWindows(10), AfterWatermarkPercentile(0.5), AccumulationMode.DISCARDING)
CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2])


def played(pipeline: Any, events_per_batch: int | None) -> list[tuple[int, list[Any]]]:
    """The results of each micro-batch that has some, with the number of its last step."""
    query = ToyQuery(pipeline, shards=3, events_per_batch=events_per_batch)
    found = []
    for first_of_next in (*query.timeline.firsts[1:], len(query.timeline.clocks_micros)):
        elements = sorted(element for given in query.batch().values() for element in given)
        if elements:
            found.append((first_of_next - 1, elements))
    return found


def of_all(pipeline: Any, events_per_batch: int | None) -> list[Any]:
    """All that comes out, in no order."""
    return sorted(element for _, elements in played(pipeline, events_per_batch) for element in elements)


@CUTS
def test_a_signal_reaches_the_groupings_of_all_levels_and_of_other_streams(events_per_batch):
    pipeline = beam.Pipeline()
    control = TestStream().advance_processing_time(1).send_signal("then").send_signal("now")
    _ = pipeline | "Control" >> control | "Controls" >> WriteToMemory([])
    scores = TestStream().add_elements([("ann", 1), ("ann", 2), ("ben", 4)]).advance_processing_time(2)
    scores = scores.add_elements([("ann", 8)])
    sums = pipeline | scores | BY_SIGNAL | "First" >> beam.CombinePerKey(sum)
    for level in ("Second", "Third"):
        sums = sums | f"By parity {level}" >> beam.MapTuple(lambda key, value: (value % 2, value))
        sums = sums | level >> beam.CombinePerKey(sum)
    _ = sums | WriteToMemory([])
    # Elements after the signal wait for the end.
    assert of_all(pipeline, events_per_batch) == [(0, 4), (0, 8), (1, 3)]
    if events_per_batch == 1:
        # The elements, two ticks of the clock, the signals, and one more element come before the end.
        assert [step for step, _ in played(pipeline, 1)] == [4, 7]


@CUTS
def test_a_signal_of_a_stream_with_several_outputs_comes_once(events_per_batch):
    pipeline = beam.Pipeline()
    outputs = pipeline | (
        TestStream(output_tags=["good", "bad"])
        .add_elements([("ann", 1)], tag="good")
        .send_signal("now")
        .add_elements([("ann", 2)], tag="good")
        .add_elements([("ann", 4)], tag="good")
        .send_signal("now")
    )
    # If it came twice, the elements after it would come one by one.
    trigger = Repeatedly(AfterEach(AfterSignal("now"), AfterSignal("now"), AfterCount(1)))
    for name in ("good", "bad"):
        windows = beam.WindowInto(GlobalWindows(), trigger, AccumulationMode.DISCARDING)
        sums = outputs[name] | f"Windows {name}" >> windows | f"Sum {name}" >> beam.CombinePerKey(sum)
        _ = sums | f"Write {name}" >> WriteToMemory([])
    assert of_all(pipeline, events_per_batch) == [("ann", 1), ("ann", 6)]


def of_two_streams(second: TestStream) -> Any:
    """Sums of one element of each of two streams, of which the first is at half by the first event of the second."""
    pipeline = beam.Pipeline(allow_unsafe_triggers=True)
    element = TimestampedValue(("ann", 1), 3)
    first = TestStream().add_elements([element]).advance_watermark_to(4, percentiles={0.5: 10})
    streams = (pipeline | "First" >> first, pipeline | "Second" >> second)
    _ = streams | beam.Flatten() | BY_HALF | beam.CombinePerKey(sum) | WriteToMemory([])
    return pipeline


@CUTS
def test_the_watermark_of_a_percentile_is_that_of_the_slowest_source(events_per_batch):
    element = TimestampedValue(("ann", 2), 5)
    second = TestStream().add_elements([element]).advance_watermark_to(6, percentiles={0.5: 9})
    pipeline = of_two_streams(second.advance_watermark_to(6, percentiles={0.5: 10, 0.9: 7}))
    assert of_all(pipeline, events_per_batch) == [("ann", 3)]
    if events_per_batch == 1:
        assert [step for step, _ in played(pipeline, 1)] == [5]


def test_where_a_source_has_no_percentile_its_own_watermark_stands_in():
    element = TimestampedValue(("ann", 2), 5)
    second = TestStream().add_elements([element]).advance_watermark_to(9).advance_watermark_to(10)
    assert played(of_two_streams(second), 1) == [(5, [("ann", 3)])]


APART = [[1, 2], [3]]


@CUTS
@pytest.mark.parametrize("clock_moves", [False, True])
def test_each_event_is_a_moment_at_whose_end_fires_what_is_due_at_once(events_per_batch, clock_moves):
    pipeline = beam.Pipeline()
    stream = TestStream()
    for values in APART:
        stream = stream.add_elements([("ann", value) for value in values])
        stream = stream.advance_processing_time(1) if clock_moves else stream
    at_once = beam.WindowInto(
        GlobalWindows(), Repeatedly(AfterProcessingTime(0)), AccumulationMode.DISCARDING
    )
    values = pipeline | stream | at_once | "First" >> beam.GroupByKey()
    _ = values | "Second" >> beam.GroupByKey() | WriteToMemory([])
    # Two groupings in a row: the panes of the second come at the same moments.
    assert of_all(pipeline, events_per_batch) == [("ann", [values]) for values in APART]
    if events_per_batch == 1:
        assert [step for step, _ in played(pipeline, 1)] == ([1, 3] if clock_moves else [1, 2])


def test_what_waits_for_the_clock_still_waits_for_it():
    pipeline = beam.Pipeline()
    stream = TestStream().add_elements([("ann", 1)]).add_elements([("ann", 2)]).advance_processing_time(5)
    later = beam.WindowInto(GlobalWindows(), Repeatedly(AfterProcessingTime(5)), AccumulationMode.DISCARDING)
    _ = pipeline | stream.add_elements([("ann", 3)]) | later | beam.GroupByKey() | WriteToMemory([])
    assert of_all(pipeline, 1) == [("ann", [1, 2]), ("ann", [3])]


@CUTS
@pytest.mark.parametrize("due_first", [True, False])
def test_events_at_the_instant_of_a_firing_come_before_it_if_the_test_says_so(events_per_batch, due_first):
    pipeline = beam.Pipeline()
    stream = TestStream().add_elements([("ann", 1)]).advance_processing_time(5, due_first=due_first)
    stream = stream.add_elements([("ann", 2)]).advance_watermark_to(1).add_elements([("ann", 4)])
    stream = stream.advance_processing_time(1).add_elements([("ann", 8)])
    delayed = Repeatedly(AfterProcessingTime(5)), AccumulationMode.DISCARDING
    windowing = beam.WindowInto(GlobalWindows(), *delayed)
    _ = pipeline | stream | windowing | beam.CombinePerKey(sum) | WriteToMemory([])
    # The rest is there at the end.
    sums = [1, 14] if due_first else [7, 8]
    assert [total for _, total in of_all(pipeline, events_per_batch)] == sums
    if events_per_batch == 1:
        # Alarms that are due at the fifth second fire at the end of the step that is the last one of that time.
        assert played(pipeline, 1)[0] == (2 if due_first else 5, [("ann", sums[0])])
    recorded = recording_of_test_stream(stream, Windowing(GlobalWindows(), *delayed), sum)
    assert [int(pane.value) for pane in recorded.panes] == sums
