"""Tables that Spark reads and writes, by the name of their format."""

from __future__ import annotations

from pyspark.sql.types import StructType

from penstock.io.sparkio import SparkSource
from penstock_spark.formats.format import Format
from penstock_spark.formats.tables.scan import open_table, open_table_stream, type_of_table
from penstock_spark.formats.tables.writer import plan_table, prepare_table
from penstock_spark.plan.schema_text import schema_of_text


def _given_schema(source: SparkSource) -> StructType | None:
    schema = source.schema
    known = schema_of_text(schema) if isinstance(schema, str) else schema
    return known if isinstance(known, StructType) else None


TABLES = Format(
    open_table,
    open_table_stream,
    type_of_table,
    records=lambda source: "row",
    schema=_given_schema,
    plan=plan_table,
    prepare=prepare_table,
)
