"""Writes window functions as Spark's SQL.

Rows that are equal in ORDER BY are ordered by all columns here. Spark takes them in any order, so the text names all
columns where the order matters. It must not name them where rows are equal because of ORDER BY: in ranks, and in
frames of RANGE.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import INTERVAL, SqlType
from penstock.sql.aggregates.functions import write_for_spark
from penstock.sql.execution.row_order import has_order
from penstock.sql.plan.frames import Frame, Offset, is_negative
from penstock.sql.plan.relations import AggregateCall, Order, Over, OverCall

Write = Callable[[Scalar], str]
_BY_RANK = frozenset(["rank", "dense_rank", "percent_rank", "cume_dist"])
IN_ANY_ORDER = frozenset(["count", "sum", "avg", "min", "max"])
_SO_FAR = Frame("ROWS", None, 0)
_ALL = Frame("ROWS", None, None)


def write_over(
    relation: Over, rows: str, write: Write, argument_of: Callable[[AggregateCall], Scalar]
) -> str:
    """Returns the query that adds results of window functions to rows.

    Args:
        relation: The functions.
        rows: The query of the rows, whose columns are ``c0``, ``c1`` and up.
        write: Writes a value of a row.
        argument_of: Returns what an aggregate reads of a row.

    Raises:
        NotForSpark: Spark would not give exactly the same.
    """
    width = len(relation.input.columns)
    results = (
        f"{_call(relation, call, write, argument_of)} AS c{width + at}"
        for at, call in enumerate(relation.calls)
    )
    return f"SELECT *, {', '.join(results)} FROM ({rows})"


def _call(
    relation: Over, call: OverCall, write: Write, argument_of: Callable[[AggregateCall], Scalar]
) -> str:
    arguments = [*map(write, call.arguments)]
    nulls = " IGNORE NULLS" if call.ignores_nulls else ""

    def over(is_total: bool, frame: Frame | None) -> str:
        return _over(relation, write, is_total, frame)

    match call.name:
        case "ntile":
            return f"NTILE({call.count}) OVER {over(True, None)}"
        case "lag" | "lead":
            value, *default = arguments
            listed = ", ".join([value, str(call.count), *default])
            return f"{call.name.upper()}({listed}){nulls} OVER {over(True, None)}"
        case "row_number":
            return f"ROW_NUMBER() OVER {over(True, None)}"
        case name if name in _BY_RANK:
            return f"{name.upper()}() OVER {over(False, None)}"
    assert call.frame is not None
    if call.aggregate is None:
        at = f", {call.count}" if call.name == "nth_value" else ""
        frame = call.frame
        if frame.unit == "RANGE":
            frame = _by_rows(call, frame)
        return f"{call.name.upper()}({arguments[0]}{at}){nulls} OVER {over(True, frame)}"
    return _aggregate(call.aggregate, call.frame, write(argument_of(call.aggregate)), over)


def _by_rows(call: OverCall, frame: Frame) -> Frame:
    """Returns the frame of rows in which a value has the same place as in one of RANGE."""
    if frame.is_whole:
        return _ALL
    if call.name == "first_value" and frame == Frame("RANGE", None, 0) and not call.ignores_nulls:
        return _SO_FAR
    raise NotForSpark("Spark takes rows that are equal in ORDER BY in any order")


def _aggregate(
    call: AggregateCall, frame: Frame, argument: str, over: Callable[[bool, Frame | None], str]
) -> str:
    if call.fn is None and call.name not in IN_ANY_ORDER:
        raise NotForSpark(f"Spark takes the rows of {call.name.upper()} OVER in any order")
    window = over(frame.unit == "ROWS" and not frame.is_whole, frame)
    return write_for_spark(call, [argument], f" OVER {window}")


def _over(relation: Over, write: Write, is_total: bool, frame: Frame | None) -> str:
    parts = []
    if relation.keys:
        parts.append(f"PARTITION BY {', '.join(map(write, relation.keys))}")
    orders = [write_order(each, write) for each in relation.orders]
    if is_total:
        columns = relation.input.columns
        if any(not has_order(each.type) for each in columns):
            raise NotForSpark("Spark does not order rows by columns of all types")
        orders += [f"c{at} ASC NULLS FIRST" for at in range(len(columns))]
    if orders:
        parts.append(f"ORDER BY {', '.join(orders)}")
    if frame is not None:
        kind = relation.orders[0].scalar.type if relation.orders else None
        parts.append(
            f"{frame.unit} BETWEEN {_bound(frame.start, 'PRECEDING', kind)} "
            f"AND {_bound(frame.end, 'FOLLOWING', kind)}"
        )
    return f"({' '.join(parts)})"


def write_order(order: Order, write: Write) -> str:
    """Returns a part of ORDER BY."""
    direction = "DESC" if order.descending else "ASC"
    return f"{write(order.scalar)} {direction} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def _bound(offset: Offset | None, side: str, kind: SqlType | None) -> str:
    if offset is None:
        return f"UNBOUNDED {side}"
    if not offset:
        return "CURRENT ROW"
    before = is_negative(offset)
    length = -offset if before else offset
    text = _length(length, kind)
    return f"{text} {'PRECEDING' if before else 'FOLLOWING'}"


def _length(length: Offset, kind: SqlType | None) -> str:
    if isinstance(length, timedelta):
        if kind is not None and kind.name == "DATE":
            return f"INTERVAL '{length.days}' DAY"
        return str(Literal(length, INTERVAL.or_null(False)))
    return repr(length) if isinstance(length, float) else str(length)
