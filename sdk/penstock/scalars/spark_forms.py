"""Names, types and values in Spark's SQL, and the reasons why Spark does not compute a call as Python does."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import replace
from decimal import Decimal

from penstock.error import three_parts
from penstock.scalars.casting import text_of
from penstock.scalars.types import SqlType

LAST_BIT = "Java's and Python's results differ in the last bit"
ZONES = "Spark looks up time zones elsewhere"
LETTERS = "Java and Python have letters of different versions of Unicode"


class NotForSpark(ValueError):
    """Spark does not compute exactly the values of Python for an expression (penstock's own).

    Attributes:
        reason: Why, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(three_parts(reason, hint="Python computes it"))
        self.reason = reason

    def __reduce__(self) -> tuple[type[NotForSpark], tuple[str]]:
        return NotForSpark, (self.reason,)


def quote_name(name: str) -> str:
    """Returns a name in Spark's SQL.

    >>> quote_name("the `best` team")
    '`the ``best`` team`'
    """
    return "`" + name.replace("`", "``") + "`"


_NAMES = {
    "NULL": "VOID",
    "INTERVAL": "INTERVAL DAY TO SECOND",
    "MONTHS": "INTERVAL YEAR TO MONTH",
    "INTEGER": "BIGINT",
    "FLOAT": "DOUBLE",
}
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f]")


def write_type(kind: SqlType) -> str:
    """Returns a type in Spark's SQL.

    Raises:
        NotForSpark: Spark has no type with the same values.
    """
    if kind.name == "ARRAY":
        return f"ARRAY<{write_type(kind.element or SqlType('NULL'))}>"
    if kind.name == "MAP":
        return f"MAP<{', '.join(map(write_type, kind.parts))}>"
    if kind.name == "STRUCT":
        return f"STRUCT<{', '.join(f'{quote_name(name)}: {write_type(each)}' for name, each in kind.fields)}>"
    if kind.name == "DECIMAL":
        if kind.precision is None:
            raise NotForSpark("a DECIMAL without declared digits has different ones in Spark")
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _NAMES.get(kind.name, kind.width_name)


def write_literal(value: object, kind: SqlType) -> str:
    """Returns a value in Spark's SQL.

    Raises:
        NotForSpark: Spark has no text for it.
    """
    match value:
        case None:
            return "NULL" if kind.name == "NULL" else f"CAST(NULL AS {write_type(kind)})"
        case bool():
            return str(value).lower()
        case int() if kind.name == "MONTHS":
            return f"INTERVAL '{value}' MONTH"
        case int():
            return _whole_text(value, kind.bits if kind.name == "BIGINT" else 64)
        case float() if kind.bits == 32:
            return f"CAST({write_literal(value, replace(kind, bits=64))} AS FLOAT)"
        case float():
            return f"({value!r}D)" if math.isfinite(value) else f"CAST('{text_of(value)}' AS DOUBLE)"
        case Decimal():
            return _decimal_text(value, kind)
        case str():
            return "'" + _ESCAPED.sub(_escape, value) + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime.datetime():
            name, zone = ("TIMESTAMP", "Z") if value.tzinfo else ("TIMESTAMP_NTZ", "")
            return f"{name}'{text_of(value)}{zone}'"
        case datetime.date():
            return f"DATE'{value.isoformat()}'"
        case datetime.timedelta():
            return text_of(value)
    raise NotForSpark(f"a value of {type(value).__name__} has no literal in Spark")


def _decimal_text(value: Decimal, kind: SqlType) -> str:
    text = f"{value:f}"
    before, _, behind = text.lstrip("-").partition(".")
    digits = max(len((before + behind).lstrip("0")), len(behind), 1)
    text = f"({text}BD)" if value < 0 else f"{text}BD"
    # Spark's literals have the digits that they show.
    is_typed = (kind.precision, kind.scale) == (digits, len(behind))
    return text if is_typed else f"CAST({text} AS {write_type(kind)})"


_SUFFIXES = {8: "Y", 16: "S", 32: "", 64: "L"}


def _whole_text(value: int, bits: int) -> str:
    text = f"{value}{_SUFFIXES[bits]}"
    return text if value >= 0 else f"({text})"


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"
