"""Converts Arrow columns to Python values: dicts or Rows with the values of `penstock.values`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from penstock.base.row import Row, row_class
from penstock.error import refusal
from penstock_spark.arrow.types import as_read, doubled_names, is_list

Convert = Callable[[Any], Any]
_UTC = datetime.UTC


def table_as_read(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """The columns in the types that Python reads: see `as_read`; ValueError for a value that Python's type lacks."""
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    wanted = pa.schema([field.with_type(as_read(field.type)) for field in table.schema])
    if wanted.equals(table.schema):
        return table
    columns = [cast_column(column, field) for column, field in zip(table.columns, wanted, strict=True)]
    return pa.Table.from_arrays(columns, schema=wanted)


def cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The values in another type that has all of them; nanoseconds are cut to the microseconds that Python has."""
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type, safe=not has_nanoseconds(column.type))
    except pa.ArrowInvalid:
        raise _beyond(field) from None


def check_names(columns: T.StructType, name: str, where: str) -> None:
    """Refuses a file in which columns, or fields of one record, have one name: an element has each name once."""
    twice = doubled_names(columns)
    if twice:
        what = f"{name} has the columns {', '.join(twice)} twice"
        raise refusal(ValueError, what, where=where, hint="write the file again with other names")


def has_nanoseconds(kind: pa.DataType) -> bool:
    """True if a type holds times with nanoseconds, at any depth.

    >>> has_nanoseconds(pa.list_(pa.timestamp("ns"))), has_nanoseconds(pa.timestamp("us", "UTC"))
    (True, False)
    """
    return "[ns" in str(kind)


def _beyond(field: pa.Field) -> ValueError:
    what = f"a value of the column {field.name} is beyond what Python has of the type {field.type}"
    hint = "leave the column out, or correct what writes it: years are from 1 to 9999"
    return refusal(ValueError, what, where="in the data that is read", hint=hint)


def row_converter(kind: pa.DataType) -> Convert | None:
    """Turns structs into Rows and maps into dicts, at any depth; None if the values need no conversion."""
    if pa.types.is_struct(kind):
        fields = [(field.name, row_converter(field.type)) for field in kind]
        return lambda value: (
            None
            if value is None
            else Row(**{name: value[name] if inner is None else inner(value[name]) for name, inner in fields})
        )
    if pa.types.is_map(kind):
        of_key, of_item = row_converter(kind.key_type), row_converter(kind.item_type)
        return lambda pairs: (
            None if pairs is None else {_apply(of_key, key): _apply(of_item, item) for key, item in pairs}
        )
    if is_list(kind) and (of_item := row_converter(kind.value_type)) is not None:
        return lambda values: None if values is None else list(map(of_item, values))
    return None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def values_of(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> list[Any]:
    """The values of a column that has a type of `as_read`; ValueError for a time that Python does not have.

    >>> values_of(pa.chunked_array([[0, None]], pa.timestamp("us", "UTC")), pa.field("at", pa.timestamp("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None]
    """
    if not _is_time(column.type):
        try:
            inner = list(column.to_pylist())
        except (ValueError, OverflowError):
            raise _beyond(field) from None
        convert = _zone_converter(column.type)
        return inner if convert is None else [convert(value) for value in inner]
    # NumPy makes Python's times in a tenth of the time; it has whole numbers for those that Python does not have.
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    if int in set(map(type, values)):
        raise _beyond(field)
    if not (pa.types.is_timestamp(column.type) and column.type.tz):
        return values
    return [None if value is None else value.replace(tzinfo=_UTC) for value in values]


def _zone_converter(kind: pa.DataType) -> Convert | None:
    """Makes instants inside of values as all others are: as keys, ``datetime.UTC`` and other objects for UTC differ."""
    if pa.types.is_timestamp(kind):
        return (
            None if kind.tz is None else lambda value: None if value is None else value.replace(tzinfo=_UTC)
        )
    if pa.types.is_struct(kind):
        parts = [(field.name, of) for field in kind if (of := _zone_converter(field.type)) is not None]
        if not parts:
            return None
        return lambda value: value and {**value, **{name: of(value[name]) for name, of in parts}}
    if pa.types.is_map(kind):
        of_key, of_item = _zone_converter(kind.key_type), _zone_converter(kind.item_type)
        if of_key is None and of_item is None:
            return None
        return lambda pairs: pairs and [(_apply(of_key, key), _apply(of_item, item)) for key, item in pairs]
    if is_list(kind) and (of_each := _zone_converter(kind.value_type)) is not None:
        return lambda values: values and list(map(of_each, values))
    return None


def _is_time(kind: pa.DataType) -> bool:
    """True if NumPy makes Python's values of a type faster than pyarrow does."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind))


def to_tables(batch: pa.RecordBatch) -> list[pa.Table]:
    """The batch as one table; no table if it is empty."""
    return [table_as_read(batch)] if batch.num_rows else []


def to_dicts(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """The rows of the batch as dicts, with lists of pairs for maps.

    >>> to_dicts(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [{'a': 1, 'b': {'c': [2]}}]
    """
    table = table_as_read(batch)
    times = {}
    for place, field in enumerate(table.schema):
        if _is_time(field.type) or _zone_converter(field.type) is not None:
            times[field.name] = values_of(table.column(place), field)
            # A cheap column that keeps the place of the field.
            table = table.set_column(place, field.name, pa.nulls(table.num_rows))
    try:
        records: list[dict[str, Any]] = table.to_pylist()
    except (ValueError, OverflowError):
        for column, field in zip(table.columns, table.schema, strict=True):
            values_of(column, field)
        raise
    for name, values in times.items():
        for record, value in zip(records, values, strict=True):
            record[name] = value
    return records


def to_rows(batch: pa.RecordBatch | pa.Table) -> list[Row]:
    """The rows of the batch.

    >>> to_rows(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [Row(a=1, b=Row(c=[2]))]
    """
    table = table_as_read(batch)
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        convert = row_converter(column.type)
        values = values_of(column, field)
        columns.append(values if convert is None else [convert(value) for value in values])
    names = table.column_names
    row = row_class(tuple(names))
    return [row(**dict(zip(names, record, strict=True))) for record in zip(*columns, strict=True)]
