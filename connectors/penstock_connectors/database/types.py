"""Matches types with SQLAlchemy: the types of a new table, and whether the types of an existing one fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from penstock.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INSTANT,
    INTEGER,
    LOCAL_TIME,
    TEXT,
    TIME,
    ValueType,
)
from penstock_spark.connecting.values import value_of

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

_TYPES: dict[ValueType, tuple[Any, tuple[Any, ...]]] = {
    BOOLEAN: (sa.Boolean(), (sa.Boolean,)),
    INTEGER: (sa.BigInteger(), (sa.Integer, sa.Numeric)),
    FLOAT: (sa.Double(), (sa.Float,)),
    DECIMAL: (sa.Numeric(), (sa.Numeric,)),
    TEXT: (sa.Text(), (sa.String,)),
    BINARY: (sa.LargeBinary(), (sa.types._Binary,)),
    DATE: (sa.Date(), (sa.Date,)),
    TIME: (sa.Time(), (sa.Time,)),
    INSTANT: (sa.DateTime(timezone=True), (sa.DateTime,)),
    LOCAL_TIME: (sa.DateTime(), (sa.DateTime,)),
    DURATION: (sa.Interval(), (sa.Interval,)),
}
"""The types of values as SQLAlchemy spells them: the one of a new column, and the classes of those that have them."""

_ONLY_IN_POSTGRES: dict[ValueType, tuple[Any, ...]] = {
    # The server reads them from text, and says if one cannot be read.
    TEXT: (sa.Uuid, sa.JSON, postgresql.INET, postgresql.CIDR, postgresql.CITEXT),
    DURATION: (postgresql.INTERVAL,),
}


def choose_type(kind: pa.DataType, in_key: bool) -> TypeEngine[Any]:
    """The type of a new column in another database."""
    value = value_of(kind)
    if value is INTEGER and kind.bit_width < 64:
        return sa.Integer()
    if value is DECIMAL:
        return sa.Numeric(kind.precision, kind.scale)
    if value is TEXT and in_key:
        # Some databases have no keys of strings without a length.
        return sa.String(255)
    return sa.JSON() if value not in _TYPES else _TYPES[value][0]


def explain_mismatch(kind: pa.DataType, column: object, dialect: str) -> str | None:
    """Why a column of a database cannot hold all values of a type; None if it can, or if that depends on the values."""
    is_postgres, value = dialect == "postgresql", value_of(kind)
    if value is DECIMAL and dialect == "sqlite":
        return "SQLite keeps Decimals as floats: convert it to whole cents, or to a string"
    if value is DURATION and dialect == "sqlite":
        return "SQLite has no durations: convert it to a number of microseconds"
    if isinstance(column, sa.types.NullType):
        return None if dialect == "sqlite" else "penstock does not know its type"
    # In SQLAlchemy 2.0, a Float is also a Numeric.
    is_rounded = isinstance(column, sa.Float) and value is not FLOAT
    if is_rounded or not isinstance(column, _list_accepted(value, is_postgres)):
        return f"it has the type {_show_type(column)}"
    if (
        value in (INSTANT, LOCAL_TIME)
        and is_postgres
        and (value is INSTANT) != bool(getattr(column, "timezone", False))
    ):
        return f"it has the type {_show_type(column)}, and one of the two has a time zone"
    if value is FLOAT and kind.bit_width == 64 and is_postgres and isinstance(column, sa.REAL):
        return "it has the type REAL, which rounds floats: make it double precision"
    if value is DECIMAL and isinstance(column, sa.Numeric) and column.precision is not None:
        scale = column.scale or 0
        if kind.scale > scale or kind.precision - kind.scale > column.precision - scale:
            digits = f"decimal_of({column.precision}, {scale})"
            return (
                f"it has the type {_show_type(column)}, which rounds Decimals: declare the field as {digits}"
            )
    return None


def _list_accepted(value: ValueType | None, is_postgres: bool) -> tuple[Any, ...]:
    if value not in _TYPES:
        return (sa.JSON,)
    return _TYPES[value][1] + (_ONLY_IN_POSTGRES.get(value, ()) if is_postgres else ())


def _show_type(column: object) -> str:
    try:
        return str(column)
    except Exception:
        return type(column).__name__
