"""Rows as JSON in the values of records."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.formats.json_values import read_boolean, read_integer, read_string
from penstock.scalars.types import ANY, SqlType
from penstock.scalars.widths import fits_width, single
from penstock.sql.plan.relations import ColumnDef, Columns


def _float(value: object) -> float:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    raise TypeError


def _decimal(value: object) -> Decimal:
    if isinstance(value, int | Decimal | str) and not isinstance(value, bool):
        return Decimal(value)
    raise TypeError


def _moment(value: object) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(read_string(value))
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)


def _local(value: object) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(read_string(value))
    if moment.tzinfo is not None:
        raise ValueError
    return moment


_READERS: Mapping[str, Callable[[Any], object]] = {
    "BIGINT": read_integer,
    "DOUBLE": _float,
    "DECIMAL": _decimal,
    "STRING": read_string,
    "BOOLEAN": read_boolean,
    "TIMESTAMP": _moment,
    "TIMESTAMP_NTZ": _local,
    "DATE": lambda value: datetime.date.fromisoformat(read_string(value)),
}


def _read(kind: SqlType, value: object) -> object:
    """A value of a type; a struct may lack fields, which are NULL."""
    if value is None:
        if kind.nullable:
            return None
        raise TypeError
    if kind.name == "ARRAY":
        if not isinstance(value, list):
            raise TypeError
        return [_read(kind.element or ANY, each) for each in value]
    if kind.is_nested:
        if not isinstance(value, dict):
            raise TypeError
        if kind.name == "STRUCT":
            return Row(**{name: _read(each, value.get(name)) for name, each in kind.fields})
        return {_key(kind.key or ANY, key): _read(kind.element or ANY, each) for key, each in value.items()}
    read = _READERS.get(kind.name)
    found = value if read is None else read(value)
    if kind.name == "BIGINT" and not fits_width(found, kind.bits):
        raise ValueError
    return single(_float(found)) if kind.name == "DOUBLE" and kind.bits == 32 else found


def _key(kind: SqlType, key: str) -> object:
    """A key of a map, which is a string in JSON."""
    if kind.name == "BIGINT":
        return _read(kind, int(key))
    return Decimal(key) if kind.name == "DECIMAL" else _read(kind, key)


@dataclass(frozen=True)
class RowsOfJson:
    """Decodes a JSON object as a row.

    Attributes:
        columns: The columns; the object may have more fields, and one that lacks a field has NULL there.

    >>> from penstock.scalars.types import BIGINT, STRING, array_of, struct_of
    >>> from penstock.sql.plan.relations import ColumnDef
    >>> decode = RowsOfJson((ColumnDef("team", STRING), ColumnDef("points", BIGINT)))
    >>> decode(b'{"team": "blue", "points": 3, "more": true}')
    Row(team='blue', points=3)
    >>> from penstock.scalars.types import TINYINT
    >>> RowsOfJson((ColumnDef("points", TINYINT),))(b'{"points": 128}')
    Traceback (most recent call last):
        ...
    ValueError: the field 'points' of a record is not TINYINT
      hint: declare the column with the type that it has
    >>> nested = RowsOfJson((ColumnDef("a", array_of(struct_of([("x", BIGINT)]))),))
    >>> nested(b'{"a": [{"x": 1}, {}]}')
    Row(a=[Row(x=1), Row(x=None)])
    """

    columns: Columns

    def __call__(self, data: bytes) -> Row:
        """The row of an object."""
        hint = "write one object a record; rejects keeps such records apart in a stream"
        try:
            found = json.loads(data, parse_float=Decimal)
        except ValueError as error:
            # The text of a JSONDecodeError names a place, and others may quote the record.
            why = str(error) if isinstance(error, json.JSONDecodeError) else "it is not UTF-8"
            raise refusal(ValueError, f"a record is not JSON: {why}", where="", hint=hint) from None
        if not isinstance(found, dict):
            raise refusal(ValueError, "a record is not a JSON object", where="", hint=hint)
        return Row(**{each.name: read_value(each, found.get(each.name)) for each in self.columns})


def read_value(column: ColumnDef, value: object) -> object:
    """Returns the value of a column for a value of JSON.

    Raises:
        ValueError: It is not of the column's type.

    >>> from penstock.scalars.types import DATE
    >>> read_value(ColumnDef("day", DATE), "2026-01-31")
    datetime.date(2026, 1, 31)
    """
    if check_not_null(column, value) is None:
        return None
    try:
        return _read(column.type, value)
    except (TypeError, ValueError, ArithmeticError):
        what = f"the field {column.name!r} of a record is not {column.type.or_null()}"
        hint = "declare the column with the type that it has"
        raise refusal(ValueError, what, where="", hint=hint) from None


def check_not_null(column: ColumnDef, value: object) -> object:
    """Returns a value, which is not NULL if its column takes none."""
    if value is None and not column.type.nullable:
        what = f"a record has no {column.name!r}, which is declared NOT NULL"
        raise refusal(ValueError, what, where="", hint="declare the column without NOT NULL")
    return value


def write_json(fields: Mapping[str, object]) -> bytes:
    """Returns the object of fields.

    >>> write_json({"day": datetime.date(2026, 1, 31), "sum": Decimal("1.50")})
    b'{"day": "2026-01-31", "sum": "1.50"}'
    """
    return json.dumps(fields, default=_plain, ensure_ascii=False).encode()


def _plain(value: object) -> object:
    """A value that JSON has no type for, as text."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, Row):
        return value.as_dict()
    if isinstance(value, Decimal):
        return str(value)
    raise refusal(
        TypeError, f"JSON has no value for {type(value).__name__}", where="", hint="CAST it to STRING"
    )
