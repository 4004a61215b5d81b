"""Cells of state over plain data: what a stateful DoFn reads and writes, encoded one by one by their coders."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from penstock.error import three_parts
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    CombiningValueRuntimeState,
    CombiningValueStateSpec,
    MapRuntimeState,
    MapStateSpec,
    OrderedListRuntimeState,
    OrderedListStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    RuntimeState,
    SetRuntimeState,
    SetStateSpec,
    StateSpec,
)
from penstock.utils.timestamp import Timestamp

Cells = dict[str, Any]
"""What is in the cells of a key and window, by their names: bytes, and lists and dictionaries of bytes. A cell in which
there is nothing is not there."""


def cell_of(spec: StateSpec, cells: Cells) -> RuntimeState:
    r"""A cell as a DoFn sees it. Only what is asked for is decoded, and only what is written is encoded.

    Args:
        spec: The cell's description.
        cells: Those of the key and window; changed in place.

    Raises:
        TypeError: There is no such kind of state.

    >>> from penstock.coders import VarIntCoder
    >>> cells = {}
    >>> cell_of(ReadModifyWriteStateSpec("last", VarIntCoder()), cells).write(7)
    >>> cells
    {'last': b'\x07'}
    """
    return kind_of_cell(spec)(spec, cells)


def kind_of_cell(spec: StateSpec) -> Callable[[Any, Cells], RuntimeState]:
    """What makes the cell that a DoFn sees, of a description and the cells of a key and window; see `cell_of`.

    Raises:
        TypeError: There is no such kind of state.
    """
    kind = _KINDS.get(type(spec))
    if kind is None:
        what = f"{spec!r} is of a kind of state that nobody knows"
        raise TypeError(three_parts(what, hint=f"use one of {', '.join(one.__name__ for one in _KINDS)}"))
    return kind


class _Cell:
    """What all kinds share.

    Args:
        spec: The description.
        cells: Those of the key and window.
    """

    __slots__ = ("_cells", "_name", "_spec")

    def __init__(self, spec: Any, cells: Cells) -> None:
        self._spec = spec
        self._name: Final[str] = spec.name
        self._cells = cells

    def clear(self) -> None:
        """Removes everything."""
        self._cells.pop(self._name, None)

    def commit(self) -> None:
        """Does nothing: all is stored where it is written."""


class ValueCell(_Cell, ReadModifyWriteRuntimeState):
    """One value."""

    def read(self) -> Any:
        """The value; None if there is none."""
        stored = self._cells.get(self._name)
        return None if stored is None else self._spec.coder.decode(stored)

    def write(self, value: Any) -> None:
        """Replaces the value."""
        self._cells[self._name] = self._spec.coder.encode(value)


class BagCell(_Cell, BagRuntimeState):
    """Values in no order; to add one reads nothing."""

    def read(self) -> Iterable[Any]:
        """The values."""
        return _Decoded(self._spec.coder.decode, tuple(self._cells.get(self._name, ())))

    def add(self, value: Any) -> None:
        """Adds a value."""
        self._cells.setdefault(self._name, []).append(self._spec.coder.encode(value))


class SetCell(_Cell, SetRuntimeState):
    """Distinct values: such that their coder encodes differently."""

    def read(self) -> Iterable[Any]:
        """The values."""
        return _Decoded(self._spec.coder.decode, tuple(self._cells.get(self._name, ())))

    def add(self, value: Any) -> None:
        """Adds a value, if it is not there; reads no other."""
        self._cells.setdefault(self._name, {})[self._spec.coder.encode(value)] = None

    def contains(self, value: Any) -> bool:
        """Whether a value is there; reads no other (penstock's own)."""
        return self._spec.coder.encode(value) in self._cells.get(self._name, ())

    def add_if_absent(self, value: Any) -> bool:
        """Adds a value; whether it was not there before (penstock's own)."""
        before = len(self._cells.get(self._name, ()))
        self.add(value)
        return len(self._cells[self._name]) > before

    def remove(self, value: Any) -> None:
        """Removes a value, if it is there (penstock's own)."""
        _remove(self._cells, self._name, self._spec.coder.encode(value))


class MapCell(_Cell, MapRuntimeState):
    """Values by keys: such that the keys' coder encodes differently."""

    def is_empty(self) -> bool:
        """Whether there are no keys; reads nothing (penstock's own)."""
        return self._name not in self._cells

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key; reads no other."""
        stored = self._cells.get(self._name, {}).get(self._spec.key_coder.encode(key))
        return default if stored is None else self._spec.coder.decode(stored)

    def contains(self, key: Any) -> bool:
        """Whether a key is there."""
        return self._spec.key_coder.encode(key) in self._cells.get(self._name, ())

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of a key; reads nothing."""
        self._entries()[self._spec.key_coder.encode(key)] = self._spec.coder.encode(value)

    def put_if_absent(self, key: Any, value: Any) -> bool:
        """Sets the value of a key that has none; whether it had none. Decodes nothing."""
        encoded, entries = self._spec.key_coder.encode(key), self._entries()
        if encoded in entries:
            return False
        entries[encoded] = self._spec.coder.encode(value)
        return True

    def remove(self, key: Any) -> None:
        """Removes a key, if it is there."""
        _remove(self._cells, self._name, self._spec.key_coder.encode(key))

    def keys(self) -> Iterable[Any]:
        """The keys."""
        return _Decoded(self._spec.key_coder.decode, tuple(self._cells.get(self._name, ())))

    def values(self) -> Iterable[Any]:
        """The values."""
        return _Decoded(self._spec.coder.decode, tuple(self._cells.get(self._name, {}).values()))

    def entries(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of a key and its value."""
        decode_key, decode = self._spec.key_coder.decode, self._spec.coder.decode
        stored = tuple(self._cells.get(self._name, {}).items())
        return _Decoded(lambda entry: (decode_key(entry[0]), decode(entry[1])), stored)

    def read(self) -> Iterable[tuple[Any, Any]]:
        """The same as `entries`."""
        return self.entries()

    def _entries(self) -> dict[bytes, bytes]:
        entries: dict[bytes, bytes] = self._cells.setdefault(self._name, {})
        return entries


class CombiningCell(_Cell, CombiningValueRuntimeState):
    """An accumulator."""

    def read(self) -> Any:
        """The result of what was added; that of nothing, if there is nothing."""
        return self._spec.combine_fn.extract_output(self._accumulator())

    def add(self, value: Any) -> None:
        """Adds a value."""
        added = self._spec.combine_fn.add_input(self._accumulator(), value)
        self._cells[self._name] = self._spec.coder.encode(added)

    def _accumulator(self) -> Any:
        stored = self._cells.get(self._name)
        if stored is None:
            return self._spec.combine_fn.create_accumulator()
        return self._spec.coder.decode(stored)


class OrderedListCell(_Cell, OrderedListRuntimeState):
    """Pairs of a timestamp and a value, by timestamp; those of one timestamp as they came."""

    def read(self) -> Iterable[tuple[Timestamp, Any]]:
        """All pairs."""
        return self._pairs(self._rows())

    def add(self, value: tuple[Any, Any]) -> None:
        """Adds a pair."""
        timestamp, inner = value
        rows = self._cells.setdefault(self._name, [])
        insort(rows, (Timestamp.of(timestamp).micros, self._spec.coder.encode(inner)), key=_micros)

    def read_range(self, min_time_stamp: Any, limit_time_stamp: Any) -> Iterable[tuple[Timestamp, Any]]:
        """The pairs from one timestamp on, before another; reads no other."""
        start, end = self._range(min_time_stamp, limit_time_stamp)
        return self._pairs(self._rows()[start:end])

    def clear_range(self, min_time_stamp: Any, limit_time_stamp: Any) -> None:
        """Removes the pairs from one timestamp on, before another."""
        start, end = self._range(min_time_stamp, limit_time_stamp)
        rows = self._rows()
        del rows[start:end]
        if not rows:
            self.clear()

    def _range(self, first: Any, limit: Any) -> tuple[int, int]:
        rows = self._rows()
        start, end = (
            bisect_left(rows, Timestamp.of(moment).micros, key=_micros) for moment in (first, limit)
        )
        return start, end

    def _rows(self) -> list[tuple[int, bytes]]:
        rows: list[tuple[int, bytes]] = self._cells.get(self._name, [])
        return rows

    def _pairs(self, rows: list[tuple[int, bytes]]) -> Iterable[tuple[Timestamp, Any]]:
        return _Decoded(self._pair, tuple(rows))

    def _pair(self, row: tuple[int, bytes]) -> tuple[Timestamp, Any]:
        micros, encoded = row
        return Timestamp.from_micros(micros), self._spec.coder.decode(encoded)


def _micros(row: tuple[int, bytes]) -> int:
    return row[0]


class _Decoded:
    """What is in a cell now, decoded as it is looked at, as often as that is."""

    def __init__(self, decode: Callable[[Any], Any], stored: tuple[Any, ...]) -> None:
        self._decode = decode
        self._stored = stored

    def __iter__(self) -> Iterator[Any]:
        return map(self._decode, self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __repr__(self) -> str:
        return repr(list(self))


def _remove(cells: Cells, name: str, encoded: bytes) -> None:
    found = cells.get(name)
    if found is not None:
        found.pop(encoded, None)
        if not found:
            del cells[name]


_KINDS: dict[type[StateSpec], Callable[[Any, Cells], RuntimeState]] = {
    ReadModifyWriteStateSpec: ValueCell,
    BagStateSpec: BagCell,
    SetStateSpec: SetCell,
    MapStateSpec: MapCell,
    CombiningValueStateSpec: CombiningCell,
    OrderedListStateSpec: OrderedListCell,
}
