"""DoFns with state and timers in a stream: the levels at work, in any cuts, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from attribution import Attribute, recorded
from penstock.coders import FastPrimitivesCoder, StrUtf8Coder
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.deduplicate import DeduplicatePerKey
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import (
    BagStateSpec,
    CombiningValueStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.transforms.window import FixedWindows, TimestampedValue
from tests.shards.toy_query import ToyQuery

CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2, 5])
ATTRIBUTED = [
    "imp=123 http://search.com?q=xyz → http://xyz.com/ → http://xyz.com/join-mailing-list",
    "imp=456 http://search.com?q=thing → http://xyz.com/thing → http://xyz.com/thing/add-to-cart "
    "→ http://xyz.com/thing/purchase → http://xyz.com/thing/receipt",
]


def found_in(pipeline: Any, events_per_batch: int | None, mode: str = "streaming") -> list[list[Any]]:
    """The results of each micro-batch that has some."""
    query = ToyQuery(pipeline, mode, shards=2, events_per_batch=events_per_batch)
    batches = [
        [element for given in query.batch().values() for element in given]
        for _ in range(query.timeline.batches)
    ]
    return [elements for elements in batches if elements]


def elements_of(pipeline: Any, events_per_batch: int | None, mode: str = "streaming") -> list[Any]:
    return [element for elements in found_in(pipeline, events_per_batch, mode) for element in elements]


@CUTS
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_the_book_s_attribution(events_per_batch, mode):
    pipeline = beam.Pipeline()
    _ = pipeline | recorded() | beam.ParDo(Attribute()) | WriteToMemory([])
    assert elements_of(pipeline, events_per_batch, mode) == ATTRIBUTED


def at(seconds, value, key="a"):
    return TimestampedValue((key, value), seconds)


class Numbered(beam.DoFn):
    """Numbers the elements of a key and window."""

    COUNT = CombiningValueStateSpec("count", sum)

    def process(self, element, count=beam.DoFn.StateParam(COUNT)):
        count.add(1)
        yield element[0], element[1], count.read()


@CUTS
def test_state_is_kept_by_key_and_window(events_per_batch):
    stream = TestStream().add_elements([at(1, "x"), at(2, "y"), at(1, "x", "b"), at(11, "z")])
    stream = stream.advance_watermark_to(5).add_elements([at(3, "w"), at(12, "v")])
    pipeline = beam.Pipeline()
    numbered = pipeline | stream | beam.WindowInto(FixedWindows(10)) | beam.ParDo(Numbered())
    _ = numbered | WriteToMemory([])
    assert sorted(elements_of(pipeline, events_per_batch)) == [
        ("a", "v", 2),
        ("a", "w", 3),
        ("a", "x", 1),
        ("a", "y", 2),
        ("a", "z", 1),
        ("b", "x", 1),
    ]


def test_what_comes_after_its_window_has_ended_is_dropped_and_counted():
    stream = TestStream().add_elements([at(1, "x")]).advance_watermark_to(12).add_elements([at(2, "late")])
    pipeline = beam.Pipeline()
    windows = beam.WindowInto(FixedWindows(10), allowed_lateness=2)
    _ = pipeline | stream | windows | "Number" >> beam.ParDo(Numbered()) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=2)
    found = [element for _ in range(query.timeline.batches) for element in query.batch().values()]
    assert found == [[("a", "x", 1)]]
    assert query.counted("elements_dropped_as_late") == 1


class Gather(beam.DoFn):
    """Gives what has come in a window five seconds after the first of it by one clock or the other, and at its end."""

    KEPT = BagStateSpec("kept", StrUtf8Coder())
    FIRST = ReadModifyWriteStateSpec("first", FastPrimitivesCoder())


class GatherByWatermark(Gather):
    TIMER = TimerSpec("flush", TimeDomain.WATERMARK)

    def process(
        self,
        element,
        timestamp=beam.DoFn.TimestampParam,
        kept=beam.DoFn.StateParam(Gather.KEPT),
        first=beam.DoFn.StateParam(Gather.FIRST),
        timer=beam.DoFn.TimerParam(TIMER),
    ):
        kept.add(element[1])
        if first.read() is None:
            first.write(True)
            timer.set(timestamp + 5)

    @on_timer(TIMER)
    def flush(
        self,
        key=beam.DoFn.KeyParam,
        timestamp=beam.DoFn.TimestampParam,
        kept=beam.DoFn.StateParam(Gather.KEPT),
        first=beam.DoFn.StateParam(Gather.FIRST),
    ):
        yield "timer", key, float(timestamp), sorted(kept.read())
        first.clear()

    @on_window_expiration
    def end(self, key=beam.DoFn.KeyParam, kept=beam.DoFn.StateParam(Gather.KEPT)):
        yield "end", key, sorted(kept.read())


@CUTS
def test_timers_of_event_time_fire_by_the_watermark_and_windows_end_after_them(events_per_batch):
    stream = TestStream().add_elements([at(1, "x"), at(2, "y")]).advance_watermark_to(6)
    stream = stream.add_elements([at(9, "z")]).advance_watermark_to(10)
    pipeline = beam.Pipeline()
    windows = beam.WindowInto(FixedWindows(20))
    _ = pipeline | stream | windows | beam.ParDo(GatherByWatermark()) | WriteToMemory([])
    assert elements_of(pipeline, events_per_batch) == [
        ("timer", "a", 6.0, ["x", "y"]),
        ("timer", "a", 14.0, ["x", "y", "z"]),
        ("end", "a", ["x", "y", "z"]),
    ]


class GatherByClock(Gather):
    TIMER = TimerSpec("flush", TimeDomain.REAL_TIME)

    def process(
        self,
        element,
        kept=beam.DoFn.StateParam(Gather.KEPT),
        timer=beam.DoFn.TimerParam(TIMER),
    ):
        kept.add(element[1])
        timer.set(5, dynamic_timer_tag=element[1])

    @on_timer(TIMER)
    def flush(
        self,
        tag=beam.DoFn.DynamicTimerTagParam,
        kept=beam.DoFn.StateParam(Gather.KEPT),
    ):
        yield tag, sorted(kept.read())


@CUTS
def test_timers_of_processing_time_hold_the_watermark_at_the_element_that_set_them(events_per_batch):
    stream = TestStream().add_elements([at(1, "x")]).advance_processing_time(2).add_elements([at(3, "y")])
    stream = stream.advance_watermark_to(15).advance_processing_time(4).advance_processing_time(1)
    pipeline = beam.Pipeline()
    flushed = (
        pipeline
        | stream
        | beam.ParDo(GatherByClock())
        | beam.MapTuple(lambda tag, kept, time=beam.DoFn.TimestampParam: (tag, float(time), kept))
    )
    counted = (
        flushed
        | beam.Map(lambda flush: ("all", flush[0]))
        | beam.WindowInto(FixedWindows(10))
        | beam.GroupByKey()
        | beam.MapTuple(lambda key, tags: sorted(tags))
    )
    _ = flushed | "Write" >> WriteToMemory([])
    _ = counted | "Write counts" >> WriteToMemory([])
    found = elements_of(pipeline, events_per_batch)
    # The window [0, 10) of the grouping after it is on time, though the watermark has passed it long ago.
    assert found == [("x", 1.0, ["x", "y"]), ("y", 3.0, ["x", "y"]), ["x", "y"]]


@CUTS
def test_batches_come_when_they_are_full_or_have_waited_and_when_their_window_ends(events_per_batch):
    stream = TestStream().add_elements([at(1, 1), at(2, 2), at(3, 3)]).advance_processing_time(2)
    stream = (
        stream.add_elements([at(4, 4), at(1, 9, "b")]).advance_processing_time(3).add_elements([at(6, 5)])
    )
    stream = stream.advance_processing_time(5).add_elements([at(7, 6), at(12, 7)])
    pipeline = beam.Pipeline()
    windows = beam.WindowInto(FixedWindows(10))
    _ = pipeline | stream | windows | beam.GroupIntoBatches(2, 4) | WriteToMemory([])
    found = elements_of(pipeline, events_per_batch)
    assert sorted(found) == [("a", [1, 2]), ("a", [3, 4]), ("a", [5]), ("a", [6]), ("a", [7]), ("b", [9])]


@CUTS
def test_what_has_come_before_is_dropped_until_it_is_forgotten(events_per_batch):
    stream = TestStream().add_elements([at(1, "x"), at(2, "y")]).advance_processing_time(4)
    stream = stream.add_elements([at(3, "z"), at(1, "x", "b")]).advance_processing_time(2)
    stream = stream.add_elements([at(4, "w")])
    pipeline = beam.Pipeline()
    first = pipeline | stream | DeduplicatePerKey(processing_time_duration=5)
    _ = first | WriteToMemory([])
    assert sorted(elements_of(pipeline, events_per_batch)) == [("a", "w"), ("a", "x"), ("b", "x")]


@CUTS
def test_the_horizon_of_duplicates_may_be_one_of_event_time(events_per_batch):
    stream = TestStream().add_elements([at(1, "x"), at(2, "y")]).advance_watermark_to(5)
    stream = stream.add_elements([at(6, "z")]).advance_watermark_to(7).add_elements([at(8, "w")])
    pipeline = beam.Pipeline()
    first = pipeline | stream | DeduplicatePerKey(event_time_duration=5)
    _ = first | WriteToMemory([])
    assert sorted(elements_of(pipeline, events_per_batch)) == [("a", "w"), ("a", "x")]
