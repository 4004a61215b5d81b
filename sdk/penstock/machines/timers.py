"""The timers of a key: when each is due, what it holds back, and which is next."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

FEW: int = 8
"""So many timers are looked through; where there are more, heaps tell what is next."""

_SPARE_ENTRIES = 8

Plain = tuple[int, str, str, bool, int, int | None]
"""The fields of a `Setting`: they are stored, and looked through, quicker than it."""

Place = tuple[int, str, str]
"""A window's number, a timer's name and a tag: where a new setting replaces an old one."""


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

    Args:
        settings: What is set, in the order in which it was.

    >>> timers = Timers()
    >>> timers.set(Setting(0, "expiry", "", True, 20, 20))
    >>> timers.set(Setting(0, "expiry", "", True, 10, 10))
    >>> timers.earliest(is_event_time=True), timers.hold_micros()
    (10, 10)
    >>> timers.take(True, until_micros=10).fire_micros, timers.take(True, until_micros=99)
    (10, None)
    """

    __slots__ = ("_heaps", "_settings")

    def __init__(self, settings: Iterable[Plain] = ()) -> None:
        # In the order in which they were set.
        self._settings: dict[Place, Plain] = {one[:3]: one for one in settings}
        self._heaps = _Heaps(self._settings) if len(self._settings) > FEW else None

    def __len__(self) -> int:
        """The number of timers that are set."""
        return len(self._settings)

    def settings(self) -> list[Plain]:
        """What is set, in the order in which it was."""
        return [*map(tuple, self._settings.values())]  # type: ignore[list-item]

    def set(self, setting: Plain) -> None:
        """Sets a timer, instead of any earlier setting with its tag."""
        place, settings, heaps = setting[:3], self._settings, self._heaps
        was_set = settings.pop(place, None) is not None
        settings[place] = setting
        if heaps is not None:
            if was_set:
                heaps.drop(place)
            heaps.add(place, setting)
        elif len(settings) > FEW:
            self._heaps = _Heaps(settings)

    def clear(self, window: int, name: str, tag: str) -> None:
        """Unsets a timer, if it is set."""
        place = window, name, tag
        if self._settings.pop(place, None) is not None and self._heaps is not None:
            self._heaps.drop(place)

    def clear_window(self, window: int) -> None:
        """Unsets all timers of a window."""
        for place in [place for place in self._settings if place[0] == window]:
            self.clear(*place)

    def is_set(self, window: int, name: str, tag: str) -> bool:
        """Whether a timer is set."""
        return (window, name, tag) in self._settings

    def has_any(self, window: int) -> bool:
        """Whether timers of a window are set besides its end."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.counts.get(window, 0) > 0
        return any(name and of_window == window for of_window, name, _ in self._settings)

    def are_due(self, window: int, until_micros: int) -> bool:
        """Whether timers of event time of a window are due by a moment besides its end."""
        return self.has_any(window) and any(
            of_window == window and name and is_event_time and micros <= until_micros
            for of_window, name, _, is_event_time, micros, _ in self._settings.values()
        )

    def earliest(self, is_event_time: bool) -> int | None:
        """When the next timer is due, in microseconds; None if none is set."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.first(heaps.due[is_event_time])
        earliest = None
        for setting in self._settings.values():
            if setting[3] is is_event_time and (earliest is None or setting[4] < earliest):
                earliest = setting[4]
        return earliest

    def latest(self, is_event_time: bool) -> int | None:
        """When the last timer is due that is set now, in microseconds; None if none is set."""
        due = (micros for _, _, _, domain, micros, _ in self._settings.values() if domain is is_event_time)
        return max(due, default=None)

    def hold_micros(self) -> int | None:
        """The earliest event time that a timer holds back; None if none does."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.first(heaps.holds)
        earliest = None
        for setting in self._settings.values():
            micros = setting[5]
            if micros is not None and (earliest is None or micros < earliest):
                earliest = micros
        return earliest

    def take(self, is_event_time: bool, until_micros: int) -> Setting | None:
        """Unsets the next timer that is due by a moment; of those due at once, the one that was set first."""
        first_micros = self.earliest(is_event_time)
        if first_micros is None or first_micros > until_micros:
            return None
        heaps = self._heaps
        if heaps is not None:
            place = heaps.places[heaps.due[is_event_time][0][1]]
        else:
            place = next(
                place
                for place, (_, _, _, domain, micros, _) in self._settings.items()
                if micros == first_micros and domain is is_event_time
            )
        setting = self._settings[place]
        self.clear(*place)
        return Setting(*setting)

    def __reduce__(self) -> tuple[type[Timers], tuple[list[Plain]]]:
        return Timers, (self.settings(),)


class _Heaps:
    """Many timers, in order of time.

    Args:
        settings: The timers by place, in the order in which they were set.

    Attributes:
        places: Where the timers are that are set, by their numbers, which ascend as they are set.
        counts: The number of timers of each window, without its end.
        due: When timers are due, for those of event time and those of the clock: heaps of (microseconds, number), whose
            entries may be out of date.
        holds: What they hold back, likewise.
    """

    __slots__ = ("_next", "_numbers", "counts", "due", "holds", "places")

    def __init__(self, settings: dict[Place, Plain]) -> None:
        self._next = 0
        self._numbers: dict[Place, int] = {}
        self.places: dict[int, Place] = {}
        self.counts: dict[int, int] = {}
        self.due: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self.holds: list[tuple[int, int]] = []
        for place, setting in settings.items():
            self.add(place, setting)

    def add(self, place: Place, setting: Plain) -> None:
        """A timer is set, where none is."""
        number, self._next = self._next, self._next + 1
        self._numbers[place] = number
        self.places[number] = place
        window, name, _, is_event_time, fire_micros, output_micros = setting
        if name:
            self.counts[window] = self.counts.get(window, 0) + 1
        self._push(self.due[is_event_time], fire_micros, number)
        if output_micros is not None:
            self._push(self.holds, output_micros, number)

    def drop(self, place: Place) -> None:
        """A timer is unset."""
        del self.places[self._numbers.pop(place)]
        window, name, _ = place
        if name:
            self.counts[window] -= 1
            if not self.counts[window]:
                del self.counts[window]

    def first(self, heap: list[tuple[int, int]]) -> int | None:
        """The earliest moment in a heap; None if there is none."""
        while heap and heap[0][1] not in self.places:
            heappop(heap)
        return heap[0][0] if heap else None

    def _push(self, heap: list[tuple[int, int]], micros: int, number: int) -> None:
        heappush(heap, (micros, number))
        if len(heap) > 2 * len(self.places) + _SPARE_ENTRIES:
            heap[:] = [entry for entry in heap if entry[1] in self.places]
            heapify(heap)
