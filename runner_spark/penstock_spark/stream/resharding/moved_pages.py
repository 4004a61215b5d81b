"""The pages of a level's shards for another number of shards: each is divided into pieces, which become pages again.

A piece is a page, encoded as any other, with the keys of one new shard. A segment of a long list goes to the shard of
its key unchanged, under the number that it has. A page of waiting elements is divided likewise
if its elements have keys; otherwise it moves as a whole, and the contents of side inputs go to every shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.side_inputs import SideInputState, WaitingElements
from penstock_spark.stream.resharding.merged_headers import Resharding, make_disagreement_error
from penstock_spark.stream.shards.waiting import (
    STATE,
    dump_waiting_page,
    load_waiting_page,
    load_waiting_state,
)
from penstock_spark.stream.state.key_pages import KeptRow, KeyPage, KeyPages, keys_of, size_of
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import Store
from penstock_spark.stream.state.segments import key_of_segment
from penstock_spark.stream.state.window_pages import (
    StoredWindow,
    WindowPage,
    WindowPages,
    is_by_window,
    page_of,
    store_window,
)
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.keys import shard_of

_AT_ONCE_BYTES = 4 << 20


class Piece(NamedTuple):
    label: str
    content: bytes  # A page with keys of one new shard, a page of waiting elements, or a segment.
    waiting_page: tuple[int, int] | None = (
        None  # For a page of waiting elements: its number and its shard until now, which order such pages.
    )
    segment: int | None = None  # For a segment: its number.


@dataclass(frozen=True)
class Waits:
    """The facts that the old shards know of the pages of waiting elements of one step."""

    # The time of the earliest element that waits, by window and old shard.
    earliest_micros: dict[tuple[BoundedWindow, int], int]
    # The pages with contents of side inputs that are copied, as number and old shard: one for each window.
    contents: frozenset[tuple[int, int]]


def waits_of(states: Sequence[bytes | None]) -> Waits:
    """Merges the facts about the pages of waiting elements from the states of a step in all old shards."""
    earliest_micros: dict[tuple[BoundedWindow, int], int] = {}
    contents: dict[tuple[int, BoundedWindow], tuple[int, int]] = {}
    for shard, stored in enumerate(states):
        state = load_waiting_state(stored) if stored else SideInputState()
        for window, waiting in state.waiting.items():
            earliest_micros[window, shard] = waiting.earliest_micros
        for place_and_window, number in state.contents.items():
            # A shard in which elements wait keeps contents longer than the others, but what they hold is the same.
            contents.setdefault(place_and_window, (number, shard))
    return Waits(earliest_micros, frozenset(contents.values()))


def pieces(
    division: Resharding, waits: Mapping[str, Waits], shard: int, label: str, number: int, content: bytes
) -> Iterator[tuple[int, Piece]]:
    """The pieces of a page, a segment or a page of waiting elements of an old shard, each with its new shard."""
    if label in waits:
        if number != STATE:
            for new, waiting_page in _divide_waiting_page(
                division, waits[label], shard, label, number, content
            ):
                yield new, Piece(label, waiting_page, (number, shard))
    elif number < 0:
        yield shard_of(key_of_segment(content), division.after), Piece(label, content, segment=number)
    elif is_by_window(content):
        for new, columns in _column_pages(page_of(content), division.after).items():
            yield new, Piece(label, columns.encoded()[0])
    else:
        for new, keys in _key_pages(content, division.after).items():
            yield new, Piece(label, keys.encoded()[0])


def names_in(division: Resharding, label: str, number: int, content: bytes) -> list[bytes]:
    """The keys in a page, once for each window that they have; those of elements that wait; and of segments, with
    their numbers.
    """
    if label not in division.waiting_pages:
        if number < 0:
            return [b"%d " % number + key_of_segment(content)]
        if is_by_window(content):
            stored = page_of(content).values()
            return [name for column in stored for name in column.opened().cells]
        return [name for name, _ in keys_of(content)]
    place, _, held = (0, None, ()) if number == STATE else load_waiting_page(content)
    if place is not None:
        return []
    values = [value for _, batch in held for value in batch.values]
    return [b"" for _ in values] if label in division.waiting else [name for name, _, _ in values]


def _key_pages(content: bytes, shards: int) -> dict[int, KeyPage]:
    page = KeyPage.decoded(content)
    names: dict[int, list[bytes]] = {}
    for name in page.states:
        names.setdefault(shard_of(name, shards), []).append(name)
    return {shard: page.move(own) for shard, own in names.items()}


def _column_pages(page: WindowPage, shards: int) -> dict[int, WindowPage]:
    found: dict[int, WindowPage] = {}
    for window, stored in page.items():
        cells, pickled_keys, ended = stored.opened()
        names: dict[int, list[bytes]] = {}
        for name in cells:
            names.setdefault(shard_of(name, shards), []).append(name)
        for shard, own in names.items():
            part = store_window({name: cells[name] for name in own}, pickled_keys, stored.alarm_micros, ended)
            found.setdefault(shard, WindowPage())[window] = part
    return found


def _divide_waiting_page(
    division: Resharding, waits: Waits, shard: int, label: str, number: int, waiting_page: bytes
) -> Iterator[tuple[int, bytes]]:
    place, window, held = load_waiting_page(waiting_page)
    if place is not None:
        if (number, shard) in waits.contents:
            yield from ((new, waiting_page) for new in range(division.after))
        return
    if label in division.waiting:
        yield shard % division.after, waiting_page
        return
    shares: dict[int, list[tuple[object, Batch]]] = {}
    for placed, batch in held:
        places: dict[int, list[int]] = {}
        for index, (name, _, _) in enumerate(batch.values):
            places.setdefault(shard_of(name, division.after), []).append(index)
        for new, own in places.items():
            shares.setdefault(new, []).append((placed, batch.taken(own)))
    for new, batches in shares.items():
        yield new, dump_waiting_page((None, window, batches))


@dataclass(eq=False)
class Assembly:
    """A new shard that is put together from pieces, which come in any order."""

    store_of: Callable[[str], Store]
    shards: int
    notes: dict[str, PageNotes] = field(default_factory=dict)  # Of the pages, by label.
    _collected: dict[str, list[bytes]] = field(default_factory=dict)
    _collected_bytes: int = 0
    _waiting_pages: dict[str, _WaitingPages] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        if piece.waiting_page is not None:
            if piece.label not in self._waiting_pages:
                self._waiting_pages[piece.label] = _WaitingPages(self.store_of(piece.label))
            self._waiting_pages[piece.label].add(piece.content, *piece.waiting_page)
            return
        if piece.segment is not None:
            self.store_of(piece.label).put_many([(piece.segment, piece.content)])
            self._notes_of(piece.label).segment_bytes += len(piece.content)
            return
        self._collected.setdefault(piece.label, []).append(piece.content)
        self._collected_bytes += len(piece.content)
        if self._collected_bytes > _AT_ONCE_BYTES:
            self._write()

    def finish(self, waits: Mapping[str, Waits], before: Mapping[str, PageNotes]) -> None:
        """Writes the rest, after the last piece; `before` is what the header says of each grouping."""
        self._write()
        for label, notes in before.items():
            self._notes_of(label).next_segment = notes.next_segment
        for label, waiting_pages in self._waiting_pages.items():
            waiting_pages.finish(waits[label])

    def _notes_of(self, label: str) -> PageNotes:
        return self.notes.setdefault(label, PageNotes())

    def _write(self) -> None:
        for label, contents in self._collected.items():
            notes = self._notes_of(label)
            by_window = {is_by_window(content) for content in contents}
            if len(by_window) > 1 or (len(notes) and by_window != {notes.by_window}):
                raise make_disagreement_error(f"about the format of the state of '{label}'")
            write = _write_columns if by_window == {True} else _write_keys
            write(self.store_of(label), notes, self.shards, contents)
        self._collected, self._collected_bytes = {}, 0


def _write_keys(store: Store, notes: PageNotes, shards: int, contents: Iterable[bytes]) -> None:
    pages = KeyPages(store, notes, shards)
    changes: dict[int, dict[bytes, KeptRow | None]] = {}
    grown_bytes = more_keys = 0
    for content in contents:
        for name, kept in keys_of(content):
            changes.setdefault(pages.number_of(name), {})[name] = kept
            grown_bytes += size_of(kept.state, kept.pickled_key)
            more_keys += 1
    pages.load_many(changes)
    # Only its state says how many windows a key has.
    pages.change(changes, grown_bytes, more_keys, None)
    pages.save()


def _write_columns(store: Store, notes: PageNotes, shards: int, contents: Iterable[bytes]) -> None:
    pages = WindowPages(store, notes, shards)
    for content in contents:
        for window, stored in page_of(content).items():
            cells, pickled_keys, ended = stored.opened()
            for number, names in pages.by_number(cells).items():
                pages.load_many([number])
                part = store_window(
                    {name: cells[name] for name in names}, pickled_keys, stored.alarm_micros, ended
                )
                before = pages.page(number).get(window)
                pages.put(number, window, part if before is None else _merge_windows(window, before, part))
    pages.save()


def _merge_windows(window: BoundedWindow, one: StoredWindow, other: StoredWindow) -> StoredWindow:
    """The cells of a window from two pages."""
    contents = one.opened(), other.opened()
    ended = contents[0].ended | contents[1].ended
    if one.alarm_micros != other.alarm_micros:
        # If a window is open again, it has still ended for all keys of pages that have received nothing since.
        if window.end_micros not in (one.alarm_micros, other.alarm_micros):
            raise make_disagreement_error("about what is due in a window")
        ended |= contents[0 if one.has_ended(window) else 1].cells.keys()
    alarm_micros = min(one.alarm_micros, other.alarm_micros)
    cells = {**contents[0].cells, **contents[1].cells}
    return store_window(cells, {**contents[0].keys, **contents[1].keys}, alarm_micros, ended)


class _WaitingPages:
    """The pages of waiting elements of one step in a new shard."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._state = SideInputState()
        self._digests: dict[int, bytes] = {}
        # The pages of each window: (old number, old shard), new number, and number of elements.
        self._waiting: dict[BoundedWindow, list[tuple[tuple[int, int], int, int]]] = {}

    def add(self, waiting_page: bytes, old_number: int, old_shard: int) -> None:
        state = self._state
        number, state.next_number = state.next_number, state.next_number + 1
        place, window, held = load_waiting_page(waiting_page)
        if place is None:
            count = sum(len(batch.values) for _, batch in held)
            self._waiting.setdefault(window, []).append(((old_number, old_shard), number, count))
        else:
            state.contents[place, window] = number
            self._digests[number] = blake2b(waiting_page, digest_size=16).digest()
        self._store.put_many([(number, waiting_page)])

    def finish(self, waits: Waits) -> None:
        for window, waiting_pages in sorted(self._waiting.items(), key=lambda item: min(item[1])):
            earliest_micros = min(waits.earliest_micros[window, shard] for (_, shard), _, _ in waiting_pages)
            numbers = [number for _, number, _ in sorted(waiting_pages)]
            count = sum(count for _, _, count in waiting_pages)
            self._state.waiting[window] = WaitingElements(count, earliest_micros, numbers)
        self._store.put_many([(STATE, dump_waiting_page((self._state, self._digests)))])
