"""The timers of a key: their due times, the watermark that they hold, and the next one to fire."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain

FEW: int = 8
"""The number of timers up to which the next one is searched for; more timers need heaps."""

END_OF_WINDOW = ""
"""The name of the timer for the end of a window."""

HOLDS_NOTHING: int = (1 << 63) - 1
"""The hold of a timer that holds nothing back: later than all times."""

_SPARE_ENTRIES = 8

Setting = tuple[bool, int, int | None]
"""One setting of a timer: whether it follows the watermark (or else the clock); when it is due, in microseconds; and
the event time of its output, which holds the output watermark, or None if that is when it is due."""

NextTimers = tuple[dict[Domain, int], int | None]
"""The times at which a key is next due, by domain, and its watermark hold, if any; in microseconds."""

Place = tuple[Any, str, str]
"""Identifies a setting, which a new one replaces: its window; the timer's name, which is empty for the end of the
window; and the timer's tag."""


class Timers:
    """All timers of a key, in the order in which they were set. `settings` is used, and changed in place.

    >>> timers = Timers()
    >>> timers.set((0, "expiry", ""), (True, 20, None))
    >>> timers.set((0, "expiry", ""), (True, 10, None))
    >>> timers.earliest(is_event_time=True), timers.hold_micros()
    (10, 10)
    >>> timers.take(True, until_micros=5), timers.take(True, until_micros=10)
    (None, ((0, 'expiry', ''), (True, 10, None)))
    """

    __slots__ = ("_heaps", "settings")

    def __init__(self, settings: dict[Place, Setting] | None = None) -> None:
        self.settings = {} if settings is None else settings
        self._heaps = _Heaps(self.settings) if len(self.settings) > FEW else None

    def set(self, place: Place, setting: Setting) -> None:
        """Sets a timer, and replaces an earlier setting at its place."""
        settings, heaps = self.settings, self._heaps
        was_set = settings.pop(place, None) is not None
        settings[place] = setting
        if heaps is not None:
            if was_set:
                heaps.drop(place)
            heaps.add(place, setting)
        elif len(settings) > FEW:
            self._heaps = _Heaps(settings)

    def clear(self, place: Place) -> None:
        """Clears a timer, if it is set."""
        if self.settings.pop(place, None) is not None and self._heaps is not None:
            self._heaps.drop(place)

    def clear_window(self, window: object) -> None:
        """Clears all timers of a window."""
        for place in [place for place in self.settings if place[0] == window]:
            self.clear(place)

    def has_any(self, window: object) -> bool:
        """True if a window has timers other than its end."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.counts.get(window, 0) > 0
        return any(name and of_window == window for of_window, name, _ in self.settings)

    def are_due(self, window: object, until_micros: int) -> bool:
        """True if event-time timers of a window, other than its end, are due by a time."""
        return self.has_any(window) and any(
            of_window == window and name and is_event_time and micros <= until_micros
            for (of_window, name, _), (is_event_time, micros, _) in self.settings.items()
        )

    def earliest(self, is_event_time: bool) -> int | None:
        """Returns the time at which the next timer is due; None if none is set."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.first(heaps.due[is_event_time])
        earliest = None
        for of_event_time, micros, _ in self.settings.values():
            if of_event_time is is_event_time and (earliest is None or micros < earliest):
                earliest = micros
        return earliest

    def latest(self, is_event_time: bool) -> int | None:
        """Returns the time at which the last timer set now is due; None if none is set."""
        due = (micros for domain, micros, _ in self.settings.values() if domain is is_event_time)
        return max(due, default=None)

    def hold_micros(self) -> int | None:
        """Returns the earliest event time that a timer holds; None if none does."""
        heaps = self._heaps
        if heaps is not None:
            return heaps.first(heaps.holds)
        held = min(
            (fire if output is None else output for _, fire, output in self.settings.values()),
            default=HOLDS_NOTHING,
        )
        return None if held == HOLDS_NOTHING else held

    def next_timers(self) -> NextTimers:
        """Returns the `earliest` of each domain in which anything is due, and `hold_micros`.

        >>> Timers({(0, "expiry", ""): (True, 20, 10), (0, "flush", ""): (False, 30, HOLDS_NOTHING)}).next_timers()
        ({1.0: 20, 'clock': 30}, 10)
        """
        if self._heaps is not None:
            asked: tuple[tuple[Domain, int | None], ...] = (
                (WATERMARK, self.earliest(True)),
                (CLOCK, self.earliest(False)),
            )
            return {domain: micros for domain, micros in asked if micros is not None}, self.hold_micros()
        alarms: dict[Domain, int] = {}
        hold_micros = HOLDS_NOTHING
        for is_event_time, fire_micros, output_micros in self.settings.values():
            domain = WATERMARK if is_event_time else CLOCK
            if domain not in alarms or fire_micros < alarms[domain]:
                alarms[domain] = fire_micros
            held_micros = fire_micros if output_micros is None else output_micros
            if held_micros < hold_micros:
                hold_micros = held_micros
        return alarms, None if hold_micros == HOLDS_NOTHING else hold_micros

    def take(self, is_event_time: bool, until_micros: int) -> tuple[Place, Setting] | None:
        """Clears the next timer that is due by a time; of several at once, the one that was set first."""
        settings, heaps = self.settings, self._heaps
        if heaps is not None:
            first_micros = self.earliest(is_event_time)
            if first_micros is None or first_micros > until_micros:
                return None
            found = heaps.places[heaps.due[is_event_time][0][1]]
            setting = settings[found]
            self.clear(found)
            return found, setting
        next_place, next_micros = None, until_micros + 1
        for place, (of_event_time, micros, _) in settings.items():
            if of_event_time is is_event_time and micros < next_micros:
                next_place, next_micros = place, micros
        return None if next_place is None else (next_place, settings.pop(next_place))


