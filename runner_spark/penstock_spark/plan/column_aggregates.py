"""The aggregates that Spark computes of columns exactly as Python would, by the names of their folds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnAggregate:
    # The kinds of columns that it accepts (see `penstock_spark.plan.column_kinds`); None for all.
    kinds: frozenset[str] | None
    otherwise: str  # Why Python aggregates the others: a format of the result's name and the column's kind.
    result_kind: str | None  # None if the result has the column's kind.


_INTEGERS = frozenset({"int"})
_ORDERED = frozenset({"int", "str", "bool", "date", "instant"})
_UNORDERED = "{{}} is the {} of {{}}, which may be NaN or are not ordered"

COLUMN_AGGREGATES = {
    # A sum of floats depends on the order.
    "sum": ColumnAggregate(_INTEGERS, "{} is a sum of {}, not of int", "int"),
    "count": ColumnAggregate(None, "", "int"),
    "mean": ColumnAggregate(_INTEGERS, "{} is a mean of {}, not of int", "float"),
    "min": ColumnAggregate(_ORDERED, _UNORDERED.format("min"), None),
    "max": ColumnAggregate(_ORDERED, _UNORDERED.format("max"), None),
}
"""Spark's own ``top`` would order equal values in its own way."""
