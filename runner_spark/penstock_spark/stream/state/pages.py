"""The state of a grouping in pages: one value in the engine's store holds the state of the keys of one page.

A micro-batch reads and writes only the pages that it touches, many at a time. The hash of a key finds its page, and
pages are split as they grow (linear hashing). What a page holds is another module's matter: keys one by one
(`penstock_spark.stream.state.key_pages`), or windows in columns (`penstock_spark.stream.state.window_pages`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

from penstock.machines.trigger_machine import Domain
from penstock_spark.stream.state.page_index import NOTHING, PageNotes
from penstock_spark.stream.state.segments import Segments
from penstock_spark.worker.keys import hash_of_key

FIRST_PAGES = 4


class Store(Protocol):
    """A store that keeps pages between micro-batches."""

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Pages, in the order of their numbers; None for missing ones."""

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        """Stores pages, and deletes those that are None."""


class Page(Protocol):
    def __len__(self) -> int:
        """The number of items in it; an empty page is not stored."""

    def encoded(self) -> tuple[bytes, Mapping[Domain, int], int]:
        """The page as bytes, the earliest alarm of each domain, and the earliest hold or `NOTHING`."""


P = TypeVar("P", bound=Page)


class Pages(ABC, Generic[P]):
    """The pages of one grouping in one shard, in one micro-batch.

    `notes` is the state of the last micro-batch, changed in place. `spread` first divides hashes, so that the
    keys of one shard use all of its pages. If pages are larger than `page_bytes` on average, there will be
    more pages.
    """

    def __init__(self, store: Store, notes: PageNotes, spread: int, page_bytes: int) -> None:
        self.notes = notes
        # The pages that have been read; a page stays encoded until it is needed.
        self.loaded: dict[int, bytes | P] = {}
        self.segments = Segments(store.get_many, notes, spread)
        self._store = store
        self._spread = spread
        self._page_bytes = page_bytes
        self._changed: set[int] = set()
        self._grown_bytes = 0
        if not len(notes):
            notes.add_pages(FIRST_PAGES)

    @abstractmethod
    def _decoded(self, stored: bytes) -> P:
        """Decodes a page; no bytes give an empty page."""

    @abstractmethod
    def _divided(self, page: P, number: int) -> dict[int, P]:
        """Takes out of a page what belongs to other pages by now."""

    def number_of(self, name: bytes) -> int:
        return place_of(hash_of_key(name) // self._spread, len(self.notes))

    def by_number(self, names: Iterable[bytes]) -> dict[int, list[bytes]]:
        # This repeats `place_of`, because thousands of keys are looked up at once.
        count, spread = len(self.notes), self._spread
        below = 1 << (count.bit_length() - 1)
        mask = below * 2 - 1
        found: dict[int, list[bytes]] = {}
        for name in names:
            place = hash_of_key(name) // spread & mask
            if place >= count:
                place -= below
            if place in found:
                found[place].append(name)
            else:
                found[place] = [name]
        return found

    def load_many(self, numbers: Iterable[int]) -> list[int]:
        """Reads pages; returns those that had not been read before."""
        new = sorted({*numbers}.difference(self.loaded))
        sizes = self.notes.sizes
        self.loaded.update(dict.fromkeys(new, b""))
        stored = [number for number in new if sizes[number]]
        if stored:
            for number, page in zip(stored, self._store.get_many(stored), strict=True):
                self.loaded[number] = page or b""
        return new

    def page(self, number: int) -> P:
        """A decoded page that has been read, with all changes."""
        page = self.loaded[number]
        if isinstance(page, bytes):
            page = self.loaded[number] = self._decoded(page)
        return page

    def save(self) -> None:
        size_bytes = self.notes.size_bytes + self._grown_bytes
        # More pages do not help where a few keys keep much.
        self._split(min(size_bytes // self._page_bytes, self.notes.keys))
        self._store.put_many(chain(self.segments.taken_changes(), self._written()))
        self._grown_bytes = 0
        self._changed = set()
        if not self.notes.keys:
            # The number is known again.
            self.notes.windows = 0

    def _written(self) -> Iterator[tuple[int, bytes | None]]:
        for number in sorted(self._changed):
            page = self.page(number)
            del self.loaded[number]
            was_stored = self.notes.sizes[number] > 0
            if page:
                encoded, earliest, hold_micros = page.encoded()
                self.notes.note(number, len(encoded), earliest, hold_micros)
                yield number, encoded
                continue
            self.notes.note(number, 0, {}, NOTHING)
            if was_stored:
                yield number, None

    def _split(self, wanted: int) -> None:
        """Makes more pages, and moves the keys that belong to them from now on."""
        count = len(self.notes)
        if count >= wanted:
            return
        sources = sorted({place_of(number, count) for number in range(count, wanted)})
        self.load_many(sources)
        self.notes.add_pages(wanted - count)
        for source in sources:
            divided = self._divided(self.page(source), source)
            self.loaded.update(divided)
            # The page itself has changed, whatever else is put into it.
            self._changed.update((source, *divided))


def place_of(number: int, count: int) -> int:
    """The page of a hash, by linear hashing: the lower half decides for a page that is not split in this
    round yet.

    >>> [place_of(number, 5) for number in range(8)]
    [0, 1, 2, 3, 4, 1, 2, 3]
    """
    below = 1 << (count.bit_length() - 1)
    place = number & (below * 2 - 1)
    return place if place < count else place - below
