"""Makes one CombineFn of all SQL aggregates of a grouping, from which values can be retracted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.functions.described_combinefn import DescribedCombineFn
from penstock.functions.folds import Fold, FoldSource, accumulator_fold, register_fold
from penstock.relations.bags import Copies
from penstock.scalars import functions
from penstock.scalars.casting import whole
from penstock.scalars.tree import Literal, Scalar, UserCall
from penstock.scalars.types import ANY, BIGINT, NULL
from penstock.sql.aggregates.cells import Bag, DistinctValues
from penstock.sql.aggregates.function import Cell, CellText, FoldText
from penstock.sql.aggregates.functions import record_of
from penstock.sql.execution.equality import (
    canonicalizer_of,
    copies_in_any_form,
    row_canonicalizer_of,
)
from penstock.sql.plan.relations import AggregateCall


def argument_of(call: AggregateCall) -> Scalar:
    """Returns what is aggregated of a row: one value, or several as a tuple; NULL for a row that does not count."""
    one = Literal(1, BIGINT.or_null(False))
    values = call.values
    if len(values) < 2:
        value: Scalar = values[0] if values else one
        conditions = [] if call.condition is None else [call.condition]
    else:
        value = UserCall("TOGETHER", _together, values, ANY)
        needed = record_of(call).needs(call)
        conditions = [] if call.condition is None else [call.condition]
        conditions += [functions.call("IS NOT NULL", [each]) for each in needed if each.type.nullable]
    if not conditions:
        return value
    condition = reduce(lambda left, right: functions.call("AND", [left, right]), conditions)
    return functions.call("CASE", [condition, value, Literal(None, NULL)])


def _together(*values: object) -> tuple[object, ...]:
    return values


class _HoldingOf:
    """Says how the values of a call come.

    Args:
        call: The call.
        retracts: Whether values may be retracted.
    """

    def __init__(self, call: AggregateCall, retracts: bool) -> None:
        self._kinds = [each.type for each in call.values]
        self.retracts = retracts

    def copies(self, *, shown: bool) -> Copies:
        if len(self._kinds) > 1:
            return Copies(row_canonicalizer_of(self._kinds))
        kind = self._kinds[0] if self._kinds else BIGINT
        return Copies(canonicalizer_of(kind)) if shown else copies_in_any_form(kind)


def cell_of(call: AggregateCall, retracts: bool) -> Cell:
    """Returns what a group holds of one aggregate.

    Args:
        call: The aggregate.
        retracts: Whether values may be retracted.

    >>> from penstock.scalars.tree import Column
    >>> largest = cell_of(AggregateCall("max", Column(0, "points", BIGINT), BIGINT), retracts=True)
    >>> held = largest.empty()
    >>> for value, sign in [(3, 1), (7, 1), (7, -1)]:
    ...     largest.change(held, value, sign)
    >>> largest.result(held)
    3
    """
    holding = _HoldingOf(call, retracts)
    if call.fn is None:
        return record_of(call).hold(call, holding)
    copies = holding.copies(shown=True)
    own = Bag(partial(_users_result, CombineFn.maybe_from_callable(call.fn)), copies)
    return DistinctValues(own, copies) if call.distinct else own


def _users_result(fn: CombineFn, values: list[Any]) -> object:
    """A user's CombineFn over the values that are there."""
    return fn.apply(values)


def describe_calls(calls: tuple[AggregateCall, ...]) -> str:
    """Returns aggregates as text, with all on which what a group holds of them depends.

    >>> from penstock.scalars.tree import Column
    >>> points = Column(0, "points", BIGINT)
    >>> describe_calls((AggregateCall("sum", points, BIGINT), AggregateCall("count", points, BIGINT, distinct=True)))
    'sum of BIGINT, count of distinct BIGINT'
    """
    return ", ".join(map(_describe_call, calls))


def _describe_call(call: AggregateCall) -> str:
    name = call.name if call.fn is None else getattr(call.fn, "__qualname__", type(call.fn).__qualname__)
    kinds = ", ".join(str(each.type.or_null()) for each in call.values)
    of = f" of {'distinct ' * call.distinct}{kinds}" if kinds else ""
    return f"{name}{of}"


def expressions_of(calls: tuple[AggregateCall, ...]) -> FoldSource | None:
    """Returns aggregates of values that are never retracted as expressions; None if there is none, or one needs more.

    The value is a tuple with one for each aggregate, or the only one; the result is a tuple.

    >>> from penstock.functions.expression_combinefn import ExpressionCombineFn
    >>> from penstock.scalars.tree import Column
    >>> points = Column(0, "points", BIGINT)
    >>> calls = (AggregateCall("sum", points, BIGINT), AggregateCall("avg", points, BIGINT))
    >>> ExpressionCombineFn(expressions_of(calls)).apply([(3, 3), (None, None), (5, 5)])
    (8, 4.0)
    """
    folds = [_fold_of(call) for call in calls]
    found = [fold for fold in folds if fold is not None]
    if not found or len(found) < len(calls):
        return None
    single = sum(len(text.cells) for text in found) == 1
    cells: list[tuple[str, ...]] = []
    results = []
    for at, (call, text) in enumerate(zip(calls, found, strict=True)):
        places = range(len(cells), len(cells) + len(text.cells))
        value = "value" if len(calls) == 1 else f"value[{at}]"
        for cell, place in zip(text.cells, places, strict=True):
            held, other = ("partial", "other") if single else (f"partial[{place}]", f"other[{place}]")
            templates = _templates(cell, nullable=argument_of(call).type.nullable)
            cells.append(tuple(each.format(value=value, held=held, other=other) for each in templates))
        results.append(
            text.result.format(*("partial" if single else f"partial[{place}]" for place in places))
        )
    first, more, merge = (
        column[0] if single else f"({', '.join(column)})" for column in zip(*cells, strict=True)
    )
    return FoldSource(first, more, merge, f"({', '.join(results)},)", (whole,))


