"""Converts Arrow columns to Python values: dicts or Rows, with instants in UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.base.row import Row, row_class

Convert = Callable[[Any], Any]


def in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with every time zone replaced by UTC: the instants stay the same, and Python shows them in UTC.

    >>> in_utc(pa.list_(pa.timestamp("us", "Europe/Berlin")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(in_utc(kind.key_type), kind.item_field.with_type(in_utc(kind.item_type)))
    return kind


def table_in_utc(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    wanted = pa.schema([field.with_type(in_utc(field.type)) for field in table.schema])
    return table if wanted.equals(table.schema) else table.cast(wanted)


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
    if pa.types.is_list(kind) and (of_item := row_converter(kind.value_type)) is not None:
        return lambda values: None if values is None else list(map(of_item, values))
    return None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def to_tables(batch: pa.RecordBatch) -> list[pa.Table]:
    """The batch as one table; no table if it is empty."""
    return [table_in_utc(batch)] if batch.num_rows else []


def to_dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = table_in_utc(batch).to_pylist()
    return records


def to_rows(batch: pa.RecordBatch) -> list[Row]:
    """The rows of the batch.

    >>> to_rows(pa.RecordBatch.from_pylist([{"a": 1, "b": {"c": [2]}}]))
    [Row(a=1, b=Row(c=[2]))]
    """
    table = table_in_utc(batch)
    columns = []
    for column in table.columns:
        convert = row_converter(column.type)
        values = column.to_pylist()
        columns.append(values if convert is None else [convert(value) for value in values])
    names = table.column_names
    row = row_class(tuple(names))
    return [row(**dict(zip(names, record, strict=True))) for record in zip(*columns, strict=True)]
