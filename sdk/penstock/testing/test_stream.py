"""A stream that is described event by event (Beam's ``apache_beam.testing.test_stream``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock import graph
from penstock.absent import hint_at_absent_names
from penstock.coders.coders import FastPrimitivesCoder
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import noun_for, refusal
from penstock.io.streaming.recorded_stream import (
    ElementEvent,
    Event,
    MicroBatchEvent,
    ProcessingTimeEvent,
    RecordedStream,
    SignalEvent,
    WatermarkEvent,
)
from penstock.utils.timestamp import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    Timestamp,
    TimestampTypes,
)
from penstock.utils.windowed_value import WindowedValue

__all__ = [
    "ElementEvent",
    "Event",
    "MicroBatchEvent",
    "ProcessingTimeEvent",
    "RecordedStream",
    "SignalEvent",
    "TestStream",
    "TimingInfo",
    "WatermarkEvent",
]


class TestStream(PTransform[Any, Any]):
    """An unbounded PCollection whose events a test lists in their order (Beam's ``TestStream``).

    Each method adds an event and returns the stream itself. Applied, it returns a PCollection, or a dictionary of
    several by tag. All streams of a pipeline share one clock, which starts at 0; events at the same time happen in the
    order in which their streams were applied.

    Args:
        coder: Accepted, as in Beam, and ignored: elements are not encoded.
        events: The first events.
        output_tags: The outputs; tags of events and of the methods below are added.
        endpoint: Beam's address of a service that sends events, which is not supported.

    >>> stream = TestStream().add_elements(["a"]).advance_watermark_to(10).advance_watermark_to_infinity()
    >>> stream.to_primitive().source.describe()
    'RecordedStream(3 events)'
    """

    __test__ = False  # Otherwise pytest would collect the class because of its name.

    def __init__(
        self,
        coder: object = FastPrimitivesCoder(),
        events: Iterable[Event] | None = None,
        output_tags: Iterable[str | None] | None = None,
        endpoint: str | None = None,
    ) -> None:
        super().__init__()
        _demand(coder is not None, "a TestStream's coder is None", "leave it out")
        if endpoint:
            raise refusal(ValueError, "a TestStream does not support an endpoint", hint="pass the events")
        self.coder = coder
        self.watermarks: dict[str | None, Timestamp] = {None: MIN_TIMESTAMP}
        self._percentiles: dict[tuple[str | None, float], Timestamp] = {}
        self._events = list(events or ())
        event_tags = {event.tag for event in self._events if isinstance(event, ElementEvent | WatermarkEvent)}
        self.output_tags = event_tags if output_tags is None else set(output_tags)
        _demand(
            event_tags <= self.output_tags,
            f"{event_tags} is not a subset of {self.output_tags}",
            "name the tags of all events in output_tags",
        )

    def expand(self, pbegin: PBegin) -> Any:
        _demand(
            isinstance(pbegin, PBegin), "a TestStream is applied to a PCollection", "apply it to the pipeline"
        )
        outputs: dict[str | None, PCollection[Any]] = {
            tag: PCollection(pbegin.pipeline, tag=tag, is_bounded=False) for tag in self._tags()
        }
        return outputs[None] if outputs.keys() == {None} else outputs

    def to_primitive(self) -> graph.Read:
        return graph.Read(RecordedStream(tuple(self._events), self._tags()))

    def _tags(self) -> tuple[str | None, ...]:
        return tuple(sorted(self.output_tags or {None}, key=lambda tag: (tag is not None, tag)))

    def add_elements(
        self, elements: Iterable[Any], tag: str | None = None, event_timestamp: TimestampTypes | None = None
    ) -> TestStream:
        """Adds elements to an output.

        Args:
            elements: `TimestampedValue` and `WindowedValue` keep their time (but not their windows).
            tag: The output.
            event_timestamp: The time of other elements; by default the output's watermark.
        """
        time = self.watermarks.setdefault(tag, MIN_TIMESTAMP) if event_timestamp is None else event_timestamp
        if not isinstance(elements, Iterable):
            what = f"add_elements takes a list of elements, not {noun_for(elements)}"
            raise refusal(TypeError, what, hint=f"write add_elements([{elements!r}])")
        values = []
        for element in elements:
            if isinstance(element, WindowedValue):
                element = TimestampedValue(element.value, element.timestamp)
            values.append(
                element if isinstance(element, TimestampedValue) else TimestampedValue(element, time)
            )
        return self._add(ElementEvent(tuple(values), tag))

    def advance_watermark_to(
        self, new_watermark: Any, tag: str | None = None, percentiles: Mapping[float, Any] | None = None
    ) -> TestStream:
        """Advances the watermark of an output.

        Args:
            new_watermark: A Timestamp, or seconds since 1970.
            tag: The output.
            percentiles: The watermarks of percentiles at that time (penstock's own), for ``AfterWatermarkPercentile``;
                missing ones stay unchanged, or advance with the watermark itself.

        Raises:
            AssertionError: If a watermark moves backwards, or none advances.
            ValueError: If a percentile is not between 0 and 1, or its watermark is behind the watermark itself.

        >>> stream = TestStream().advance_watermark_to(5, percentiles={0.5: 20, 0.9: 8})
        >>> stream = stream.advance_watermark_to(5, percentiles={0.9: 10}).advance_watermark_to(12)
        """
        return self._add(WatermarkEvent(new_watermark, tag, tuple((percentiles or {}).items())))

    def advance_watermark_to_infinity(self, tag: str | None = None) -> TestStream:
        """Advances the watermark to the end of time: the output is complete."""
        return self.advance_watermark_to(MAX_TIMESTAMP, tag)

    def advance_processing_time(self, advance_by: Any, due_first: bool = True) -> TestStream:
        """Advances processing time.

        Args:
            advance_by: How far: a Duration or a number of seconds, more than 0.
            due_first: Whether everything that is due at the new time fires before the following events, as in Beam.
                Pass False if these events take place at exactly that time (penstock's own). Then they come first, as in
                a run in which elements arrive when a timer is due, and everything that is due fires after the last
                event of that time.

        Raises:
            AssertionError: Processing time does not advance.

        >>> stream = TestStream().add_elements(["a"]).advance_processing_time(60, due_first=False).add_elements(["b"])
        """
        return self._add(ProcessingTimeEvent(advance_by, due_first))

    def send_signal(self, name: str) -> TestStream:
        """Sends a signal for ``AfterSignal`` from outside (penstock's own).

        It reaches all groupings of the pipeline, not only the ones after this stream, like a run's ``signal(name)``.
        A stream without readers is not part of a run, and neither are its signals.

        >>> stream = TestStream().add_elements([("ann", 1)]).send_signal("flush")
        """
        return self._add(SignalEvent(name))

    def end_micro_batch(self) -> TestStream:
        """Ends a micro-batch (penstock's own).

        In the mode ``micro_batch``, everything that has changed fires. The mode ``streaming`` ignores it.
        """
        return self._add(MicroBatchEvent())

    def _add(self, event: Event) -> TestStream:
        match event:
            case ElementEvent(values, tag):
                in_time = all(value.timestamp < MAX_TIMESTAMP for value in values)
                _demand(in_time, "an element's timestamp is MAX_TIMESTAMP or later", "pass an earlier one")
                self.output_tags.add(tag)
            case WatermarkEvent():
                self._advance(event)
            case ProcessingTimeEvent(advance_by, _):
                what = f"processing time advances by {advance_by}"
                _demand(advance_by > Duration(0), what, "pass more than 0")
        self._events.append(event)
        return self

    def _advance(self, event: WatermarkEvent) -> None:
        new_watermark, tag = event.new_watermark, event.tag
        before = self.watermarks.get(tag, MIN_TIMESTAMP)
        is_ahead = False
        for share, time in event.percentiles:
            last = self._percentiles.get((tag, share), MIN_TIMESTAMP)
            what = f"the watermark of the percentile {share} goes from {last} to {time}"
            _demand(time >= last, what, "advance it, or leave it out")
            is_ahead = is_ahead or time > max(last, before)
        _demand(
            new_watermark > before or (new_watermark == before and is_ahead),
            f"the watermark goes from {before} to {new_watermark}",
            "advance it strictly",
        )
        self.watermarks[tag] = new_watermark
        self._percentiles.update({(tag, share): time for share, time in event.percentiles})
        self.output_tags.add(tag)


@dataclass(frozen=True)
class TimingInfo:
    """Processing time and watermark at an instant (Beam's ``TimingInfo``); numbers are seconds since 1970.

    >>> TimingInfo(1, 2).watermark
    Timestamp(2)
    """

    processing_time: Timestamp
    watermark: Timestamp

    def __post_init__(self) -> None:
        object.__setattr__(self, "processing_time", Timestamp.of(self.processing_time))
        object.__setattr__(self, "watermark", Timestamp.of(self.watermark))


def _demand(condition: bool, what: str, hint: str) -> None:
    # Beam asserts these, and tests may expect its AssertionError.
    if not condition:
        raise refusal(AssertionError, what, hint=hint)


hint_at_absent_names(globals())
