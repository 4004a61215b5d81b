"""A stream with a side input that does not end, as a query without Spark."""

from __future__ import annotations

from typing import Any

import penstock as beam
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.window import FixedWindows, TimestampedValue
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
MINUTES = FixedWindows(60)


def at(seconds: int, *values: Any) -> list[TimestampedValue]:
    return [TimestampedValue(value, seconds) for value in values]


def streams(*events: Any) -> TestStream:
    """A stream of two outputs: ``main``, and ``side``.

    Each event is (output, elements) or (output, seconds of its watermark); ``None`` ends a micro-batch.
    """
    stream = TestStream(output_tags={"main", "side"})
    for event in events:
        match event:
            case None:
                stream = stream.end_micro_batch()
            case (tag, list(elements)):
                stream = stream.add_elements(elements, tag=tag)
            case (tag, seconds):
                stream = stream.advance_watermark_to(seconds, tag=tag)
    return stream.advance_watermark_to_infinity("main").advance_watermark_to_infinity("side")


def seen(element: Any, side: Any, window: Any = beam.DoFn.WindowParam) -> Any:
    """The element with what it saw."""
    shown = dict(side) if isinstance(side, dict) else list(side) if isinstance(side, (list, tuple)) else side
    return element, sorted(shown) if isinstance(shown, list) else shown


def run(
    stream: Any,
    view: Any,
    main_windows: Any = MINUTES,
    side_windows: Any = MINUTES,
    events_per_batch: int | None = None,
    shards: int = 2,
    mode: str = "streaming",
    **windowing: Any,
) -> list[Any]:
    """The results of a Map with a side input."""
    query = ToyQuery(
        built(stream, view, main_windows, side_windows, **windowing), mode, shards, events_per_batch
    )
    found = []
    for _ in range(query.timeline.batches):
        for elements in query.batch().values():
            found += elements
    return found


def built(stream: Any, view: Any, main_windows: Any, side_windows: Any, **windowing: Any) -> Any:
    pipeline = beam.Pipeline()
    both = pipeline | stream
    main = both["main"] | "MainWindows" >> beam.WindowInto(main_windows)
    side = both["side"] | "SideWindows" >> beam.WindowInto(side_windows, **windowing)
    _ = main | "See" >> beam.Map(seen, view(side)) | WriteToMemory([])
    return pipeline
