"""Makes one CombineFn of all SQL aggregates of a grouping, from which values can be retracted."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cmp_to_key, partial, reduce
from typing import Any, NoReturn

from penstock.error import three_parts
from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import COUNT, MAX, MIN, SUM, Fold, FoldSource, accumulator_fold, register_fold
from penstock.relations.bags import Copies
from penstock.scalars import decimals
from penstock.scalars.casting import DECIMALS, whole, with_digits
from penstock.scalars.conditions import order
from penstock.scalars.types import BIGINT, SqlType
from penstock.sql.execution.equality import canonicalizer_of, copies_in_any_form
from penstock.sql.plan.relations import AggregateCall


class _Total:
    """The number of values that are not NULL, and their exact sum.

    Args:
        result: What becomes of the number and the sum.
        of_decimals: Whether the values are decimals, whose sum has more digits than Python's contexts keep.
    """

    def __init__(self, result: Callable[[int, Any], Any], of_decimals: bool = False) -> None:
        self._result = result
        self._add = decimals.added if of_decimals else operator.add
        self._subtract = decimals.subtracted if of_decimals else operator.sub

    def empty(self) -> list[Any]:
        return [0, 0]

    def change(self, held: list[Any], value: Any, sign: int) -> None:
        if value is not None:
            held[0] += sign
            held[1] = (self._add if sign > 0 else self._subtract)(held[1], value)

    def merge(self, held: list[Any], other: list[Any]) -> None:
        held[0] += other[0]
        held[1] = self._add(held[1], other[1])

    def result(self, held: list[Any]) -> object:
        return self._result(*held)


class _Bag:
    """The values themselves, with the number of their copies: what cannot be taken out of a sum stays one by one.

    Args:
        result: What becomes of the values.
        copies: How they are held.
        distinct: Whether equal values count once.
    """

    def __init__(self, result: Callable[[list[Any]], Any], copies: Copies, distinct: bool = False) -> None:
        self._result = result
        self._copies = copies
        self._distinct = distinct

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
        values = self._copies.distinct(held) if self._distinct else list(self._copies.elements(held))
        return self._result(values)


class _Extreme:
    """The least or the greatest value so far; nothing can be taken out."""

    def __init__(self, chosen: Callable[[Iterable[Any]], Any]) -> None:
        self._chosen = chosen

    def empty(self) -> list[Any]:
        return [None]

    def change(self, held: list[Any], value: object, sign: int) -> None:
        if value is not None:
            held[0] = value if held[0] is None else self._chosen((held[0], value))

    def merge(self, held: list[Any], other: list[Any]) -> None:
        self.change(held, other[0], 1)

    def result(self, held: list[Any]) -> object:
        return held[0]


def refuse_more_rows(count: int) -> NoReturn:
    """Refuses a subquery in an expression that has more than one row."""
    what = f"a subquery in an expression has {count} rows, not one"
    raise ValueError(three_parts(what, hint="aggregate it, for example with MAX, or write LIMIT 1"))


class _Single(_Bag):
    """Holds the one value of a subquery, which may be NULL.

    Args:
        copies: How values are held.
        retracts: Whether values may be retracted. A new row may come before the old one goes, so that two rows are no
            error as long as an instant lasts: `OneRow` finds those that stay.
    """

    def __init__(self, copies: Copies, retracts: bool) -> None:
        super().__init__(self._only, copies)
        self._retracts = retracts

    def change(self, held: Counter[Any], value: object, sign: int) -> None:
        self._copies.change(held, value, sign)

    def _only(self, values: list[Any]) -> object:
        if len(values) > 1:
            return None if self._retracts else refuse_more_rows(len(values))
        return values[0] if values else None


def _whole_sum(count: int, total: int) -> int | None:
    return whole(total) if count else None


def _any_sum(count: int, total: object) -> object:
    return total if count else None


def _mean(count: int, total: float) -> object:
    return total / count if count else None


def _decimal_sum(kind: SqlType, count: int, total: Decimal) -> object:
    if not count:
        return None
    return DECIMALS.plus(total) if kind.precision is None else with_digits(total, kind)


def _decimal_mean(kind: SqlType, count: int, total: Decimal) -> object:
    if not count:
        return None
    if kind.precision is None or kind.scale is None:
        return DECIMALS.divide(total, count)
    return with_digits(decimals.quotient(total, count, kind.scale), kind)


def _count(count: int, total: int) -> int:
    return count


class _Counting(_Total):
    """The number of values that are not NULL."""

    def change(self, held: list[Any], value: object, sign: int) -> None:
        if value is not None:
            held[0] += sign


def _float_sum(values: list[Any]) -> float | None:
    return math.fsum(values) if values else None


def _float_mean(values: list[Any]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def ordered(value: object) -> Any:
    """Returns what orders a value as SQL does: NaN is the greatest number, and NULL the least part of an array."""
    if isinstance(value, (list, tuple)):
        return 0, _BY_PARTS(value)
    return (1, 0) if value != value else (0, value)


_BY_PARTS = cmp_to_key(order)


def _least(values: Iterable[Any]) -> object:
    return min(values, key=ordered)


def _greatest(values: Iterable[Any]) -> object:
    return max(values, key=ordered)


def _least_of(values: list[Any]) -> object:
    return _least(values) if values else None


def _greatest_of(values: list[Any]) -> object:
    return _greatest(values) if values else None


def _first(values: Iterable[Any]) -> object:
    return next(iter(values))


def _users_result(fn: CombineFn, values: list[Any]) -> object:
    """A user's CombineFn over the values that are there."""
    return fn.apply(values)


