"""The state of many keys in pages, window by window: a page has for each window the cells of its keys, as columns.

The pages are those of `penstock_spark.stream.pages`: found by the hashes of keys, noted in the header, and split as
they grow. Inside of a page each window stays pickled by itself: one for which nothing comes costs nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple
from zlib import crc32

from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.window_columns import DUE, FRESH, Cell
from penstock_spark.stream.page_index import NOTHING, PageNotes
from penstock_spark.stream.pages import FIRST_PAGES, Store, place_of
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.keys import key_is_self_contained

PAGE_BYTES = 8 << 10
_VERSION = "columns 1"
# Roughly what a window takes in a page besides its cells.
_WINDOW_BYTES = 48

Cells = dict[bytes, Cell]
Keys = dict[bytes, Any]


class StoredColumn(NamedTuple):
    """A window in a page.

    Attributes:
        content: Its cells, pickled.
        size: Their number.
        fresh: The number of those with something new.
        alarm_micros: Where the watermark must be for something to happen to it.
        due_micros: When the first of its keys is due by the clock; None if none is.
    """

    content: bytes
    size: int
    fresh: int
    alarm_micros: int
    due_micros: int | None


Page = dict[BoundedWindow, StoredColumn]


def stored_column(cells: Cells, keys: Keys, alarm_micros: int) -> StoredColumn:
    """A window as it is kept in a page.

    Args:
        cells: Those of the keys of the page.
        keys: The keys of those that are not self-contained, at least, by name.
        alarm_micros: Where the watermark must be for something to happen to the window.
    """
    columns = [list(column) for column in zip(*cells.values(), strict=True)]
    fresh, dues = columns[FRESH], columns[DUE]
    carried = {name: keys[name] for name in cells if not key_is_self_contained(name)}
    collapsed = [_collapsed(column, bool(place)) for place, column in enumerate(columns)]
    content = dumps((list(cells), collapsed, carried))
    return StoredColumn(
        content,
        len(cells),
        len(cells) - fresh.count(0),
        alarm_micros,
        min((due for due in dues if due is not None), default=None),
    )


def cells_of(content: bytes) -> tuple[Cells, Keys]:
    """The cells of a stored window, and the keys that their names do not tell."""
    names, columns, carried = pickle.loads(content)
    values = [column if type(column) is list else repeat(column[0]) for column in columns]
    return dict(zip(names, zip(*values, strict=False), strict=False)), carried


def _collapsed(column: list[Any], is_ours: bool) -> list[Any] | tuple[Any]:
    """A column whose values are all the same, as a 1-tuple of it; of what users hold, only if that is nothing.

    >>> _collapsed([3, 3], True), _collapsed([1, True], False)
    ((3,), [1, True])
    """
    first = column[0]
    return (first,) if (is_ours or first is None) and column.count(first) == len(column) else column


class ColumnPages:
    """The pages of one grouping in one shard, in one micro-batch.

    Args:
        store: Where they are kept.
        notes: What is known of them from the last micro-batch, changed in place; empty if there was nothing.
        spread: By what hashes are divided first, so that the keys of one shard use all of its pages.
    """

    def __init__(self, store: Store, notes: PageNotes, spread: int) -> None:
        self.notes = notes
        self._store = store
        self._spread = spread
        self.loaded: dict[int, Page] = {}
        self._changed: set[int] = set()
        self._keys_before: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        if not len(notes):
            notes.by_window = True
            notes.add_pages(FIRST_PAGES)

    def numbers_of(self, names: Iterable[bytes]) -> list[int]:
        """The pages of keys."""
        count, spread = len(self.notes), self._spread
        return [place_of(crc32(name) // spread, count) for name in names]

    def load(self, numbers: Iterable[int]) -> list[int]:
        """Reads pages.

        Returns:
            Those that had not been read before.
        """
        new = sorted({*numbers}.difference(self.loaded))
        stored = [number for number in new if self.notes.sizes[number]]
        pages = dict(zip(stored, self._store.get_many(stored), strict=True)) if stored else {}
        for number in new:
            page = self.loaded[number] = page_of(pages.get(number) or b"")
            self._keys_before[number] = _keys_of(page)
            self._sizes[number] = _size_of(page)
        return new

    def put(self, number: int, window: BoundedWindow, stored: StoredColumn | None) -> None:
        """Puts a window into a page that has been read; None takes it out."""
        self._changed.add(number)
        if stored is None:
            self.loaded[number].pop(window, None)
        else:
            self.loaded[number][window] = stored

    def save(self) -> None:
        """Writes what has changed, after splitting pages if they are too large on average."""
        grown_bytes = sum(_size_of(self.loaded[number]) - self._sizes[number] for number in self._changed)
        keys = sum(_keys_of(self.loaded[number]) - self._keys_before[number] for number in self._changed)
        # A few keys with much to keep do not get any smaller by more pages.
        self._split(min((self.notes.size_bytes + grown_bytes) // PAGE_BYTES, self.notes.keys + keys))
        self._store.put_many(self._written())
        self._changed = set()

    def _written(self) -> Iterator[tuple[int, bytes | None]]:
        for number in sorted(self._changed):
            page = self.loaded[number]
            was_stored = self.notes.sizes[number] > 0
            encoded = _encoded(page) if page else None
            self.notes.keys += _keys_of(page) - self._keys_before[number]
            self.notes.note(number, len(encoded or b""), _earliest(page), NOTHING)
            if encoded or was_stored:
                yield number, encoded

    def _split(self, wanted: int) -> None:
        """Makes more pages, and gives them the keys that belong to them from now on."""
        while (count := len(self.notes)) < wanted:
            below = 1 << (count.bit_length() - 1)
            until = min(wanted, below * 2)
            self.load(range(count - below, until - below))
            self.notes.add_pages(until - count)
            for number in range(count, until):
                self.loaded[number], self._keys_before[number], self._sizes[number] = {}, 0, 0
                for window, stored in list(self.loaded[number - below].items()):
                    self._part(window, stored, number - below, number)
                self._changed.update((number - below, number))

    def _part(self, window: BoundedWindow, stored: StoredColumn, old: int, new: int) -> None:
        """Gives a new page the cells of a window that belong to it."""
        cells, carried = cells_of(stored.content)
        parts: dict[int, Cells] = {old: {}, new: {}}
        for number, item in zip(self.numbers_of(cells), cells.items(), strict=True):
            parts[number][item[0]] = item[1]
        for number, own in parts.items():
            column = stored_column(own, carried, stored.alarm_micros) if own else None
            self.put(number, window, column)


def _keys_of(page: Page) -> int:
    """The number of keys in a page, or less."""
    return max((stored.size for stored in page.values()), default=0)


def _earliest(page: Page) -> dict[Domain, int]:
    """When the first of the windows of a page is due, in each domain."""
    alarms = [stored.alarm_micros for stored in page.values()]
    dues = [stored.due_micros for stored in page.values() if stored.due_micros is not None]
    by_domain: dict[Domain, list[int]] = {WATERMARK: alarms, CLOCK: dues}
    return {domain: min(moments) for domain, moments in by_domain.items() if moments}


def _size_of(page: Page) -> int:
    """Roughly the size of a page in bytes."""
    return sum(len(stored.content) + _WINDOW_BYTES for stored in page.values())


def _encoded(page: Page) -> bytes:
    items = [
        (
            (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window,
            tuple(stored),
        )
        for window, stored in page.items()
    ]
    return dumps((_VERSION, items))


def is_of_columns(encoded: bytes) -> bool:
    """Whether a page is of columns of windows, as far as its first bytes tell."""
    return _VERSION.encode() in encoded[:32]


def page_of(encoded: bytes) -> Page:
    """A page of its bytes.

    Raises:
        ValueError: They are of another version.
    """
    if not encoded:
        return {}
    version, *content = pickle.loads(encoded)
    if version != _VERSION:
        raise ValueError(f"a page of state has the format {version}, not {_VERSION}")
    return {
        IntervalWindow.from_micros(*window) if type(window) is tuple else window: StoredColumn._make(stored)
        for window, stored in content[0]
    }
