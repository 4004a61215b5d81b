"""The columns that a task writes: the table's, if the elements fit them, or a new table's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.error import refusal
from penstock.io.delta import DeltaSink
from penstock.values.types import IN_FOLDERS
from penstock_connectors.delta.table import schema_of_table
from penstock_connectors.packages import DELTALAKE
from penstock_spark.connecting.tables import choose_columns as columns_of_table
from penstock_spark.connecting.tables import make_type_error
from penstock_spark.connecting.values import value_of

if TYPE_CHECKING:
    from deltalake import DeltaTable


def columns_of(sink: DeltaSink, table: DeltaTable, where: str) -> pa.Schema:
    """The columns of the data; ValueError if the elements do not fit the table, or there are no columns to write."""
    own = None if table is None else schema_of_table(table)
    return columns_of_table(sink, own, sink.partition_by, partial(_for_delta, where=where), where)


def partitions_of(sink: DeltaSink, table: DeltaTable, columns: pa.Schema, where: str) -> tuple[str, ...]:
    """The columns that keep files apart."""
    parts = sink.partition_by
    if table is not None:
        parts = tuple(table.metadata().partition_columns)
        if sink.partition_by and parts != sink.partition_by:
            are = f"is partitioned by {', '.join(parts)}" if parts else "is not partitioned"
            what = f"the table {sink.place.shown} {are}, but partition_by has {', '.join(sink.partition_by)}"
            raise refusal(ValueError, what, where=where, hint="leave partition_by out")
    for name in () if sink.key else parts:
        kind = columns.field(name).type
        if value_of(kind) not in IN_FOLDERS:
            what = f"the column {name} of type {kind} cannot keep files apart"
            raise refusal(
                ValueError, what, where=where, hint="partition by strings, integers, dates or booleans"
            )
    if parts and len(parts) == len(columns):
        what = "partition_by has all columns, so that none is left for the files"
        raise refusal(ValueError, what, where=where, hint="leave a column out of partition_by")
    return parts


def _for_delta(wanted: pa.Schema, where: str) -> pa.Schema:
    """The columns as Delta has them; ValueError for a type that it lacks."""
    for field in wanted:
        if not _is_known(field.type):
            raise make_type_error("Delta", field, where)
    package = DELTALAKE.load(where)
    return pa.schema(package.Schema.from_arrow(wanted).to_arrow())


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        known = pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind)
        return known and all(_is_known(kind.field(place).type) for place in range(kind.num_fields))
    if pa.types.is_timestamp(kind):
        return kind.unit != "ns" and kind.tz in (None, "UTC")
    tests = (
        *(pa.types.is_signed_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string),
        *(pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_boolean),
        *(pa.types.is_date32, pa.types.is_decimal128),
    )
    return any(test(kind) for test in tests)
