"""The state of many keys in pages, key by key.

Inside a page each key's state is pickled separately, and times are columns of machine numbers, so that changing one key
of a page costs little more than the key.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from penstock.machines.trigger_machine import Domain
from penstock_spark.process.written_formats import KEY_PAGE
from penstock_spark.stream.state.page_index import NOTHING, PageNotes
from penstock_spark.stream.state.pages import Pages, Store
from penstock_spark.stream.state.segments import Sizes
from penstock_spark.stream.state.stored import content_of

PAGE_BYTES = 4 << 10
# The approximate size of a key in a page without its state.
_KEY_BYTES = 32
_NO_SEGMENTS: Sizes = {}

T = TypeVar("T")


class StoredKey(NamedTuple):
    state: bytes  # The snapshot of its machine's state.
    alarms: Mapping[Domain, int]  # When it is next due, by domain.
    hold_micros: int | None  # The time to which it holds the watermark back.
    pickled_key: bytes | None  # The pickled key, unless its name contains it.
    segments: Sizes  # The segments of the long lists in its state.


KeptRow = tuple[bytes, Mapping[Domain, int], int | None, bytes | None, Sizes]
"""The fields of a `StoredKey`."""


class KeyPage:
    """The keys of a page: a column for each kind of data, by name, all in the same order."""

    __slots__ = ("alarms", "hold_micros", "pickled_keys", "segments", "states")

    def __init__(self) -> None:
        self.states: dict[bytes, bytes] = {}
        self.hold_micros: dict[bytes, int] = {}  # `NOTHING` where a key holds nothing back.
        self.alarms: dict[Domain, dict[bytes, int]] = {}  # By domain; `NOTHING` where a key has no alarm.
        self.pickled_keys: dict[bytes, bytes] = {}  # The pickled keys whose names do not contain them.
        self.segments: dict[bytes, Sizes] = {}  # Of the keys that have long lists.

    def __len__(self) -> int:
        return len(self.states)

    def change(self, changes: Mapping[bytes, KeptRow | None]) -> None:
        """Replaces or adds keys, and removes those that are None."""
        states, held, pickled_keys, segments = self.states, self.hold_micros, self.pickled_keys, self.segments
        columns = [*self.alarms.items()]
        for name, kept in changes.items():
            if kept is None:
                for each in (states, held, pickled_keys, segments, *self.alarms.values()):
                    each.pop(name, None)  # type: ignore[attr-defined]
                continue
            state, alarms, hold_micros, own, sizes = kept
            states[name] = state
            held[name] = NOTHING if hold_micros is None else hold_micros
            if not alarms.keys() <= self.alarms.keys():
                for domain in alarms.keys() - self.alarms.keys():
                    self.alarms[domain] = dict.fromkeys(states, NOTHING)
                columns = [*self.alarms.items()]
            for domain, column in columns:
                column[name] = alarms.get(domain, NOTHING)
            if own is not None:
                pickled_keys[name] = own
            if sizes:
                segments[name] = sizes
            elif segments:
                segments.pop(name, None)

    def move(self, names: Collection[bytes]) -> KeyPage:
        page = KeyPage()
        page.states = _move_entries(self.states, names)
        page.hold_micros = _move_entries(self.hold_micros, names)
        page.alarms = {domain: _move_entries(column, names) for domain, column in self.alarms.items()}
        page.pickled_keys = _move_entries(
            self.pickled_keys, [name for name in names if name in self.pickled_keys]
        )
        page.segments = _move_entries(self.segments, [name for name in names if name in self.segments])
        return page

    def encoded(self) -> tuple[bytes, dict[Domain, int], int]:
        """Returns the page as bytes, the earliest alarm of each domain, and the earliest hold or `NOTHING`."""
        hold_micros = min(self.hold_micros.values())
        holds = _array(self.hold_micros.values() if hold_micros < NOTHING else ())
        alarms = {domain: _array(column.values()) for domain, column in self.alarms.items()}
        earliest = {domain: min(times) for domain, times in alarms.items()}
        content = KEY_PAGE.number, self.states, holds, alarms, self.pickled_keys, self.segments
        return pickle.dumps(content, pickle.HIGHEST_PROTOCOL), earliest, hold_micros

    @staticmethod
    def decoded(stored: bytes) -> KeyPage:
        """Decodes a page; no bytes give an empty page. ValueError if it has another format."""
        page = KeyPage()
        if stored:
            page.states, holds, alarms, page.pickled_keys, page.segments = _load_content(stored)
            page.hold_micros = _column(page.states, holds)
            page.alarms = {domain: _column(page.states, column) for domain, column in alarms.items()}
        return page


def _move_entries(column: dict[bytes, T], names: Iterable[bytes]) -> dict[bytes, T]:
    return {name: column.pop(name) for name in names}


def _array(times: Collection[int]) -> array[int]:
    try:
        return array("q", times)
    except OverflowError:
        # Some are beyond all times, and are brought to where an array can hold them.
        return array("q", [_storable(micros) for micros in times])


def _storable(micros: int) -> int:
    return micros if micros == NOTHING else max(-NOTHING, min(micros, NOTHING - 1))


def _column(names: Iterable[bytes], times: array[int]) -> dict[bytes, int]:
    return dict(zip(names, times, strict=True)) if times else dict.fromkeys(names, NOTHING)


def _load_content(stored: bytes) -> Any:
    return content_of(stored, KEY_PAGE)


Found = tuple[int, bytes | None, bytes | None, Sizes]
"""Of a key: the number of its page, its state, the pickled key, and the segments of its long lists; the state is None
if there is none."""


class KeyPages(Pages[KeyPage]):
    def __init__(self, store: Store, notes: PageNotes, spread: int) -> None:
        super().__init__(store, notes, spread, PAGE_BYTES)
        self._changes: dict[int, dict[bytes, KeptRow | None]] = {}

    def find(self, number: int, names: Iterable[bytes]) -> list[tuple[bytes, Found]]:
        """Finds keys in a page that has been read; the page stays encoded, which takes less memory."""
        page = self.loaded[number]
        if not page:
            return [(name, (number, None, None, {})) for name in names]
        if isinstance(page, bytes):
            states, _, _, pickled_keys, segments = _load_content(page)
        else:
            states, pickled_keys, segments = page.states, page.pickled_keys, page.segments
        state_of, pickled_key_of, segments_of = states.get, pickled_keys.get, segments.get
        return [
            (name, (number, state_of(name), pickled_key_of(name), segments_of(name, _NO_SEGMENTS)))
            for name in names
        ]

    def page(self, number: int) -> KeyPage:
        """Returns a decoded page that has been read, with all changes."""
        page = super().page(number)
        changes = self._changes.pop(number, None)
        if changes:
            page.change(changes)
        return page

    def change(
        self,
        changes: dict[int, dict[bytes, KeptRow | None]],
        grown_bytes: int,
        more_keys: int,
        more_windows: int | None,
    ) -> None:
        """Changes keys in pages that have been read, by page; None removes a key. No more keys are sought
        afterwards.

        `grown_bytes` is the growth by `size_of`, `more_keys` the growth of the number of keys, and `more_windows` the
        growth of the number of their windows, or None if that is unknown.
        """
        self._changes = changes
        self._changed.update(changes)
        self._grown_bytes = grown_bytes
        self.notes.keys += more_keys
        self.notes.count_windows(more_windows)

    def _decoded(self, stored: bytes) -> KeyPage:
        return KeyPage.decoded(stored)

    def _divided(self, page: KeyPage, number: int) -> dict[int, KeyPage]:
        parts = self.by_number(page.states)
        return {other: page.move(names) for other, names in parts.items() if other != number}


def size_of(state: bytes, pickled_key: bytes | None) -> int:
    return len(state) + len(pickled_key or b"") + _KEY_BYTES


def keys_of(stored: bytes) -> Iterator[tuple[bytes, StoredKey]]:
    """Yields the keys of an encoded page, by name; ValueError if it has another format."""
    page = KeyPage.decoded(stored)
    for name, state in page.states.items():
        alarms = {domain: column[name] for domain, column in page.alarms.items() if column[name] < NOTHING}
        held = page.hold_micros[name]
        hold_micros = None if held == NOTHING else held
        segments = page.segments.get(name, _NO_SEGMENTS)
        yield name, StoredKey(state, alarms, hold_micros, page.pickled_keys.get(name), segments)
