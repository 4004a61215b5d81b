"""Counts the output of a grouping for the view of a run: panes by timing, and windows that fired, without values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.elements.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.recorder import bounds_of
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming

ROOM = 100
"""The number of windows counted apart in one micro-batch of one worker; panes of others only add to the totals."""

EARLY, ON_TIME, LATE, RETRACTED, DROPPED = "early", "on_time", "late", "retracted", "dropped"
_TIMINGS = {PaneInfoTiming.EARLY: EARLY, PaneInfoTiming.ON_TIME: ON_TIME, PaneInfoTiming.LATE: LATE}

Fired = tuple[int, int, int, str, int]
"""A time in processing time, the window's start and end, the timing, and the number of panes or elements."""


@dataclass(frozen=True)
class Tally:
    """The counts of a grouping's panes and dropped elements.

    Attributes:
        counts: The panes, retractions and dropped elements, by timing.
        fired: The windows, in order.
    """

    counts: dict[str, int] = field(default_factory=dict)
    fired: tuple[Fired, ...] = ()

    def combine(self, other: Tally | None) -> Tally:
        """Returns the sum of both.

        >>> Tally({"early": 1}).combine(Tally({"early": 2, "late": 1})).counts
        {'early': 3, 'late': 1}
        """
        if other is None:
            return self
        counts = dict(other.counts)
        for timing, count in self.counts.items():
            counts[timing] = counts.get(timing, 0) + count
        return Tally(counts, tuple(sorted(other.fired + self.fired)))


class PaneCounter:
    """Counts in one worker and micro-batch.

    >>> from penstock.transforms.window import IntervalWindow
    >>> from penstock.utils.windowed_value import PaneInfo
    >>> tallier = PaneCounter()
    >>> tallier.panes(7, IntervalWindow(0, 60), [PaneInfo(True, True, PaneInfoTiming.ON_TIME, 0, 0)] * 3)
    >>> tallier.tally()
    Tally(counts={'on_time': 3}, fired=((7, 0, 60000000, 'on_time', 3),))
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._fired: dict[tuple[int, int, int, str], int] = {}

    def panes(self, clock_micros: int, window: BoundedWindow, infos: Iterable[Any]) -> None:
        """Counts panes of one window."""
        alike: dict[int, int] = {}
        by_id: dict[int, Any] = {}
        # The panes of a window mostly share a few objects, so that a pane costs one addition.
        for info in infos:
            number = id(info)
            if number in alike:
                alike[number] += 1
            else:
                alike[number], by_id[number] = 1, info
        for number, count in alike.items():
            self._add(clock_micros, window, timing_of(by_id[number]), count)

    def pane(self, clock_micros: int, window: BoundedWindow, info: PaneInfo) -> None:
        """Counts a pane."""
        self._add(clock_micros, window, timing_of(info), 1)

    def dropped(self, clock_micros: int, window: BoundedWindow, count: int) -> None:
        """Counts elements that a window no longer took."""
        self._add(clock_micros, window, DROPPED, count)

    def tally(self) -> Tally | None:
        """Returns the counts so far; None if nothing was counted."""
        if not self._counts:
            return None
        return Tally(self._counts, tuple(sorted((*place, count) for place, count in self._fired.items())))

    def _add(self, clock_micros: int, window: BoundedWindow, timing: str, count: int) -> None:
        self._counts[timing] = self._counts.get(timing, 0) + count
        # Numbers are found sooner than windows.
        if type(window) is IntervalWindow:
            place = (clock_micros, window.start_micros, window.end_micros, timing)
        else:
            place = (clock_micros, *bounds_of(window), timing)
        before = self._fired.get(place)
        if before is not None or len(self._fired) < ROOM:
            self._fired[place] = (before or 0) + count


def timing_of(info: PaneInfo) -> str:
    """Returns the timing of a pane, or says that it retracts one.

    >>> from penstock.utils.windowed_value import PaneInfo, ValueKind
    >>> [timing_of(PaneInfo(True, True, PaneInfoTiming.LATE, 0, 0, kind)) for kind in ValueKind]
    ['late', 'retracted', 'late', 'retracted']
    """
    # Most panes are plain: a number is compared sooner than an enumeration asks itself.
    if info.kind and info.kind.is_retraction:
        return RETRACTED
    return _TIMINGS.get(info.timing, ON_TIME)
