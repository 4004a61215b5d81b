"""Cells of aggregates: totals, extremes and bags, to which values come and from which they go."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any

from penstock.coders.deterministic import encode_key
from penstock.elements.row import Row
from penstock.relations.bags import Copies
from penstock.scalars.conditions import order
from penstock.sql.aggregates.function import Cell
from penstock.sql.plan.relations import Order


class Count(Cell):
    """The number of values."""

    def empty(self) -> list[int]:
        return [0]

    def change(self, held: list[int], value: object, sign: int) -> None:
        if value is not None:
            held[0] += sign

    def merge(self, held: list[int], other: list[int]) -> None:
        held[0] += other[0]

    def result(self, held: list[int]) -> int:
        return held[0]


class Total(Cell):
    """The number of values, and their sum.

    Args:
        result: What becomes of the number and the sum.
        add: Adds two values.
        subtract: Takes a value out of a sum.
        nothing: The sum of no values.
    """

    def __init__(
        self,
        result: Callable[[int, Any], Any],
        add: Callable[[Any, Any], Any] = operator.add,
        subtract: Callable[[Any, Any], Any] = operator.sub,
        nothing: object = 0,
    ) -> None:
        self._result = result
        self._add = add
        self._subtract = subtract
        self._nothing = nothing

    def empty(self) -> list[Any]:
        return [0, self._nothing]

    def change(self, held: list[Any], value: Any, sign: int) -> None:
        if value is not None:
            held[0] += sign
            held[1] = (self._add if sign > 0 else self._subtract)(held[1], value)

    def merge(self, held: list[Any], other: list[Any]) -> None:
        held[0] += other[0]
        held[1] = self._add(held[1], other[1])

    def result(self, held: list[Any]) -> object:
        return self._result(*held)


class Extreme(Cell):
    """The minimum or maximum so far; no value can be removed."""

    def __init__(
        self, chosen: Callable[[Iterable[Any]], Any], result: Callable[[Any], Any] | None = None
    ) -> None:
        self._chosen = chosen
        self._result = result

    def empty(self) -> list[Any]:
        return [None]

    def change(self, held: list[Any], value: object, sign: int) -> None:
        if value is not None:
            held[0] = value if held[0] is None else self._chosen((held[0], value))

    def merge(self, held: list[Any], other: list[Any]) -> None:
        self.change(held, other[0], 1)

    def result(self, held: list[Any]) -> object:
        return held[0] if self._result is None or held[0] is None else self._result(held[0])


class Bag(Cell):
    """The values themselves, with the number of their copies: what cannot be taken out of a sum stays one by one.

    Args:
        result: What becomes of the values.
        copies: How they are held.
        once: Whether copies do not change the result, so that it is computed without them.
    """

    def __init__(self, result: Callable[[list[Any]], Any], copies: Copies, *, once: bool = False) -> None:
        self._result = result
        self._copies = copies
        self._once = once

    def empty(self) -> Counter[Any]:
        return Counter()

    def change(self, held: Counter[Any], value: object, sign: int) -> None:
        if value is not None:
            self._copies.change(held, value, sign)

    def merge(self, held: Counter[Any], other: Counter[Any]) -> None:
        for value, count in other.items():
            held[value] += count
            if not held[value]:
                del held[value]

    def result(self, held: Counter[Any]) -> object:
        return self._result(self._copies.distinct(held) if self._once else list(self._copies.elements(held)))


class DistinctValues(Bag):
    """The values, of which equal ones count once for another cell.

    Args:
        cell: What the distinct values are added to when the result is asked for.
        copies: How values are held.
    """

    def __init__(self, cell: Cell, copies: Copies) -> None:
        super().__init__(self._of_all, copies)
        self._cell = cell

    def result(self, held: Counter[Any]) -> object:
        return self._of_all(self._copies.distinct(held))

    def _of_all(self, values: Iterable[Any]) -> object:
        held = self._cell.empty()
        for value in values:
            self._cell.change(held, value, 1)
        return self._cell.result(held)


# The order of values

_BY_PARTS = cmp_to_key(order)


def ordered(value: object) -> tuple[int, Any]:
    """Returns what orders a value as SQL does: NaN is the largest number, and NULL the smallest part of an array."""
    if isinstance(value, (list, tuple, Row)):
        return 0, _BY_PARTS(value)
    return (1, 0) if value != value else (0, value)


def in_order(values: Iterable[Any]) -> list[Any]:
    """Returns values in ascending order; those that have none, such as values of several types, by their encoding.

    >>> in_order([2.0, float("nan"), -1.0]), in_order(["b", 1])
    ([-1.0, 2.0, nan], [1, 'b'])
    """
    found = list(values)
    try:
        return sorted(found, key=ordered)
    except TypeError:
        return sorted(found, key=encode_key)


def in_orders(rows: Iterable[tuple[Any, ...]], orders: Sequence[Order], first: int) -> list[tuple[Any, ...]]:
    """Returns tuples in the order of ORDER BY, and those that are equal in it by their values.

    Args:
        rows: The tuples.
        orders: The order.
        first: The place of what the first order compares; the others follow.
    """
    found = in_order(rows)
    for at, each in reversed(list(enumerate(orders, first))):
        # A sort that keeps what is equal, from the last order to the first.
        null = (0 if each.nulls_first != each.descending else 2, 0)
        found.sort(key=_key_at(at, null), reverse=each.descending)
    return found


def _key_at(at: int, null: tuple[int, int]) -> Callable[[Any], Any]:
    return lambda row: null if row[at] is None else (1, ordered(row[at]))
