"""Frame operations on named columns that make one call to Java each.

PySpark's own methods send every column name and every sort order to Java one by one, which took a third of the
driver's time for a small pipeline. All runs use the same lists of columns, so the Java lists are kept.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr
from pyspark.sql.functions import sum as sum_of

from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.worker.rows import (
    EXCHANGE,
    GROUP_COLUMNS,
    NUMBER_COLUMNS,
    PARTITION_COLUMNS,
    SORT_COLUMNS,
)

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

_EXCHANGE_TYPE = from_arrow_schema(EXCHANGE).json()

_kept: weakref.WeakKeyDictionary[SparkContext, dict[tuple[str, tuple[str, ...]], Any]] = (
    weakref.WeakKeyDictionary()
)


def _columns(frame: DataFrame, kind: str, names: tuple[str, ...]) -> JavaObject:
    """Returns a Scala sequence of columns, or of ascending sort orders if `kind` is ``sort``."""
    context = frame.sparkSession.sparkContext
    kept = _kept.setdefault(context, {})
    if (kind, names) not in kept:
        columns = [col(name).asc()._jc if kind == "sort" else col(name)._jc for name in names]
        jvm: JVMView = context._jvm
        kept[kind, names] = jvm.PythonUtils.toSeq(columns)
    return kept[kind, names]


def select(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    return DataFrame(frame._jdf.select(_columns(frame, "plain", names)), frame.sparkSession)


def exchange(frame: DataFrame, count: int) -> DataFrame:
    """Returns the rows in `count` partitions by the hash of key and tag, each partition sorted for its reader."""
    spread = frame._jdf.repartition(count, _columns(frame, "plain", PARTITION_COLUMNS))
    return _sort(DataFrame(spread, frame.sparkSession), SORT_COLUMNS)


def sort_rows(frame: DataFrame) -> DataFrame:
    """Sorts the rows of each partition by their numbers, in whatever order the tasks before have ended.

    A task that distributes them again then sends each to the same task, even if Spark recomputes it. Otherwise,
    elements would be lost and doubled if the tasks behind it had read a part of its first output.
    """
    return _sort(frame, ("sequence",))


def _sort(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Returns the rows of each partition in the order of some columns."""
    return DataFrame(frame._jdf.sortWithinPartitions(_columns(frame, "sort", names)), frame.sparkSession)


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
    """Sends a few rows with the schema `EXCHANGE` to Java directly, as a frame: PySpark's own method writes a file."""
    jvm: JVMView = spark._jvm
    batches = jvm.PythonUtils.toSeq([batch.serialize().to_pybytes() for batch in rows.to_batches()])
    made = jvm.PythonSQLUtils.toDataFrame(batches.iterator(), _EXCHANGE_TYPE, spark._jsparkSession)
    return DataFrame(made, spark)
