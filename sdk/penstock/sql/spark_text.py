"""Expressions as text of Spark SQL, where Spark gives exactly what Python gives."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from penstock.error import three_parts
from penstock.sql import casting, regexes
from penstock.sql.functions import FUNCTIONS
from penstock.sql.scalars import Call, Column, Literal, Scalar, UserCall, walk
from penstock.sql.types import SqlType


class NotForSpark(ValueError):
    """Spark does not give exactly what Python gives for an expression (penstock's own).

    Attributes:
        reason: Why, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(three_parts(reason, hint="Python computes it"))
        self.reason = reason

    def __reduce__(self) -> tuple[type[NotForSpark], tuple[str]]:
        return NotForSpark, (self.reason,)


def spark_text(scalar: Scalar, names: Sequence[str]) -> str:
    """An expression in Spark's SQL.

    The text means the same where ``spark.sql.ansi.enabled`` is set and the time zone of the session is UTC. Times
    outside of the years 1 to 9999 are the exception: they are errors in Python, and Spark computes with them. And
    where one argument is NULL, such as in NULL + a, Spark and Python may leave out different others, and with them
    errors.

    Args:
        scalar: The expression.
        names: The names of the columns in Spark, by the columns' numbers.

    Raises:
        NotForSpark: Spark does not give exactly what Python gives.

    >>> from penstock.sql.functions import call
    >>> from penstock.sql.types import BIGINT
    >>> spark_text(call("+", [Column(0, "a", BIGINT), Literal(1, BIGINT.or_null(False))]), ["score"])
    '(`score` + 1L)'
    """
    for part in walk(scalar):
        if "ANY" in str(part.type):
            raise NotForSpark(f"the type of {part} is not known")
    return _text(scalar, names)


def _text(scalar: Scalar, names: Sequence[str]) -> str:
    match scalar:
        case Column(index):
            return quoted(names[index])
        case Literal(value, sql_type):
            return _literal(value, sql_type)
        case UserCall(name):
            raise NotForSpark(f"{name} is a function of the user")
    if any(part.type.name == "DECIMAL" for part in scalar.arguments) and not scalar.name.endswith(" NULL"):
        raise NotForSpark("Spark computes decimals with other numbers of digits")
    function = FUNCTIONS.get(scalar.name)
    if function and function.reason:
        raise NotForSpark(f"{scalar.name}: {function.reason}")
    texts = [_text(part, names) for part in scalar.arguments]
    special = _SPECIAL.get(scalar.name)
    return special(scalar, texts) if special else _filled(FUNCTIONS[scalar.name].spark, texts)


def _filled(template: str, texts: Sequence[str]) -> str:
    return template.format(*texts, all=", ".join(texts), rest=", ".join(texts[1:]))


def quoted(name: str) -> str:
    """A name in Spark's SQL.

    >>> quoted("the `best` team")
    '`the ``best`` team`'
    """
    return "`" + name.replace("`", "``") + "`"


# Types and literals

_NAMES = {"NULL": "VOID", "INTERVAL": "INTERVAL DAY TO SECOND"}
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f]")
_INT_MIN: Final = -(1 << 31)
_INT_MAX: Final = (1 << 31) - 1


def _type(sql_type: SqlType) -> str:
    if sql_type.name == "ARRAY":
        return f"ARRAY<{_type(sql_type.element or SqlType('NULL'))}>"
    if sql_type.name == "DECIMAL":
        raise NotForSpark("a DECIMAL has other numbers of digits in Spark")
    return _NAMES.get(sql_type.name, sql_type.name)


def _literal(value: Any, sql_type: SqlType) -> str:
    match value:
        case None:
            return "NULL" if sql_type.name == "NULL" else f"CAST(NULL AS {_type(sql_type)})"
        case bool():
            return str(value).lower()
        case int():
            return f"{value}L" if value >= 0 else f"({value}L)"
        case float():
            return _float(value)
        case Decimal():
            return f"{value:f}BD"
        case str():
            return "'" + _ESCAPED.sub(_escape, value) + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime.datetime():
            name, zone = ("TIMESTAMP", "Z") if value.tzinfo else ("TIMESTAMP_NTZ", "")
            return f"{name}'{casting.text_of(value)}{zone}'"
        case datetime.date():
            return f"DATE'{value.isoformat()}'"
        case datetime.timedelta():
            return casting.text_of(value)
    raise NotForSpark(f"a value of {type(value).__name__} has no text in Spark")


def _float(value: float) -> str:
    if math.isfinite(value):
        return f"({value!r}D)"
    return f"CAST('{casting.text_of(value)}' AS DOUBLE)"


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"


# Calls that are not written by a template

_Written = Callable[[Call, list[str]], str]


def _cast(call: Call, texts: list[str]) -> str:
    source, target = call.arguments[0].type, call.type
    _check_cast(source, target, call.name == "TRY_CAST")
    return f"{call.name}({texts[0]} AS {_type(target)})"


