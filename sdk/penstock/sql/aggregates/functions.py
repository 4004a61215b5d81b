"""All aggregates, by the names that a query may use: the records of `sums`, `extremes` and their like.

To add an aggregate, write its record (`penstock.sql.aggregates.function.AggregateFunction`) in the module of its
subject, and a line with a call and its value in ``tests/sdk/sql/aggregate_cases.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.scalars.spark_forms import NotForSpark
from penstock.sql.aggregates import extremes, lists, moments, percentiles, sums
from penstock.sql.aggregates.function import AggregateFunction
from penstock.sql.plan.relations import AggregateCall

RECORDS: Mapping[str, AggregateFunction] = {
    function.name: function
    for each in (sums, extremes, moments, percentiles, lists)
    for function in each.FUNCTIONS
}
"""The record of each aggregate, by its name."""

AGGREGATES: Mapping[str, AggregateFunction] = {
    name: function
    for function in RECORDS.values()
    if function.bind is not None
    for name in (function.name, *function.spellings)
}
"""The records by all names that a query may use."""

_ANY_ORDER = "MIN_BY(x, time) is the first x and MAX_BY(x, time) the last, and ANY_VALUE(x) is any"
_SKETCH = "a sketch cannot retract values: {}"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE"), _ANY_ORDER),
    **dict.fromkeys(("GROUP_CONCAT", "WM_CONCAT"), "write LISTAGG(x, ',')"),
    "HISTOGRAM_NUMERIC": "group by FLOOR(x / width), and count",
    "COUNT_MIN_SKETCH": _SKETCH.format("GROUP BY x, and count"),
    **dict.fromkeys(
        ("HLL_SKETCH_AGG", "HLL_UNION_AGG", "THETA_SKETCH_AGG", "BITMAP_CONSTRUCT_AGG", "BITMAP_OR_AGG"),
        _SKETCH.format("write COUNT(DISTINCT x)"),
    ),
    **dict.fromkeys(
        ("APPROX_TOP_K", "APPROX_TOP_K_ACCUMULATE"), "count by x, and write ORDER BY n DESC LIMIT 10"
    ),
}
"""Aggregates of Spark that queries do not support, and what to write instead."""


def write_for_spark(call: AggregateCall, arguments: Sequence[str], over: str = "") -> str:
    """Returns a call in Spark's SQL.

    Args:
        call: The call.
        arguments: Its arguments in Spark's SQL.
        over: The window, such as `` OVER (ORDER BY c0)``; empty for an aggregate of a group.

    Raises:
        NotForSpark: Spark would not compute exactly the same.
    """
    if call.fn is not None:
        raise NotForSpark(f"{call.name} is a CombineFn of the user")
    if call.type.name == "DECIMAL" and call.type.precision is None:
        raise NotForSpark("Spark computes decimals with other numbers of digits")
    record = record_of(call)
    if record.not_in_spark:
        raise NotForSpark(f"{record.name}: {record.not_in_spark}")
    if call.orders:
        raise NotForSpark(f"Spark's {record.name} does not take an order")
    distinct = "DISTINCT " if call.distinct else ""
    if record.spark is None:
        return f"{record.name}({distinct}{', '.join(arguments)}){over}"
    return record.spark(call, arguments, distinct, over)


def record_of(call: AggregateCall) -> AggregateFunction:
    """Returns the record of a call that is not of the user's own aggregate."""
    return RECORDS[call.name.upper()]
