"""Arrays and strings of all values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.scalars import resolving
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.tree import Scalar
from penstock.scalars.types import STRING, SqlType
from penstock.sql.aggregates.cells import Bag, DistinctValues, in_order, in_orders
from penstock.sql.aggregates.function import AggregateFunction, Asked, Cell, Holding
from penstock.sql.plan.relations import AggregateCall, Order


def _bind_list(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    [value] = asked.arguments
    orders = _checked_orders(function, asked, value)
    if asked.keeps_nulls:
        # A row with NULL has its place in an order, so that it is not left out.
        orders = orders or (Order(value, False, True),)
        return function.of(asked, (value,), SqlType("ARRAY", False, value.type), orders, ("NULL",))
    return function.of(asked, (value,), SqlType("ARRAY", False, value.type.or_null(False)), orders)


def _bind_set(function: AggregateFunction, asked: Asked) -> AggregateCall:
    return ARRAY_AGG(replace(asked, distinct=True))


def _checked_orders(function: AggregateFunction, asked: Asked, value: Scalar) -> tuple[Order, ...]:
    """Returns the orders of values; of distinct values, none but their own can be one."""
    if asked.distinct and any(each.scalar != value for each in asked.orders):
        what = f"the order of distinct values of {function.name} is not one of the values themselves"
        raise SqlTypeError(what, f"write ORDER BY {value}")
    return asked.orders


def _bind_text(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1, 2)
    value, is_text = asked.arguments[0], asked.arguments[0].type.name in ("BINARY", "ANY")
    text = value if is_text else resolving.cast(value, STRING.or_null(value.type.nullable))
    between: str | bytes = b"" if value.type.name == "BINARY" else ""
    if len(asked.arguments) > 1:
        given = function.constant(asked.arguments[1], "the separator")
        between = between if given is None else given
        if not isinstance(between, bytes if value.type.name == "BINARY" else str):
            raise SqlTypeError(
                f"{asked.arguments[1]} does not fit between values of {value.type}", "write ','"
            )
    return function.of(asked, (text,), text.type, _checked_orders(function, asked, value), (between,))


def _array(rows: list[Any]) -> list[Any]:
    return rows


def _text(between: str | bytes, rows: list[Any]) -> object:
    return between.join(rows) if rows else None


class _Ordered(Bag):
    """A result of all values in order: in their own, unless the query names another.

    Args:
        call: The call.
        holding: How values come.
        result: What becomes of the values.
    """

    def __init__(self, call: AggregateCall, holding: Holding, result: Callable[[list[Any]], Any]) -> None:
        super().__init__(self._sorted, holding.copies(shown=True))
        self._orders = call.orders
        self._of = result

    def _sorted(self, rows: list[Any]) -> object:
        if not self._orders:
            return self._of(in_order(rows))
        return self._of([row[0] for row in in_orders(rows, self._orders, 1)])


def _hold_array(call: AggregateCall, holding: Holding) -> Cell:
    return _maybe_distinct(call, holding, _Ordered(call, holding, _array))


def _hold_text(call: AggregateCall, holding: Holding) -> Cell:
    return _maybe_distinct(call, holding, _Ordered(call, holding, partial(_text, *call.parameters)))


def _maybe_distinct(call: AggregateCall, holding: Holding, cell: Cell) -> Cell:
    return DistinctValues(cell, holding.copies(shown=True)) if call.distinct else cell


def _needed_of_array(call: AggregateCall) -> tuple[Scalar, ...]:
    return () if call.parameters else _needed(call)


def _needed(call: AggregateCall) -> tuple[Scalar, ...]:
    return () if call.argument is None else (call.argument,)


def _write_array(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    return f"SORT_ARRAY(COLLECT_LIST({distinct}{arguments[0]}){over})"


_IN_ORDER = "without ORDER BY, values come in ascending order; in Spark, they come in any"

ARRAY_AGG = AggregateFunction(
    name="ARRAY_AGG",
    spellings=("COLLECT_LIST",),
    bind=_bind_list,
    hold=_hold_array,
    needs=_needed_of_array,
    takes_order=True,
    takes_nulls=True,
    result_of_nothing=[],
    spark=_write_array,
    from_spark=_IN_ORDER,
)

FUNCTIONS = (
    ARRAY_AGG,
    AggregateFunction(
        name="COLLECT_SET",
        bind=_bind_set,
        hold=_hold_array,
        takes_order=True,
        takes_nulls=True,
        from_spark=_IN_ORDER,
    ),
    AggregateFunction(
        name="LISTAGG",
        spellings=("STRING_AGG",),
        bind=_bind_text,
        hold=_hold_text,
        needs=_needed,
        takes_order=True,
        not_in_spark=_IN_ORDER,
        from_spark=_IN_ORDER,
    ),
)
"""The records."""
