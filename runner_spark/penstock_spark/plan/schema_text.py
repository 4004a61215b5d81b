"""Schemas that are written as text, such as ``"name string, points int"``, without a running Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark.sql import types as T

from penstock.values.types import BINARY, BOOLEAN, DATE, FLOAT, INSTANT, INTEGER, LOCAL_TIME, TEXT
from penstock_spark.columns.types import in_spark

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+|[<>(),:])")
_ATOMIC = tuple(
    kind
    for value in (BOOLEAN, INTEGER, FLOAT, TEXT, BINARY, DATE, INSTANT, LOCAL_TIME)
    for kind in in_spark(value)
)
# Spark's SQL and its Python have different names for some types.
_NAMES: dict[str, T.DataType] = {
    **{name: kind for kind in _ATOMIC for name in (kind.simpleString(), kind.typeName())},
    "real": T.FloatType(),
    "timestamp_ltz": T.TimestampType(),
}


class _NotKnown(Exception):
    """Only Spark can read it."""


def schema_of_text(text: str) -> T.StructType | None:
    """The columns that a text describes; None if only Spark can read it.

    A ``timestamp`` is an instant. Spark would ask the user's session, in which it may be a local time.

    >>> schema_of_text("a int not null, `b c` map<string, array<decimal(5, 2)>> comment 'x'").simpleString()
    'struct<a:int,b c:map<string,array<decimal(5,2)>>>'
    >>> schema_of_text("a mystery") is None
    True
    """
    try:
        tokens = _Tokens(text)
        fields = _fields(tokens, "")
        tokens.expect("")
        return T.StructType(fields)
    except _NotKnown:
        return None


class _Tokens:
    """The tokens of a text, followed by endless empty ones."""

    def __init__(self, text: str) -> None:
        self._rest = list(_cut(text))[::-1]

    @property
    def next(self) -> str:
        """The next token, which stays."""
        return self._rest[-1] if self._rest else ""

    def take(self) -> str:
        return self._rest.pop() if self._rest else ""

    def expect(self, *wanted: str) -> None:
        """Takes the next tokens, which must be these."""
        for each in wanted:
            if self.take().lower() != each:
                raise _NotKnown


def _cut(text: str) -> Iterator[str]:
    place = 0
    text = text.strip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _NotKnown
        yield found.group(1)
        place = found.end()


def _fields(tokens: _Tokens, end: str) -> list[T.StructField]:
    fields = []
    while tokens.next != end:
        name = tokens.take()
        if tokens.next == ":":
            tokens.take()
        kind = _kind(tokens)
        nullable = tokens.next.lower() != "not"
        if not nullable:
            tokens.expect("not", "null")
        if tokens.next.lower() == "comment":
            tokens.take()
            tokens.take()
        plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
        fields.append(T.StructField(plain, kind, nullable))
        if tokens.next != end:
            tokens.expect(",")
    return fields


def _kind(tokens: _Tokens) -> T.DataType:
    name = tokens.take().lower()
    match name:
        case "array":
            tokens.expect("<")
            item = _kind(tokens)
            tokens.expect(">")
            return T.ArrayType(item)
        case "map":
            tokens.expect("<")
            key = _kind(tokens)
            tokens.expect(",")
            value = _kind(tokens)
            tokens.expect(">")
            return T.MapType(key, value)
        case "struct":
            tokens.expect("<")
            fields = _fields(tokens, ">")
            tokens.expect(">")
            return T.StructType(fields)
        case "decimal" | "dec" | "numeric":
            return _decimal(tokens)
    if name not in _NAMES:
        raise _NotKnown
    return _NAMES[name]


def _decimal(tokens: _Tokens) -> T.DecimalType:
    if tokens.next != "(":
        return T.DecimalType(10, 0)
    tokens.expect("(")
    numbers = [tokens.take()]
    if tokens.next == ",":
        tokens.take()
        numbers.append(tokens.take())
    tokens.expect(")")
    if not all(number.isdigit() for number in numbers):
        raise _NotKnown
    return T.DecimalType(*map(int, numbers))
