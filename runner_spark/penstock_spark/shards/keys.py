"""The keys of one grouping in one shard: their machines, and who is due next.

What is due, and what is held back, is found in heaps. Their entries are keys that have been read, and pages that have
not: a page stands for the earliest of its keys, and is read when its moment comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Arrival, Element, Emitted, Times
from penstock.machines.states import KeyState
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock_spark.operators.batch import dumps, loads
from penstock_spark.operators.keys import key_is_self_contained
from penstock_spark.shards.pages import Kept, Pages

Fired = tuple[Any, list[Emitted]]
"""A key and what its machine gave."""

_Entry = tuple[int, bytes, int]
"""A moment; a key's name and -1, or no name and a page's number."""


class LiveKey:
    """A key whose state has been read."""

    __slots__ = ("alarms", "hold_micros", "key", "state")

    def __init__(self, key: Any, state: KeyState) -> None:
        self.key = key
        self.state = state
        self.alarms: dict[Domain, int] = {}
        self.hold_micros: int | None = None


class KeyTable:
    """The keys of one grouping.

    Args:
        machine: The grouping's machine.
        pages: The keys that have been there before.
    """

    def __init__(self, machine: GroupingMachine, pages: Pages) -> None:
        self.machine = machine
        self.pages = pages
        self.live: dict[bytes, LiveKey] = {}
        self.changed: dict[bytes, None] = {}
        self._unnoted: dict[bytes, LiveKey] = {}
        self._due: dict[Domain, list[_Entry]] = {}
        self._holds: list[_Entry] = []
        for number, note in enumerate(pages.notes):
            for domain, micros in note.alarms.items():
                self._due.setdefault(domain, []).append((micros, b"", number))
            if note.hold_micros is not None:
                self._holds.append((note.hold_micros, b"", number))
        for entries in (*self._due.values(), self._holds):
            heapify(entries)

    def element(self, name: bytes, key: Any, element: Element, times: Times) -> Fired:
        """An element arrives.

        Args:
            name: The encoded key.
            key: The key, or None if its name tells it.
            element: The element.
            times: The watermark and the clock.
        """
        live = self._live(name, key)
        self._unnoted[name] = live
        return live.key, self.machine.element(live.state, element, times)

    def arrival(self, name: bytes, key: Any, arrival: Arrival, times: Times) -> Fired:
        """Combined elements arrive.

        Args:
            name: The encoded key.
            key: The key, or None if its name tells it.
            arrival: The elements.
            times: The watermark and the clock.
        """
        live = self._live(name, key)
        self._unnoted[name] = live
        return live.key, self.machine.arrival(live.state, arrival, times)

    def advance_watermark(self, times: Times) -> Iterator[Fired]:
        """The watermark has moved: what is due by it, or by a percentile's, in order of time."""
        self._note_all()
        for domain in [domain for domain in self._due if domain != CLOCK]:
            now_micros = times.horizon_micros if domain == WATERMARK else times.percentile(float(domain))
            for name, live in self._ring(domain, now_micros):
                yield live.key, self.machine.advance_watermark(live.state, times)
                self._note(name, live)

    def advance_clock(self, times: Times) -> Iterator[Fired]:
        """The clock has moved: what is due by it, in order of time."""
        self._note_all()
        for name, live in self._ring(CLOCK, times.clock_micros):
            yield live.key, self.machine.advance_clock(live.state, times)
            self._note(name, live)

    def signal(self, signal: str, times: Times) -> Iterator[Fired]:
        """A signal arrives, for all keys that there are."""
        for name in sorted(self._all_names()):
            live = self._live(name, None)
            yield live.key, self.machine.signal(live.state, signal, times)
            self._note(name, live)

    def end_round(self, times: Times) -> Iterator[Fired]:
        """A micro-batch ends, for all keys that changed in it."""
        self._note_all()
        changed, self.changed = sorted(self.changed), {}
        for name in changed:
            live = self._live(name, None)
            yield live.key, self.machine.end_round(live.state, times)
            self._note(name, live)

    def next_clock_alarm(self) -> int | None:
        """A moment before which nothing is due by the clock; None if nothing ever is."""
        self._note_all()
        entries = self._due.get(CLOCK)
        return entries[0][0] if entries else None

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""
        self._note_all()
        while self._holds:
            micros, name, number = self._holds[0]
            if not name and number not in self.pages.loaded:
                return micros
            if name and self._hold_of(name) == micros:
                return micros
            heappop(self._holds)
        return None

    def save(self) -> None:
        """Puts every key that has been read back into its page."""
        self._note_all()
        for name, live in self.live.items():
            number = self.pages.number_of(name)
            page = self.pages.load(number)
            self.pages.dirty.add(number)
            if live.state.windows:
                carried = () if key_is_self_contained(name) else (live.key,)
                alarms = tuple(live.alarms.items())
                page[name] = Kept(dumps(live.state), alarms, live.hold_micros, carried)
            else:
                page.pop(name, None)
        self.live = {}
        self.pages.save()

    def _live(self, name: bytes, key: Any) -> LiveKey:
        live = self.live.get(name)
        if live is not None:
            return live
        kept = self._page(self.pages.number_of(name)).get(name)
        if kept is not None:
            own = kept.carried[0] if kept.carried else decode_key(name)
            live = LiveKey(own, loads(kept.state))
            live.alarms = dict(kept.alarms)
            live.hold_micros = kept.hold_micros
        else:
            live = LiveKey(decode_key(name) if key_is_self_contained(name) else key, self.machine.new_key())
        self.live[name] = live
        return live

    def _page(self, number: int) -> dict[bytes, Kept]:
        """A page; when it is first read, its keys take its place in the heaps."""
        if number in self.pages.loaded:
            return self.pages.loaded[number]
        page = self.pages.load(number)
        for name, kept in page.items():
            for domain, micros in kept.alarms:
                heappush(self._due.setdefault(domain, []), (micros, name, -1))
            if kept.hold_micros is not None:
                heappush(self._holds, (kept.hold_micros, name, -1))
        return page

    def _ring(self, domain: Domain, now_micros: int) -> Iterator[tuple[bytes, LiveKey]]:
        """The keys that have an alarm by now, in order of it and of their names."""
        entries = self._due.get(domain, [])
        while entries and entries[0][0] <= now_micros:
            micros, name, number = heappop(entries)
            if not name:
                self._page(number)
            elif self._alarm_of(name, domain) == micros:
                yield name, self._live(name, None)

    def _note_all(self) -> None:
        """Notes the keys that elements have come for: once for each, before anybody asks."""
        if self._unnoted:
            unnoted, self._unnoted = self._unnoted, {}
            for name, live in unnoted.items():
                self._note(name, live)

    def _note(self, name: bytes, live: LiveKey) -> None:
        """Sees to it that a key is found when it is next due, and what it holds back."""
        if live.state.changed:
            self.changed[name] = None
        alarms: dict[Domain, int] = {}
        for domain in live.state.agendas:
            micros = self.machine.alarm_micros(live.state, domain)
            if micros is not None:
                alarms[domain] = micros
                if live.alarms.get(domain) != micros:
                    heappush(self._due.setdefault(domain, []), (micros, name, -1))
        live.alarms = alarms
        hold = self.machine.hold_micros(live.state)
        if hold is not None and hold != live.hold_micros:
            heappush(self._holds, (hold, name, -1))
        live.hold_micros = hold

    def _alarm_of(self, name: bytes, domain: Domain) -> int | None:
        live = self.live.get(name)
        if live is not None:
            return live.alarms.get(domain)
        kept = self.pages.loaded[self.pages.number_of(name)].get(name)
        return None if kept is None else dict(kept.alarms).get(domain)

    def _hold_of(self, name: bytes) -> int | None:
        live = self.live.get(name)
        if live is not None:
            return live.hold_micros
        kept = self.pages.loaded[self.pages.number_of(name)].get(name)
        return None if kept is None else kept.hold_micros

    def _all_names(self) -> set[bytes]:
        names = set(self.live)
        for number in range(len(self.pages.notes)):
            names.update(self._page(number))
        return names
