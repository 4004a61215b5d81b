"""TaskReports of tasks as rows: each task adds one row to its output, and Spark brings it to the driver as a metric.

Spark observes the rows (``DataFrame.observe``) and then takes them out, so that no other step sees them. A task that
Spark runs again adds its row again, under the same key. A frame that Spark has persisted brings them again with each
reader, which changes nothing. The reports of a stream come with Spark's report of a micro-batch.
"""

from __future__ import annotations

import pickle
import threading
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql.functions import base64, col, collect_list, when
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock_spark.session.backend import Function, MapOfState, ReportSink, TaskReports, Told
from penstock_spark.session.connect.travelling import travelling_function, travelling_operator
from penstock_spark.session.spark_versions import to_arrow_schema, transform_with_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.stateful_processor import TimerValues

COLUMN = "penstock_report"

REPORTS = -(2**31)
"""The level of the rows between the operators of a stream that have reports: no step has such a level."""

_NAME = "penstock reports "


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


class _ReportingProcessor(StatefulProcessor):
    """A stateful operator, with a last row for each of its keys that contains its reports."""

    def __init__(self, processor: StatefulProcessor, sink: LastRow) -> None:
        # Together, so that both have the same sink in a task.
        self._own = processor, sink

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._own[0].init(handle)

    def handleInputRows(
        self, key: tuple[int, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        processor, sink = self._own
        yield from processor.handleInputRows(key, rows, timerValues)
        if (report := sink.take()) is not None:
            yield Row(level=REPORTS, shard=key[0], payload=report)

    def close(self) -> None:
        self._own[0].close()


@dataclass(eq=False)
class ObservedReports(TaskReports):
    """TaskReports that come with the results of the jobs that made them."""

    _told: Told = field(default_factory=dict)
    _open: list[Observation] = field(default_factory=list)
    _streaming: int = 0  # How many operators of streams are observed.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def value(self) -> Told:
        with self._lock:
            self._open[:] = [each for each in self._open if not self._take(each)]
            return self._told

    def _take(self, observation: Observation) -> bool:
        """Adds the reports of a job, and returns whether it has ended."""
        try:
            found = observation.get
        except Exception:
            # The job has failed, and its caller has the error.
            return True
        self._add(found.get("reports") or ())
        return bool(found)

    def _add(self, reports: Iterable[bytes]) -> None:
        for report in reports:
            self._told.update(pickle.loads(report))

    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        sink, columns = LastRow(), _schema(schema, frame.sparkSession)
        function = travelling_function(_WithReport(make(sink), sink, to_arrow_schema(columns)))
        nullable = [StructField(each.name, each.dataType) for each in columns]
        rows = frame.mapInArrow(function, StructType([*nullable, StructField(COLUMN, BinaryType())]))
        if frame.isStreaming:
            observed = self._observed_stream(rows, col(COLUMN))
        else:
            observation = Observation()
            observed = rows.observe(observation, collect_list(COLUMN).alias("reports"))
            with self._lock:
                # Another thread may ask for the value, which has to be observed by then.
                self._open.append(observation)
        return observed.where(col(COLUMN).isNull()).drop(COLUMN)

    def transform_with_state(
        self,
        frame: DataFrame,
        make: Callable[[ReportSink], StatefulProcessor],
        schema: str,
        state: MapOfState,
    ) -> DataFrame:
        sink = LastRow()
        processor = travelling_operator(_ReportingProcessor(make(sink), sink), state)
        rows = transform_with_state(frame.groupBy("shard"), processor, schema)
        is_report = col("level") == REPORTS
        return self._observed_stream(rows, when(is_report, col("payload"))).where(~is_report)

    def _observed_stream(self, rows: DataFrame, report: Column) -> DataFrame:
        self._streaming += 1
        # Spark writes its report of a micro-batch as text.
        reports = collect_list(base64(report)).alias("reports")
        return rows.observe(f"{_NAME}{self._streaming}", reports)

    def see(self, progress: Mapping[str, Any]) -> None:
        for name, row in (progress.get("observedMetrics") or {}).items():
            if name.startswith(_NAME):
                with self._lock:
                    self._add(map(b64decode, _texts_in(row)))


def _texts_in(value: object) -> Iterator[str]:
    """Returns the strings in a value of a metric; a client of Spark Connect leaves it as Spark has written it."""
    match value:
        case str():
            yield value
        case Row() if "values" in value.__fields__:
            yield from _texts_in(value["values"])
        case Mapping():
            yield from _texts_in(value["values"])
        case list() | tuple():
            for each in value:
                yield from _texts_in(each)


def _schema(schema: StructType | str, spark: SparkSession) -> StructType:
    if isinstance(schema, StructType):
        return schema
    return spark.createDataFrame([], schema).schema
