"""Which types a table may have, and what they are called in PostgreSQL."""

from __future__ import annotations

import pyarrow as pa

from penstock.error import refusal
from penstock.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DECIMAL_DIGITS,
    DECIMAL_SCALE,
    DURATION,
    FLOAT,
    INSTANT,
    INTEGER,
    LOCAL_TIME,
    NOTHING,
    TEXT,
    TIME,
    ValueType,
)
from penstock_spark.connecting.values import value_of

_IN_JSON = (INTEGER, FLOAT, TEXT, BOOLEAN, DATE, TIME, INSTANT, LOCAL_TIME, DECIMAL)

POSTGRES: dict[ValueType, tuple[str, ...]] = {
    BOOLEAN: ("bool",),
    INTEGER: ("int8", "int4", "int2", "oid"),
    FLOAT: ("float8", "float4"),
    DECIMAL: ("numeric",),
    TEXT: ("text", "varchar", "bpchar", "name", "uuid"),
    BINARY: ("bytea",),
    DATE: ("date",),
    TIME: ("time",),
    INSTANT: ("timestamptz",),
    LOCAL_TIME: ("timestamp",),
    DURATION: ("interval",),
}
"""The types that arrive from PostgreSQL, by their names there; the first of each has all values that leave."""


def check_types(schema: pa.Schema, where: str) -> None:
    """Refuses types that no database holds."""
    for field in schema:
        if value_of(field.type) is NOTHING:
            what = f"the field {field.name} has only None, so its column has no type"
            raise refusal(ValueError, what, where=where, hint="declare its type, such as int | None")
        if is_nested(field.type) and not _fits_json(field.type):
            what = f"the field {field.name} of the type {field.type} cannot be written as JSON"
            hint = "lists, records and dicts with string keys can hold strings, numbers, bools and times; convert it"
            raise refusal(ValueError, what, where=where, hint=hint)


def is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _fits_json(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return value_of(kind.key_type) is TEXT and _fits_json(kind.item_type)
    if is_nested(kind):
        return all(_fits_json(kind.field(place).type) for place in range(kind.num_fields))
    return value_of(kind) in _IN_JSON


def postgres_type(kind: pa.DataType) -> str:
    """The type of a new column in PostgreSQL.

    >>> postgres_type(pa.int64()), postgres_type(pa.timestamp("us", "UTC")), postgres_type(pa.list_(pa.int64()))
    ('int8', 'timestamptz', 'jsonb')
    """
    value = value_of(kind)
    if value not in POSTGRES:
        return "jsonb"
    if value is DECIMAL and (kind.precision, kind.scale) != (DECIMAL_DIGITS, DECIMAL_SCALE):
        return f"numeric({kind.precision}, {kind.scale})"
    widest, *narrower = POSTGRES[value]
    if value in (INTEGER, FLOAT) and kind.bit_width < 64:
        # Each type is half as wide as the one before, and PostgreSQL has no type of 8 bits.
        return narrower[value is INTEGER and kind.bit_width < 32]
    return widest
