"""Tables that Spark reads by format, and DataFrames that the program already has."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from penstock.error import three_parts
from penstock.io.sparkio import DataFrameSource, SparkSource
from penstock_spark.arrow.values import to_rows
from penstock_spark.session.session import moved
from penstock_spark.sources.scan import Scan, open_source


@open_source.register
def open_table(source: SparkSource, spark: SparkSession, where: str) -> Scan:
    """Rows of ``spark.read.format(...)``."""
    reader = spark.read.format(source.format).options(**dict(source.options))
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return _rows(reader.load() if source.path is None else reader.load(source.path), where)


@open_source.register
def open_frame(source: DataFrameSource, spark: SparkSession, where: str) -> Scan:
    """Rows of a DataFrame: structs are Rows, arrays lists, maps dicts, timestamps datetimes in UTC."""
    frame = source.frame
    return _rows(frame if frame.sparkSession is spark else moved(frame, spark), where)


def _rows(frame: DataFrame, where: str) -> Scan:
    if frame.isStreaming:
        raise ValueError(
            three_parts(
                "the DataFrame is a streaming one",
                where=where,
                hint="read it with spark.read, not readStream",
            )
        )
    check_names(frame, where)
    return Scan(frame, lambda: to_rows)


def check_names(frame: DataFrame, where: str) -> None:
    """Raises ValueError if two columns have one name: they cannot both be fields of a Row."""
    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise ValueError(
            three_parts(
                f"the columns {', '.join(twice)} are there twice",
                where=where,
                hint="rename them, e.g. with toDF()",
            )
        )
