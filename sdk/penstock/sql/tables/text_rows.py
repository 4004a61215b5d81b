"""Rows as lines of CSV, and as raw bytes, in the values of records."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.tables.json_rows import read_value

_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class RowsOfCsv:
    """Decodes a line of CSV as a row; an empty field without quotes is NULL.

    Attributes:
        columns: The columns, in the order of the fields.
        sep: What separates fields.

    >>> from penstock.scalars.types import BIGINT, STRING
    >>> columns = (ColumnDef("team", STRING), ColumnDef("points", BIGINT))
    >>> RowsOfCsv(columns)(b'"blue, light",3'), RowsOfCsv(columns, ";")(b"red;")
    (Row(team='blue, light', points=3), Row(team='red', points=None))
    """

    columns: Columns
    sep: str = ","

    def __call__(self, data: bytes) -> Row:
        """The row of a line."""
        try:
            lines = list(csv.reader([data.decode("utf-8")], delimiter=self.sep, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            why = str(error) if isinstance(error, csv.Error) else "it is not UTF-8"
            hint = "write one line a record; rejects keeps such records apart in a stream"
            raise refusal(ValueError, f"a record is not CSV: {why}", where="", hint=hint) from None
        fields = lines[0] if lines else []
        if len(fields) != len(self.columns):
            what = f"a record has {len(fields)} fields, and the table {len(self.columns)} columns"
            raise refusal(ValueError, what, where="", hint="declare a column for each field, in their order")
        pairs = zip(self.columns, fields, strict=True)
        return Row(**{column.name: _of_text(column, field) for column, field in pairs})


def _of_text(column: ColumnDef, field: str) -> object:
    """The value of a field."""
    value: object = field or None
    name = column.type.name
    try:
        if field and name == "BIGINT":
            value = int(field)
        elif field and name == "DOUBLE":
            value = float(field)
        elif field and name == "BOOLEAN":
            value = _TRUTHS[field.lower()]
    except (ValueError, KeyError):
        # The text is not a value of the type, which the next call says.
        value = [field]
    return read_value(column, value)


@dataclass(frozen=True)
class CsvOfRows:
    r"""Encodes values of a row as a line of CSV; NULL is an empty field.

    >>> CsvOfRows()({"team": "blue, light", "day": date(2026, 1, 31), "n": None, "ok": True})
    b'"blue, light",2026-01-31,,true'
    """

    sep: str = ","

    def __call__(self, values: Mapping[str, object]) -> bytes:
        """The line of a row."""
        line = io.StringIO()
        csv.writer(line, delimiter=self.sep, lineterminator="").writerow(map(_as_text, values.values()))
        return line.getvalue().encode()


def _as_text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str() | int() | float() | Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
    what = f"CSV has no value for {type(value).__name__}"
    raise refusal(TypeError, what, where="", hint="CAST it to STRING, or write format = 'json'")


@dataclass(frozen=True)
class RowsOfBytes:
    """Makes of the whole value of a record the only column of a row.

    >>> from penstock.scalars.types import BINARY, STRING
    >>> RowsOfBytes((ColumnDef("line", STRING),))(b"a b"), RowsOfBytes((ColumnDef("data", BINARY),))(b"a b")
    (Row(line='a b'), Row(data=b'a b'))
    """

    columns: Columns

    def __call__(self, data: bytes) -> Row:
        """The row of a value."""
        [column] = self.columns
        return Row(**{column.name: data if column.type.name == "BINARY" else data.decode("utf-8")})


def write_bytes(values: Mapping[str, object]) -> bytes | None:
    """Returns the only value of a row; None for NULL.

    >>> write_bytes({"line": "a b"}), write_bytes({"data": None})
    (b'a b', None)
    """
    [value] = values.values()
    if isinstance(value, bytes | None):
        return value
    return _as_text(value).encode()
