"""DataFrames of the program: an existing one as a source, and a new one as a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.formats.record_types import field_names
from penstock.io.sparkio import DataFrameSource, FrameSink
from penstock.io.streaming.stream_sources import StreamSource
from penstock.typehints.typehints import TupleConstraint
from penstock_spark.columns.records import column_of, field_of, schema_of, to_arrow_accepted
from penstock_spark.columns.values import to_rows
from penstock_spark.formats.format import Format
from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import from_arrow_schema, to_arrow_schema
from penstock_spark.session.streaming_plans import parts_of
from penstock_spark.sinks import column_sinks
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan
from penstock_spark.sinks.records import RecordRows
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.frame_rows import check_names, rows_of
from penstock_spark.sources.scan import Part, Scan, StreamScan
from penstock_spark.worker.micro_batches import batch_number


def open_frame(source: DataFrameSource, spark: SparkSession, where: str) -> Scan:
    """Rows of a DataFrame: structs are Rows, arrays lists, maps dicts, timestamps datetimes in UTC."""
    frame = source.frame
    return rows_of(frame if frame.sparkSession is spark else backend_of(spark).moved(frame), where)


def open_frame_stream(
    source: DataFrameSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    """The rows of a streaming DataFrame, in the order in which Spark reads them."""
    frame = source.frame if source.frame.sparkSession is spark else backend_of(spark).moved(source.frame)
    check_names(frame, where)
    return StreamScan(frame, lambda: _all)


def _all(batch: pa.RecordBatch) -> list[Part]:
    return [Part((), to_rows(batch), columns=batch)]


def check_frames_in_run(sources: Iterable[tuple[DataFrameSource, str]]) -> None:
    """Refuses streaming DataFrames of which the checkpoint of a run has no place for all parts.

    Args:
        sources: All streaming DataFrames of the run, each with the step that reads it.
    """
    seen: set[str] = set()
    for source, where in sources:
        frame = source.frame
        parts = parts_of(backend_of(frame.sparkSession).analysed_plan(frame))
        found = []
        if len(parts.sources) != 1:
            found.append(f"reads {len(parts.sources)} streams")
        if parts.stateful:
            found.append(f"keeps its own state ({', '.join(parts.stateful)})")
        if found:
            what = f"the DataFrame {' and '.join(found)}, and the checkpoint of a run has one stream for each DataFrame"
            hint = (
                "read each stream with its own from_dataframe, and let the pipeline do what has state; or start "
                "the query yourself, from to_streaming_dataframe(...)"
            )
            raise UnsupportedByRunner(what, where=where, hint=hint)
        if not seen.isdisjoint(parts.sources):
            what = "another step reads the same stream, which Spark then reads once for both"
            hint = "apply one from_dataframe, and let both steps read its PCollection; or call spark.readStream twice"
            raise UnsupportedByRunner(what, where=where, hint=hint)
        seen.update(parts.sources)


def type_of_frame(source: DataFrameSource, spark: SparkSession | None, where: str) -> object:
    """The type of the frame's rows; ValueError if two columns have one name."""
    check_names(source.frame, where)
    return hint_of_schema(source.frame.schema, "row")


Split = Callable[[list[Any]], list[list[Any]]]
"""A function from elements to columns."""


def plan_frame(sink: FrameSink, is_stream: bool, where: str) -> SinkPlan:
    """The columns of the element type, or of a given schema; the commit computes nothing."""

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        sink.into.append(frame)
        return []

    if sink.schema is not None:
        schema = column_sinks.parse_spark_schema(sink.schema)
        columns, split = to_arrow_schema(schema), _split_for(sink.element_type)
    else:
        columns, split = columns_of(sink.element_type, where)
        schema = from_arrow_schema(columns)

    def encode_rows() -> Encoder:
        return RecordRows(columns, where) if split is None else FrameRows(columns, where, split)

    make_encoder: Callable[[], Encoder] = encode_rows
    if sink.sequence is not None:
        if sink.sequence in columns.names:
            what = f"the elements already have a column {sink.sequence!r}"
            raise refusal(ValueError, what, where=where, hint="give the sequence another name")
        schema = StructType([*schema.fields, StructField(sink.sequence, LongType(), False)])
        make_encoder = partial(NumberedRows, encode_rows, sink.sequence)

    plan = SinkPlan(schema, make_encoder, None, commit)
    is_plain = split is None and sink.sequence is None
    return replace(plan, columns=plan) if is_plain else plan


def columns_of(element_type: object, where: str) -> tuple[pa.Schema, Split | None]:
    """The columns of a type of elements, and how elements divide into them; None for records.

    Records have a column for each field, pairs the columns ``key`` and ``value``, longer tuples ``_1``,
    ``_2`` and so on, and anything else the one column ``value``.

    >>> from penstock.typehints import KV
    >>> columns_of(KV[str, int], "at step 'A'")[0].names
    ['key', 'value']
    """
    if field_names(element_type) is not None:
        return schema_of(element_type, where), None
    if not isinstance(element_type, TupleConstraint):
        return pa.schema([field_of("value", element_type, where)]), _as_one
    parts = element_type.tuple_types
    names = (
        ("key", "value") if len(parts) == 2 else tuple(f"_{number}" for number in range(1, len(parts) + 1))
    )
    fields = [field_of(name, part, where) for name, part in zip(names, parts, strict=True)]
    return pa.schema(fields), _by_position


def _split_for(element_type: object) -> Split | None:
    if isinstance(element_type, TupleConstraint):
        return _by_position
    return None


def _as_one(values: list[Any]) -> list[list[Any]]:
    return [values]


def _by_position(values: list[Any]) -> list[list[Any]]:
    return [list(column) for column in zip(*values, strict=True)]


@dataclass(frozen=True)
class FrameRows(Encoder):
    schema: pa.Schema
    where: str
    split: Split

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        if not values:
            return pa.RecordBatch.from_pylist([], self.schema)
        columns = self.split(values)
        if len(columns) != len(self.schema):
            raise refusal(
                TypeError,
                f"an element has {len(columns)} parts, and the frame {len(self.schema)} columns",
                where=self.where,
                hint="declare the elements' type with with_output_types",
            )
        arrays = [
            column_of(to_arrow_accepted(part, field, field.name), field, self.where)
            for part, field in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


_ROWS_OF_MICRO_BATCH = 1 << 36
"""More rows than a task of a micro-batch makes; a bigint has place for as many as 134 million micro-batches."""


class NumberedRows(Encoder):
    """Rows with one more column: a number that grows from row to row, and from micro-batch to micro-batch.

    The rows of one key come from one task, in order. A micro-batch that runs again has the same number and rows.
    """

    def __init__(self, make_rows: Callable[[], Encoder], name: str) -> None:
        self._rows = make_rows()
        self._name = name
        self._next: int | None = None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        record = self._rows.encode(values)
        if self._next is None:
            self._next = batch_number() * _ROWS_OF_MICRO_BATCH
        first, self._next = self._next, self._next + record.num_rows
        numbers = pa.array(range(first, self._next), pa.int64())
        field = pa.field(self._name, pa.int64(), nullable=False)
        return pa.RecordBatch.from_arrays([*record.columns, numbers], schema=record.schema.append(field))


FRAMES = Format(
    open_frame,
    open_frame_stream,
    element_type=type_of_frame,
    records=lambda source: "row",
    schema=lambda source: source.frame.schema,
    plan=plan_frame,
)
