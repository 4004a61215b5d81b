"""Which types a table may have, and what they are called in PostgreSQL."""

from __future__ import annotations

import pyarrow as pa

from penstock.error import refusal

_JSON_LEAVES = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_boolean, pa.types.is_date),
    *(pa.types.is_time, pa.types.is_timestamp, pa.types.is_decimal),
)


def check_types(schema: pa.Schema, where: str) -> None:
    """Refuses types that no database holds."""
    for field in schema:
        if pa.types.is_null(field.type):
            what = f"the field {field.name} has only None, so its column has no type"
            raise refusal(ValueError, what, where=where, hint="declare its type, such as int | None")
        if is_nested(field.type) and not _fits_json(field.type):
            what = f"the field {field.name} of the type {field.type} cannot be written as JSON"
            hint = (
                "lists, records and dicts by text may hold texts, numbers, bools and times; convert it before"
            )
            raise refusal(ValueError, what, where=where, hint=hint)


def is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _fits_json(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_string(kind.key_type) and _fits_json(kind.item_type)
    if is_nested(kind):
        return all(_fits_json(kind.field(place).type) for place in range(kind.num_fields))
    return any(fits(kind) for fits in _JSON_LEAVES)


def postgres_type(kind: pa.DataType) -> str:
    """The type of a new column in PostgreSQL.

    >>> postgres_type(pa.int64()), postgres_type(pa.timestamp("us", "UTC")), postgres_type(pa.list_(pa.int64()))
    ('bigint', 'timestamptz', 'jsonb')
    """
    if pa.types.is_integer(kind):
        return "smallint" if kind.bit_width <= 16 else "integer" if kind.bit_width == 32 else "bigint"
    if pa.types.is_floating(kind):
        return "double precision" if kind.bit_width == 64 else "real"
    if pa.types.is_decimal(kind):
        # What a Decimal without a declared scale has: any number of digits.
        return (
            "numeric"
            if (kind.precision, kind.scale) == (38, 18)
            else f"numeric({kind.precision}, {kind.scale})"
        )
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_duration(kind):
        return "interval"
    plain = ((pa.types.is_boolean, "boolean"), (pa.types.is_string, "text"), (pa.types.is_binary, "bytea"))
    return next((name for fits, name in (*plain, (pa.types.is_date, "date")) if fits(kind)), "jsonb")
