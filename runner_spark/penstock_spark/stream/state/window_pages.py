"""The state of many keys in pages, window by window: a page has for each window the cells of its keys, as columns.

Inside a page each window is pickled separately: a window without arrivals costs nothing. In a window with few arrivals
only the cells of their keys become objects; the others stay in their columns, which are machine numbers if they can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.window_machine import DUE, FRESH, Cell
from penstock_spark.process.written_formats import COLUMN_PAGE
from penstock_spark.stream.state.packed_columns import (
    PackedNames,
    column_of,
    pack_column,
    pack_names,
    replace_values,
)
from penstock_spark.stream.state.page_index import NOTHING, PageNotes
from penstock_spark.stream.state.pages import Pages, Store
from penstock_spark.stream.state.segments import Sizes, sizes_of
from penstock_spark.stream.state.stored import content_of, load_pickle
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.keys import key_is_self_contained

PAGE_BYTES = 8 << 10
_MARK = "columns "
"""The beginning of a page's first string; the number of its format follows."""
# The approximate size of a window in a page without its cells.
_WINDOW_BYTES = 48

Cells = dict[bytes, Cell]
Keys = dict[bytes, Any]


class Content(NamedTuple):
    """The content of a window in a page."""

    cells: Cells
    keys: Keys  # Those that are not self-contained, by name.
    ended: frozenset[bytes]  # As in `WindowCells`, where the window is open again.


class StoredWindow(NamedTuple):
    content: bytes  # Its cells as columns, pickled.
    size: int  # The number of cells.
    new_count: int  # The number of cells with something new.
    alarm_micros: int  # The watermark at which the window needs attention.
    due_micros: int | None  # When the first of its keys is due by the clock, if any is.
    segments: Sizes  # The segments of the long lists in its cells.

    def has_ended(self, window: BoundedWindow) -> bool:
        """True if the watermark had passed the window's end when this was stored."""
        return self.alarm_micros > window.end_micros

    def unpickled(self) -> OpenWindow:
        return OpenWindow(self)

    def opened(self) -> Content:
        """Returns all cells."""
        return self.unpickled().take_all()


class OpenWindow:
    """The cells of a window in a page, of which some have been taken out.

    The others have not become objects; they return to a page unchanged.
    """

    __slots__ = (
        "_columns",
        "_ended",
        "_keys",
        "_names",
        "_taken",
        "alarm_micros",
        "due_micros",
        "segments",
        "size",
    )

    def __init__(self, stored: StoredWindow) -> None:
        self.alarm_micros = stored.alarm_micros
        self.due_micros = stored.due_micros  # Of the cells that are left, or earlier.
        self.size = stored.size  # Of the cells that were ever in it.
        self.segments = stored.segments
        names, self._columns, self._keys, ended = load_pickle(stored.content, "a window in a page of state")
        self._names = PackedNames(*names)
        self._ended = frozenset(ended)
        self._taken: dict[bytes, int] = {}  # The rows of cells that have been taken, by name.

    def has_ended(self, window: BoundedWindow) -> bool:
        """True if the watermark had passed the window's end when this was stored."""
        return self.alarm_micros > window.end_micros

    def take(self, names: Iterable[bytes]) -> Content:
        """Returns the cells of keys, if they are here and have not been taken before."""
        found = self._names.rows_of(name for name in names if name not in self._taken)
        rows = found.values()
        values = [
            [column[0]] * len(rows) if type(column) is tuple else [column[row] for row in rows]
            for column in self._columns
        ]
        self._taken.update(found)
        return self._given(dict(zip(found, zip(*values, strict=True), strict=True)))

    def take_all(self) -> Content:
        """Returns all cells that have not been taken before."""
        columns = [column_of(column, self.size) for column in self._columns]
        cells = dict(zip(self._names.all(), zip(*columns, strict=True), strict=True))
        for name in self._taken:
            del cells[name]
        self._taken.update(dict.fromkeys(cells, -1))
        return self._given(cells)

    def _given(self, cells: Cells) -> Content:
        keys = {name: self._keys[name] for name in cells if name in self._keys} if self._keys else {}
        return Content(cells, keys, self._ended.intersection(cells) if self._ended else frozenset())

    def changed(self, cells: Cells, alarm_micros: int) -> StoredWindow | None:
        """The window with new cells in the places of those that were taken; None if other cells also need a place."""
        if self._ended or cells.keys() != self._taken.keys():
            return None
        rows, renewed = self._taken.values(), zip(*map(cells.__getitem__, self._taken), strict=True)
        columns = [
            replace_values(column, self.size, rows, list(values), bool(place))
            for place, (column, values) in enumerate(zip(self._columns, renewed, strict=True))
        ]
        return _make_stored(tuple(self._names), columns, self.size, self._keys, [], alarm_micros)


