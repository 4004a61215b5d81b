"""The timers of a key: when each is due, what it holds back, and which is next."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

_SPARE_ENTRIES = 8


class Setting(NamedTuple):
    """One setting of a timer.

    Attributes:
        window: The number of its window.
        name: The timer's name; empty for the end of the window.
        tag: Tells settings of one timer apart.
        is_event_time: Whether it goes by the watermark, or else by the clock.
        fire_micros: When it is due.
        output_micros: The event time of what it will give, which the output's watermark may not pass before; None if it
            holds nothing back.
    """

    window: int
    name: str
    tag: str
    is_event_time: bool
    fire_micros: int
    output_micros: int | None


class Timers:
    """All timers of a key.

    >>> timers = Timers()
    >>> timers.set(Setting(0, "expiry", "", True, 20, 20))
    >>> timers.set(Setting(0, "expiry", "", True, 10, 10))
    >>> timers.earliest(is_event_time=True), timers.hold_micros()
    (10, 10)
    >>> timers.take(True, until_micros=10).fire_micros, timers.take(True, until_micros=99)
    (10, None)
    """

    __slots__ = ("_by_place", "_counts", "_due", "_holds", "_next", "_settings")

    def __init__(self) -> None:
        self._next = 0
        self._settings: dict[int, Setting] = {}
        self._by_place: dict[tuple[int, str, str], int] = {}
        # The number of timers of each window, without its end.
        self._counts: dict[int, int] = {}
        # Heaps of (microseconds, number of the setting), whose entries may be out of date.
        self._due: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self._holds: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """The number of timers that are set."""
        return len(self._settings)

    def set(self, setting: Setting) -> None:
        """Sets a timer, instead of any earlier setting with its tag."""
        self.clear(setting.window, setting.name, setting.tag)
        number, self._next = self._next, self._next + 1
        self._note(number, setting)
        self._add(self._due[setting.is_event_time], setting.fire_micros, number)
        if setting.output_micros is not None:
            self._add(self._holds, setting.output_micros, number)

    def clear(self, window: int, name: str, tag: str) -> None:
        """Unsets a timer, if it is set."""
        number = self._by_place.pop((window, name, tag), None)
        if number is not None:
            del self._settings[number]
            if name:
                self._counts[window] -= 1

    def clear_window(self, window: int) -> None:
        """Unsets all timers of a window."""
        for place in [place for place in self._by_place if place[0] == window]:
            self.clear(*place)
        self._counts.pop(window, None)

    def is_set(self, window: int, name: str, tag: str) -> bool:
        """Whether a timer is set."""
        return (window, name, tag) in self._by_place

    def has_any(self, window: int) -> bool:
        """Whether timers of a window are set besides its end."""
        return self._counts.get(window, 0) > 0

    def are_due(self, window: int, until_micros: int) -> bool:
        """Whether timers of event time of a window are due by a moment besides its end."""
        return self.has_any(window) and any(
            one.window == window and one.name and one.is_event_time and one.fire_micros <= until_micros
            for one in self._settings.values()
        )

    def earliest(self, is_event_time: bool) -> int | None:
        """When the next timer is due, in microseconds; None if none is set."""
        return self._first(self._due[is_event_time])

    def latest(self, is_event_time: bool) -> int | None:
        """When the last timer is due that is set now, in microseconds; None if none is set."""
        due = (one.fire_micros for one in self._settings.values() if one.is_event_time is is_event_time)
        return max(due, default=None)

    def hold_micros(self) -> int | None:
        """The earliest event time that a timer holds back; None if none does."""
        return self._first(self._holds)

    def take(self, is_event_time: bool, until_micros: int) -> Setting | None:
        """Unsets the next timer that is due by a moment; of those due at once, the one that was set first."""
        heap = self._due[is_event_time]
        first = self._first(heap)
        if first is None or first > until_micros:
            return None
        _, number = heappop(heap)
        setting = self._settings[number]
        self.clear(*setting[:3])
        return setting

    def _note(self, number: int, setting: Setting) -> None:
        self._settings[number] = setting
        self._by_place[setting[:3]] = number
        if setting.name:
            self._counts[setting.window] = self._counts.get(setting.window, 0) + 1

    def _first(self, heap: list[tuple[int, int]]) -> int | None:
        while heap and heap[0][1] not in self._settings:
            heappop(heap)
        return heap[0][0] if heap else None

    def _add(self, heap: list[tuple[int, int]], micros: int, number: int) -> None:
        heappush(heap, (micros, number))
        if len(heap) > 2 * len(self._settings) + _SPARE_ENTRIES:
            heap[:] = [entry for entry in heap if entry[1] in self._settings]
            heapify(heap)

    def __reduce__(self) -> tuple[type[Timers], tuple[()], tuple[object, ...]]:
        # Plain tuples and numbers; heaps are made again of what is set.
        return Timers, (), (self._next, {number: tuple(one) for number, one in self._settings.items()})

    def __setstate__(
        self, stored: tuple[int, dict[int, tuple[int, str, str, bool, int, int | None]]]
    ) -> None:
        self._next, settings = stored
        for number, fields in settings.items():
            setting = Setting(*fields)
            self._note(number, setting)
            heappush(self._due[setting.is_event_time], (setting.fire_micros, number))
            if setting.output_micros is not None:
                heappush(self._holds, (setting.output_micros, number))
