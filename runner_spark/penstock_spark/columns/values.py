"""Converts Arrow columns to Python values: dicts or Rows with the values of `penstock.values`, and times as numbers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.values.types import (
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INSTANT,
    INTEGER,
    LOCAL_TIME,
    TIME,
    UNSIGNED_INTEGER,
    ValueType,
)
from penstock_spark.columns.record_makers import dicts_of, rows_of
from penstock_spark.columns.types import find_doubled_names, is_list, type_in_python, value_of

Convert = Callable[[Any], Any]
_UTC = datetime.UTC
_MICROS_PER_SECOND = 1_000_000


def cast_to_python_types(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """Returns the columns in the types of `type_in_python`; ValueError for values that Python lacks."""
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    wanted = pa.schema([field.with_type(type_in_python(field.type)) for field in table.schema])
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
    twice = find_doubled_names(columns)
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
    what = f"a value of the column {field.name} is outside the range of Python for the type {field.type}"
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


def _apply(convert: Convert | None, value: object) -> object:
    return value if convert is None else convert(value)


def values_of(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> list[Any]:
    """Returns the values of a column with a type of `type_in_python`; ValueError for a time that Python lacks.

    >>> values_of(pa.chunked_array([[0, None]], pa.timestamp("us", "UTC")), pa.field("at", pa.timestamp("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None]
    """
    kind = column.type
    value = value_of(kind)
    # Rows must not share what a user may change.
    if pa.types.is_dictionary(kind) and not pa.types.is_nested(kind.value_type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [each for chunk in chunks for each in _look_up(chunk, field)]
    # NumPy makes Python's times and decimals in a fraction of the time.
    if value in (TIME, DECIMAL):
        others: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return others
    if value in _COUNTS and kind != pa.date64():
        return _times_of(column, field, value)
    try:
        values = list(column.to_pylist())
    except (ValueError, OverflowError):
        raise _beyond(field) from None
    convert = _zone_converter(kind)
    return values if convert is None else list(map(convert, values))


def _look_up(column: pa.DictionaryArray, field: pa.Field) -> Iterator[Any]:
    known = [*values_of(column.dictionary, field), None]
    return map(known.__getitem__, column.indices.cast(pa.int64()).fill_null(-1).to_pylist())


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
_MICRO = datetime.timedelta(microseconds=1)


def _count(value: datetime.timedelta | datetime.date) -> int:
    """The number that a column has for a time: microseconds, or the days of a date."""
    if isinstance(value, datetime.timedelta):
        return value // _MICRO
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=_UTC) - _EPOCH) // _MICRO
    return int(value.toordinal()) - _EPOCH.toordinal()


_COUNTS = {
    value: (_count(value.least), _count(value.greatest)) for value in (INSTANT, LOCAL_TIME, DATE, DURATION)
}
"""The smallest and the largest number of the times that Python has."""


def _times_of(column: pa.ChunkedArray | pa.Array, field: pa.Field, value: ValueType) -> list[Any]:
    numbers = column.cast(pa.int32() if value is DATE else pa.int64())
    found = pc.min_max(numbers).as_py()
    least, greatest = _COUNTS[value]
    # There is neither in a column without values.
    if found["min"] is not None and not (least <= found["min"] and found["max"] <= greatest):
        raise _beyond(field)
    if value is not INSTANT:
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
    if value_of(kind) is INSTANT:
        return lambda value: None if value is None else value.replace(tzinfo=_UTC)
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
    return [cast_to_python_types(batch)] if batch.num_rows else []


def to_dicts(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Returns the rows of the batch as dicts, with lists of pairs for maps.

    >>> to_dicts(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [{'a': 1, 'b': {'c': [2]}}]
    """
    table = cast_to_python_types(batch)
    columns = list(map(values_of, table.columns, table.schema))
    return dicts_of(table.column_names, columns, table.num_rows)


def to_rows(batch: pa.RecordBatch | pa.Table) -> list[Row]:
    """Returns the rows of the batch.

    >>> to_rows(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [Row(a=1, b=Row(c=[2]))]
    """
    table = cast_to_python_types(batch)
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        convert = row_converter(column.type)
        values = values_of(column, field)
        columns.append(values if convert is None else [convert(value) for value in values])
    return rows_of(table.column_names, columns, table.num_rows)


def micros_of(columns: pa.RecordBatch, name: str) -> list[int] | None:
    """Returns the times in a column of instants, local times or seconds; None if the elements have to be asked.

    They say which value is not a time: a null, NaN, a time beyond the ends of time, or a value of another type. And
    only they know attributes that are not columns. Python must have all values of the columns, as elements show.

    >>> micros_of(pa.record_batch({"at": [1.5, -0.5]}), "at")
    [1500000, -500000]
    >>> micros_of(pa.record_batch({"at": [1.5, None]}), "at")
    """
    # A name such as __class__ means Python's attribute.
    if name not in columns.schema.names or name.startswith("__"):
        return None
    column = columns.column(name)
    if column.null_count or not len(column):
        return None
    micros = _micros(column, columns.schema.field(name))
    return None if micros is None else micros.to_pylist()


def _micros(column: pa.Array, field: pa.Field) -> pa.Array | None:
    kind = column.type
    value = value_of(kind)
    if value in (INSTANT, LOCAL_TIME):
        return cast_column(column, field.with_type(type_in_python(kind))).cast(pa.int64())
    if value in (INTEGER, UNSIGNED_INTEGER):
        least, greatest = _bounds(column)
        fits = _are_times(least * _MICROS_PER_SECOND, greatest * _MICROS_PER_SECOND)
        return pc.multiply(column.cast(pa.int64()), _MICROS_PER_SECOND) if fits else None
    if value is FLOAT and kind != pa.float16():
        micros = pc.multiply(column, float(_MICROS_PER_SECOND))
        # The bounds of numbers leave NaN out.
        fits = pc.all(pc.is_finite(micros)).as_py() and _are_times(*map(math.trunc, _bounds(micros)))
        return pc.trunc(micros).cast(pa.int64()) if fits else None
    return None


def _bounds(column: pa.Array) -> tuple[int, int]:
    found = pc.min_max(column).as_py()
    return found["min"], found["max"]


def _are_times(least_micros: int, greatest_micros: int) -> bool:
    """True if all times between these are between the ends of time."""
    return MIN_TIMESTAMP.micros <= least_micros and greatest_micros < MAX_TIMESTAMP.micros
