"""Where moments are in a drawing: how far both axes reach, and the way from microseconds to places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from penstock.figures.recording import Recording
from penstock.machines.records import MAX_MICROS, MIN_MICROS

T = TypeVar("T")

_CUT = 20
"""Windows that are so many times longer than all the input together are not shown whole."""


@dataclass(frozen=True)
class Scale:
    """One axis of a drawing.

    Attributes:
        low_micros: The earliest moment that must be in the drawing.
        high_micros: The latest one.
        low_place: Where the earliest is.
        high_place: Where the latest is.
        low_edge: Where the axis begins, before the earliest moment; what is earlier is there as well.
        high_edge: Where it ends.

    >>> scale = Scale(0, 100, 10.0, 110.0, low_edge=0.0, high_edge=120.0)
    >>> scale.place(50), scale.place(-1000), scale.moment(60.0)
    (60.0, 0.0, 50)
    """

    low_micros: int
    high_micros: int
    low_place: float
    high_place: float
    low_edge: float
    high_edge: float

    def place(self, micros: int) -> float:
        """Where a moment is."""
        share = (micros - self.low_micros) / (self.high_micros - self.low_micros)
        place = self.low_place + share * (self.high_place - self.low_place)
        return min(max(place, min(self.low_edge, self.high_edge)), max(self.low_edge, self.high_edge))

    def moment(self, place: float) -> int:
        """The moment that is at a place, to about a microsecond."""
        share = (place - self.low_place) / (self.high_place - self.low_place)
        return self.low_micros + round(share * (self.high_micros - self.low_micros))


def is_finite(micros: int) -> bool:
    """Whether a moment is not at the beginning or the end of time.

    >>> is_finite(0), is_finite(MAX_MICROS)
    (True, False)
    """
    return MIN_MICROS < micros < MAX_MICROS


def extent(moments: Iterable[int]) -> tuple[int, int]:
    """The earliest and the latest of the finite moments, always apart: around zero if there are none.

    >>> extent([5, 1, MAX_MICROS]), extent([3]), extent([])
    ((1, 5), (-999997, 1000003), (-1000000, 1000000))
    """
    finite = [micros for micros in moments if is_finite(micros)] or [0]
    low, high = min(finite), max(finite)
    return (low, high) if low < high else (low - 1_000_000, high + 1_000_000)


def event_extent(recording: Recording) -> tuple[int, int]:
    """How far event time reaches: over all inputs and, unless they are very much longer, all windows."""
    inputs = [each.event_micros for each in recording.inputs if is_finite(each.event_micros)]
    bounds = [micros for pane in recording.panes for micros in (pane.start_micros, pane.end_micros)]
    low, high = extent([*inputs, *bounds])
    length = max(inputs, default=0) - min(inputs, default=0)
    if not length or high - low <= _CUT * length:
        return low, high
    return max(low, min(inputs) - length // 2), min(high, max(inputs) + length // 2)


def clock_extent(recording: Recording) -> tuple[int, int]:
    """How far processing time reaches."""
    return extent(
        [
            *(each.clock_micros for each in recording.inputs),
            *(pane.clock_micros for pane in recording.panes),
            *(clock_micros for clock_micros, _ in recording.watermark),
        ]
    )
