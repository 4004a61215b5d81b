"""DataFrames of the program: an existing one as a source, and a new one as a sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal
from penstock.io.formats.record_types import field_names
from penstock.io.sparkio import DataFrameSource, FrameSink
from penstock.typehints.typehints import TupleConstraint
from penstock_spark.columns.records import column_of, field_of, schema_of, to_arrow_accepted
from penstock_spark.formats.format import Format
from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import from_arrow_schema, to_arrow_schema
from penstock_spark.sinks import column_sinks
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan
from penstock_spark.sinks.records import RecordRows
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.frame_rows import check_names, rows_of
from penstock_spark.sources.scan import Scan


def open_frame(source: DataFrameSource, spark: SparkSession, where: str) -> Scan:
    """Rows of a DataFrame: structs are Rows, arrays lists, maps dicts, timestamps datetimes in UTC."""
    frame = source.frame
    return rows_of(frame if frame.sparkSession is spark else backend_of(spark).moved(frame), where)


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

    def make_encoder() -> Encoder:
        return RecordRows(columns, where) if split is None else FrameRows(columns, where, split)

    plan = SinkPlan(schema, make_encoder, None, commit)
    return plan if split is not None else replace(plan, columns=plan)


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


FRAMES = Format(
    open_frame,
    element_type=type_of_frame,
    records=lambda source: "row",
    schema=lambda source: source.frame.schema,
    plan=plan_frame,
    takes_streams=False,
)
