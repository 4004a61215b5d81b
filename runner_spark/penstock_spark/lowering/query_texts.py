"""Makes columns of the text in Spark's SQL that the steps of a query have become, in any time zone of the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock_spark.plan.column_plan import TextColumn
from penstock_spark.session.backends import backend_of


def select_texts(frame: DataFrame, columns: Sequence[TextColumn], others: Sequence[Column]) -> DataFrame:
    """The frame of some columns, with the names ``c0`` and up, and of others of the frame."""
    return backend_of(frame.sparkSession).bind_in_utc(lambda: frame.select([*_named(columns, "c"), *others]))


def keep_by_text(frame: DataFrame, condition: str, pin: Callable[[Column], Column]) -> DataFrame:
    """The rows for which a condition is true, which `pin` may change before."""
    return backend_of(frame.sparkSession).bind_in_utc(lambda: frame.where(pin(F.expr(condition))))


def group_by_texts(
    frame: DataFrame, keys: Sequence[TextColumn], others: Sequence[Column], aggregates: Sequence[TextColumn]
) -> DataFrame:
    """The groups of a frame: the keys ``k0`` and up, other columns that are also keys, and aggregates ``a0`` and up."""
    # Spark does not group without an aggregate.
    made = _named(aggregates, "a") or [F.count(F.lit(1)).alias("a0")]
    return backend_of(frame.sparkSession).bind_in_utc(
        lambda: frame.groupBy([*_named(keys, "k"), *others]).agg(*made)
    )


def _named(columns: Sequence[TextColumn], letter: str) -> list[Column]:
    return [F.expr(each.text).alias(f"{letter}{place}") for place, each in enumerate(columns)]
