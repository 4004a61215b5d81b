"""The keys of one grouping in one shard: their machines, and who is due next.

Of a page that has not been read it is known when the earliest of its keys is due, and it is read when that time comes,
with all others that are due then. What has been read is found in heaps. Their entries are keys, and pages: a page
stands for the earliest of its keys, and only gives way to them when its moment comes, because most keys are read just
for being in the page of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Arrival, Element, Emitted, Times
from penstock.machines.stateful import Reaction, StatefulKey, StatefulMachine
from penstock.machines.states import KeyState
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock_spark.operators.batch import dumps, loads
from penstock_spark.operators.keys import key_is_self_contained
from penstock_spark.shards.page_notes import NOTHING, Due, Unread
from penstock_spark.shards.pages import PAGE_BYTES, Pages, Plain, size_of

Machine = GroupingMachine | StatefulMachine
Fired = tuple[Any, Sequence[Emitted | Reaction]]
"""A key and what its machine gave."""

_Entry = tuple[int, bytes, int]
"""A moment; a key's name and -1, or no name and a page's number."""


class LiveKey:
    """A key whose state has been read.

    Args:
        page: Its page.
        kept: What was stored of it; None if there was nothing.
        key: The key.
        state: Its machine's state.
    """

    __slots__ = ("alarms", "before", "before_bytes", "hold_micros", "key", "page", "state")

    def __init__(self, page: int, kept: Plain | None, key: Any, state: KeyState | StatefulKey) -> None:
        self.page = page
        self.before_bytes = 0 if kept is None else size_of(kept)
        # What takes much memory is not held twice.
        self.before = kept if self.before_bytes <= PAGE_BYTES else None
        self.key = key
        self.state = state
        self.alarms: dict[Domain, int] = {} if kept is None else dict(kept[1][0])
        self.hold_micros = None if kept is None else kept[1][1]


class KeyTable:
    """The keys of one grouping.

    Args:
        machine: The grouping's machine.
        pages: The keys that have been there before.
    """

    def __init__(self, machine: Machine, pages: Pages) -> None:
        self.machine: Any = machine
        self.pages = pages
        self.live: dict[bytes, LiveKey] = {}
        self.changed: dict[bytes, None] = {}
        self._found: dict[bytes, tuple[int, Plain | None]] = {}
        self._unnoted: dict[bytes, LiveKey] = {}
        notes = pages.notes
        self._unread = {domain: Unread(moments) for domain, moments in notes.alarms.items()}
        self._unread_holds = Unread(notes.hold_micros)
        self._due: dict[Domain, list[_Entry]] = {domain: [] for domain in notes.alarms}
        self._holds: list[_Entry] = []

    def read(self, names: Iterable[bytes]) -> None:
        """Reads the pages of keys that are about to be asked for, all at once."""
        live, found = self.live, self._found
        wanted = self.pages.by_number({name for name in names if name not in live and name not in found})
        self._read(wanted)
        for number, asked in wanted.items():
            for name, kept in self.pages.find(number, asked):
                found[name] = number, kept

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
        # In an order of their own, whichever of them keys have asked for first.
        for percentile in sorted(float(domain) for domain in self._due if domain != CLOCK):
            now_micros = times.horizon_micros if percentile == WATERMARK else times.percentile(percentile)
            for name, live in self._ring(percentile, now_micros):
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
        if isinstance(self.machine, StatefulMachine):
            return
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
        entries, unread = self._due.get(CLOCK), self._unread.get(CLOCK)
        known = entries[0][0] if entries else NOTHING
        micros = known if unread is None else min(known, unread.earliest())
        return None if micros == NOTHING else micros

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""
        self._note_all()
        unread = self._unread_holds.earliest()
        while self._holds and self._holds[0][0] < unread:
            micros, name, number = self._holds[0]
            if name and self._hold_of(name) == micros:
                return micros
            heappop(self._holds)
            if not name:
                for held, (_, (_, hold), _) in self.pages.page(number).items():
                    if hold is not None:
                        heappush(self._holds, (hold, held, -1))
        return None if unread == NOTHING else unread

    def save(self) -> None:
        """Puts every key that has been read back into its page. Nothing else is asked of the table after that."""
        self._note_all()
        shared: dict[Due, Due] = {}
        for name, live in self.live.items():
            kept: Plain | None = None
            if live.state.windows:
                due = (tuple(live.alarms.items()), live.hold_micros)
                carried = None if key_is_self_contained(name) else dumps(live.key)
                kept = (dumps(live.state), shared.setdefault(due, due), carried)
            # Some keys are only looked at: a page that holds no others is not written anew.
            if kept != live.before or live.before_bytes > PAGE_BYTES:
                self.pages.put(live.page, name, kept, live.before_bytes)
        self.live = {}
        self.pages.save()

    def _live(self, name: bytes, key: Any) -> LiveKey:
        live = self.live.get(name)
        if live is not None:
            return live
        number, kept = self._found.pop(name) if name in self._found else self._find(name)
        if kept is not None:
            own = decode_key(name) if kept[2] is None else loads(kept[2])
            state = loads(kept[0])
            if isinstance(state, StatefulKey):
                state.key = own
        else:
            own = decode_key(name) if key_is_self_contained(name) else key
            state = self.machine.new_key(own)
        live = LiveKey(number, kept, own, state)
        self.live[name] = live
        return live

    def _find(self, name: bytes) -> tuple[int, Plain | None]:
        number = self.pages.number_of(name)
        if number not in self.pages.loaded:
            self._read([number])
        [(_, kept)] = self.pages.find(number, [name])
        return number, kept

    def _read(self, numbers: Iterable[int]) -> None:
        """Reads pages; those that are read for the first time take their places in the heaps."""
        for number in self.pages.load_many(numbers):
            for domain, unread in self._unread.items():
                if (micros := unread.take(number)) != NOTHING:
                    heappush(self._due[domain], (micros, b"", number))
            if (micros := self._unread_holds.take(number)) != NOTHING:
                heappush(self._holds, (micros, b"", number))

    def _ring(self, domain: Domain, now_micros: int) -> Iterator[tuple[bytes, LiveKey]]:
        """The keys that have an alarm by now, in order of it and of their names."""
        if domain in self._unread:
            self._read(self._unread[domain].due(now_micros))
        entries = self._due.get(domain, [])
        while entries and entries[0][0] <= now_micros:
            micros, name, number = heappop(entries)
            if not name:
                for kept, (_, (alarms, _), _) in self.pages.page(number).items():
                    for of_domain, alarm_micros in alarms:
                        if of_domain == domain:
                            heappush(entries, (alarm_micros, kept, -1))
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
        machine, state, before, alarms = self.machine, live.state, live.alarms, {}
        for domain in state.agendas:
            micros = machine.alarm_micros(state, domain)
            if micros is not None:
                alarms[domain] = micros
                if before.get(domain) != micros:
                    heappush(self._due.setdefault(domain, []), (micros, name, -1))
        live.alarms = alarms
        hold = machine.hold_micros(state)
        if hold is not None and hold != live.hold_micros:
            heappush(self._holds, (hold, name, -1))
        live.hold_micros = hold

    def _alarm_of(self, name: bytes, domain: Domain) -> int | None:
        live = self.live.get(name)
        if live is not None:
            return live.alarms.get(domain)
        alarms, _ = self._due_of(name)
        return dict(alarms).get(domain)

    def _hold_of(self, name: bytes) -> int | None:
        live = self.live.get(name)
        return self._due_of(name)[1] if live is None else live.hold_micros

    def _due_of(self, name: bytes) -> Due:
        [(_, kept)] = self.pages.find(self.pages.number_of(name), [name])
        return ((), None) if kept is None else kept[1]

    def _all_names(self) -> set[bytes]:
        numbers = range(len(self.pages.notes))
        self._read(numbers)
        return {*self.live}.union(*map(self.pages.page, numbers))
