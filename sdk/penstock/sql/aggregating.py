"""The aggregates of SQL as one CombineFn for all aggregates of a grouping, from which values can be taken back."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, localcontext
from functools import partial
from typing import Any, NoReturn

from penstock.error import three_parts
from penstock.functions.combinefn import CombineFn
from penstock.functions.expression_combinefn import CombineExpressions
from penstock.sql.casting import DECIMALS, whole
from penstock.sql.relations import AggregateCall

_NAN = math.nan


class _Total:
    """The number of values that are not NULL, and their exact sum.

    Args:
        result: What becomes of the number and the sum.
        context: How decimals are added; None for other numbers.
    """

    def __init__(self, result: Callable[[int, Any], Any], context: Context | None = None) -> None:
        self._result = result
        self._add = operator.add if context is None else context.add
        self._subtract = operator.sub if context is None else context.subtract

    def empty(self) -> list[Any]:
        return [0, 0]

    def change(self, held: list[Any], value: Any, sign: int) -> None:
        if value is not None:
            held[0] += sign
            held[1] = (self._add if sign > 0 else self._subtract)(held[1], value)

    def merge(self, held: list[Any], other: list[Any]) -> None:
        held[0] += other[0]
        held[1] = self._add(held[1], other[1])

    def result(self, held: list[Any]) -> Any:
        return self._result(*held)


class _Bag:
    """The values themselves, with the number of their copies: what cannot be taken out of a sum stays one by one."""

    def __init__(self, result: Callable[[Counter[Any]], Any]) -> None:
        self._result = result

    def empty(self) -> Counter[Any]:
        return Counter()

    def change(self, held: Counter[Any], value: Any, sign: int) -> None:
        if value is not None:
            # One NaN is not equal to another, and they are one value in SQL.
            value = value if value == value else _NAN
            held[value] += sign
            if not held[value]:
                del held[value]

    def merge(self, held: Counter[Any], other: Counter[Any]) -> None:
        for value, count in other.items():
            held[value] += count
            if not held[value]:
                del held[value]

    def result(self, held: Counter[Any]) -> Any:
        return self._result(+held)


class _Extreme:
    """The least or the greatest value so far; nothing can be taken out."""

    def __init__(self, chosen: Callable[[Iterable[Any]], Any]) -> None:
        self._chosen = chosen

    def empty(self) -> list[Any]:
        return [None]

    def change(self, held: list[Any], value: Any, sign: int) -> None:
        if value is not None:
            held[0] = value if held[0] is None else self._chosen((held[0], value))

    def merge(self, held: list[Any], other: list[Any]) -> None:
        self.change(held, other[0], 1)

    def result(self, held: list[Any]) -> Any:
        return held[0]


def too_many_rows(count: int) -> NoReturn:
    """Refuses a subquery in an expression that has more than one row."""
    what = f"a subquery in an expression gives {count} rows, not one"
    raise ValueError(three_parts(what, hint="aggregate it, for example with MAX, or write LIMIT 1"))


class _Nulls:
    """Every value, NULL too: the one value of a subquery.

    Args:
        retracts: Whether values may be taken back. A new row may come before the old one goes, so that two rows are no
            error as long as an instant lasts: `OneRow` finds those that stay.
    """

    def __init__(self, retracts: bool) -> None:
        self._retracts = retracts

    def empty(self) -> Counter[Any]:
        return Counter()

    def change(self, held: Counter[Any], value: Any, sign: int) -> None:
        held[value] += sign
        if not held[value]:
            del held[value]

    def merge(self, held: Counter[Any], other: Counter[Any]) -> None:
        held.update(other)

    def result(self, held: Counter[Any]) -> Any:
        values = list((+held).elements())
        if len(values) > 1:
            return None if self._retracts else too_many_rows(len(values))
        return values[0] if values else None


def _whole_sum(count: int, total: int) -> int | None:
    return whole(total) if count else None


def _any_sum(count: int, total: Any) -> Any:
    return total if count else None


def _mean(count: int, total: Any) -> Any:
    return total / count if count else None


def _decimal_mean(count: int, total: Any) -> Any:
    return DECIMALS.divide(total, count) if count else None


def _count(count: int, total: Any) -> int:
    return count


class _Counting(_Total):
    """The number of values that are not NULL."""

    def change(self, held: list[Any], value: Any, sign: int) -> None:
        if value is not None:
            held[0] += sign


def _float_sum(bag: Counter[Any]) -> float | None:
    return math.fsum(bag.elements()) if bag else None


def _float_mean(bag: Counter[Any]) -> float | None:
    return math.fsum(bag.elements()) / bag.total() if bag else None


def ordered(value: Any) -> Any:
    """What orders values of one type as SQL does: NaN is the greatest number."""
    return (1, 0) if value != value else (0, value)


def _least(values: Iterable[Any]) -> Any:
    return min(values, key=ordered)


def _greatest(values: Iterable[Any]) -> Any:
    return max(values, key=ordered)


def _least_of(bag: Counter[Any]) -> Any:
    return _least(bag) if bag else None


def _greatest_of(bag: Counter[Any]) -> Any:
    return _greatest(bag) if bag else None


def _list_of(bag: Counter[Any]) -> list[Any]:
    return list(bag.elements())


def _users_result(fn: CombineFn, bag: Counter[Any]) -> Any:
    """A user's CombineFn over the values that are there."""
    return fn.apply(bag.elements())


