"""All aggregates, by the names that a query may use: the records of `sums`, `extremes` and their like.

To add an aggregate, write its record (`penstock.sql.aggregates.function.AggregateFunction`) in the module of its
subject, and a line with a call and its value in ``tests/sdk/sql/aggregate_cases.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping

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
_SKETCH = "nothing can be taken out of a sketch: {}"

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
"""Aggregates of Spark that queries have not, and what to write instead."""


def record_of(call: AggregateCall) -> AggregateFunction:
    """Returns the record of a call that is not of the user's own aggregate."""
    return RECORDS[call.name.upper()]
