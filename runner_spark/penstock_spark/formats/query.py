"""Queries that Spark computes whole, over the frames of sources."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.io.parquetio import ParquetSource
from penstock.io.query_source import QuerySource
from penstock.io.sparkio import DataFrameSource, SparkSource
from penstock.scalars.spark_forms import quote_name
from penstock_spark.formats.format import Format
from penstock_spark.formats.frames import FRAMES
from penstock_spark.formats.parquet import PARQUET
from penstock_spark.formats.tables import TABLES
from penstock_spark.plan.schema_text import schema_of_text
from penstock_spark.session.session import SQL_MEANING, move_to_session
from penstock_spark.sources.frame_rows import rows_of
from penstock_spark.sources.scan import Scan

# Settings that the text of a query assumes. Its session begins with the settings of its program.
_SETTINGS = {**SQL_MEANING, "spark.sql.session.timeZone": "UTC"}
_READ: dict[type, Format] = {DataFrameSource: FRAMES, ParquetSource: PARQUET, SparkSource: TABLES}


def open_query(source: QuerySource, spark: SparkSession, where: str) -> Scan:
    """Opens a query, which a separate session analyses, so that its settings and views affect nothing else."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    for number, each in enumerate(source.inputs):
        opened = _READ[type(each)].open
        assert opened is not None
        frame: DataFrame = move_to_session(opened(each, spark, where).frame, session)
        frame.createOrReplaceTempView(f"input{number}")
    return rows_of(move_to_session(session.sql(source.text), spark), where)


def _schema(source: QuerySource) -> StructType | None:
    return schema_of_text(", ".join(f"{quote_name(name)} {kind}" for name, kind in source.fields))


def _records(source: object) -> str:
    return "row"


QUERIES = Format(open_query, records=_records, schema=_schema)
