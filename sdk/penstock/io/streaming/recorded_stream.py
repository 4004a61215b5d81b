"""The source of a stream that a program describes event by event: what a `TestStream` reads."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

from penstock import graph
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import refusal
from penstock.utils.timestamp import Duration, Timestamp


class Event:
    """An event of a `TestStream`: one of the classes below (Beam's ``Event``)."""


@dataclass(frozen=True, order=True)
class ElementEvent(Event):
    """An event at which elements arrive at an output, None for the main one (Beam's ``ElementEvent``)."""

    timestamped_values: tuple[TimestampedValue[Any], ...]
    tag: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "timestamped_values", tuple(self.timestamped_values))


@dataclass(frozen=True, order=True)
class WatermarkEvent(Event):
    """An output's watermark advances (Beam's ``WatermarkEvent``).

    Attributes:
        new_watermark: A Timestamp, or seconds since 1970.
        tag: The output; None for the main one.
        percentiles: The watermarks of percentiles at that time (penstock's own): pairs, or a mapping.

    >>> WatermarkEvent(5).new_watermark
    Timestamp(5)
    >>> WatermarkEvent(5, percentiles={0.9: 8}).percentiles
    ((0.9, Timestamp(8)),)
    """

    new_watermark: Timestamp
    tag: str | None = None
    percentiles: tuple[tuple[float, Timestamp], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "new_watermark", Timestamp.of(self.new_watermark))
        times = {share: Timestamp.of(time) for share, time in dict(self.percentiles).items()}
        for share, time in times.items():
            _check_percentile(share, time, self.new_watermark)
        object.__setattr__(self, "percentiles", tuple(sorted(times.items())))


@dataclass(frozen=True, order=True)
class ProcessingTimeEvent(Event):
    """An event at which processing time advances by a Duration or seconds (Beam's ``ProcessingTimeEvent``).

    Attributes:
        advance_by: How far.
        due_first: Whether timers that are due at the new time fire before the events that follow (penstock's own). If
            not, these events belong to that instant, and the timers fire after them.

    >>> ProcessingTimeEvent(1.5).advance_by
    Duration(1.5)
    """

    advance_by: Duration
    due_first: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "advance_by", Duration.of(self.advance_by))


@dataclass(frozen=True, order=True)
class SignalEvent(Event):
    """A named signal for ``AfterSignal`` arrives from outside (penstock's own).

    >>> SignalEvent("flush").name
    'flush'
    """

    name: str

    def __post_init__(self) -> None:
        hint = "pass the name of the AfterSignal that waits for it"
        if not isinstance(self.name, str):
            what = f"the name of a signal must be a string, not {self.name!r}"
            raise refusal(TypeError, what, hint=hint)
        if not self.name:
            raise refusal(ValueError, "the name of the signal is empty", hint=hint)


@dataclass(frozen=True, order=True)
class MicroBatchEvent(Event):
    """A micro-batch ends (penstock's own), and with it, in the mode ``micro_batch``, a round."""


@dataclass(frozen=True, eq=False)
class RecordedStream(graph.Source):
    """The source of a `TestStream`, as the compiler sees it; the main output, None, is the first of its tags."""

    events: tuple[Event, ...]
    tags: tuple[str | None, ...] = (None,)

    is_bounded = False

    def describe(self) -> str:
        """Returns the number of events, but never the elements: they may be private."""
        return f"RecordedStream({len(self.events)} event{'s' * (len(self.events) != 1)})"


def _check_percentile(share: float, time: Timestamp, watermark: Timestamp) -> None:
    if not (isinstance(share, Real) and 0 < share < 1):
        what = f"a percentile must be more than 0 and less than 1, but is {share!r}"
        hint = "write 0.95 for 95 percent; the watermark itself is at 100 percent"
        raise refusal(ValueError, what, hint=hint)
    if time < watermark:
        what = f"the watermark of the percentile {share} is at {time}, behind the watermark itself at {watermark}"
        hint = "leave it out: the watermark itself is used"
        raise refusal(ValueError, what, hint=hint)