def _check_cast(source: SqlType, target: SqlType, is_try: bool) -> None:
    if source.name == "ARRAY" and target.name == "ARRAY" and source.element and target.element:
        return _check_cast(source.element, target.element, is_try)
    match source.name, target.name:
        case "STRING", "TIMESTAMP" | "TIMESTAMP_NTZ":
            raise NotForSpark("a text may name a time zone, which Spark looks up elsewhere")
        case _, "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" if is_try and source.name in (
            "STRING",
            "BIGINT",
            "DOUBLE",
        ):
            raise NotForSpark("Spark has years after 9999, where TRY_CAST gives NULL in Python")
        case "DOUBLE", "STRING":
            raise NotForSpark("versions of Java write floats with other digits")
        case "BINARY", "STRING":
            raise NotForSpark("Spark keeps bytes in a text that are no text")
        case "INTERVAL", "STRING":
            raise NotForSpark("Spark writes an interval by the units that its column has")
    return None


def _case(call: Call, texts: list[str]) -> str:
    pairs = zip(texts[:-1:2], texts[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {branches} ELSE {texts[-1]} END"


def _int(call: Call, texts: list[str]) -> str:
    value = call.arguments[0].value if isinstance(call.arguments[0], Literal) else None
    if isinstance(value, int) and _INT_MIN < value <= _INT_MAX:
        return f"({value})" if value < 0 else str(value)
    return f"CAST({texts[0]} AS INT)"


def _sum(call: Call, texts: list[str]) -> str:
    left, right = call.arguments
    if call.type.name == "DATE" and isinstance(right, Literal):
        days = right.value.days
        return f"date_add({texts[0]}, {days if call.name == '+' else -days})"
    text = f"({texts[0]} {call.name} {texts[1]})"
    if left.type.name == right.type.name == "DATE":
        return f"CAST({text} AS INTERVAL DAY TO SECOND)"
    return text


def _extreme(call: Call, texts: list[str]) -> str:
    return f"{call.name.lower()}({', '.join(texts)})" if len(texts) > 1 else texts[0]


def _whole(call: Call, texts: list[str]) -> str:
    (value,) = texts
    text = _filled(FUNCTIONS[call.name].spark, texts)
    if call.arguments[0].type.name != "DOUBLE":
        return text
    # Before Spark 4.3, the result is the nearest BIGINT if there is none for it; a cast fails.
    is_beyond = f"abs({value}) >= 9223372036854775808D AND NOT isnan({value})"
    return f"CASE WHEN {is_beyond} THEN CAST({value} AS BIGINT) ELSE {text} END"


def _like(call: Call, texts: list[str]) -> str:
    escape = texts[2] if len(texts) > 2 else _literal("\\", _TEXT)
    return _filled(FUNCTIONS["LIKE"].spark, [*texts[:2], escape])


def _trim(call: Call, texts: list[str]) -> str:
    name = call.name.lower()
    return _filled(FUNCTIONS[call.name].spark, texts) if len(texts) > 1 else f"{name}({texts[0]})"


def _with_regex(call: Call, texts: list[str]) -> str:
    for part in call.arguments[1:]:
        if part.type.name == "STRING" and not isinstance(part, Literal):
            raise NotForSpark("a regular expression of the data may mean something else in Java")
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    if isinstance(pattern.value, str) and not regexes.translated(pattern.value)[1]:
        raise NotForSpark(f"Java may read the regular expression {pattern} differently")
    if call.name in ("REGEXP_REPLACE", "SPLIT") and pattern.value and _matches_nothing(pattern.value):
        raise NotForSpark(
            f"Java finds the regular expression {pattern} inside of characters that it stores as two"
        )
    return _filled(FUNCTIONS[call.name].spark, texts)


def _matches_nothing(pattern: str) -> bool:
    """Whether a regular expression may match the empty text somewhere; the ends of lines and texts are in it."""
    return "(?=" in pattern or "(?!" in pattern or regexes.compiled(pattern).search("") is not None


def _date_bin(call: Call, texts: list[str]) -> str:
    width, time = call.arguments
    if not isinstance(width, Literal) or width.value is None or time.type.name != "TIMESTAMP":
        raise NotForSpark("DATE_BIN is not a function of Spark")
    micros = width.value // datetime.timedelta(microseconds=1)
    if micros <= 0:
        raise NotForSpark("the interval of DATE_BIN is not above 0")
    since = f"unix_micros({texts[1]})"
    return f"timestamp_micros({since} - pmod({since}, {micros}L))"


_TEXT = SqlType("STRING", False)
_SPECIAL: dict[str, _Written] = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "CASE": _case,
    "INT": _int,
    "+": _sum,
    "-": _sum,
    **dict.fromkeys(("FLOOR", "CEIL"), _whole),
    "GREATEST": _extreme,
    "LEAST": _extreme,
    "LIKE": _like,
    **dict.fromkeys(("TRIM", "LTRIM", "RTRIM"), _trim),
    **dict.fromkeys(("RLIKE", "SPLIT", "REGEXP_EXTRACT", "REGEXP_REPLACE"), _with_regex),
    "DATE_BIN": _date_bin,
}
"""The calls whose text depends on the types or the values of arguments."""
