"""Writes aggregates in Spark's SQL, where Spark computes exactly what Python computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.scalars import functions
from penstock.scalars.column_forms import AggregateText, GroupedColumns, NotColumns, TypedText
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, NULL
from penstock.sql.aggregates.extremes import SINGLE
from penstock.sql.aggregates.functions import write_for_spark
from penstock.sql.plan.relations import AggregateCall

_ONE = Literal(1, BIGINT.or_null(False))


class _Names(Sequence[str]):
    """``c0``, ``c1`` and up."""

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return f"c{index}"

    def __len__(self) -> int:
        return 1 << 30


def write_over_columns(scalar: Scalar, names: Sequence[str] = _Names()) -> str:
    """Returns an expression over columns with the names ``c0``, ``c1`` and up, or with other names.

    Raises:
        NotForSpark: Spark does not compute exactly the same values.
    """
    return write_scalar(scalar, names)


def write_aggregate(call: AggregateCall, single: bool) -> str:
    """Returns an aggregate over columns with the names ``c0``, ``c1`` and up.

    Args:
        call: The aggregate.
        single: Whether there is one row at most.

    Raises:
        NotForSpark: Spark does not compute exactly the same value.
    """
    if call.name == SINGLE and not single:
        raise NotForSpark("a subquery might return several rows, which is an error")
    arguments = [write_over_columns(_if_counted(call, each)) for each in call.values or (_ONE,)]
    return write_for_spark(call, arguments)


def _if_counted(call: AggregateCall, value: Scalar) -> Scalar:
    """Returns a value of a row, or NULL, which no aggregate counts, where the condition does not hold."""
    if call.condition is None:
        return value
    return functions.call("CASE", [call.condition, value, Literal(None, NULL)])


def write_grouping(
    keys: Sequence[Scalar], calls: Sequence[AggregateCall], start: int | None, end: int | None
) -> GroupedColumns | NotColumns:
    """Returns a grouping of a stream in columns, or why Spark does not compute exactly the same.

    Args:
        keys: The keys besides the window.
        calls: The aggregates.
        start: The place of the window's start among all keys; None if it is not there.
        end: The place of the window's end.
    """
    try:
        key_texts = _typed(keys, write_over_columns)
        for call in calls:
            if call.distinct:
                raise NotForSpark("Spark has no DISTINCT of aggregates in a stream")
        aggregates = tuple(
            AggregateText(write_aggregate(call, single=False), call.type, _held(call)) for call in calls
        )
    except NotForSpark as reason:
        return NotColumns(reason.reason)
    return GroupedColumns(key_texts, aggregates, start, end)


def _held(call: AggregateCall) -> str:
    kinds = ", ".join(str(each.type.or_null()) for each in call.values)
    return f"{call.name} of {kinds}" if kinds else call.name


def _typed(scalars: Sequence[Scalar], write: Callable[[Scalar], str]) -> tuple[TypedText, ...]:
    return tuple(TypedText(write(each), each.type) for each in scalars)