def _aggregate(call: AggregateCall, retracts: bool) -> Any:
    """Returns the accumulator for the values of one aggregate."""
    argument = BIGINT if call.argument is None else call.argument.type
    kind = argument.name
    if call.fn is not None:
        own = partial(_users_result, CombineFn.maybe_from_callable(call.fn))
        return _Bag(own, Copies(canonicalizer_of(argument)), call.distinct)
    if call.name == "single":
        return _Single(Copies(canonicalizer_of(argument)), retracts)
    if call.name == FORM:
        return _Extreme(_first)
    total, mean = _whole_sum if kind == "BIGINT" else _any_sum, _mean
    if kind == "DECIMAL":
        total, mean = partial(_decimal_sum, call.type), partial(_decimal_mean, call.type)
    bags: dict[str, Callable[[list[Any]], Any]] = {
        "count": len,
        "sum": _float_sum if kind == "DOUBLE" else partial(_list_total, total),
        "avg": _float_mean if kind == "DOUBLE" else partial(_list_total, mean),
        "min": _least_of,
        "max": _greatest_of,
        "array_agg": list,
    }
    if not call.distinct:
        match call.name:
            case "count":
                return _Counting(_count)
            case "sum" if kind != "DOUBLE":
                return _Total(total, kind == "DECIMAL")
            case "avg" if kind != "DOUBLE":
                return _Total(mean, kind == "DECIMAL")
            case "min" | "max" if not retracts:
                return _Extreme(_least if call.name == "min" else _greatest)
            case "sum" | "avg" if not retracts:
                return _Total(_any_sum if call.name == "sum" else _mean)
    copies = Copies(canonicalizer_of(argument)) if call.name == "array_agg" else copies_in_any_form(argument)
    return _Bag(bags[call.name], copies, call.distinct)


FORM = "form"
"""The aggregate that is one of the equal values of a key: what is shown of it."""