class WindowPage(dict[BoundedWindow, StoredWindow]):
    @property
    def keys_in_window(self) -> int:
        """The number of keys in the page, or less."""
        return max((stored.size for stored in self.values()), default=0)

    def encoded(self) -> tuple[bytes, dict[Domain, int], int]:
        """Returns the page as bytes, the time of its first due window in each domain, and no hold.

        A window holds the watermark back to its end, which the watermark does not pass before the window
        fires.
        """
        items = [
            (
                (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window,
                tuple(stored),
            )
            for window, stored in self.items()
        ]
        alarms = [stored.alarm_micros for stored in self.values()]
        dues = [stored.due_micros for stored in self.values() if stored.due_micros is not None]
        by_domain: dict[Domain, list[int]] = {WATERMARK: alarms, CLOCK: dues}
        earliest = {domain: min(times) for domain, times in by_domain.items() if times}
        return dumps((f"{_MARK}{COLUMN_PAGE.number}", items)), earliest, NOTHING


def store_window(
    cells: Cells, keys: Keys, alarm_micros: int, ended: Set[bytes] = frozenset()
) -> StoredWindow:
    """A window as a page stores it; `keys` has at least the keys that are not self-contained, by name.

    `ended` has at least the keys among `cells` for which the window had ended before it was open again.
    """
    names = sorted(cells)
    values = zip(*map(cells.__getitem__, names), strict=True)
    columns = [pack_column(list(column), bool(place)) for place, column in enumerate(values)]
    pickled_keys = {name: keys[name] for name in names if not key_is_self_contained(name)}
    again = [name for name in names if name in ended] if ended else []
    return _make_stored(pack_names(names), columns, len(names), pickled_keys, again, alarm_micros)


def _make_stored(
    names: tuple[Any, ...],
    columns: list[Any],
    size: int,
    keys: Keys,
    ended: list[bytes],
    alarm_micros: int,
) -> StoredWindow:
    fresh, dues = (column_of(columns[place], size) for place in (FRESH, DUE))
    return StoredWindow(
        dumps((names, columns, keys, ended)),
        size,
        size - fresh.count(0),
        alarm_micros,
        min((due for due in dues if due is not None), default=None),
        sizes_of(columns[0]) if type(columns[0]) is list else {},
    )


class WindowPages(Pages[WindowPage]):
    def __init__(self, store: Store, notes: PageNotes, spread: int) -> None:
        notes.by_window = notes.by_window or not len(notes)
        super().__init__(store, notes, spread, PAGE_BYTES)

    def put(self, number: int, window: BoundedWindow, stored: StoredWindow | None) -> None:
        """Puts a window into a page that has been read; None takes it out."""
        page = self.page(number)
        if number not in self._changed:
            self._changed.add(number)
            self.notes.keys -= page.keys_in_window
        before = page.get(window)
        self._grown_bytes += _size_of(stored) - _size_of(before)
        self.notes.count_windows(_cells_of(stored) - _cells_of(before))
        if before is not None and before.segments:
            self.segments.replace(before.segments, {} if stored is None else stored.segments)
        if stored is None:
            page.pop(window, None)
        else:
            page[window] = stored

    def save(self) -> None:
        self.notes.keys += sum(self.page(number).keys_in_window for number in self._changed)
        super().save()

    def _decoded(self, stored: bytes) -> WindowPage:
        return page_of(stored)

    def _divided(self, page: WindowPage, number: int) -> dict[int, WindowPage]:
        pages = {number: WindowPage()}
        for window, stored in page.items():
            cells, pickled_keys, ended = stored.opened()
            for other, names in self.by_number(cells).items():
                own = {name: cells[name] for name in names}
                part = store_window(own, pickled_keys, stored.alarm_micros, ended)
                pages.setdefault(other, WindowPage())[window] = part
        self.notes.keys += sum(part.keys_in_window for part in pages.values()) - page.keys_in_window
        return pages


def _size_of(stored: StoredWindow | None) -> int:
    return 0 if stored is None else len(stored.content) + _WINDOW_BYTES


def _cells_of(stored: StoredWindow | None) -> int:
    return 0 if stored is None else stored.size


def is_by_window(encoded: bytes) -> bool:
    """True if the first bytes of a page show columns of windows."""
    return _MARK.encode() in encoded[:32]


def page_of(encoded: bytes) -> WindowPage:
    """Decodes a page; ValueError if it has another format."""
    if not encoded:
        return WindowPage()
    content = content_of(encoded, COLUMN_PAGE, _MARK)
    return WindowPage(
        (
            IntervalWindow.from_micros(*window) if type(window) is tuple else window,
            StoredWindow._make(stored),
        )
        for window, stored in content[0]
    )
