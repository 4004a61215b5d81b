"""Converts Arrow columns to Python values: dicts or Rows with the values of `penstock.values`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from penstock.base.row import Row
from penstock.error import refusal
from penstock_spark.arrow.record_makers import dicts_of, rows_of
from penstock_spark.arrow.types import as_read, doubled_names, is_list

Convert = Callable[[Any], Any]
_UTC = datetime.UTC


def table_as_read(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """Returns the columns in the types that Python reads: see `as_read`; ValueError for values that Python lacks."""
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    wanted = pa.schema([field.with_type(as_read(field.type)) for field in table.schema])
    if wanted.equals(table.schema):
        return table
    columns = [cast_column(column, field) for column, field in zip(table.columns, wanted, strict=True)]
    return pa.Table.from_arrays(columns, schema=wanted)


def cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Returns the values in another type that has all of them; cuts nanoseconds to microseconds."""
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
    """Returns the values of a column that has a type of `as_read`; ValueError for a time that Python does not have.

    >>> values_of(pa.chunked_array([[0, None]], pa.timestamp("us", "UTC")), pa.field("at", pa.timestamp("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None]
    """
    kind = column.type
    # Rows must not share what a user may change.
    if pa.types.is_dictionary(kind) and not pa.types.is_nested(kind.value_type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [value for chunk in chunks for value in _looked_up(chunk, field)]
    # NumPy makes Python's times and decimals in a fraction of the time.
    if pa.types.is_time64(kind) or pa.types.is_decimal(kind):
        others: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return others
    if limits := _limits_of(kind):
        return _times_of(column, field, *limits)
    try:
        values = list(column.to_pylist())
    except (ValueError, OverflowError):
        raise _beyond(field) from None
    convert = _zone_converter(kind)
    return values if convert is None else [convert(value) for value in values]


def _looked_up(column: pa.DictionaryArray, field: pa.Field) -> Iterator[Any]:
    known = [*values_of(column.dictionary, field), None]
    return map(known.__getitem__, column.indices.cast(pa.int64()).fill_null(-1).to_pylist())


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
_DATETIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_DATES = (-719_162, 2_932_896)
# NumPy takes the least number for no time at all.
_DURATIONS = (-(2**63) + 1, 2**63 - 1)


def _limits_of(kind: pa.DataType) -> tuple[int, int] | None:
    """Returns the least and the greatest number of a time that Python has; None for a type of other values."""
    if pa.types.is_timestamp(kind):
        return _DATETIMES
    if pa.types.is_date32(kind):
        return _DATES
    return _DURATIONS if pa.types.is_duration(kind) else None


def _times_of(column: pa.ChunkedArray | pa.Array, field: pa.Field, least: int, greatest: int) -> list[Any]:
    numbers = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    found = pc.min_max(numbers).as_py()
    # There is neither in a column without values.
    if found["min"] is not None and not (least <= found["min"] and found["max"] <= greatest):
        raise _beyond(field)
    if not (pa.types.is_timestamp(column.type) and column.type.tz):
        times: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return times
    since = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype("timedelta64[us]")
    # A call for each value to set its zone would take most of the time.
    instants: list[Any] = (since.astype(object) + _EPOCH).tolist()
    if numbers.null_count:
        for place in pc.indices_nonzero(numbers.is_null()).to_pylist():
            instants[place] = None
    return instants


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


def to_tables(batch: pa.RecordBatch) -> list[pa.Table]:
    """Returns the batch as one table; no table if it is empty."""
    return [table_as_read(batch)] if batch.num_rows else []


def to_dicts(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Returns the rows of the batch as dicts, with lists of pairs for maps.

    >>> to_dicts(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [{'a': 1, 'b': {'c': [2]}}]
    """
    table = table_as_read(batch)
    columns = list(map(values_of, table.columns, table.schema))
    return dicts_of(table.column_names, columns, table.num_rows)


def to_rows(batch: pa.RecordBatch | pa.Table) -> list[Row]:
    """Returns the rows of the batch.

    >>> to_rows(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [Row(a=1, b=Row(c=[2]))]
    """
    table = table_as_read(batch)
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        convert = row_converter(column.type)
        values = values_of(column, field)
        columns.append(values if convert is None else [convert(value) for value in values])
    return rows_of(table.column_names, columns, table.num_rows)
