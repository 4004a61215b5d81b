"""Columns of cells as a page of state stores them: as machine numbers where that is exact, and names as one string."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Union

Packed = Union[tuple[Any], "array[Any]", list[Any]]
"""A column: its only value, numbers of one type, or any objects."""

_WHOLE = "bhiq"
"""The types of arrays of integers, narrowest first."""


def pack_column(values: list[Any], may_be_one: bool) -> Packed:
    """Returns a column of values; with `may_be_one`, equal values may become one, and otherwise only None may.

    >>> pack_column([3, 3], True), pack_column([3, 300], True), pack_column([1, True], False)
    ((3,), array('h', [3, 300]), [1, True])
    >>> pack_column([0.5, 1.0], False), pack_column([2**70, 1], False), pack_column([None, None], False)
    (array('d', [0.5, 1.0]), [1180591620717411303424, 1], (None,))
    """
    first = values[0]
    if (may_be_one or first is None) and values.count(first) == len(values):
        return (first,)
    kinds = set(map(type, values))
    if kinds == {int}:
        return _whole(values)
    return array("d", values) if kinds == {float} else values


def _whole(values: list[int]) -> Packed:
    least, most = min(values), max(values)
    for kind in _WHOLE:
        limit = 1 << (8 * array(kind).itemsize - 1)
        if -limit <= least and most < limit:
            return array(kind, values)
    return values


def column_of(column: Packed, size: int) -> Sequence[Any]:
    """Returns all values of a column, in order.

    >>> column_of((3,), 2)
    [3, 3]
    """
    return [column[0]] * size if type(column) is tuple else column


def replace_values(
    column: Packed, size: int, rows: Iterable[int], values: list[Any], may_be_one: bool
) -> Packed:
    """Returns a column with some values replaced; it may change the given one.

    >>> replace_values((0,), 3, [1], [0], True), replace_values((0,), 3, [1], [5], True)
    ((0,), array('b', [0, 5, 0]))
    >>> replace_values(pack_column([1, 2], False), 2, [0], [500], False)
    array('h', [500, 2])
    """
    if isinstance(column, tuple):
        [only] = column
        if all(value is only for value in values) or (may_be_one and values.count(only) == len(values)):
            return column
    elif not isinstance(column, array) or set(map(type, values)) == {type(column[0])}:
        try:
            for row, value in zip(rows, values, strict=True):
                column[row] = value
        except OverflowError:
            pass
        else:
            return column
    whole = [*column_of(column, size)]
    for row, value in zip(rows, values, strict=True):
        whole[row] = value
    return pack_column(whole, may_be_one)


def pack_names(names: list[bytes]) -> tuple[Any, ...]:
    """Packs sorted names into one text, and the place where each ends."""
    ends = _whole([*accumulate(map(len, names))])
    return b"".join(names), ends


class PackedNames(NamedTuple):
    """Sorted names; a search looks at few of them.

    >>> names = PackedNames(*pack_names([b"ab", b"c", b"def"]))
    >>> list(names.all()), names.rows_of([b"def", b"d", b"ab", b"x"])
    ([b'ab', b'c', b'def'], {b'def': 2, b'ab': 0})
    """

    joined: bytes
    ends: Sequence[int]

    def all(self) -> Iterator[bytes]:
        """Yields the names, in order."""
        start = 0
        for end in self.ends:
            yield self.joined[start:end]
            start = end

    def rows_of(self, names: Iterable[bytes]) -> dict[bytes, int]:
        """Returns the places of those names that are here."""
        joined, ends = self
        places = range(len(ends))

        def name_at(place: int) -> bytes:
            return joined[ends[place - 1] if place else 0 : ends[place]]

        found = {}
        for name in names:
            place = bisect_left(places, name, key=name_at)
            if place < len(ends) and name_at(place) == name:
                found[name] = place
        return found
