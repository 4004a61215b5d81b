"""DataFrames of the program: one that it has already as a source, one that it goes on with as a sink."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.io.sparkio import DataFrameSource
from penstock_spark.formats.format import Format
from penstock_spark.formats.tables.scan import check_names, rows_of
from penstock_spark.session.session import moved
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.scan import Scan


def open_frame(source: DataFrameSource, spark: SparkSession, where: str) -> Scan:
    """Rows of a DataFrame: structs are Rows, arrays lists, maps dicts, timestamps datetimes in UTC."""
    frame = source.frame
    return rows_of(frame if frame.sparkSession is spark else moved(frame, spark), where)


def type_of_frame(source: DataFrameSource, spark: SparkSession | None, where: str) -> Any:
    """That of the frame's rows; ValueError if two columns have one name."""
    check_names(source.frame, where)
    return hint_of_schema(source.frame.schema, "row")


FRAMES = Format(
    open_frame,
    element_type=type_of_frame,
    records=lambda source: "row",
    schema=lambda source: source.frame.schema,
)