def _distinct(result: Callable[[Counter[Any]], Any], bag: Counter[Any]) -> Any:
    """An aggregate over the values without their copies."""
    return result(Counter(dict.fromkeys(bag, 1)))


def _aggregate(call: AggregateCall, retracts: bool) -> Any:
    """How the values of one aggregate are held."""
    kind = "" if call.argument is None else call.argument.type.name
    context = DECIMALS if kind == "DECIMAL" else None
    if call.fn is not None:
        own = partial(_users_result, CombineFn.maybe_from_callable(call.fn))
        return _Bag(partial(_distinct, own) if call.distinct else own)
    if call.name == "single":
        return _Nulls(retracts)
    bags: dict[str, Callable[[Counter[Any]], Any]] = {
        "count": Counter.total,
        "sum": _float_sum if kind == "DOUBLE" else _bag_sum,
        "avg": _float_mean if kind == "DOUBLE" else _bag_mean,
        "min": _least_of,
        "max": _greatest_of,
        "array_agg": _list_of,
    }
    if call.distinct:
        return _Bag(partial(_distinct, bags[call.name]))
    match call.name:
        case "count":
            return _Counting(_count)
        case "sum" if kind != "DOUBLE":
            return _Total(_whole_sum if kind == "BIGINT" else _any_sum, context)
        case "avg" if kind != "DOUBLE":
            return _Total(_mean if context is None else _decimal_mean, context)
        case "min" | "max" if not retracts:
            return _Extreme(_least if call.name == "min" else _greatest)
        case "sum" | "avg" if not retracts:
            return _Total(_any_sum if call.name == "sum" else _mean)
    return _Bag(bags[call.name])


def expressions_of(calls: tuple[AggregateCall, ...]) -> CombineExpressions | None:
    """The aggregates of values that are never taken back, as expressions; None if there is none, or one needs more.

    The value is a tuple with one for each aggregate, or the only one; the result is a tuple.

    >>> from penstock.functions.expression_combinefn import ExpressionCombineFn
    >>> from penstock.sql.scalars import Column
    >>> from penstock.sql.types import BIGINT
    >>> points = Column(0, "points", BIGINT)
    >>> calls = (AggregateCall("sum", points, BIGINT), AggregateCall("avg", points, BIGINT))
    >>> ExpressionCombineFn(expressions_of(calls)).apply([(3, 3), (None, None), (5, 5)])
    (8, 4.0)
    """
    kinds = [_cells_of(call) for call in calls]
    if not kinds or not all(kinds):
        return None
    single = sum(map(len, kinds)) == 1
    texts: list[tuple[str, ...]] = []
    results = []
    for at, (call, own) in enumerate(zip(calls, kinds, strict=True)):
        places = range(len(texts), len(texts) + len(own))
        value = "value" if len(calls) == 1 else f"value[{at}]"
        for kind, place in zip(own, places, strict=True):
            held, other = ("held", "other") if single else (f"held[{place}]", f"other[{place}]")
            templates = (_NULLABLE_CELLS if _may_be_null(call) else _CELLS)[kind]
            texts.append(tuple(text.format(value=value, held=held, other=other) for text in templates))
        result = _WHOLE_SUM if call.name == "sum" and call.type.name == "BIGINT" else _RESULTS[own]
        results.append(result.format(*("held" if single else f"held[{place}]" for place in places)))
    first, more, merge = (
        column[0] if single else f"({', '.join(column)})" for column in zip(*texts, strict=True)
    )
    return CombineExpressions(first, more, merge, f"({', '.join(results)},)", (whole,))


