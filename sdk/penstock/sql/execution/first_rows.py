"""Keeps the first rows of a partition in their order, so that a row behind the border is left out at once."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeVar

from penstock.coders.deterministic import encode_key
from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import Fold, accumulator_fold, register_fold
from penstock.relations.bags import place_of_copy
from penstock.scalars.python_writer import PythonWriter
from penstock.scalars.row_functions import Compiled
from penstock.scalars.tree import Scalar
from penstock.sql.aggregates.cells import ordered
from penstock.sql.execution.equality import CanonicalRow
from penstock.sql.plan.relations import Order

SqlRow = tuple[Any, ...]
"""A row of a relation."""

T = TypeVar("T")

_PLAIN = frozenset(["BIGINT", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY"])
"""Types whose values Python compares as SQL does."""


class _Comparable(Protocol):
    def __lt__(self, other: object, /) -> bool: ...


class Reversed:
    """Compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: _Comparable) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]


class _Encoded:
    """Compares rows by their encodings, which are made only for rows that are equal in what comes before."""

    __slots__ = ("row",)

    def __init__(self, row: object) -> None:
        self.row = row

    def __lt__(self, other: _Encoded) -> bool:
        return encode_key(self.row) < encode_key(other.row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Encoded) and (
            self.row is other.row or encode_key(self.row) == encode_key(other.row)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class RankOf(Compiled):
    """Makes the rank of a row: what the values of ORDER BY are compared by. Ranks of several rows may be equal.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> descending = RankOf((Order(Column(0, "a", BIGINT), True, False),))
    >>> sorted([(1,), (None,), (3,)], key=descending.function)
    [(3,), (1,), (None,)]
    """

    orders: tuple[Order, ...]

    def __call__(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The rank."""
        rank: tuple[Any, ...] = self.function(row)
        return rank

    def _all(self) -> tuple[Scalar, ...]:
        return tuple(each.scalar for each in self.orders)

    def _lines(self, writer: PythonWriter) -> str:
        return f"({''.join(f'{_text_of_rank(writer, at, each)}, ' for at, each in enumerate(self.orders))})"


def _text_of_rank(writer: PythonWriter, place: int, order: Order) -> str:
    """The text of what compares one value."""
    kind, read = order.scalar.type, writer.value(order.scalar).text
    value = f"ranked{place}" if kind.nullable else f"({read})"
    if kind.name not in _PLAIN:
        text = f"{writer.name_of(ordered)}({value})"
        text = f"{writer.name_of(Reversed)}({text})" if order.descending else text
    elif not order.descending:
        text = value
    elif kind.name == "BIGINT":
        text = f"-{value}"
    else:
        text = f"{writer.name_of(Reversed)}({value})"
    if not kind.nullable:
        return text
    of_null = 0 if order.nulls_first else 2
    return f"(({of_null}, 0) if ({value} := {read}) is None else (1, {text}))"


class _Ranking:
    """The order of rows: by their ranks, and rows of equal ranks by all of their columns, so that it is total.

    Args:
        rank: Makes the rank of a row.
    """

    def __init__(self, rank: RankOf) -> None:
        self.rank = rank

    def key(self, row: SqlRow) -> tuple[SqlRow, _Encoded]:
        """Returns what compares a row with others."""
        return self.rank.function(row), _Encoded(row)

    def insert(self, rows: list[SqlRow], row: SqlRow) -> None:
        """Puts a row in its place."""
        start, end = self.span(rows, row)
        if start == end:
            rows.insert(start, row)
        else:
            place = bisect_right(rows, encode_key(row), start, end, key=encode_key)
            rows.insert(place, row)

    def span(self, rows: list[SqlRow], row: SqlRow) -> tuple[int, int]:
        """Returns the place of the first row of the same rank, and the place after the last one."""
        rank, rank_of = self.rank.function(row), self.rank.function
        start = bisect_left(rows, rank, key=rank_of)
        return start, bisect_right(rows, rank, start, key=rank_of)


class FirstRowsFn(CombineFn):
    """The first rows in an order, after an offset, where no row is retracted.

    It holds the first rows in their order. A row behind the last of them is left out at once.

    Args:
        rank: Makes the rank of a row.
        limit: How many rows there are at most; None for all.
        offset: How many rows are left out before.

    Attributes:
        accepts_retractions: Rows that are left out never come back.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> FirstRowsFn(RankOf((Order(Column(0, "a", BIGINT), False, True),)), 2, 1).apply([(5,), (2,), (7,), (3,)])
    [(3,), (5,)]
    """

    accepts_retractions = False

    def __init__(self, rank: RankOf, limit: int | None, offset: int) -> None:
        self._ranking = _Ranking(rank)
        self._offset = offset
        self._most = None if limit is None else offset + limit

    def create_accumulator(self) -> list[SqlRow]:
        return []

    def add_input(self, accumulator: list[SqlRow], element: SqlRow) -> list[SqlRow]:
        most, ranking = self._most, self._ranking
        if most is not None and len(accumulator) >= most:
            # Rows of the border's own rank are compared by all columns.
            if not most or ranking.rank.function(accumulator[-1]) < ranking.rank.function(element):
                return accumulator
            ranking.insert(accumulator, element)
            accumulator.pop()
            return accumulator
        ranking.insert(accumulator, element)
        return accumulator

    def add_inputs(self, accumulator: list[SqlRow], elements: Iterable[Any]) -> list[SqlRow]:
        return self._first(chain(accumulator, elements))

    def merge_accumulators(self, accumulators: Iterable[list[SqlRow]]) -> list[SqlRow]:
        return self._first(chain.from_iterable(accumulators))

    def extract_output(self, accumulator: list[SqlRow]) -> list[SqlRow]:
        return accumulator[self._offset : self._most]

    def _first(self, rows: Iterable[Any]) -> list[SqlRow]:
        if self._most is None:
            return sorted(rows, key=self._ranking.key)
        return heapq.nsmallest(self._most, rows, key=self._ranking.key)


Held = tuple[list[SqlRow], list[SqlRow]]
"""All rows in their order, and those that were retracted before they came."""


class FirstRowsOfAllFn(CombineFn):
    """The first rows in an order, after an offset, where rows may be retracted: it holds all of them, in their order.

    Args:
        rank: Makes the rank of a row.
        limit: How many rows there are at most; None for all.
        offset: How many rows are left out before.
        form: What brings a row into its canonical form, or None.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> fn = FirstRowsOfAllFn(RankOf((Order(Column(0, "a", BIGINT), False, True),)), 2, 0)
    >>> held = fn.add_inputs(fn.create_accumulator(), [(5,), (2,), (7,)])
    >>> fn.extract_output(fn.subtract_input(held, (2,)))
    [(5,), (7,)]
    """

    accepts_retractions = True

    def __init__(
        self, rank: RankOf, limit: int | None, offset: int, form: CanonicalRow | None = None
    ) -> None:
        self._ranking = _Ranking(rank)
        self._offset = offset
        self._end = None if limit is None else offset + limit
        self._form = form

    def create_accumulator(self) -> Held:
        return [], []

    def add_input(self, accumulator: Held, element: SqlRow) -> Held:
        rows, owed = accumulator
        if owed and (place := place_of_copy(element, owed, self._form)) is not None:
            del owed[place]
        else:
            self._ranking.insert(rows, element)
        return accumulator

    def subtract_input(self, accumulator: Held, element: SqlRow) -> Held:
        """Takes one row out."""
        rows, owed = accumulator
        # All copies of a row have its rank.
        start, end = self._ranking.span(rows, element)
        place = place_of_copy(element, rows[start:end], self._form)
        if place is None:
            owed.append(element)
        else:
            del rows[start + place]
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Held]) -> Held:
        merged = self.create_accumulator()
        for rows, owed in accumulators:
            for row in rows:
                merged = self.add_input(merged, row)
            for row in owed:
                merged = self.subtract_input(merged, row)
        return merged

    def extract_output(self, accumulator: Held) -> list[SqlRow]:
        return accumulator[0][self._offset : self._end]


def first_rows(
    orders: Sequence[Order], limit: int | None, offset: int, retracts: bool, form: CanonicalRow | None
) -> CombineFn:
    """Returns the CombineFn of the first rows of a partition.

    Args:
        orders: The order of rows.
        limit: How many rows there are at most; None for all.
        offset: How many rows are left out before.
        retracts: Whether rows may be retracted, so that all must be held.
        form: What brings a row into its canonical form, or None.
    """
    rank = RankOf(tuple(orders))
    if retracts:
        return FirstRowsOfAllFn(rank, limit, offset, form)
    return FirstRowsFn(rank, limit, offset)


@register_fold(FirstRowsFn, FirstRowsOfAllFn)
def _fold_of_first_rows(fn: CombineFn) -> Fold:
    """The fold: a result is a list of its own, and no order of arrival matters."""
    return replace(accumulator_fold(fn), copy=_itself, heeds_order=False)


def _itself(held: T) -> T:
    return held
