"""Tables that Spark reads and writes, by the name of their format."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.tables.scan import (
    open_table,
    open_table_stream,
    open_table_with_rejects,
    schema_of_source,
    type_of_table,
)
from penstock_spark.formats.tables.writer import plan_table, prepare_table

TABLES = Format(
    open_table,
    open_table_stream,
    type_of_table,
    records=lambda source: "row",
    schema=schema_of_source,
    plan=plan_table,
    prepare=prepare_table,
    open_with_rejects=open_table_with_rejects,
)
