"""Percentiles, the median, the most frequent value, and numbers of distinct values: of bags of all values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from penstock.scalars.casting import refuse
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.types import BIGINT, DOUBLE, SqlType
from penstock.sql.aggregates.cells import Bag, Count, DistinctValues, in_order, ordered
from penstock.sql.aggregates.function import AggregateFunction, Asked, Cell, Holding
from penstock.sql.plan.relations import AggregateCall

_MICROSECOND = datetime.timedelta(microseconds=1)
_Shares = tuple[float, ...] | float


def _shares(function: AggregateFunction, asked: Asked, at: int) -> tuple[_Shares, bool]:
    """Returns the percentages that an argument names, as parts of 1, and whether they are an array."""
    given = function.constant(asked.arguments[at], "the percentage")
    several = isinstance(given, (list, tuple))
    found = given if several else (given,)
    if not all(each is not None and not isinstance(each, (str, bool)) and 0 <= each <= 1 for each in found):
        what = f"a percentage of {function.name} is a number from 0 to 1"
        raise SqlTypeError(what, "write 0.5 for the median")
    shares = tuple(map(float, found))
    return (shares if several else shares[0]), several


def _of_shares(shares: _Shares, one: Callable[[float], object]) -> object:
    """Returns the result of one percentage, or an array with those of several."""
    return list(map(one, shares)) if isinstance(shares, tuple) else one(shares)


# Between values


def _bind_percentile(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 2, 3)
    value = function.addable(asked.arguments[0])
    shares, several = _shares(function, asked, 1)
    values = (value, *map(function.whole, asked.arguments[2:]))
    kind = value.type if value.type.name == "INTERVAL" else DOUBLE
    return PERCENTILE.of(asked, values, _maybe_array(kind, several), parameters=(shares, False))


def _bind_median(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    value = function.addable(asked.arguments[0])
    kind = value.type if value.type.name == "INTERVAL" else DOUBLE
    return PERCENTILE.of(asked, (value,), kind, parameters=(0.5, False))


def _bind_within(function: AggregateFunction, asked: Asked) -> AggregateCall:
    """Binds PERCENTILE_CONT and PERCENTILE_DISC, whose values stand in the order."""
    function.check_count(asked, 1)
    if len(asked.orders) != 1:
        hint = f"write {function.name}(0.5) WITHIN GROUP (ORDER BY points)"
        raise SqlTypeError(f"{function.name} takes the values that it orders", hint)
    [order] = asked.orders
    value = function.addable(order.scalar)
    shares, several = _shares(function, asked, 0)
    kind = value.type if value.type.name == "INTERVAL" else DOUBLE
    made = PERCENTILE if function.name == "PERCENTILE_CONT" else function
    result = _maybe_array(kind, several)
    return made.of(replace(asked, orders=()), (value,), result, parameters=(shares, order.descending))


def _maybe_array(kind: SqlType, several: bool) -> SqlType:
    return SqlType("ARRAY", True, kind.or_null(False)) if several else kind


def _percentile(shares: _Shares, descending: bool, weighted: bool, rows: list[Any]) -> object:
    """Returns the values at percentages of the way from the first to the last, between two values if need be."""
    values = _repeated(rows) if weighted else in_order(rows)
    if not values:
        return None
    if descending:
        values.reverse()

    def at(share: float) -> object:
        position = share * (len(values) - 1)
        low, high = math.floor(position), math.ceil(position)
        first, second = _number(values[low]), _number(values[high])
        # As Spark computes it, to the last digit.
        found = first if first == second else first + (position - low) * (second - first)
        return int(found) * _MICROSECOND if isinstance(values[0], datetime.timedelta) else float(found)

    return _of_shares(shares, at)


def _number(value: datetime.timedelta | float) -> float:
    return value // _MICROSECOND if isinstance(value, datetime.timedelta) else float(value)


def _repeated(rows: list[Any]) -> list[Any]:
    """Returns values in order, each as often as the number beside it says."""
    if any(count < 0 for _, count in rows):
        refuse("a frequency of PERCENTILE is negative", "filter such rows out")
    return [value for value, count in sorted(rows, key=_by_first) for _ in range(count)]


def _by_first(row: Sequence[Any]) -> tuple[int, Any]:
    return ordered(row[0])


def _hold_percentile(call: AggregateCall, holding: Holding) -> Cell:
    shares, descending = call.parameters
    return _held(call, holding, partial(_percentile, shares, descending, bool(call.others)))


def _held(call: AggregateCall, holding: Holding, result: Callable[[list[Any]], Any]) -> Cell:
    copies = holding.copies(shown=False)
    bag = Bag(result, copies)
    return DistinctValues(bag, copies) if call.distinct else bag


# Of the values


def _discrete(shares: _Shares, descending: bool, as_double: bool, values: list[Any]) -> object:
    """Returns the first values with which a part of all values has come."""
    values = in_order(values)
    if not values:
        return None
    if descending:
        values.reverse()

    def at(share: float) -> object:
        found = values[max(0, math.ceil(share * len(values)) - 1)]
        return float(found) if as_double else found

    return _of_shares(shares, at)


def _hold_discrete(call: AggregateCall, holding: Holding) -> Cell:
    shares, descending = call.parameters
    is_double = (call.type.element or call.type).name == "DOUBLE"
    return _held(call, holding, partial(_discrete, shares, descending, is_double))


def _bind_approximate(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 2, 3)
    value = asked.arguments[0]
    if value.type.name not in (
        "BIGINT",
        "DECIMAL",
        "DOUBLE",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "INTERVAL",
        "ANY",
    ):
        what = f"{function.name} takes numbers and times, and {value} is {value.type}"
        raise SqlTypeError(what, "CAST it to a number")
    shares, several = _shares(function, asked, 1)
    if len(asked.arguments) > 2:
        accuracy = function.constant(function.whole(asked.arguments[2]), "the accuracy")
        if accuracy is None or accuracy <= 0:
            raise SqlTypeError(
                f"the accuracy of {function.name} is above 0", "leave it out: the result is exact"
            )
    return function.of(asked, (value,), _maybe_array(value.type, several), parameters=(shares, False))


# The most frequent value


def _bind_mode(function: AggregateFunction, asked: Asked) -> AggregateCall:
    descending = False
    if asked.distinct:
        raise SqlTypeError("MODE(DISTINCT …) has no meaning: each value comes once", "leave out DISTINCT")
    if asked.orders:
        function.check_count(asked, 0)
        if len(asked.orders) != 1:
            raise SqlTypeError("MODE orders by one value", "write MODE() WITHIN GROUP (ORDER BY points)")
        value, descending = asked.orders[0].scalar, asked.orders[0].descending
    else:
        function.check_count(asked, 1, 2)
        function.flag(asked, 1)
        value = asked.arguments[0]
    return function.of(replace(asked, orders=()), (value,), value.type, parameters=(descending,))


def _mode(descending: bool, values: list[Any]) -> object:
    """Returns the most frequent value; of several, the smallest, or the largest."""
    found, most = None, 0
    for _, group in groupby(in_order(values), ordered):
        first, *others = group
        count = 1 + len(others)
        if count > most or (descending and count == most):
            found, most = first, count
    return found


def _hold_mode(call: AggregateCall, holding: Holding) -> Cell:
    return _held(call, holding, partial(_mode, *call.parameters))


# Numbers of distinct values


def _bind_distinct(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1, 2)
    return function.of(asked, asked.arguments[:1], BIGINT)


def _hold_distinct(call: AggregateCall, holding: Holding) -> Cell:
    return DistinctValues(Count(), holding.copies(shown=False))


def _write_shares(shares: _Shares) -> str:
    if isinstance(shares, tuple):
        return f"ARRAY({', '.join(map(_write_shares, shares))})"
    return f"{shares!r}D"


def _write_percentile(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    value, *counts = arguments
    if call.parameters[1]:
        shares = _write_shares(call.parameters[0])
        return f"PERCENTILE_CONT({distinct}{shares}) WITHIN GROUP (ORDER BY {value} DESC){over}"
    return f"PERCENTILE({distinct}{', '.join([value, _write_shares(call.parameters[0]), *counts])}){over}"


def _write_discrete(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    shares, descending = call.parameters
    order = f"ORDER BY {arguments[0]}{' DESC' if descending else ''}"
    return f"PERCENTILE_DISC({distinct}{_write_shares(shares)}) WITHIN GROUP ({order}){over}"


PERCENTILE = AggregateFunction(
    name="PERCENTILE", bind=_bind_percentile, hold=_hold_percentile, spark=_write_percentile
)
_EXACT = "the result is exact; Spark's is approximate if there are more values than its accuracy allows"

FUNCTIONS = (
    PERCENTILE,
    AggregateFunction(name="MEDIAN", bind=_bind_median, hold=_hold_percentile),
    AggregateFunction(name="PERCENTILE_CONT", bind=_bind_within, hold=_hold_percentile, takes_order=True),
    AggregateFunction(
        name="PERCENTILE_DISC",
        bind=_bind_within,
        hold=_hold_discrete,
        takes_order=True,
        spark=_write_discrete,
    ),
    AggregateFunction(
        name="APPROX_PERCENTILE",
        spellings=("PERCENTILE_APPROX",),
        bind=_bind_approximate,
        hold=_hold_discrete,
        not_in_spark=_EXACT,
        from_spark=_EXACT,
    ),
    AggregateFunction(
        name="MODE",
        bind=_bind_mode,
        hold=_hold_mode,
        takes_order=True,
        not_in_spark="of several values, Spark takes any",
        from_spark="of several values that are equally frequent, it takes the smallest; Spark takes any",
    ),
    AggregateFunction(
        name="APPROX_COUNT_DISTINCT",
        bind=_bind_distinct,
        hold=_hold_distinct,
        repeats=False,
        result_of_nothing=0,
        not_in_spark=_EXACT,
        from_spark=_EXACT,
    ),
)
"""The records."""
