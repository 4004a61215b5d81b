"""Beam's TestStream as a recorded stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apache_beam.testing import test_stream as beam_test_stream

from penstock.elements.bounded_window import TimestampedValue
from penstock.error import UnsupportedByRunner
from penstock.io.streaming.recorded_stream import (
    ElementEvent,
    Event,
    ProcessingTimeEvent,
    RecordedStream,
    WatermarkEvent,
)
from penstock_spark.beam.values import duration_of, time_of


def translate_test_stream(stream: beam_test_stream.TestStream, tags: Sequence[str | None]) -> RecordedStream:
    """Returns the source of a TestStream whose outputs have these tags."""
    if getattr(stream, "_endpoint", None):
        what = "a TestStream does not support an endpoint"
        raise UnsupportedByRunner(what, hint="pass the events")
    return RecordedStream(tuple(map(_event, stream._events)), tuple(tags))


def _event(event: beam_test_stream.Event) -> Event:
    match event:
        case beam_test_stream.ElementEvent():
            return ElementEvent(tuple(map(_element, event.timestamped_values)), _tag(event.tag))
        case beam_test_stream.WatermarkEvent():
            return WatermarkEvent(time_of(event.new_watermark), _tag(event.tag))
        case beam_test_stream.ProcessingTimeEvent():
            return ProcessingTimeEvent(duration_of(event.advance_by))
    raise AssertionError(f"no such event: {event}")


def _tag(tag: object) -> str | None:
    return None if tag is None else str(tag)


def _element(element: Any) -> TimestampedValue[Any]:
    return TimestampedValue(element.value, time_of(element.timestamp))
