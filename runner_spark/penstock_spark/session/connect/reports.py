"""TaskReports of tasks as rows: each task adds one row to its output, and Spark brings it to the driver as a metric.

Spark observes the rows (``DataFrame.observe``) and then takes them out, so that no other step sees them. A task that
Spark runs again adds its row again, under the same key. A frame that Spark has persisted brings them again with each
reader, which changes nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import col, collect_list
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.error import UnsupportedByRunner
from penstock_spark.session.backend import Function, ReportSink, TaskReports, Told
from penstock_spark.session.spark_versions import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMN = "penstock_report"


class LastRow:
    """The last row of a task's output, with its reports."""

    def __init__(self) -> None:
        self._told: Told = {}

    def add(self, term: Told) -> None:
        self._told.update(term)

    def take(self) -> bytes | None:
        told, self._told = self._told, {}
        return pickle.dumps(told) if told else None


@dataclass(frozen=True)
class _WithReport:
    """A function of tasks whose output has a column for reports, and a last row with the task's own.

    Attributes:
        function: The function.
        sink: The sink that it reports to.
        schema: The schema of its output, for a task without any.
    """

    function: Function
    sink: LastRow
    schema: pa.Schema

    def __call__(self, records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        for batch in self.function(records):
            schema = batch.schema
            nothing = pa.nulls(batch.num_rows, pa.binary())
            yield pa.RecordBatch.from_arrays([*batch.columns, nothing], schema=_with_column(schema))
        report = self.sink.take()
        if report is not None:
            nulls = [pa.nulls(1, each.type) for each in schema]
            yield pa.RecordBatch.from_arrays(
                [*nulls, pa.array([report], pa.binary())], schema=_with_column(schema)
            )


def _with_column(schema: pa.Schema) -> pa.Schema:
    fields = [each.with_nullable(True) for each in schema]
    return pa.schema([*fields, pa.field(COLUMN, pa.binary())])


@dataclass(eq=False)
class ObservedReports(TaskReports):
    """TaskReports that come with the results of the jobs that made them."""

    _told: Told = field(default_factory=dict)
    _open: list[Observation] = field(default_factory=list)

    @property
    def value(self) -> Told:
        waiting = []
        for observation in self._open:
            found = observation.get
            if not found:
                waiting.append(observation)
            for report in found.get("reports") or ():
                self._told.update(pickle.loads(report))
        self._open = waiting
        return self._told

    @property
    def sink(self) -> ReportSink:
        raise UnsupportedByRunner(
            "a stream with groupings does not run on Spark Connect yet",
            hint="run it with a classic session (spark-submit, or master='local[*]'), or pass mode='batch'",
        )

    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        sink, columns = LastRow(), _schema(schema, frame.sparkSession)
        function = _WithReport(make(sink), sink, to_arrow_schema(columns))
        nullable = [StructField(each.name, each.dataType) for each in columns]
        rows = frame.mapInArrow(function, StructType([*nullable, StructField(COLUMN, BinaryType())]))
        observation = Observation()
        self._open.append(observation)
        observed = rows.observe(observation, collect_list(COLUMN).alias("reports"))
        return observed.where(col(COLUMN).isNull()).drop(COLUMN)


def _schema(schema: StructType | str, spark: SparkSession) -> StructType:
    if isinstance(schema, StructType):
        return schema
    return spark.createDataFrame([], schema).schema