def expressions_of(calls: tuple[AggregateCall, ...]) -> FoldSource | None:
    """Returns aggregates of values that are never retracted as expressions; None if there is none, or one needs more.

    The value is a tuple with one for each aggregate, or the only one; the result is a tuple.

    >>> from penstock.functions.expression_combinefn import ExpressionCombineFn
    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> points = Column(0, "points", BIGINT)
    >>> calls = (AggregateCall("sum", points, BIGINT), AggregateCall("avg", points, BIGINT))
    >>> ExpressionCombineFn(expressions_of(calls)).apply([(3, 3), (None, None), (5, 5)])
    (8, 4.0)
    """
    kinds = [_cells_of(call) for call in calls]
    if not kinds or not all(kinds):
        return None
    single = sum(map(len, kinds)) == 1
    cells: list[tuple[str, ...]] = []
    results = []
    for at, (call, own) in enumerate(zip(calls, kinds, strict=True)):
        places = range(len(cells), len(cells) + len(own))
        value = "value" if len(calls) == 1 else f"value[{at}]"
        for kind, place in zip(own, places, strict=True):
            held, other = ("partial", "other") if single else (f"partial[{place}]", f"other[{place}]")
            templates = (_NULLABLE_CELLS if _may_be_null(call) else _CELLS)[kind]
            cells.append(tuple(text.format(value=value, held=held, other=other) for text in templates))
        result = _WHOLE_SUM if call.name == "sum" and call.type.name == "BIGINT" else _RESULTS[own]
        results.append(result.format(*("partial" if single else f"partial[{place}]" for place in places)))
    first, more, merge = (
        column[0] if single else f"({', '.join(column)})" for column in zip(*cells, strict=True)
    )
    return FoldSource(first, more, merge, f"({', '.join(results)},)", (whole,))


_CELLS = {
    **{
        fold.name: fold.source.renamed("{value}", "{held}", "{other}")[:3]
        for fold in (COUNT, SUM, MIN, MAX)
        if fold.source is not None
    },
    FORM: ("{value}", "{held}", "{held}"),
}
"""The parts held of a first value, of one more value, and of two parts, where no value is NULL."""

_NULLABLE_CELLS = {
    "count": ("0 if {value} is None else 1", "{held} if {value} is None else {held} + 1", "{held} + {other}"),
    **{
        kind: (
            f"None if {{value}} is None else {first}",
            f"{{held}} if {{value}} is None else {first} if {{held}} is None else ({more})",
            f"{{held}} if {{other}} is None else {{other}} if {{held}} is None else ({merge})",
        )
        for kind, (first, more, merge) in _CELLS.items()
        if kind != "count"
    },
}
"""Like `_CELLS`, where values may be NULL, which no aggregate counts: None is held until another value comes."""

_RESULTS = {
    ("count",): "{}",
    ("sum",): "{}",
    ("min",): "{}",
    ("max",): "{}",
    (FORM,): "{}",
    ("sum", "count"): "{0} / {1} if {1} else None",
}
"""The result of an aggregate by what it holds."""

_WHOLE_SUM = "None if {0} is None else whole({0})"


def _may_be_null(call: AggregateCall) -> bool:
    return call.condition is not None or (call.argument is not None and call.argument.type.nullable)


def _cells_of(call: AggregateCall) -> tuple[str, ...]:
    """Returns the cells that an aggregate holds; none if an expression cannot say it."""
    if call.distinct or call.fn is not None:
        return ()
    kind = "" if call.argument is None else call.argument.type.name
    match call.name:
        case "count" | "form":
            return (call.name,)
        # Decimals have a context of their own, which an operator in an expression does not take.
        case "sum" if kind != "DECIMAL":
            return ("sum",)
        case "avg" if kind != "DECIMAL":
            return ("sum", "count")
        # NaN, and NULL in arrays, have places in the order of SQL that Python's comparisons do not know.
        case "min" | "max" if kind not in ("DOUBLE", "ARRAY"):
            return (call.name,)
    return ()


def _list_total(result: Callable[[int, Any], Any], values: list[Any]) -> object:
    """The sum or the mean of values that stay one by one."""
    add: Callable[[Any, Any], Any] = (
        decimals.added if values and isinstance(values[0], Decimal) else operator.add
    )
    return result(len(values), reduce(add, values, 0))


class SqlAggregates(CombineFn):
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
        self._parts = tuple(_aggregate(call, retracts) for call in calls)
        if not retracts:
            # Nothing asks for it then, and groupings need not find out.
            self.takes_retractions = False

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
