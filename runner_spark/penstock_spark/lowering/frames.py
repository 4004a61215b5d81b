"""Frame operations on the columns that travel between the stages of a run."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.functions import sum as sum_of

from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.worker.rows import (
    EXCHANGE,
    GROUP_COLUMNS,
    NUMBER_COLUMNS,
    PARTITION_COLUMNS,
    SORT_COLUMNS,
)

_EXCHANGE_TYPE = from_arrow_schema(EXCHANGE)


def select(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    return backend_of(frame.sparkSession).select(frame, names)


def exchange(frame: DataFrame, count: int) -> DataFrame:
    """Returns the rows in `count` partitions by the hash of key and tag, each partition sorted for its reader."""
    return _sort(backend_of(frame.sparkSession).repartition(frame, count, PARTITION_COLUMNS), SORT_COLUMNS)


def sort_rows(frame: DataFrame) -> DataFrame:
    """Sorts the rows of each partition by their numbers, in whatever order the tasks before have ended.

    A task that distributes them again then sends each to the same task, even if Spark recomputes it. Otherwise,
    elements would be lost and doubled if the tasks behind it had read a part of its first output.
    """
    return _sort(frame, ("sequence",))


def _sort(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Returns the rows of each partition in the order of some columns."""
    return backend_of(frame.sparkSession).sort(frame, names)


def add_up(frame: DataFrame, keys: tuple[str, ...] = GROUP_COLUMNS, *, in_order: bool = False) -> DataFrame:
    """Returns the sums of the number columns for each group; Spark's hash aggregate needs no sorted rows.

    Without `sort_rows`, the groups come in the order in which the first row of each has arrived.
    """
    sums = [sum_of(name).alias(name) for name in NUMBER_COLUMNS]
    added = frame.groupBy(*keys).agg(*sums)
    return _sort(added, GROUP_COLUMNS) if in_order else added


# Sorting an array is the only way in which Spark keeps a timestamp out of the generated code.
_NOW = "array_sort(array(current_timestamp()))[0]"

NOW_MICROS = f"unix_micros({_NOW})"
"""The text of `now_micros`."""


def now() -> Column:
    """Returns the time of the micro-batch, in a form that Spark's generated code does not contain as a constant.

    With a constant, Spark and Java's compilers would compile the code again for each micro-batch.
    """
    return expr(_NOW)


def now_micros() -> Column:
    """Returns the time of the micro-batch in microseconds since 1970."""
    return expr(NOW_MICROS)


def frame_of_rows(rows: pa.Table, spark: SparkSession) -> DataFrame:
    """Returns a few rows with the schema `EXCHANGE` as a frame."""
    return backend_of(spark).frame_of_rows(rows, _EXCHANGE_TYPE)