def _fold_of(call: AggregateCall) -> FoldText | None:
    return None if call.distinct or call.fn is not None or call.orders else record_of(call).fold(call)


def _templates(cell: CellText, *, nullable: bool) -> tuple[str, str, str]:
    """Returns the expressions of a part; where values may be NULL, which no aggregate counts, with tests for that."""
    first, more, merge = cell.first, cell.more, cell.merge
    if not nullable:
        return first, more, merge
    if cell.counts:
        return f"0 if {{value}} is None else {first}", f"{{held}} if {{value}} is None else {more}", merge
    # None is held until a value comes.
    return (
        f"None if {{value}} is None else {first}",
        f"{{held}} if {{value}} is None else {first} if {{held}} is None else ({more})",
        f"{{held}} if {{other}} is None else {{other}} if {{held}} is None else ({merge})",
    )


class SqlAggregates(DescribedCombineFn):
    """All aggregates of a grouping over tuples with a value for each.

    The result is the number of rows, then the result of each aggregate. An input None is not a row: it only makes sure
    that there is a result.

    Args:
        calls: The aggregates.
        retracts: Whether values may be retracted.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> largest = AggregateCall("max", Column(0, "points", BIGINT), BIGINT)
    >>> fn = SqlAggregates((largest, AggregateCall("count", None, BIGINT)), retracts=True)
    >>> held = fn.add_inputs(fn.create_accumulator(), [(3, 1), (7, 1), (5, 1)])
    >>> fn.extract_output(held), fn.extract_output(fn.subtract_input(held, (7, 1)))
    ((3, 7, 3), (2, 5, 2))
    """

    def __init__(self, calls: tuple[AggregateCall, ...], retracts: bool) -> None:
        self._parts = tuple(cell_of(call, retracts) for call in calls)
        self.keeps = ", ".join(filter(None, ["count of rows", describe_calls(calls)]))
        self.keeps += "; rows may be retracted" if retracts else ""
        if not retracts:
            # Nothing asks for it then, and groupings need not find out.
            self.accepts_retractions = False

    def create_accumulator(self) -> list[Any]:
        return [0, *(part.empty() for part in self._parts)]

    def add_input(self, accumulator: list[Any], element: object) -> list[Any]:
        return self._changed(accumulator, element, 1)

    def subtract_input(self, accumulator: list[Any], element: object) -> list[Any]:
        """Takes one row out."""
        return self._changed(accumulator, element, -1)

    def _changed(self, accumulator: list[Any], element: Any, sign: int) -> list[Any]:
        if element is not None:
            accumulator[0] += sign
            for at, part in enumerate(self._parts, 1):
                part.change(accumulator[at], element[at - 1], sign)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        merged = self.create_accumulator()
        for each in accumulators:
            merged[0] += each[0]
            for at, part in enumerate(self._parts, 1):
                part.merge(merged[at], each[at])
        return merged

    def extract_output(self, accumulator: list[Any]) -> tuple[Any, ...]:
        return (
            accumulator[0],
            *(part.result(held) for part, held in zip(self._parts, accumulator[1:], strict=True)),
        )


@register_fold(SqlAggregates)
def _fold_of_aggregates(fn: SqlAggregates) -> Fold:
    """The fold: to make a result changes nothing, so that no pane needs a copy."""
    return replace(accumulator_fold(fn), copy=lambda held: held)


Sides = tuple[int, int, Any]
"""Counts of a row on the left and on the right, and its form; None if that is equal to its key."""


class SideCounts(CombineFn):
    """Counts how often a row is on the left and on the right, and keeps one of the forms of the row."""

    def create_accumulator(self) -> Sides:
        return 0, 0, None

    def add_input(self, accumulator: Sides, element: Sides) -> Sides:
        (left, right, form), (lefts, rights, other) = accumulator, element
        return left + lefts, right + rights, other if form is None else form

    def subtract_input(self, accumulator: Sides, element: Sides) -> Sides:
        """Takes a row of one side out."""
        (left, right, form), (lefts, rights, other) = accumulator, element
        return left - lefts, right - rights, other if form is None else form

    def merge_accumulators(self, accumulators: Iterable[Sides]) -> Sides:
        merged = self.create_accumulator()
        for each in accumulators:
            merged = self.add_input(merged, each)
        return merged

    def extract_output(self, accumulator: Sides) -> Sides:
        return accumulator
