"""The windows of one grouping in one shard, with the cells of all keys that have been read: who is due next, and where.

As in `penstock_spark.stream.shards.keys`, it knows of an unread page only when the earliest of its windows is due. It
unpickles a window of a page that has been read when it has arrivals, or when it is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, count
from operator import itemgetter
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.folds import LIST
from penstock.machines.long_lists import LongList
from penstock.machines.records import Dropped, DropReason, Element, Times
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.window_machine import FRESH, Firing, WindowCells, WindowMachine
from penstock_spark.stream.state.page_index import NOTHING, Unread
from penstock_spark.stream.state.window_pages import (
    Cells,
    Content,
    OpenWindow,
    StoredWindow,
    WindowPages,
    store_window,
)
from penstock_spark.worker.batch import Batch, Windows
from penstock_spark.worker.messages import Part, Parts
from penstock_spark.worker.pairs import make_retraction_error

Fired = Batch | tuple[Any, list[Dropped]]
"""Panes of several keys in one window; or a key and its elements that a window no longer takes."""


class LiveWindow:
    """A window with known cells."""

    __slots__ = ("column", "has_long_lists", "noted_due", "stored", "stored_new_count", "touched")

    def __init__(self, column: WindowCells) -> None:
        self.column = column  # Its unpickled cells.
        # All other cells that have been read, by page; pickled, or in columns.
        self.stored: dict[int, StoredWindow | OpenWindow] = {}
        self.stored_new_count = 0  # The number of these cells with something new.
        self.touched: set[int] = set()  # The pages that hold the cells of `column`, or did.
        self.noted_due: int | None = None  # The last time of the clock that was noted.
        self.has_long_lists = False  # Whether `column` may have long lists from an earlier micro-batch.


class _KeyNames(dict[bytes, Any]):
    """Keys by their encoded names, decoded once."""

    def __missing__(self, name: bytes) -> object:
        key = self[name] = decode_key(name)
        return key


_MANY = 4
"""If at least one in this many cells of a page is wanted, all become objects, which is quicker than seeking each."""

_Entry = tuple[int, int, LiveWindow]
"""A time, a number that distinguishes entries, and the window."""


class WindowTable:
    def __init__(self, machine: WindowMachine, pages: WindowPages) -> None:
        self.machine = machine
        self.pages = pages
        self.live: dict[BoundedWindow, LiveWindow] = {}
        self.keys = _KeyNames()
        self._holds_lists = machine.fold is LIST
        self._page_of: dict[bytes, int] = {}
        self._gone: list[LiveWindow] = []
        self._numbers = count()
        self._due: dict[Domain, list[_Entry]] = {WATERMARK: [], CLOCK: []}
        self._unread = {domain: Unread(times) for domain, times in pages.notes.alarms.items()}

    def arrive(self, parts: Parts, times: Times) -> Iterator[Fired]:
        """Yields the results of all arrivals at one logical time: single elements first, then combined ones."""
        parts = list(parts)
        self._find(name for part, _ in parts for name in part.names)
        together: dict[BoundedWindow, list[Part]] = {}
        single: dict[Windows, list[Batch]] = {}
        for part, message in parts:
            self.keys.update(message.pickled_keys)
            if part.counts is None:
                for windows, own in _by_window(part):
                    single.setdefault(windows, []).append(own)
            else:
                assert isinstance(part.batch.windows, tuple)
                [window] = part.batch.windows
                together.setdefault(window, []).append(part)
        for (window,), batches in single.items():
            yield from self._one_by_one(window, batches, times)
        # Which window, and which key, comes first depends on which tasks have read what.
        for window in sorted(together):
            yield from self._together(window, together[window], times)

    def signal(self, name: str, times: Times) -> Iterator[Fired]:
        """Fires nothing: no trigger with columns waits for a signal."""
        return iter(())

    def advance_watermark(self, times: Times) -> Iterator[Fired]:
        now_micros, machine = times.watermark_micros, self.machine
        # A window that was open again may have noted a time twice.
        due = {
            (micros, live.column.window): live
            for micros, live in self._taken(WATERMARK, now_micros)
            if self._is_current(live) and machine.next_micros(live.column) == micros
        }
        for (_, window), live in sorted(due.items(), key=itemgetter(0)):
            is_over = machine.is_expired(window, times)
            new_count = live.column.fresh + live.stored_new_count
            if is_over and live.column.is_past_end and machine.may_close_quietly(new_count):
                live.touched.update(live.stored)
            else:
                self._unpickle(live, list(live.stored))
                if (firing := machine.pass_watermark(live.column, times)) is not None:
                    yield self._fired(firing)
            if is_over:
                self._gone.append(self.live.pop(window))
            else:
                self._note(WATERMARK, machine.next_micros(live.column), live)

    def advance_clock(self, times: Times) -> Iterator[Fired]:
        now_micros = times.clock_micros
        due: dict[tuple[int, BoundedWindow], LiveWindow] = {}
        for _, live in self._taken(CLOCK, now_micros):
            if self._is_current(live):
                ripe = [
                    number
                    for number, one in live.stored.items()
                    if one.due_micros is not None and one.due_micros <= now_micros
                ]
                self._unpickle(live, ripe)
                for micros in live.column.dues:
                    if micros <= now_micros:
                        due[micros, live.column.window] = live
        for micros, window in sorted(due):
            firing = self.machine.pass_clock(due[micros, window].column, micros)
            if firing is not None:
                yield self._fired(firing)

    def end_micro_batch(self, times: Times) -> Iterator[Fired]:
        """Never called: if micro-batches are rounds, each key has a machine."""
        raise AssertionError("columns have no rounds")

    def next_alarm(self, domain: Domain) -> int | None:
        """Returns a time before which nothing is due; None if nothing ever is."""
        entries, unread = self._due[domain], self._unread.get(domain)
        known = entries[0][0] if entries else NOTHING
        micros = known if unread is None else min(known, unread.earliest())
        return None if micros == NOTHING else micros

    def hold_micros(self) -> int | None:
        """Returns None: windows hold the watermark back to their ends, and fire before it passes them."""
        return None

    def save(self) -> None:
        for live in self._gone:
            for number in live.touched:
                self.pages.put(number, live.column.window, None)
        for live in self.live.values():
            if live.column.cells or live.touched:
                self._save(live)
        self.pages.save()

    def _save(self, live: LiveWindow) -> None:
        column, page_of = live.column, self._page_of
        parts: dict[int, Cells] = {number: {} for number in live.touched}
        for name, cell in column.cells.items():
            number = page_of[name]
            if number in parts:
                parts[number][name] = cell
            else:
                parts[number] = {name: cell}
        alarm_micros = self.machine.next_micros(column)
        for number, cells in parts.items():
            stored = self._put_back(live, number, cells, alarm_micros)
            if stored is None:
                if live.has_long_lists:
                    self._shorten(cells, LongList)
                stored = self._stored(cells, alarm_micros, column.ended) if cells else None
            self.pages.put(number, column.window, stored)

    def _put_back(
        self, live: LiveWindow, number: int, cells: Cells, alarm_micros: int
    ) -> StoredWindow | None:
        """A page's cells among those that were left in their columns; None if all of them are in `cells` now."""
        rest, column = live.stored.get(number), live.column
        if not isinstance(rest, OpenWindow):
            return None
        has_ended = rest.has_ended(column.window)
        if has_ended == column.is_past_end and (stored := rest.changed(cells, alarm_micros)):
            return stored
        left, pickled_keys, ended = rest.take_all()
        cells.update(left)
        self.keys.update(pickled_keys)
        if not column.is_past_end:
            column.ended.update(left if has_ended else ended)
        return None

    def _stored(self, cells: Cells, alarm_micros: int, ended: set[bytes]) -> StoredWindow:
        stored = store_window(cells, self.keys, alarm_micros, ended)
        is_long = self._holds_lists and len(stored.content) > self.pages.segments.seal_bytes
        if is_long and self._shorten(cells, list):
            return store_window(cells, self.keys, alarm_micros, ended)
        return stored

    def _shorten(self, cells: Cells, kind: type[Any]) -> bool:
        """Seals what takes much in lists of a kind; says whether that makes other lists of some."""
        shortened: Cells = {}
        for name, (held, fresh, due_micros, panes, nonspeculative) in cells.items():
            if type(held) is kind and (short := self.pages.segments.shortened(name, held)) is not held:
                shortened[name] = short, fresh, due_micros, panes, nonspeculative
        cells.update(shortened)
        return bool(shortened)

    def _find(self, names: Iterable[bytes]) -> None:
        page_of = self._page_of
        new = [name for name in dict.fromkeys(names) if name not in page_of]
        by_number = self.pages.by_number(new)
        for number, own in by_number.items():
            page_of.update(dict.fromkeys(own, number))
        self._read(by_number)

    def _one_by_one(self, window: BoundedWindow, batches: list[Batch], times: Times) -> Iterator[Fired]:
        live = self._opened(window, times)
        if live is None:
            for batch in batches:
                for (name, value), timestamp_micros, windows, pane in batch.rows():
                    late = Element(value, timestamp_micros, windows, pane.kind)
                    yield self.keys[name], [Dropped(late, DropReason.EXPIRED)]
            return
        names, values = zip(*chain.from_iterable(batch.values for batch in batches), strict=True)
        self._unpickle_for(live, names)
        firing = self.machine.take(live.column, names, values, times)
        self._note_arrival(live)
        if firing is not None:
            yield self._fired(firing)

    def _together(self, window: BoundedWindow, parts: list[Part], times: Times) -> Iterator[Fired]:
        live = self._opened(window, times)
        if live is None:
            late = Element(None, window.end_micros - 1, (window,))
            dropped = sum(sum(part.counts or ()) for part in parts)
            yield None, [Dropped(late, DropReason.EXPIRED, dropped)]
            return
        for part in parts:
            self._unpickle_for(live, part.names)
        if not self.machine.can_add_in_parts(live.column):
            parts = [self._united(parts)]
        for part in parts:
            assert part.counts is not None
            arrived = part.names, part.batch.values, part.counts
            firing = self.machine.take_together(live.column, *arrived, times)
            if firing is not None:
                yield self._fired(firing)
        self._note_arrival(live)

    def _united(self, parts: list[Part]) -> Part:
        """One part, in which each key occurs once, in order."""
        merge = self.machine.fold.merge
        found: dict[bytes, tuple[Any, int]] = {}
        for part in parts:
            for name, held, number in zip(part.names, part.batch.values, part.counts or (), strict=True):
                before = found.get(name)
                found[name] = (
                    (held, number) if before is None else (merge(before[0], held), before[1] + number)
                )
        names = sorted(found)
        helds, counts = map(list, zip(*map(found.__getitem__, names), strict=True))
        return parts[0]._replace(names=names, batch=parts[0].batch.with_values(helds), counts=counts)

    def _fired(self, firing: Firing) -> Batch:
        keys, window = map(self.keys.__getitem__, firing.names), firing.window
        pairs = list(zip(keys, firing.values, strict=True))
        return Batch(pairs, window.end_micros - 1, (window,), firing.infos)

    def _opened(self, window: BoundedWindow, times: Times) -> LiveWindow | None:
        """A window that has arrivals; None if it takes no more elements."""
        live = self.live.get(window)
        if live is None:
            if self.machine.is_expired(window, times):
                return None
            live = self._add(self.machine.opened(window, times))
        elif live.column.is_past_end and times.watermark_micros < window.end_micros:
            self._reopen(live)
        return live

    def _add(self, column: WindowCells) -> LiveWindow:
        live = self.live[column.window] = LiveWindow(column)
        self._note(WATERMARK, self.machine.next_micros(column), live)
        return live

    def _reopen(self, live: LiveWindow) -> None:
        live.column.reopen()
        self._note(WATERMARK, self.machine.next_micros(live.column), live)

    def _read(self, numbers: Iterable[int]) -> None:
        """Reads pages, and notes the windows in those that are read for the first time."""
        for number in self.pages.load_many(numbers):
            for unread in self._unread.values():
                unread.take(number)
            for window, stored in self.pages.page(number).items():
                live = self.live.get(window)
                if live is None:
                    live = self._add(WindowCells(window, stored.has_ended(window)))
                elif live.column.is_past_end and not stored.has_ended(window):
                    self._reopen(live)
                live.stored[number] = stored
                live.stored_new_count += stored.new_count
                if stored.due_micros is not None:
                    self._note(CLOCK, stored.due_micros, live)

    def _unpickle_for(self, live: LiveWindow, names: Sequence[bytes]) -> None:
        """Makes objects of the cells of keys; of all cells in a page if that is not much more."""
        if not live.stored:
            return
        asked: dict[int, list[bytes]] = {}
        for name in names:
            number = self._page_of[name]
            if number in asked:
                asked[number].append(name)
            elif number in live.stored:
                asked[number] = [name]
        for number, own in asked.items():
            # Lists are pickled as a whole in any case.
            if self._holds_lists or len(own) * _MANY > live.stored[number].size:
                self._unpickle(live, [number])
            else:
                rest = _as_columns(live.stored[number])
                live.stored[number] = rest
                self._add_cells(live, number, rest, rest.take(own))

    def _unpickle(self, live: LiveWindow, numbers: Iterable[int]) -> None:
        for number in numbers:
            rest = _as_columns(live.stored.pop(number))
            self._add_cells(live, number, rest, rest.take_all())

    def _add_cells(self, live: LiveWindow, number: int, rest: OpenWindow, content: Content) -> None:
        """Moves cells from a page into a window."""
        column, (cells, pickled_keys, ended) = live.column, content
        if rest.segments:
            live.has_long_lists = True
            for held, *_ in cells.values():
                self.pages.segments.keep(held)
        column.cells.update(cells)
        if not column.is_past_end:
            column.ended.update(cells if rest.has_ended(column.window) else ended)
        new_count = sum(1 for cell in cells.values() if cell[FRESH])
        column.fresh += new_count
        live.stored_new_count -= new_count
        live.touched.add(number)
        self.keys.update(pickled_keys)
        self._page_of.update(dict.fromkeys(cells, number))
        if rest.due_micros is not None:
            for name, (_, _, due_micros, _, _) in cells.items():
                if due_micros is not None:
                    if due_micros not in column.dues:
                        self._note(CLOCK, due_micros, live)
                    column.dues.setdefault(due_micros, []).append(name)

    def _taken(self, domain: Domain, now_micros: int) -> Iterator[tuple[int, LiveWindow]]:
        """The windows that may be due, with the noted time, after reading the pages that are due."""
        if domain in self._unread:
            self._read(self._unread[domain].due(now_micros))
        entries = self._due[domain]
        while entries and entries[0][0] <= now_micros:
            micros, _, live = heappop(entries)
            yield micros, live

    def _note(self, domain: Domain, micros: int, live: LiveWindow) -> None:
        heappush(self._due[domain], (micros, next(self._numbers), live))

    def _note_arrival(self, live: LiveWindow) -> None:
        """Notes when a window with new arrivals is due."""
        dues = live.column.dues
        # New arrivals wait for the time that was added last, or for one that is noted already.
        if dues and (due_micros := next(reversed(dues))) != live.noted_due:
            live.noted_due = due_micros
            self._note(CLOCK, due_micros, live)

    def _is_current(self, live: LiveWindow) -> bool:
        return self.live.get(live.column.window) is live


def _as_columns(stored: StoredWindow | OpenWindow) -> OpenWindow:
    return stored.unpickled() if isinstance(stored, StoredWindow) else stored


def _by_window(part: Part) -> list[tuple[Windows, Batch]]:
    """Returns single elements, as pairs of name and value, by their windows; each as often as it has windows."""
    pairs = part.batch.with_values(list(zip(part.names, part.batch.values, strict=True)))
    if pairs.retracts:
        raise make_retraction_error()
    batch = pairs.explode()
    if not isinstance(batch.windows, list):
        return [(batch.windows, batch)]
    # Elements of one window mostly share a tuple, which is found faster by its identity.
    marks: Iterable[Any] = map(id, batch.windows) if batch is pairs else batch.windows
    places: dict[Any, list[int]] = {}
    for place, mark in enumerate(marks):
        if mark in places:
            places[mark].append(place)
        else:
            places[mark] = [place]
    return [(batch.windows[own[0]], batch.taken(own)) for own in places.values()]
