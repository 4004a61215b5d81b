"""What SQLAlchemy knows about columns: the types of a new table, and whether the types of an existing one fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


def new_type(kind: pa.DataType, in_key: bool) -> Any:
    """The type of a new column in another database."""
    if pa.types.is_integer(kind):
        return sa.BigInteger() if kind.bit_width == 64 else sa.Integer()
    if pa.types.is_decimal(kind):
        return sa.Numeric(kind.precision, kind.scale)
    if pa.types.is_string(kind):
        # Some databases have no keys of texts without a length.
        return sa.String(255) if in_key else sa.Text()
    if pa.types.is_timestamp(kind):
        return sa.DateTime(timezone=bool(kind.tz))
    plain: tuple[tuple[Any, Any], ...] = (
        *((pa.types.is_floating, sa.Double()), (pa.types.is_boolean, sa.Boolean())),
        *(
            (pa.types.is_binary, sa.LargeBinary()),
            (pa.types.is_date, sa.Date()),
            (pa.types.is_time, sa.Time()),
        ),
        (pa.types.is_duration, sa.Interval()),
    )
    return next((made for fits, made in plain if fits(kind)), sa.JSON())


def why_not(kind: pa.DataType, column: Any, dialect: str) -> str | None:
    """Why a column of a database cannot hold all values of a type; None if it can, or if only the values tell."""
    is_postgres = dialect == "postgresql"
    if pa.types.is_decimal(kind) and dialect == "sqlite":
        return "SQLite keeps Decimals as floats: convert it to whole cents, or to a text"
    if pa.types.is_duration(kind) and dialect == "sqlite":
        return "SQLite keeps no lengths of time: convert it to a number of microseconds"
    if isinstance(column, sa.types.NullType):
        return None if dialect == "sqlite" else "penstock does not know its type"
    # In SQLAlchemy 2.0, a Float is a Numeric, too.
    is_rounded = isinstance(column, sa.Float) and not pa.types.is_floating(kind)
    if is_rounded or not isinstance(column, tuple(_accepted(kind, is_postgres))):
        return f"it has the type {_shown(column)}"
    if (
        pa.types.is_timestamp(kind)
        and is_postgres
        and bool(kind.tz) != bool(getattr(column, "timezone", False))
    ):
        return f"it has the type {_shown(column)}, and one of the two has a time zone"
    if pa.types.is_floating(kind) and kind.bit_width == 64 and is_postgres and isinstance(column, sa.REAL):
        return "it has the type REAL, which rounds floats: make it double precision"
    if pa.types.is_decimal(kind) and isinstance(column, sa.Numeric) and column.precision is not None:
        scale = column.scale or 0
        if kind.scale > scale or kind.precision - kind.scale > column.precision - scale:
            digits = f"decimal_of({column.precision}, {scale})"
            return f"it has the type {_shown(column)}, which rounds Decimals: declare the field as {digits}"
    return None


def _accepted(kind: pa.DataType, is_postgres: bool) -> Iterator[Any]:
    if pa.types.is_boolean(kind):
        yield sa.Boolean
    elif pa.types.is_integer(kind):
        yield from (sa.Integer, sa.Numeric)
    elif pa.types.is_floating(kind):
        yield sa.Float
    elif pa.types.is_decimal(kind):
        yield sa.Numeric
    elif pa.types.is_string(kind):
        yield sa.String
        if is_postgres:
            # The server reads them from text, and says if one cannot be read.
            yield from (sa.Uuid, sa.JSON, postgresql.INET, postgresql.CIDR, postgresql.CITEXT)
    elif pa.types.is_binary(kind):
        yield sa.types._Binary
    elif pa.types.is_date(kind):
        yield sa.Date
    elif pa.types.is_timestamp(kind):
        yield sa.DateTime
    elif pa.types.is_time(kind):
        yield sa.Time
    elif pa.types.is_duration(kind):
        yield sa.Interval
        if is_postgres:
            yield postgresql.INTERVAL
    else:
        yield sa.JSON


def _shown(column: Any) -> str:
    try:
        return str(column)
    except Exception:
        return type(column).__name__
