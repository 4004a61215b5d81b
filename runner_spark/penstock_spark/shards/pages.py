"""The state of many keys in pages: one value in the engine's store holds the keys of one page.

A micro-batch reads and writes only the pages that it touches, many at a time. Inside of a page each key's state stays
pickled by itself, so that a page that is touched for one of its keys costs little more than that key. Pages are split
as they grow (linear hashing).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol
from zlib import crc32

from penstock_spark.shards.page_notes import Due, PageNotes

FIRST_PAGES = 4
PAGE_BYTES = 4 << 10
_VERSION = 4
# Roughly what a key takes in a page besides its state.
_KEY_BYTES = 32


class Store(Protocol):
    """Where pages are kept between micro-batches."""

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Pages, in the order of their numbers; None for those that are not there."""
        ...

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        """Keeps pages, and forgets those that are None."""
        ...


class Kept(NamedTuple):
    """A key in a page.

    Attributes:
        state: The snapshot of its machine's state.
        due: When it is due, and what it holds back.
        carried: The pickled key, if its name alone does not tell it.
    """

    state: bytes
    due: Due
    carried: bytes | None


Plain = tuple[bytes, Due, bytes | None]
"""The fields of `Kept`: most keys of a page are only passed through, and plain tuples do that best."""

Page = dict[bytes, Plain]
"""Keys by name."""


class Pages:
    """The pages of one grouping in one shard, in one micro-batch.

    Args:
        store: Where they are kept.
        notes: What is known of them from the last micro-batch, changed in place; empty if there was nothing.
        spread: By what hashes are divided first, so that the keys of one shard use all of its pages.
    """

    def __init__(self, store: Store, notes: PageNotes, spread: int) -> None:
        self.notes = notes
        self.store = store
        self.spread = spread
        self.loaded: dict[int, bytes | Page] = {}
        self._changes: dict[int, dict[bytes, Plain | None]] = {}
        self._grown_bytes = 0
        if not len(notes):
            notes.add_pages(FIRST_PAGES)

    def number_of(self, name: bytes) -> int:
        """The page of a key."""
        return place_of(crc32(name) // self.spread, len(self.notes))

    def load_many(self, numbers: Iterable[int]) -> list[int]:
        """Reads pages.

        Returns:
            Those that had not been read before.
        """
        new = sorted({*numbers}.difference(self.loaded))
        sizes = self.notes.sizes
        self.loaded.update(dict.fromkeys(new, b""))
        stored = [number for number in new if sizes[number]]
        if stored:
            for number, page in zip(stored, self.store.get_many(stored), strict=True):
                self.loaded[number] = page or b""
        return new

    def by_number(self, names: Iterable[bytes]) -> dict[int, list[bytes]]:
        """Keys by their pages."""
        count, spread = len(self.notes), self.spread
        found: dict[int, list[bytes]] = {}
        for name in names:
            found.setdefault(place_of(crc32(name) // spread, count), []).append(name)
        return found

    def find(self, number: int, names: Sequence[bytes]) -> list[tuple[bytes, Plain | None]]:
        """Keys in a page that has been read; it stays as it was stored, because that takes less memory."""
        page = self.loaded[number]
        get = (_decode(page) if isinstance(page, bytes) else page).get
        return [(name, get(name)) for name in names]

    def page(self, number: int) -> Page:
        """A page that has been read, in the open, with what has been put into it."""
        page = self.loaded[number]
        if isinstance(page, bytes):
            page = self.loaded[number] = _decode(page)
        for name, kept in self._changes.pop(number, {}).items():
            page.pop(name, None)
            if kept is not None:
                page[name] = kept
        return page

    def put(self, number: int, name: bytes, kept: Plain | None, before_bytes: int) -> None:
        """Puts a key into its page, which has been read. After that, nothing is looked for before pages are written.

        Args:
            number: The page.
            name: The key.
            kept: What is kept of it; None takes it out.
            before_bytes: What `size_of` tells of what there was; 0 if there was nothing.
        """
        self._grown_bytes += (0 if kept is None else size_of(kept)) - before_bytes
        self.notes.keys += (kept is not None) - (before_bytes > 0)
        self._changes.setdefault(number, {})[name] = kept

    def save(self) -> None:
        """Writes what has changed, after splitting pages if they are too large on average."""
        size_bytes = self.notes.size_bytes + self._grown_bytes
        # A few keys with much to keep do not get any smaller by more pages.
        self._split(min(size_bytes // PAGE_BYTES, self.notes.keys))
        self.store.put_many(self._written())
        self._grown_bytes = 0

    def _written(self) -> Iterator[tuple[int, bytes | None]]:
        for number in sorted(self._changes):
            page = self.page(number)
            del self.loaded[number]
            was_stored = self.notes.sizes[number] > 0
            encoded = _encode(page) if page else None
            # Most keys of a page are due at the same time.
            self.notes.note(number, len(encoded or b""), {due for _, due, _ in page.values()})
            if encoded or was_stored:
                yield number, encoded

    def _split(self, wanted: int) -> None:
        """Makes more pages, and gives them the keys that belong to them from now on."""
        while (count := len(self.notes)) < wanted:
            below = 1 << (count.bit_length() - 1)
            until = min(wanted, below * 2)
            self.load_many(range(count - below, until - below))
            self.notes.add_pages(until - count)
            for number in range(count, until):
                page = self.page(number - below)
                moved = [name for name in page if self.number_of(name) == number]
                self.loaded[number] = {name: page.pop(name) for name in moved}
                # They have changed, whatever else is put into them.
                self._changes.update({number - below: {}, number: {}})


def size_of(kept: Plain) -> int:
    """Roughly what a key takes in a page, in bytes."""
    state, _, carried = kept
    return len(state) + len(carried or b"") + _KEY_BYTES


def place_of(number: int, count: int) -> int:
    """The page of a hash among so many pages: of those not yet split in this round, the lower half decides.

    >>> [place_of(number, 5) for number in range(8)]
    [0, 1, 2, 3, 4, 1, 2, 3]
    """
    below = 1 << (count.bit_length() - 1)
    place = number & (below * 2 - 1)
    return place if place < count else place - below


def keys_of(stored: bytes) -> Iterator[tuple[bytes, Kept]]:
    """The keys of a page of its bytes, by name.

    Raises:
        ValueError: They are of another version.
    """
    for name, kept in _decode(stored).items():
        yield name, Kept(*kept)


def _encode(page: Page) -> bytes:
    """A page as bytes; all in it is plain data, which is pickled in no time."""
    return pickle.dumps((_VERSION, page), pickle.HIGHEST_PROTOCOL)


def _decode(stored: bytes) -> Page:
    if not stored:
        return {}
    version, *content = pickle.loads(stored)
    if version != _VERSION:
        raise ValueError(f"a page of state has the format {version}, not {_VERSION}")
    page: Page = content[0]
    return page
