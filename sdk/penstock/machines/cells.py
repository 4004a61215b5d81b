"""Cells of state over plain data: the values that a stateful DoFn reads and writes, each encoded by its coder."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from penstock.coders import checked_coding
from penstock.error import refusal
from penstock.functions import userstate
from penstock.machines.long_lists import LongList
from penstock.utils.timestamp import Timestamp, TimestampTypes

Cells = dict[str, Any]
"""The cells of a key and window, by name: bytes, lists or dictionaries of bytes, or the dict of an `ObjectCell`.
Empty cells have no entry.

Only a bag may have a `LongList`; an ordered list has pairs.
"""


def is_bag(content: object) -> bool:
    """True if the content of a cell, which is not empty, belongs to a bag.

    >>> is_bag([b"value"]), is_bag([(0, b"value")]), is_bag(b"value")
    (True, False, False)
    """
    return type(content) is LongList or (type(content) is list and type(content[0]) is bytes)


def cell_of(spec: userstate.StateSpec, cells: Cells) -> userstate.RuntimeState:
    r"""Returns a cell as a DoFn sees it: reads decode only what they ask for, and writes change `cells` in place.

    >>> from penstock.coders import VarIntCoder
    >>> cells = {}
    >>> cell_of(userstate.ReadModifyWriteStateSpec("last", VarIntCoder()), cells).write(7)
    >>> cells
    {'last': b'\x07'}
    """
    return kind_of_cell(spec)(spec, cells)


def kind_of_cell(spec: userstate.StateSpec) -> Callable[[Any, Cells], userstate.RuntimeState]:
    """Returns the class of the cells that have such a description; see `cell_of`."""
    kind = _KINDS.get(type(spec))
    if kind is None:
        what = f"{spec!r} has an unknown kind of state"
        raise refusal(TypeError, what, hint=f"use one of {', '.join(one.__name__ for one in _KINDS)}")
    return kind


class _Cell:
    __slots__ = ("_cells", "_name", "_spec")

    def __init__(self, spec: Any, cells: Cells) -> None:
        self._spec = spec
        self._name: Final[str] = spec.name
        self._cells = cells

    def clear(self) -> None:
        self._cells.pop(self._name, None)

    def commit(self) -> None:
        """Does nothing: each write has already stored its value."""

    def _encoded(self, value: object) -> bytes:
        return checked_coding.encode_value(self._spec.coder, value, self._spec)

    def _decoded(self, stored: bytes) -> object:
        return checked_coding.decode_value(self._spec.coder, stored, self._spec)


class ValueCell(_Cell, userstate.ReadModifyWriteRuntimeState):
    """A cell with one value."""

    def read(self) -> Any:
        stored = self._cells.get(self._name)
        return None if stored is None else self._decoded(stored)

    def write(self, value: object) -> None:
        self._cells[self._name] = self._encoded(value)


class ObjectCell(_Cell, userstate.ReadModifyWriteRuntimeState):
    """A cell with a dict, which nothing encodes before the whole state of the key is stored."""

    def read(self) -> Any:
        return self._cells.get(self._name)

    def write(self, value: object) -> None:
        self._cells[self._name] = value


class BagCell(_Cell, userstate.BagRuntimeState):
    """Values without an order; adding one reads nothing."""

    def read(self) -> Iterable[Any]:
        stored = self._cells.get(self._name, ())
        present = stored.snapshot() if type(stored) is LongList else tuple(stored)
        return _Decoded(self._decoded, present)

    def add(self, value: object) -> None:
        encoded = self._encoded(value)
        self._cells.setdefault(self._name, []).append(encoded)


class SetCell(_Cell, userstate.SetRuntimeState):
    """Distinct values, compared as their coder encodes them."""

    def read(self) -> Iterable[Any]:
        return _Decoded(self._decoded, tuple(self._cells.get(self._name, ())))

    def add(self, value: object) -> None:
        """Adds a value unless it is there; decodes nothing."""
        encoded = self._encoded(value)
        self._cells.setdefault(self._name, {})[encoded] = None

    def contains(self, value: object) -> bool:
        """True if a value is present; decodes nothing (penstock's own)."""
        return self._encoded(value) in self._cells.get(self._name, ())

    def add_if_absent(self, value: object) -> bool:
        """Adds a value and says whether it was not there before (penstock's own)."""
        before = len(self._cells.get(self._name, ()))
        self.add(value)
        return len(self._cells[self._name]) > before

    def remove(self, value: object) -> None:
        """Removes a value, if it is there (penstock's own)."""
        _remove(self._cells, self._name, self._encoded(value))


class MapCell(_Cell, userstate.MapRuntimeState):
    """Values by keys, which are compared as their coder encodes them."""

    def is_empty(self) -> bool:
        """True if the cell is empty; decodes nothing (penstock's own)."""
        return self._name not in self._cells

    def get(self, key: object, default: object = None) -> Any:
        stored = self._cells.get(self._name, {}).get(self._encoded_key(key))
        return default if stored is None else self._decoded(stored)

    def contains(self, key: object) -> bool:
        return self._encoded_key(key) in self._cells.get(self._name, ())

    def put(self, key: object, value: object) -> None:
        encoded_key, encoded = self._encoded_key(key), self._encoded(value)
        self._cells.setdefault(self._name, {})[encoded_key] = encoded

    def put_if_absent(self, key: object, value: object) -> bool:
        if self.contains(key):
            return False
        self.put(key, value)
        return True

    def remove(self, key: object) -> None:
        _remove(self._cells, self._name, self._encoded_key(key))

    def keys(self) -> Iterable[Any]:
        return _Decoded(self._decoded_key, tuple(self._cells.get(self._name, ())))

    def values(self) -> Iterable[Any]:
        return _Decoded(self._decoded, tuple(self._cells.get(self._name, {}).values()))

    def entries(self) -> Iterable[tuple[Any, Any]]:
        decode_key, decode = self._decoded_key, self._decoded
        stored = tuple(self._cells.get(self._name, {}).items())
        return _Decoded(lambda entry: (decode_key(entry[0]), decode(entry[1])), stored)

    def read(self) -> Iterable[tuple[Any, Any]]:
        """Returns the same as `entries`."""
        return self.entries()

    def _encoded_key(self, key: object) -> bytes:
        return checked_coding.encode_value(self._spec.key_coder, key, self._spec)

    def _decoded_key(self, stored: bytes) -> object:
        return checked_coding.decode_value(self._spec.key_coder, stored, self._spec)


class CombiningCell(_Cell, userstate.CombiningValueRuntimeState):
    """The accumulator of a CombineFn."""

    def read(self) -> Any:
        return self._spec.combine_fn.extract_output(self._accumulator())

    def add(self, value: object) -> None:
        added = self._spec.combine_fn.add_input(self._accumulator(), value)
        self._cells[self._name] = self._encoded(added)

    def _accumulator(self) -> object:
        stored = self._cells.get(self._name)
        if stored is None:
            return self._spec.combine_fn.create_accumulator()
        return self._decoded(stored)


class OrderedListCell(_Cell, userstate.OrderedListRuntimeState):
    """Pairs of a timestamp and a value, ordered by timestamp and then by arrival."""

    def read(self) -> Iterable[tuple[Timestamp, Any]]:
        return self._pairs(self._rows())

    def add(self, value: tuple[Any, Any]) -> None:
        timestamp, inner = value
        row = Timestamp.of(timestamp).micros, self._encoded(inner)
        insort(self._cells.setdefault(self._name, []), row, key=_micros)

    def read_range(
        self, min_time_stamp: TimestampTypes, limit_time_stamp: TimestampTypes
    ) -> Iterable[tuple[Timestamp, Any]]:
        start, end = self._range(min_time_stamp, limit_time_stamp)
        return self._pairs(self._rows()[start:end])

    def clear_range(self, min_time_stamp: TimestampTypes, limit_time_stamp: TimestampTypes) -> None:
        start, end = self._range(min_time_stamp, limit_time_stamp)
        rows = self._rows()
        del rows[start:end]
        if not rows:
            self.clear()

    def _range(self, first: TimestampTypes, limit: TimestampTypes) -> tuple[int, int]:
        rows = self._rows()
        start, end = (
            bisect_left(rows, Timestamp.of(timestamp).micros, key=_micros) for timestamp in (first, limit)
        )
        return start, end

    def _rows(self) -> list[tuple[int, bytes]]:
        rows: list[tuple[int, bytes]] = self._cells.get(self._name, [])
        return rows

    def _pairs(self, rows: list[tuple[int, bytes]]) -> Iterable[tuple[Timestamp, Any]]:
        return _Decoded(self._pair, tuple(rows))

    def _pair(self, row: tuple[int, bytes]) -> tuple[Timestamp, Any]:
        micros, encoded = row
        return Timestamp.from_micros(micros), self._decoded(encoded)


def _micros(row: tuple[int, bytes]) -> int:
    return row[0]


class _Decoded:
    """The present content of a cell, decoded in each iteration."""

    def __init__(self, decode: Callable[[Any], Any], stored: tuple[Any, ...] | LongList) -> None:
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


_KINDS: dict[type[userstate.StateSpec], Callable[[Any, Cells], userstate.RuntimeState]] = {
    userstate.ReadModifyWriteStateSpec: ValueCell,
    userstate.ObjectStateSpec: ObjectCell,
    userstate.BagStateSpec: BagCell,
    userstate.SetStateSpec: SetCell,
    userstate.MapStateSpec: MapCell,
    userstate.CombiningValueStateSpec: CombiningCell,
    userstate.OrderedListStateSpec: OrderedListCell,
}
