"""Outputs at the end of a bundle take place before time moves on, so the watermark does not overtake them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, Repeatedly
from penstock.transforms.window import FixedWindows
from penstock.utils.windowed_value import WindowedValue
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000


class Kept(beam.DoFn):
    """Gives everything at the end of the bundle."""

    def start_bundle(self) -> None:
        self.kept: list[Any] = []

    def process(
        self, element: Any, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
    ) -> None:
        self.kept.append(WindowedValue(element, time, (window,)))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from self.kept


def sums(pairs: Any, label: str = "Sums", **arguments: Any) -> Any:
    windows = pairs | f"{label}Windows" >> beam.WindowInto(FixedWindows(10), **arguments)
    return windows | label >> beam.CombinePerKey(sum)


def recorded() -> TestStream:
    stream = TestStream()
    for second in range(0, 60, 5):
        stream = stream.add_elements([beam.window.TimestampedValue(("a", second), second)])
        stream = stream.advance_watermark_to(second)
    return stream.advance_watermark_to_infinity()


@pytest.mark.parametrize("behind", ["a source", "a grouping"])
def test_recorded_elements(behind: str) -> None:
    pipeline = beam.Pipeline()
    pairs = pipeline | recorded()
    kept = (
        sums(pairs | beam.ParDo(Kept()))
        if behind == "a source"
        else sums(sums(pairs, "First") | beam.ParDo(Kept()))
    )
    _ = kept | WriteToMemory([])
    query = ToyQuery(pipeline, "streaming")
    [sink] = query.plan.sinks
    assert sorted(query.batch({}, 0)[sink.label]) == sorted(
        ("a", 2 * start + 5) for start in range(0, 60, 10)
    )


def test_ticks_of_a_log() -> None:
    pipeline = beam.Pipeline()
    lines = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
        event_time=lambda number: number, watermark=BoundedDisorder(0), arrival_time=lambda number: number
    )
    numbers = pipeline | "Read" >> lines | beam.Map(lambda number: ("a", number))
    _ = sums(numbers | beam.ParDo(Kept())) | WriteToMemory([])
    query = ToyQuery(pipeline, "streaming")
    [sink] = query.plan.sinks
    found = query.batch({"Read": [list(range(0, 60, 5))]}, 100 * SECOND)[sink.label]
    assert sorted(found) == sorted(("a", 2 * start + 5) for start in range(0, 50, 10))


def test_what_is_due_by_the_clock() -> None:
    pipeline = beam.Pipeline()
    stream = (
        TestStream().add_elements([("a", 1), ("b", 2)]).advance_processing_time(30).advance_watermark_to(5)
    )
    early = {"trigger": Repeatedly(AfterProcessingTime(10)), "accumulation_mode": AccumulationMode.DISCARDING}
    first = sums(pipeline | stream.advance_watermark_to_infinity(), "First", **early)
    _ = sums(first | beam.ParDo(Kept())) | WriteToMemory([])
    query = ToyQuery(pipeline, "streaming")
    [sink] = query.plan.sinks
    assert sorted(query.batch({}, 0)[sink.label]) == [("a", 1), ("b", 2)]
