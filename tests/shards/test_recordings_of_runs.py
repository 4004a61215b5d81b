"""Recordings of a run's groupings: the elements, the panes and the watermark, however its input is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.machines.records import MAX_MICROS
from penstock.relations.changelog import Changelog
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, Sessions, TimestampedValue, WindowFn
from penstock.windows.windowing import Windowing
from penstock_figures import Recording, recording_of_test_stream
from penstock_figures.of_runs import Figure, recording_of_grouping
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000


def scores() -> TestStream:
    """Seven scores of two players, of which one comes late, and one too late."""

    def score(player: str, points: int, seconds: int) -> TimestampedValue:
        return TimestampedValue((player, points), seconds)

    return (
        TestStream()
        .advance_processing_time(1)
        .add_elements([score("ann", 5, 2), score("ben", 7, 3)])
        .advance_processing_time(2)
        .add_elements([score("ann", 3, 8)])
        .advance_processing_time(4)
        .add_elements([score("ann", 1, 14)])
        .advance_watermark_to(10)
        .add_elements([score("ann", 9, 4)])
        .advance_processing_time(3)
        .add_elements([score("ben", 2, 21)])
        .advance_watermark_to(20)
        .advance_processing_time(1)
        .add_elements([score("ben", 4, 6)])
    )


def summed(windowing: WindowFn, mode: int = AccumulationMode.ACCUMULATING) -> tuple[beam.Pipeline, object]:
    pipeline = beam.Pipeline()
    sums = pipeline | scores() | windows(windowing, mode) | "Sum" >> beam.CombinePerKey(sum)
    shown = sums | beam.MapTuple(lambda key, total: f"{key} {total}")
    _ = shown | Changelog() | WriteToMemory([])
    return pipeline, shown


def windows(windowfn: WindowFn, mode: int) -> beam.WindowInto:
    trigger = AfterWatermark(early=AfterProcessingTime(2), late=AfterCount(1))
    return beam.WindowInto(windowfn, trigger, mode, allowed_lateness=8)


def of_run(pipeline, pcoll, events_per_batch, mode="streaming", room=100) -> Recording:
    query = ToyQuery(pipeline, mode, shards=3, events_per_batch=events_per_batch, recorded=room)
    for _ in range(query.timeline.batches):
        query.batch()
    return recording_of_grouping(pcoll, query.snapshot, mode)


def in_order(recording: Recording) -> Recording:
    """Sorts events of one moment, which come in no order for several keys."""
    return replace(
        recording,
        inputs=tuple(sorted(recording.inputs, key=lambda one: (one.clock_micros, one.key, one.value))),
        panes=tuple(sorted(recording.panes, key=lambda one: (one.clock_micros, one.key, one.start_micros))),
    )


@pytest.mark.parametrize("events_per_batch", [None, 1, 3])
@pytest.mark.parametrize("windowfn", [FixedWindows(10), Sessions(4)])
def test_a_run_records_what_the_bare_machine_does(windowfn, events_per_batch):
    pipeline, pcoll = summed(windowfn)
    found = of_run(pipeline, pcoll, events_per_batch)
    windowing = Windowing(
        windowfn,
        AfterWatermark(early=AfterProcessingTime(2), late=AfterCount(1)),
        AccumulationMode.ACCUMULATING,
        allowed_lateness=8,
    )
    expected = recording_of_test_stream(scores(), windowing, sum, title="Sum")
    assert len(found.panes) > 4
    assert any(one.is_dropped for one in found.inputs)
    assert in_order(found) == in_order(expected)


def test_what_is_taken_back_is_recorded():
    pipeline, pcoll = summed(FixedWindows(10), AccumulationMode.ACCUMULATING_AND_RETRACTING)
    panes = of_run(pipeline, pcoll, None).panes
    # Early at 3 and at 5 seconds, on time at 7, and late.
    assert [
        ("-" if one.is_retraction else "+") + one.value
        for one in panes
        if one.key == "ann" and not one.start_micros
    ] == ["+5", "-5", "+8", "-8", "+8", "-8", "+17"]


def test_a_recording_that_has_no_room_keeps_what_comes_first_and_says_so():
    pipeline, pcoll = summed(FixedWindows(10))
    whole, short = of_run(pipeline, pcoll, 1), of_run(pipeline, pcoll, 1, room=2)
    assert (whole.is_complete, short.is_complete) == (True, False)
    assert in_order(short).inputs == in_order(whole).inputs[:2]
    assert len(short.panes) == 2


def test_a_round_of_micro_batches_has_a_watermark_of_its_own():
    pipeline, pcoll = summed(FixedWindows(10))
    found = of_run(pipeline, pcoll, 4, "micro_batch")
    assert [micros == MAX_MICROS for _, micros in found.watermark] == [True, False] * (
        len(found.watermark) // 2
    )
    assert len(found.watermark) > 2


def test_without_a_clock_each_event_is_a_step():
    pipeline = beam.Pipeline()
    stream = TestStream().add_elements([TimestampedValue(("ann", 5), 2)]).advance_watermark_to(10)
    sums = pipeline | stream | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum)
    _ = sums | WriteToMemory([])
    found = of_run(pipeline, sums, None)
    assert found.counts_steps
    assert [one.clock_micros for one in (*found.inputs, *found.panes)] == [SECOND, 2 * SECOND]


def test_the_figure_is_drawn_and_saved(tmp_path):
    pipeline, pcoll = summed(FixedWindows(10))
    figure = Figure(of_run(pipeline, pcoll, None))
    figure.save(tmp_path / "sums.svg")
    assert (tmp_path / "sums.svg").read_text() == figure.svg == figure._repr_html_()
    assert figure.svg.count("<circle") >= len(figure.recording.inputs)


def test_where_no_grouping_is_and_where_nothing_was_recorded_it_is_said():
    pipeline, pcoll = summed(FixedWindows(10))
    with pytest.raises(
        ValueError, match=r"recorded nothing for this grouping\n  at step 'Sum.*\n  hint: .*record_events"
    ):
        recording_of_grouping(pcoll, {}, "streaming")
    alone = pipeline | beam.Create([1])
    with pytest.raises(ValueError, match=r"no grouping leads to the PCollection"):
        recording_of_grouping(alone, {}, "streaming")
