"""The state of many keys in pages: one value in the engine's store holds the keys of one page.

A micro-batch reads and writes only the pages that it touches. Inside of a page each key's state stays pickled by
itself, so that a page that is touched for one of its keys costs little more than that key. Pages are split one at a
time as they grow (linear hashing).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from penstock.machines.trigger_machine import Domain

FIRST_PAGES = 4
PAGE_BYTES = 32 << 10
_VERSION = 2
_SPLITS_PER_SAVE = 64


class Store(Protocol):
    """Where pages are kept between micro-batches."""

    def get(self, number: int) -> bytes | None:
        """A page's bytes; None if there is none."""
        ...

    def put(self, number: int, page: bytes) -> None:
        """Keeps a page."""
        ...

    def remove(self, number: int) -> None:
        """Forgets a page."""
        ...


class Kept(NamedTuple):
    """A key in a page.

    Attributes:
        state: The snapshot of its machine's state.
        alarms: The earliest alarm of each domain, as (domain, microseconds).
        hold_micros: What it holds back; None if nothing.
        carried: The key in a 1-tuple, if its name alone does not tell it; else ().
    """

    state: bytes
    alarms: tuple[tuple[Domain, int], ...]
    hold_micros: int | None
    carried: tuple[Any, ...]


@dataclass
class PageNote:
    """What is known of a page without reading it.

    Attributes:
        alarms: The earliest alarm of each domain.
        hold_micros: The earliest hold of its keys; None if there is none.
        size_bytes: Its size.
    """

    alarms: dict[Domain, int] = field(default_factory=dict)
    hold_micros: int | None = None
    size_bytes: int = 0


Page = dict[bytes, Kept]


def note_of(page: Page, size_bytes: int) -> PageNote:
    """What to remember of a page.

    >>> note_of({b"k": Kept(b"", (("clock", 5),), 7, ())}, 10)
    PageNote(alarms={'clock': 5}, hold_micros=7, size_bytes=10)
    """
    note = PageNote(size_bytes=size_bytes)
    for kept in page.values():
        for domain, micros in kept.alarms:
            note.alarms[domain] = min(micros, note.alarms.get(domain, micros))
        if kept.hold_micros is not None:
            before = note.hold_micros
            note.hold_micros = kept.hold_micros if before is None else min(before, kept.hold_micros)
    return note


class Pages:
    """The pages of one grouping in one shard.

    Args:
        store: Where they are kept.
        notes: One for each page, from the last micro-batch; it is changed in place.
        spread: By what hashes are divided first, so that the keys of one shard use all of its pages.
    """

    def __init__(self, store: Store, notes: list[PageNote], spread: int) -> None:
        self.store = store
        self.notes = notes
        self.spread = spread
        self.loaded: dict[int, Page] = {}
        self.dirty: set[int] = set()
        if not notes:
            notes.extend(PageNote() for _ in range(FIRST_PAGES))

    def number_of(self, name: bytes) -> int:
        """The page of a key."""
        return _place(crc32(name) // self.spread, len(self.notes))

    def load(self, number: int) -> Page:
        """A page, read once."""
        page = self.loaded.get(number)
        if page is None:
            stored = self.store.get(number) if self.notes[number].size_bytes else None
            page = self.loaded[number] = {} if stored is None else _decode(stored)
        return page

    def save(self) -> None:
        """Writes what has changed, and splits pages while they are too large on average."""
        wanted = sum(note.size_bytes for note in self.notes) // PAGE_BYTES
        for _ in range(min(wanted - len(self.notes), _SPLITS_PER_SAVE)):
            self._split()
        for number in sorted(self.dirty):
            page = self.loaded[number]
            encoded = _encode(page) if page else b""
            if encoded:
                self.store.put(number, encoded)
            elif self.notes[number].size_bytes:
                self.store.remove(number)
            self.notes[number] = note_of(page, len(encoded))
        self.dirty.clear()

    def _split(self) -> None:
        """Makes one more page, with the keys that belong to it from now on."""
        count = len(self.notes)
        source = count - (1 << (count.bit_length() - 1))
        page = self.load(source)
        self.notes.append(PageNote())
        moved = {name: page.pop(name) for name in list(page) if self.number_of(name) == count}
        self.loaded[count] = moved
        self.dirty |= {source, count}

    def all_names(self) -> Iterator[tuple[bytes, Kept]]:
        """Every key, for reading the state as a table."""
        for number in range(len(self.notes)):
            yield from self.load(number).items()


def _place(number: int, count: int) -> int:
    """The page of a hash among so many pages: of those not yet split in this round, the lower half decides.

    >>> [_place(number, 5) for number in range(8)]
    [0, 1, 2, 3, 4, 1, 2, 3]
    """
    below = 1 << (count.bit_length() - 1)
    place = number % (below * 2)
    return place if place < count else place - below


def _encode(page: Page) -> bytes:
    """A page as columns, which are pickled much quicker than a record for each key."""
    return pickle.dumps((_VERSION, list(page), *zip(*page.values(), strict=True)), pickle.HIGHEST_PROTOCOL)


def _decode(stored: bytes) -> Page:
    version, *content = pickle.loads(stored)
    if version != _VERSION:
        raise ValueError(f"a page of state has the format {version}, not {_VERSION}")
    names, *columns = content
    return dict(zip(names, map(Kept, *columns), strict=True))
