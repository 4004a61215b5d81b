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
from pyspark.sql.types import DataType, DecimalType

from penstock.error import refusal
from penstock.io.csvio import CLASSES_SHOWN
from penstock.io.formats.declared_fields import digits_of
from penstock.typehints.column_types import decimal_of
from penstock.typehints.constraints import Hint
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

_DECLARED_ONLY = ("datetime", "date", "decimal")

_IN_SPARK = {kind: spark_type_of(_leaving(value)) for kind, value in VALUES.items()}
_WITH_DIGITS = re.compile(r"decimal\((\d+),(\d+)\)")
"""A kind of decimals with a number of digits, and of those after the point."""

INT = r"^\s*[+-]?[0-9]+\s*$"
FLOAT = (
    r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$|^\s*[+-]?(inf|Inf|INF|Infinity|infinity)\s*$"
)
BOOL = r"^(true|True|TRUE|false|False|FALSE)$"
_DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r" ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"


def _decimals(digits: int, scale: int) -> str:
    """The pattern of the decimals in a column with a number of digits, of which `scale` are after the point."""
    return rf"^\s*[+-]?(?=\.?[0-9])0*[0-9]{{0,{digits - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?\s*$"


_PATTERNS = {
    "int": INT,
    "long int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "datetime": rf"^\s*{_DAY}(?:[T ]{_CLOCK}(?:{_ZONE})?)?\s*$",
    "date": rf"^\s*{_DAY}\s*$",
    "decimal": _decimals(value_types.DECIMAL_DIGITS, value_types.DECIMAL_SCALE),
}
_NAMES = {"int": "int", "int64": "int", "float": "float", "float64": "float", "bool": "bool", "str": "str"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def hint_of(kind: str) -> Hint:
    """The type hint of the values of a kind.

    >>> hint_of("long int"), hint_of("decimal(10,2)")
    (<class 'int'>, Decimal(10, 2))
    """
    digits = _WITH_DIGITS.fullmatch(kind)
    return VALUES[kind].hint if digits is None else decimal_of(int(digits[1]), int(digits[2]))


def kind_of_hint(hint: Hint) -> str | None:
    """The kind of values with a type hint; None if CSV has no such values.

    >>> kind_of_hint(int), kind_of_hint(hint_of("decimal(10,2)")), kind_of_hint(list)
    ('int', 'decimal(10,2)', None)
    """
    digits = digits_of(hint)
    if digits is not None:
        return f"decimal({digits[0]},{digits[1]})"
    return next((kind for kind, value in VALUES.items() if value.hint is hint), None)


def in_spark(kind: str) -> DataType:
    """Spark's type for the values of a kind.

    >>> in_spark("long int"), in_spark("decimal(10,2)")
    (LongType(), DecimalType(10,2))
    """
    digits = _WITH_DIGITS.fullmatch(kind)
    return _IN_SPARK[kind] if digits is None else DecimalType(int(digits[1]), int(digits[2]))


def is_declared_only(kind: str) -> bool:
    """True if no column has a kind unless the user says so."""
    return kind.partition("(")[0] in _DECLARED_ONLY


PARSERS: dict[str, Callable[[str], object]] = {"long int": int, "decimal": Decimal}
"""The functions with which Python reads the text of values that Spark's type would change, by their kinds.

An integer may have more than 64 bits. A decimal whose type has no numbers of digits keeps the digits of its text.
"""


def asked_kinds(names: Sequence[str], options: Mapping[str, Any], where: str) -> dict[str, str | None]:
    """The kinds that the user has chosen; None for each other column."""
    return {name: _asked(options.get("dtype"), name, where) for name in names}


def _asked(dtype: Any, name: str, where: str) -> str | None:
    kind = dtype.get(name) if isinstance(dtype, dict) else dtype
    if kind is None:
        return None
    if kind is object:
        return "str"
    known = _NAMES.get(kind) if isinstance(kind, str) else kind_of_hint(kind)
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
    return kind != "str"


def _pattern(kind: str) -> str:
    digits = _WITH_DIGITS.fullmatch(kind)
    return _PATTERNS[kind] if digits is None else _decimals(int(digits[1]), int(digits[2]))


def fits(text: Column, kind: str) -> Column:
    """A column that is true where a text is a value of a kind that `is_checked`, and null where the text is null."""
    has_form = text.rlike(_pattern(kind))
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
    has_form = re.compile(_pattern(kind), re.ASCII).match
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


def to_decode(column: Column, kind: str) -> Column:
    """A column of strings as values of a kind, or as text of which a parser of `PARSERS` makes them in Python."""
    return column if kind in PARSERS else typed(column, kind)


def typed(column: Column, kind: str) -> Column:
    """A column of strings as values of a kind; long integers stay text."""
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
        case "str" | "long int":
            return column
    return F.trim(column).try_cast(in_spark(kind))


def _with_zone(text: Column) -> Column:
    """A text of a time in the one form that means the same in every session: with its seconds and its zone."""
    text = F.regexp_replace(text, "^(.{10})$", "$1 00:00")
    text = F.regexp_replace(text, "^(.{16})(?!:)", "$1:00")
    return F.when(text.rlike(rf"^.{{19}}.*{_ZONE}$"), text).otherwise(F.concat(text, F.lit("Z")))


def _micros(moment: datetime.datetime) -> int:
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)
