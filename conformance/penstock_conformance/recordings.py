"""Inputs that several scenarios share: recorded events, put together in order of processing time."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark, EndMicroBatch, Event, Signal
from penstock_conformance.malformed import Malformed


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Recorded events in order of processing time.

    At one time elements come first, then watermarks, then the end of a round, then the clock.

    >>> events = [AdvanceWatermark(5, clock_micros=2), AddElement("a", 5, clock_micros=2), AdvanceClock(1)]
    >>> [type(event).__name__ for event in in_order(events)]
    ['AdvanceClock', 'AddElement', 'AdvanceWatermark']
    """
    return tuple(sorted(events, key=_place))


def _place(event: Event) -> tuple[int, int]:
    if event.clock_micros is None:
        hint = "begin its line with a time: 12:05:00 element 5 at 12:00:26"
        raise Malformed(f"the recorded event {event} has no processing time", hint=hint)
    match event:
        case AddElement() | Signal():
            rank = 0
        case AdvanceWatermark():
            rank = 1
        case EndMicroBatch():
            rank = 2
        case AdvanceClock():
            rank = 3
    return event.clock_micros, rank