_CELLS = {
    "count": ("1", "{held} + 1", "{held} + {other}"),
    "sum": ("0 + {value}", "{held} + {value}", "{held} + {other}"),
    "min": ("{value}", "{value} if {value} < {held} else {held}", "{other} if {other} < {held} else {held}"),
    "max": ("{value}", "{value} if {value} > {held} else {held}", "{other} if {other} > {held} else {held}"),
}
"""What is held of a first value, of one more value, and of two parts, where no value is NULL."""

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
"""The same where values may be NULL, which no aggregate counts: None is held until another value comes."""

_RESULTS = {
    ("count",): "{}",
    ("sum",): "{}",
    ("min",): "{}",
    ("max",): "{}",
    ("sum", "count"): "{0} / {1} if {1} else None",
}
"""The result of an aggregate by what it holds."""

_WHOLE_SUM = "None if {0} is None else whole({0})"


def _may_be_null(call: AggregateCall) -> bool:
    return call.condition is not None or (call.argument is not None and call.argument.type.nullable)


def _cells_of(call: AggregateCall) -> tuple[str, ...]:
    """What an aggregate holds; nothing if an expression cannot say it."""
    if call.distinct or call.fn is not None:
        return ()
    kind = "" if call.argument is None else call.argument.type.name
    match call.name:
        case "count":
            return ("count",)
        # Decimals have a context of their own, which an operator in an expression does not take.
        case "sum" if kind != "DECIMAL":
            return ("sum",)
        case "avg" if kind != "DECIMAL":
            return ("sum", "count")
        # NaN has a place in the order of SQL that Python's comparisons do not know.
        case "min" | "max" if kind != "DOUBLE":
            return (call.name,)
    return ()


def _bag_sum(bag: Counter[Any]) -> Any:
    with localcontext(DECIMALS):
        return sum(bag.elements()) if bag else None


def _bag_mean(bag: Counter[Any]) -> Any:
    with localcontext(DECIMALS):
        return sum(bag.elements()) / bag.total() if bag else None


class SqlAggregates(CombineFn):
    """All aggregates of a grouping over tuples with a value for each.

    The result is the number of rows, then the result of each aggregate. An input None is not a row: it only makes sure
    that there is a result.

    Args:
        calls: The aggregates.
        retracts: Whether values may be taken back.

    >>> from penstock.sql.scalars import Column
    >>> from penstock.sql.types import BIGINT
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

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        return self._changed(accumulator, element, 1)

    def subtract_input(self, accumulator: list[Any], element: Any) -> list[Any]:
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


class SideCounts(CombineFn):
    """How often a row is on the left and on the right: the sum of pairs."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add_input(self, accumulator: tuple[int, int], element: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + element[0], accumulator[1] + element[1]

    def subtract_input(self, accumulator: tuple[int, int], element: tuple[int, int]) -> tuple[int, int]:
        """Takes a row of one side out."""
        return accumulator[0] - element[0], accumulator[1] - element[1]

    def merge_accumulators(self, accumulators: Iterable[tuple[int, int]]) -> tuple[int, int]:
        lefts, rights = zip(*accumulators, strict=True)
        return sum(lefts), sum(rights)

    def extract_output(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


class TopRows(CombineFn):
    """The first rows in an order, from a place on.

    Args:
        order: From a row to what rows are compared by.
        limit: How many rows there are at most; None for all.
        offset: How many rows are left out before.
        retracts: Whether rows may be taken back, so that all must be held.
    """

    def __init__(self, order: Callable[[Any], Any], limit: int | None, offset: int, retracts: bool) -> None:
        self._order = order
        self._limit = limit
        self._offset = offset
        self._holds_all = retracts or limit is None
        self.takes_retractions = retracts

    def create_accumulator(self) -> Counter[Any]:
        return Counter()

    def add_input(self, accumulator: Counter[Any], element: Any) -> Counter[Any]:
        accumulator[element] += 1
        return self._shortened(accumulator)

    def subtract_input(self, accumulator: Counter[Any], element: Any) -> Counter[Any]:
        """Takes one row out."""
        accumulator[element] -= 1
        if not accumulator[element]:
            del accumulator[element]
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Counter[Any]]) -> Counter[Any]:
        merged: Counter[Any] = Counter()
        for each in accumulators:
            merged.update(each)
        return self._shortened(merged)

    def extract_output(self, accumulator: Counter[Any]) -> list[Any]:
        rows = sorted((+accumulator).elements(), key=self._order)
        return rows[self._offset : None if self._limit is None else self._offset + self._limit]

    def _shortened(self, held: Counter[Any]) -> Counter[Any]:
        """Without what can never be among the first rows, once there is twice too much."""
        if not self._holds_all:
            most = self._offset + (self._limit or 0)
            if len(held) > 2 * most + 16:
                return Counter(sorted(held.elements(), key=self._order)[:most])
        return held
