"""The keys of one grouping in one shard: their machines, and who is due next.

It knows when the earliest key of an unread page is due, and reads all pages that are due then. In a page that has been
read, it searches the keys without a machine when the earliest of them is due: most keys are read only because they
share a page with another key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, heapreplace
from itertools import repeat
from operator import itemgetter
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.machines.arrivals import unite_arrivals
from penstock.machines.grouping import GroupingMachine
from penstock.machines.long_lists import AnyList
from penstock.machines.records import Arrival, Element, Emitted, Times
from penstock.machines.splittable import DRAIN, SplittableKey, SplittableMachine
from penstock.machines.stateful import Reaction, StatefulMachine
from penstock.machines.stateful_keys import StatefulKey
from penstock.machines.states import KeyState
from penstock.machines.timers import NextTimers
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock_spark.stream.shards.due_times import DueTimes
from penstock_spark.stream.state.key_pages import PAGE_BYTES, Found, KeptRow, KeyPages, size_of
from penstock_spark.stream.state.page_index import NOTHING, Unread
from penstock_spark.stream.state.segments import Sizes, sizes_of
from penstock_spark.worker.batch import Batch, dumps, loads
from penstock_spark.worker.keys import key_is_self_contained
from penstock_spark.worker.messages import Message, Part, Parts

AnyKey = KeyState | StatefulKey | SplittableKey
Machine = GroupingMachine | StatefulMachine | SplittableMachine
Fired = tuple[Any, Sequence[Emitted | Reaction]]
"""A key and the outputs of its machine."""

_PageEntry = tuple[int, int]
"""The time of a page's earliest key, or an earlier time; and the page's number."""


def state_of(key: object, stored: bytes) -> AnyKey:
    """Unpickles a key's state; a DoFn's state is stored as plain data, a restriction as a list."""
    state: Any = loads(stored)
    if type(state) is list:
        return SplittableKey(key, state)
    if type(state) is not tuple:
        return state  # type: ignore[no-any-return]
    return StatefulKey(key, state)


def _store_state(state: AnyKey) -> bytes:
    return dumps(state if isinstance(state, KeyState) else state.plain())


class LiveKey:
    """A key whose state has been read; `found` is its stored state, and its page."""

    __slots__ = (
        "alarms",
        "before",
        "before_bytes",
        "before_segments",
        "before_windows",
        "hold_micros",
        "key",
        "page",
        "state",
    )

    def __init__(self, found: Found, key: object, state: AnyKey) -> None:
        self.page, self.before, pickled_key, self.before_segments = found
        self.before_bytes = 0
        if self.before is not None:
            self.before_bytes = size_of(self.before, pickled_key)
            if self.before_bytes > PAGE_BYTES:
                # A large state is not held twice.
                self.before = None
        self.key = key
        self.state = state
        self.before_windows = len(state.windows)
        self.alarms: dict[Domain, int] = {}
        self.hold_micros: int | None = None


def elements_of(batch: Batch) -> Iterator[Element]:
    """The elements of a batch, as machines take them."""
    full, panes = batch.expand(), batch.panes
    kinds = [pane.kind for pane in panes] if isinstance(panes, list) else repeat(panes.kind, len(full.values))
    rows: Any = zip(full.values, full.timestamps, full.windows, kinds, strict=True)  # type: ignore[arg-type]
    # To make a named tuple by its own constructor takes three times as long.
    return map(tuple.__new__, repeat(Element), rows)


def _arrivals_of(part: Part) -> Iterator[tuple[bytes, Arrival]]:
    batch, counts = part.batch.expand(), part.counts or ()
    timestamps = part.timestamps or [()] * len(counts)
    columns = zip(part.names, batch.windows, batch.values, counts, timestamps, strict=True)
    for name, (window,), held, count, own_timestamps in columns:
        yield name, Arrival(window, held, count, own_timestamps)


class KeyTable:
    def __init__(self, machine: Machine, pages: KeyPages) -> None:
        self.machine: Any = machine
        self.pages = pages
        self.live: dict[bytes, LiveKey] = {}
        self.changed: dict[bytes, None] = {}
        self._answers_together = not isinstance(machine, SplittableMachine) and machine.answers_together
        self._next_timers: Callable[[Any], NextTimers] = (
            self._asked if isinstance(machine, GroupingMachine) else machine.next_timers
        )
        self._found: dict[bytes, Found] = {}
        self._unnoted: dict[bytes, LiveKey] = {}
        notes = pages.notes
        self._unread = {domain: Unread(times) for domain, times in notes.alarms.items()}
        self._unread_holds = Unread(notes.hold_micros)
        # Heaps of the pages that have been read, and the keys that have machines.
        self._due_pages: dict[Domain, list[_PageEntry]] = {domain: [] for domain in notes.alarms}
        self._hold_pages: list[_PageEntry] = []
        self._due: dict[Domain, DueTimes] = {domain: DueTimes() for domain in notes.alarms}
        self._holds = DueTimes()

    def read(self, names: Iterable[bytes]) -> None:
        """Reads the pages of keys that will be needed, all at once."""
        new = {*names}.difference(self.live, self._found)
        wanted = self.pages.by_number(new)
        self._read(wanted)
        for number, asked in wanted.items():
            self._found.update(self.pages.find(number, asked))

    def arrive(self, parts: Parts, times: Times) -> Iterator[Fired]:
        """Yields the results of all that arrives at one logical time.

        What several tasks have combined is one arrival for each key and window.
        """
        parts = list(parts)
        self.read(name for part, _ in parts for name in part.names)
        combined: list[tuple[Part, Message]] = []
        together: dict[bytes, list[Element]] = {}
        keys: dict[bytes, Any] = {}
        for part, message in parts:
            if part.counts is not None:
                combined.append((part, message))
            elif self._answers_together:
                keys.update(message.pickled_keys)
                for name, element in zip(part.names, elements_of(part.batch), strict=True):
                    together.setdefault(name, []).append(element)
            else:
                yield from self.elements(part.names, elements_of(part.batch), message.pickled_keys, times)
        for name, elements in together.items():
            live = self._live(name, keys.get(name))
            self._unnoted[name] = live
            if emitted := self.machine.elements(live.state, elements, times):
                yield live.key, emitted
        pickled_keys = {name: key for _, message in combined for name, key in message.pickled_keys.items()}
        late: list[tuple[int, bytes, Fired]] = []
        for name, arrival in self._united([part for part, _ in combined]):
            fired = self.arrival(name, pickled_keys.get(name), arrival, times)
            if fired[1]:
                late.append((arrival.window.end_micros, name, fired))
        # Which key comes first depends on which tasks have read what.
        yield from (fired for *_, fired in sorted(late, key=itemgetter(0, 1)))

    def _united(self, parts: list[Part]) -> Iterator[tuple[bytes, Arrival]]:
        if len(parts) == 1:
            # A part has each key and window once.
            yield from _arrivals_of(parts[0])
            return
        of_keys: dict[bytes, list[Arrival]] = {}
        for part in parts:
            for name, arrival in _arrivals_of(part):
                of_keys.setdefault(name, []).append(arrival)
        for name, arrivals in of_keys.items():
            for arrival in unite_arrivals(self.machine.program, arrivals):
                yield name, arrival

    def elements(
        self, names: Iterable[bytes], elements: Iterable[Element], keys: Mapping[bytes, Any], times: Times
    ) -> Iterator[Fired]:
        """Takes elements one by one, with their encoded keys; returns the results that are not empty.

        `keys` has the keys that are not self-contained.
        """
        known, unnoted, arrive = self.live, self._unnoted, self.machine.element
        for name, element in zip(names, elements, strict=True):
            live = known.get(name)
            if live is None:
                found = self._found.pop(name) if name in self._found else self._find(name)
                live = self._opened(name, keys.get(name), found)
            unnoted[name] = live
            emitted = arrive(live.state, element, times)
            if emitted:
                yield live.key, emitted

    def element(self, name: bytes, key: object, element: Element, times: Times) -> Fired:
        """Takes an element; `key` is None if the name contains it."""
        live = self._live(name, key)
        self._unnoted[name] = live
        return live.key, self.machine.element(live.state, element, times)

    def arrival(self, name: bytes, key: object, arrival: Arrival, times: Times) -> Fired:
        """Takes combined elements; `key` is None if the name contains it."""
        live = self._live(name, key)
        self._unnoted[name] = live
        return live.key, self.machine.arrival(live.state, arrival, times)

    def advance_watermark(self, times: Times) -> Iterator[Fired]:
        self._note_all()
        # In a fixed order, whichever of them keys have asked for first.
        for percentile in sorted(float(domain) for domain in self._due if domain != CLOCK):
            now_micros = times.horizon_micros if percentile == WATERMARK else times.percentile(percentile)
            for name, live in self._ring(percentile, now_micros):
                yield live.key, self.machine.advance_watermark(live.state, times)
                self._unnoted[name] = live

    def advance_clock(self, times: Times) -> Iterator[Fired]:
        for name, live in self._ring(CLOCK, times.clock_micros):
            yield live.key, self.machine.advance_clock(live.state, times)
            self._unnoted[name] = live

    def signal(self, signal: str, times: Times) -> Iterator[Fired]:
        if isinstance(self.machine, StatefulMachine):
            return
        # A drain is for restrictions, and every other signal is for triggers.
        if isinstance(self.machine, SplittableMachine) is not (signal == DRAIN):
            return
        for name in sorted(self._all_names()):
            live = self._live(name, None)
            yield live.key, self.machine.signal(live.state, signal, times)
            self._unnoted[name] = live

    def end_micro_batch(self, times: Times) -> Iterator[Fired]:
        self._note_all()
        changed, self.changed = sorted(self.changed), {}
        for name in changed:
            live = self._live(name, None)
            yield live.key, self.machine.end_micro_batch(live.state, times)
            self._unnoted[name] = live

    def next_alarm(self, domain: Domain) -> int | None:
        """Returns a time before which nothing is due; None if nothing ever is."""
        self._note_all()
        unread, due, pages = self._unread.get(domain), self._due.get(domain), self._due_pages.get(domain)
        known = (
            None if due is None else due.first(),
            None if unread is None else unread.earliest(),
            pages[0][0] if pages else None,
        )
        micros = min((one for one in known if one is not None), default=NOTHING)
        return None if micros == NOTHING else micros

    def hold_micros(self) -> int | None:
        self._note_all()
        of_keys = self._holds.earliest(self._holds_now)
        micros = min(self._unread_holds.earliest(), self._hold_of_pages())
        return of_keys if of_keys is not None and of_keys < micros else None if micros == NOTHING else micros

    def save(self) -> None:
        self._note_all()
        changes: dict[int, dict[bytes, KeptRow | None]] = {}
        grown_bytes = more_keys = more_windows = 0
        seal_bytes = self.pages.segments.seal_bytes
        for name, live in self.live.items():
            state, before_bytes, kept = live.state, live.before_bytes, None
            segments = before_segments = live.before_segments
            if state.windows:
                if segments:
                    segments = self._shorten(name, state)
                stored = _store_state(state)
                if len(stored) > seal_bytes and not segments and (segments := self._shorten(name, state)):
                    stored = _store_state(state)
                # Some keys are only looked at: a page without changed keys is not written again.
                if stored == live.before:
                    continue
                pickled_key = None if key_is_self_contained(name) else dumps(live.key)
                kept = stored, live.alarms, live.hold_micros, pickled_key, segments
                grown_bytes += size_of(stored, pickled_key)
                more_keys += not before_bytes
            elif before_bytes:
                more_keys -= 1
                segments = {}
            else:
                continue
            if before_segments:
                self.pages.segments.replace(before_segments, segments)
            grown_bytes -= before_bytes
            more_windows += len(state.windows) - live.before_windows
            if live.page in changes:
                changes[live.page][name] = kept
            else:
                changes[live.page] = {name: kept}
        self.live = {}
        self.pages.change(changes, grown_bytes, more_keys, more_windows)
        self.pages.save()

    def _shorten(self, name: bytes, state: AnyKey) -> Sizes:
        """Seals what takes much in lists to which values are only added; returns all segments of the state."""
        found: dict[int, int] = {}

        def renewed(held: AnyList) -> AnyList:
            held = self.pages.segments.shortened(name, held)
            found.update(sizes_of([held]))
            return held

        self.machine.renew_lists(state, renewed)
        return found

    def _live(self, name: bytes, key: object) -> LiveKey:
        live = self.live.get(name)
        if live is not None:
            return live
        found = self._found.pop(name) if name in self._found else self._find(name)
        return self._opened(name, key, found)

    def _opened(self, name: bytes, key: object, found: Found) -> LiveKey:
        """Returns a key whose state has been found; `key` is None if it is stored or if its name contains it."""
        _, stored, pickled_key, segments = found
        if pickled_key is not None:
            key = loads(pickled_key)
        elif stored is not None or key_is_self_contained(name):
            key = decode_key(name)
        state = self.machine.new_key(key) if stored is None else state_of(key, stored)
        if segments:
            self.machine.renew_lists(state, self.pages.segments.keep)
        live = self.live[name] = LiveKey(found, key, state)
        return live

    def _find(self, name: bytes) -> Found:
        number = self.pages.number_of(name)
        if number not in self.pages.loaded:
            self._read([number])
        [(_, found)] = self.pages.find(number, (name,))
        return found

    def _read(self, numbers: Iterable[int]) -> None:
        """Reads pages; pages that are read for the first time enter the heaps."""
        for number in self.pages.load_many(numbers):
            for domain, unread in self._unread.items():
                if (micros := unread.take(number)) != NOTHING:
                    heappush(self._due_pages[domain], (micros, number))
            if (micros := self._unread_holds.take(number)) != NOTHING:
                heappush(self._hold_pages, (micros, number))

    def _ring(self, domain: Domain, now_micros: int) -> Iterator[tuple[bytes, LiveKey]]:
        if domain in self._unread:
            self._read(self._unread[domain].due(now_micros))
        while due := self._take_due(domain, now_micros):
            for micros, name, number in due:
                live = self.live.get(name)
                if live is None:
                    [(_, found)] = self.pages.find(number, (name,))
                    live = self._opened(name, None, found)
                    # It is written back even without results: it may be due at another time now.
                    live.before = None
                elif live.alarms.get(domain) != micros:
                    continue
                else:
                    # The alarm is used up; it is noted again if the machine still asks for it.
                    del live.alarms[domain]
                yield name, live

    def _take_due(self, domain: Domain, now_micros: int) -> list[tuple[int, bytes, int]]:
        """Returns the due alarms in order, as (time, key, page); alarms of keys with machines may be out of date."""
        self._note_all()
        due = []
        if domain in self._due:
            due = [(micros, name, -1) for micros, name in self._due[domain].take(now_micros)]
        pages, live = self._due_pages.get(domain, []), self.live
        while pages and pages[0][0] <= now_micros:
            _, number = heappop(pages)
            column, later = self.pages.page(number).alarms.get(domain, {}), NOTHING
            for name, micros in column.items():
                if micros > now_micros:
                    later = micros if micros < later else later
                elif name not in live:
                    due.append((micros, name, number))
            if later != NOTHING:
                heappush(pages, (later, number))
        due.sort()
        return due

    def _hold_of_pages(self) -> int:
        """Returns the earliest hold of the keys that have been read and lack machines; `NOTHING` without any."""
        pages, live = self._hold_pages, self.live
        while pages:
            micros, number = pages[0]
            column = self.pages.page(number).hold_micros
            found = min((held for name, held in column.items() if name not in live), default=NOTHING)
            if found == micros:
                return micros
            if found == NOTHING:
                heappop(pages)
            else:
                heapreplace(pages, (found, number))
        return NOTHING

    def _note_all(self) -> None:
        """Notes the next alarm and the hold of each key whose machine has changed, once, before they are
        asked for.
        """
        unnoted, self._unnoted = self._unnoted, {}
        next_timers, due, add_hold = self._next_timers, self._due, self._holds.add
        for name, live in unnoted.items():
            state, before, held_before = live.state, live.alarms, live.hold_micros
            live.alarms, live.hold_micros = alarms, hold_micros = next_timers(state)
            if state.changed:
                self.changed[name] = None
            for domain, micros in alarms.items():
                if before.get(domain) != micros:
                    if domain not in due:
                        due[domain] = DueTimes()
                    due[domain].add(micros, name)
            if hold_micros is not None and hold_micros != held_before:
                add_hold(hold_micros, name)

    def _asked(self, state: KeyState) -> NextTimers:
        """Returns the times at which a key of a grouping is next due, by domain, and its watermark hold."""
        asked = ((domain, self.machine.alarm_micros(state, domain)) for domain in state.agendas)
        alarms = {domain: micros for domain, micros in asked if micros is not None}
        return alarms, self.machine.hold_micros(state)

    def _holds_now(self, micros: int, name: bytes) -> bool:
        return self.live[name].hold_micros == micros

    def _all_names(self) -> set[bytes]:
        numbers = range(len(self.pages.notes))
        self._read(numbers)
        return {*self.live}.union(*(self.pages.page(number).states for number in numbers))
