"""The timers of a key: when each is due, what it holds back, and which is next."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain

FEW: int = 8
"""So many timers are looked through; where there are more, heaps tell what is next."""

END_OF_WINDOW = ""
"""The name of the timer for the end of a window."""

_SPARE_ENTRIES = 8

Setting = tuple[int, str, str, bool, int, int | None]
"""One setting of a timer, as plain data:

- the number of its window;
- the timer's name, which is empty for the end of the window;
- the tag that tells settings of one timer apart;
- whether it goes by the watermark, or else by the clock;
- when it is due, in microseconds;
- the event time of what it will give, which the output's watermark may not pass before; None if it holds nothing back.
"""

Outlook = tuple[dict[Domain, int], int | None]
"""When a key is next due, by domain, and what it holds back, if anything; in microseconds."""

Place = tuple[int, str, str]
"""A window's number, a timer's name and a tag: where a new setting replaces an old one."""


class Timers:
    """All timers of a key.

    Args:
        settings: What is set, in the order in which it was.

    >>> timers = Timers()
    >>> timers.set((0, "expiry", "", True, 20, 20))
    >>> timers.set((0, "expiry", "", True, 10, 10))
    >>> timers.earliest(is_event_time=True), timers.hold_micros()
    (10, 10)
    >>> timers.take(True, until_micros=5), timers.take(True, until_micros=10)
    (None, (0, 'expiry', '', True, 10, 10))
    """

    __slots__ = ("_heaps", "_settings")

    def __init__(self, settings: Iterable[Setting] = ()) -> None:
        # In the order in which they were set.
        self._settings: dict[Place, Setting] = {one[:3]: one for one in settings}
        self._heaps = _Heaps(self._settings) if len(self._settings) > FEW else None

    def __len__(self) -> int:
        """The number of timers that are set."""
        return len(self._settings)

    def settings(self) -> list[Setting]:
        """What is set, in the order in which it was."""
        return [*self._settings.values()]

    def set(self, setting: Setting) -> None:
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
        settings = self._settings
        if self._heaps is None and all(place[0] == window for place in settings):
            settings.clear()
            return
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

    def outlook(self) -> Outlook:
        """What `earliest` tells of the watermark and of the clock, where anything is due; and what `hold_micros` does.

        >>> Timers([(0, "expiry", "", True, 20, 10), (0, "flush", "", False, 30, None)]).outlook()
        ({1.0: 20, 'clock': 30}, 10)
        """
        if self._heaps is not None:
            asked: tuple[tuple[Domain, int | None], ...] = (
                (WATERMARK, self.earliest(True)),
                (CLOCK, self.earliest(False)),
            )
            return {domain: micros for domain, micros in asked if micros is not None}, self.hold_micros()
        alarms: dict[Domain, int] = {}
        hold_micros = None
        for _, _, _, is_event_time, fire_micros, output_micros in self._settings.values():
            domain = WATERMARK if is_event_time else CLOCK
            if domain not in alarms or fire_micros < alarms[domain]:
                alarms[domain] = fire_micros
            if output_micros is not None and (hold_micros is None or output_micros < hold_micros):
                hold_micros = output_micros
        return alarms, hold_micros

    def take(self, is_event_time: bool, until_micros: int) -> Setting | None:
        """Unsets the next timer that is due by a moment; of those due at once, the one that was set first."""
        settings, heaps = self._settings, self._heaps
        if heaps is None:
            found: Setting | None = None
            for one in settings.values():
                if one[3] is is_event_time and (found is None or one[4] < found[4]):
                    found = one
            if found is None or found[4] > until_micros:
                return None
            del settings[found[:3]]
            return found
        first_micros = self.earliest(is_event_time)
        if first_micros is None or first_micros > until_micros:
            return None
        place = heaps.places[heaps.due[is_event_time][0][1]]
        setting = settings[place]
        self.clear(*place)
        return setting


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

    def __init__(self, settings: dict[Place, Setting]) -> None:
        self._next = 0
        self._numbers: dict[Place, int] = {}
        self.places: dict[int, Place] = {}
        self.counts: dict[int, int] = {}
        self.due: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self.holds: list[tuple[int, int]] = []
        for place, setting in settings.items():
            self.add(place, setting)

    def add(self, place: Place, setting: Setting) -> None:
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
