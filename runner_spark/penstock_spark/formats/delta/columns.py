"""The columns that a task writes: those of the table, if the elements fit them, or a new table's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.error import refusal
from penstock.io.delta import DeltaSink
from penstock_spark.arrow.records import schema_of
from penstock_spark.formats.delta.table import deltalake, schema_of_table

_PARTITIONS = (pa.types.is_integer, pa.types.is_string, pa.types.is_date32, pa.types.is_boolean)


def columns_of(sink: DeltaSink, table: Any, where: str) -> pa.Schema:
    """The columns of the data; ValueError if the elements do not fit the table, or nothing gives columns."""
    wanted = sink.schema
    if wanted is None and not sink.key:
        wanted = schema_of(sink.element_type, where)
    if wanted is not None and not isinstance(wanted, pa.Schema):
        what = f"schema must be a pyarrow.Schema, but is a {type(wanted).__name__}"
        raise refusal(TypeError, what, where=where, hint="write schema=pyarrow.schema([...])")
    if table is not None:
        columns = schema_of_table(table)
        if wanted is not None:
            _check_fit(wanted, columns, sink, where)
    elif wanted is None:
        what = f"there is no Delta table at {sink.place.shown} yet, and nothing says which columns it gets"
        raise refusal(ValueError, what, where=where, hint="pass schema=pyarrow.schema([...])")
    else:
        columns = _for_delta(wanted, where)
    for name in (*sink.key, *sink.partition_by, *(() if sink.value is None else (sink.value,))):
        if name not in columns.names:
            what = f"the table {sink.place.shown} has no column {name}"
            raise refusal(ValueError, what, where=where, hint=f"its columns are {', '.join(columns.names)}")
    _check_keys(sink, columns, where)
    return columns


def partitions_of(sink: DeltaSink, table: Any, columns: pa.Schema, where: str) -> tuple[str, ...]:
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
        if not any(is_kind(kind) for is_kind in _PARTITIONS):
            what = f"the column {name} of type {kind} cannot keep files apart"
            raise refusal(
                ValueError, what, where=where, hint="partition by text, integers, dates or booleans"
            )
    if parts and len(parts) == len(columns):
        what = "partition_by has all columns, so that none is left for the files"
        raise refusal(ValueError, what, where=where, hint="leave a column out of partition_by")
    return parts


def _check_fit(wanted: pa.Schema, columns: pa.Schema, sink: DeltaSink, where: str) -> None:
    place = sink.place.shown
    for field in wanted:
        if field.name not in columns.names:
            what = f"the table {place} has no column {field.name}"
            hint = f"add it to the table, or leave the field out; the columns are {', '.join(columns.names)}"
            raise refusal(ValueError, what, where=where, hint=hint)
        own = columns.field(field.name)
        if not _fits(field.type, own.type):
            what = f"the column {field.name} of the table {place} has the type {own.type}, not {field.type}"
            raise refusal(ValueError, what, where=where, hint="convert the values first")
    missing = [field.name for field in columns if not field.nullable and field.name not in wanted.names]
    if missing:
        what = f"the elements have no field {', '.join(missing)}, which the table {place} needs in every row"
        raise refusal(ValueError, what, where=where, hint="add the field to the elements")


def _fits(given: pa.DataType, own: pa.DataType) -> bool:
    """Whether values of a type may be in a column; those that are too large for it are refused one by one."""
    for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal):
        if is_kind(given):
            return bool(is_kind(own))
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        return bool(pa.types.is_string(own))
    if pa.types.is_binary(given) or pa.types.is_large_binary(given) or pa.types.is_fixed_size_binary(given):
        return bool(pa.types.is_binary(own))
    if pa.types.is_timestamp(given):
        return bool(pa.types.is_timestamp(own)) and (given.tz is None) == (own.tz is None)
    if pa.types.is_struct(given):
        names = {field.name: field for field in own} if pa.types.is_struct(own) else {}
        return bool(names) and all(
            each.name in names and _fits(each.type, names[each.name].type) for each in given
        )
    if pa.types.is_list(given):
        return bool(pa.types.is_list(own)) and _fits(given.value_type, own.value_type)
    if pa.types.is_map(given):
        return bool(pa.types.is_map(own)) and (
            _fits(given.key_type, own.key_type) and _fits(given.item_type, own.item_type)
        )
    return bool(given == own) or bool(pa.types.is_null(given))


def _for_delta(wanted: pa.Schema, where: str) -> pa.Schema:
    """The columns as Delta has them; ValueError for a type that it lacks."""
    kept = []
    for field in wanted:
        if not _is_known(field.type):
            what = f"Delta has no type for the column {field.name} of type {field.type}"
            hint = "convert the values first; times of day and durations may become integers"
            raise refusal(ValueError, what, where=where, hint=hint)
        kept.append(field)
    if not kept:
        raise refusal(
            ValueError, "a table needs a column", where=where, hint="pass schema=pyarrow.schema([...])"
        )
    package = deltalake(where)
    return pa.schema(package.Schema.from_arrow(pa.schema(kept)).to_arrow())


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


def _check_keys(sink: DeltaSink, columns: pa.Schema, where: str) -> None:
    for name in sink.key:
        kind = columns.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            what = f"the column {name} of type {kind} cannot be a key"
            raise refusal(
                ValueError, what, where=where, hint="use columns of text, integers, dates or instants"
            )
    others = [name for name in columns.names if name not in (*sink.key, sink.value)]
    if sink.value is not None and any(not columns.field(name).nullable for name in others):
        what = f"the table needs a value for {', '.join(others)}, beside the key and {sink.value}"
        raise refusal(
            ValueError, what, where=where, hint="give the upserts records as values, and leave value out"
        )