class _Heaps:
    """Timers in order of time, for keys with many. Their numbers ascend in the order in which they were set."""

    __slots__ = ("_next", "_numbers", "counts", "due", "holds", "places")

    def __init__(self, settings: dict[Place, Setting]) -> None:
        self._next = 0
        self._numbers: dict[Place, int] = {}
        self.places: dict[int, Place] = {}  # The places of set timers, by number.
        self.counts: dict[Any, int] = {}  # The number of timers of each window, without its end.
        # Heaps of (microseconds, number), whose entries may be out of date: when event-time timers (True) and timers of
        # the clock (False) are due, and what timers hold.
        self.due: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self.holds: list[tuple[int, int]] = []
        for place, setting in settings.items():
            self.add(place, setting)

    def add(self, place: Place, setting: Setting) -> None:
        """Adds a timer to an empty place."""
        number, self._next = self._next, self._next + 1
        self._numbers[place] = number
        self.places[number] = place
        window, name, _ = place
        is_event_time, fire_micros, output_micros = setting
        if name:
            self.counts[window] = self.counts.get(window, 0) + 1
        self._push(self.due[is_event_time], fire_micros, number)
        held_micros = fire_micros if output_micros is None else output_micros
        if held_micros != HOLDS_NOTHING:
            self._push(self.holds, held_micros, number)

    def drop(self, place: Place) -> None:
        """Removes a timer."""
        del self.places[self._numbers.pop(place)]
        window, name, _ = place
        if name:
            self.counts[window] -= 1
            if not self.counts[window]:
                del self.counts[window]

    def first(self, heap: list[tuple[int, int]]) -> int | None:
        """Returns the earliest time in a heap; None without current entries."""
        while heap and heap[0][1] not in self.places:
            heappop(heap)
        return heap[0][0] if heap else None

    def _push(self, heap: list[tuple[int, int]], micros: int, number: int) -> None:
        heappush(heap, (micros, number))
        if len(heap) > 2 * len(self.places) + _SPARE_ENTRIES:
            heap[:] = [entry for entry in heap if entry[1] in self.places]
            heapify(heap)
