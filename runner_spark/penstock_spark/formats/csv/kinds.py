"""The kinds of columns of CSV files: which text is a value of each, and how Spark reads such a text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.error import refusal
from penstock.io.csvio import CLASSES_SHOWN
from penstock.values import types as value_types
from penstock.values.types import ValueType
from penstock_spark.columns.types import spark_type_of, spelling_of_hint


def _leaving(value: ValueType) -> pa.DataType:
    spelling = spelling_of_hint(value.hint)
    assert spelling is not None
    return spelling.leaves


VALUES = {
    "int": value_types.INTEGER,
    "long int": value_types.INTEGER,
    "float": value_types.FLOAT,
    "bool": value_types.BOOLEAN,
    "str": value_types.TEXT,
    "datetime": value_types.INSTANT,
    "date": value_types.DATE,
    "decimal": value_types.DECIMAL,
}
"""The types of values, by the kinds of columns: a long int may have more than 64 bits."""

DECLARED_ONLY = ("datetime", "date", "decimal")
"""The kinds that no column has unless the user says so."""

IN_SPARK = {kind: spark_type_of(_leaving(value)) for kind, value in VALUES.items()}
"""Spark's types for the values of each kind."""

INT = r"^\s*[+-]?[0-9]+\s*$"
FLOAT = (
    r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$|^\s*[+-]?(inf|Inf|INF|Infinity|infinity)\s*$"
)
BOOL = r"^(true|True|TRUE|false|False|FALSE)$"
_DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r" ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
_PATTERNS = {
    "int": INT,
    "long int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "datetime": rf"^\s*{_DAY}(?:[T ]{_CLOCK}(?:{_ZONE})?)?\s*$",
    "date": rf"^\s*{_DAY}\s*$",
    # As many digits as a column of decimals has.
    "decimal": r"^\s*[+-]?0*(?:[0-9]{1,20}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})\s*$",
}
_KINDS = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    object: "str",
    datetime.datetime: "datetime",
    datetime.date: "date",
    Decimal: "decimal",
}
_NAMES = {"int": "int", "int64": "int", "float": "float", "float64": "float", "bool": "bool", "str": "str"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def asked_kinds(names: Sequence[str], options: Mapping[str, Any], where: str) -> dict[str, str | None]:
    """The kinds that the user has chosen; None for each other column."""
    return {name: _asked(options.get("dtype"), name, where) for name in names}


def _asked(dtype: Any, name: str, where: str) -> str | None:
    kind = dtype.get(name) if isinstance(dtype, dict) else dtype
    if kind is None:
        return None
    known = _NAMES.get(kind) if isinstance(kind, str) else _KINDS.get(kind)
    if known is None:
        raise refusal(
            ValueError,
            f"the dtype {kind!r} of {name} is not supported",
            where=where,
            hint=f"use {CLASSES_SHOWN}",
        )
    return known


def is_checked(kind: str) -> bool:
    """True if not every text is a value of a kind."""
    return kind in _PATTERNS


def fits(text: Column, kind: str) -> Column:
    """A column that is true where a text is a value of a kind that `is_checked`, and null where the text is null."""
    has_form = text.rlike(_PATTERNS[kind])
    match kind:
        case "datetime":
            first, last = _micros(value_types.INSTANT.least), _micros(value_types.INSTANT.greatest)
            is_held = F.unix_micros(typed(text, kind)).between(first, last)
            return F.when(text.isNotNull(), has_form & F.coalesce(is_held, F.lit(False)))
        case "date":
            return F.when(text.isNotNull(), has_form & typed(text, kind).isNotNull())
    return has_form


def fits_text(kind: str) -> Callable[[str], bool]:
    """Returns the same test for strings in Python."""
    has_form = re.compile(_PATTERNS[kind], re.ASCII).match
    match kind:
        case "datetime":
            return lambda text: has_form(text) is not None and _is_read(_read_datetime, text)
        case "date":
            return lambda text: has_form(text) is not None and _is_read(datetime.date.fromisoformat, text)
    return lambda text: has_form(text) is not None


def _read_datetime(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(re.sub(" (?=[Z+-])", "", text))
    return found if found.tzinfo is None else found.astimezone(datetime.UTC)


def _is_read(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text.strip())
    except (ValueError, OverflowError):
        return False
    return True


def typed(column: Column, kind: str) -> Column:
    """A column of strings as values of a kind; the decoder converts long integers."""
    match kind:
        case "int":
            return F.trim(column).cast("bigint")
        case "float":
            return F.trim(column).cast("double")
        case "bool":
            return F.lower(column) == "true"
        case "datetime":
            return _with_zone(F.trim(column)).try_cast("timestamp")
        case "date":
            return F.trim(column).try_cast("date")
        case "decimal":
            return F.trim(column).try_cast(IN_SPARK[kind])
    return column


def _with_zone(text: Column) -> Column:
    """A text of a time in the one form that means the same in every session: with its seconds and its zone."""
    text = F.regexp_replace(text, "^(.{10})$", "$1 00:00")
    text = F.regexp_replace(text, "^(.{16})(?!:)", "$1:00")
    return F.when(text.rlike(rf"^.{{19}}.*{_ZONE}$"), text).otherwise(F.concat(text, F.lit("Z")))


def _micros(moment: datetime.datetime) -> int:
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)
