"""The total order of the rows of a partition: by ORDER BY, then by all columns, so that results are the same each time.

A key of a row is a tuple: a part for each value of ORDER BY, then what distinguishes rows that are equal in these.
Bounds of frames are keys without the last, which sort before or after all rows that are equal in ORDER BY.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.coders.deterministic import encode_key
from penstock.scalars import decimals
from penstock.scalars.row_functions import Projection
from penstock.scalars.types import SqlType
from penstock.sql.aggregates.cells import ordered
from penstock.sql.execution.equality import Canonical, canonicalizer_of
from penstock.sql.plan.frames import Comparable, Offset, is_negative
from penstock.sql.plan.relations import Order

Key = tuple[Any, ...]
SqlRow = tuple[Any, ...]
_BEFORE, _BEHIND = (0,), (2,)
_ORDERED = frozenset(
    [
        "BIGINT",
        "DOUBLE",
        "DECIMAL",
        "STRING",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "BINARY",
        "INTERVAL",
    ]
)
"""The types whose values have an order in Python that is SQL's, through `ordered`."""


def has_order(kind: SqlType) -> bool:
    """True if the values of a type have an order in SQL, and not only an equality."""
    if kind.name in ("ARRAY", "STRUCT"):
        return bool(kind.parts) and all(map(has_order, kind.parts))
    return kind.name in _ORDERED


class RowOrder:
    """Makes the keys by which rows are ordered.

    Args:
        orders: The values of ORDER BY.
        kinds: The types of all columns of a row.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> order = RowOrder((Order(Column(0, "a", BIGINT), True, False),), (BIGINT, BIGINT))
    >>> sorted([(1, 2), (None, 1), (3, 1), (1, None)], key=order.key)
    [(3, 1), (1, None), (1, 2), (None, 1)]
    """

    def __init__(self, orders: tuple[Order, ...], kinds: tuple[SqlType, ...]) -> None:
        self._orders = orders
        self._values = Projection(tuple(each.scalar for each in orders))
        self._parts = tuple(map(_part_of, kinds))

    def key(self, row: SqlRow) -> Key:
        """Returns the key of a row."""
        return (*self.parts(row), (1, _Rest(row, self)))

    def parts(self, row: SqlRow) -> Key:
        """Returns the part of a key that rows have in common which are equal in ORDER BY."""
        values = self._values.function(row)
        return tuple(map(_placed, self._orders, values))

    def rest(self, row: SqlRow) -> tuple[Any, ...]:
        """Returns what orders rows that are equal in ORDER BY: their columns, NULL first."""
        return tuple(
            (0,) if value is None else (1, part(value)) for part, value in zip(self._parts, row, strict=True)
        )

    def before(self, row: SqlRow, offset: Offset | None = None) -> Key:
        """Returns the bound before the rows that are equal to a row, or by an offset away from it."""
        return (*self._moved(row, offset), _BEFORE)

    def behind(self, row: SqlRow, offset: Offset | None = None) -> Key:
        """Returns the bound behind the rows that are equal to a row, or by an offset away from it."""
        return (*self._moved(row, offset), _BEHIND)

    def _moved(self, row: SqlRow, offset: Offset | None) -> Key:
        if not offset:
            return self.parts(row)
        [value], [order] = self._values.function(row), self._orders
        if value is None:
            # Nothing is at a distance of NULL but NULL.
            return (_placed(order, value),)
        try:
            return (_placed(order, _sum(value, -offset if order.descending else offset)),)
        except OverflowError:
            # No time is so far away: the bound is behind, or before, all that there are.
            return ((0.5 if is_negative(offset) else 1.5,),)


def _placed(order: Order, value: object) -> tuple[Any, ...]:
    if value is None:
        return (0 if order.nulls_first else 2,)
    comparable = ordered(value)
    return (1, Reversed(comparable)) if order.descending else (1, comparable)


def _sum(value: object, offset: Offset) -> object:
    # Offsets of decimals may be integers, and so may decimals themselves.
    if isinstance(value, Decimal | int) and isinstance(offset, Decimal):
        return decimals.added(Decimal(value), offset)
    if isinstance(value, Decimal) and isinstance(offset, int):
        return decimals.added(value, Decimal(offset))
    return operator.add(value, offset)


def _part_of(kind: SqlType) -> Callable[[Any], Any]:
    if has_order(kind):
        return ordered
    return _Encoded(canonicalizer_of(kind))


class _Encoded:
    """Makes the bytes that stand for all values that are equal to one."""

    def __init__(self, form: Canonical | None) -> None:
        self._form = form

    def __call__(self, value: object) -> bytes:
        return encode_key(value if self._form is None else self._form(value))


class _Rest:
    """Compares rows that are equal in ORDER BY; most rows are already distinguished before."""

    __slots__ = ("_order", "_row")

    def __init__(self, row: SqlRow, order: RowOrder) -> None:
        self._row = row
        self._order = order

    def _key(self) -> tuple[Any, ...]:
        return (*self._order.rest(self._row), encode_key(self._row))

    def __lt__(self, other: _Rest) -> bool:
        return self._row is not other._row and self._key() < other._key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rest) and (self._row is other._row or self._key() == other._key())

    __hash__ = None  # type: ignore[assignment]


class Reversed:
    """Compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Comparable) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(other.value == self.value)

    __hash__ = None  # type: ignore[assignment]
