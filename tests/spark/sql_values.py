"""Values of SQL in Spark's frames: the types of their columns, the session that reads them, and how they compare."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow

from penstock.elements.row import Row
from penstock.scalars.types import SqlType

_ARROW = {
    "BIGINT": pyarrow.int64(),
    "INT": pyarrow.int32(),
    "SMALLINT": pyarrow.int16(),
    "TINYINT": pyarrow.int8(),
    "DOUBLE": pyarrow.float64(),
    "FLOAT": pyarrow.float32(),
    "STRING": pyarrow.string(),
    "BOOLEAN": pyarrow.bool_(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pyarrow.timestamp("us"),
    "INTERVAL": pyarrow.duration("us"),
    "BINARY": pyarrow.binary(),
}
AS_WRITTEN = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Else Spark computes what an expression has in common with others, where CASE would not compute it.
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""The settings with which Spark computes an expression as penstock does, and nothing that is not needed."""


def arrow_type(kind: SqlType) -> pyarrow.DataType:
    """The type of Arrow for a column of a type of SQL."""
    if kind.name == "DECIMAL":
        return pyarrow.decimal128(kind.precision, kind.scale)
    if kind.name == "MAP":
        return pyarrow.map_(*map(arrow_type, kind.parts))
    if kind.name == "STRUCT":
        return pyarrow.struct([(name, arrow_type(each)) for name, each in kind.fields])
    return pyarrow.list_(arrow_type(kind.element)) if kind.element else _ARROW[kind.width_name]


def arrow_value(value: Any) -> Any:
    """A value of SQL as Arrow takes it: structs are dicts, and maps lists of pairs."""
    if isinstance(value, Row):
        return {name: arrow_value(each) for name, each in value.as_dict().items()}
    if isinstance(value, dict):
        return [(key, arrow_value(each)) for key, each in value.items()]
    return [arrow_value(each) for each in value] if isinstance(value, list) else value


@contextlib.contextmanager
def with_settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def identical(left: Any, right: Any) -> bool:
    """True if two values are equal in type and digits, in sign, too; NaN equals NaN, and a Row a dict of Arrow's."""
    if isinstance(left, Row) and isinstance(right, dict):
        names = list(left.as_dict()) == list(right)
        return names and identical(list(left), list(right.values()))
    if isinstance(left, dict) and isinstance(right, list):
        return identical(list(left.items()), right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, float) and isinstance(right, float):
        signs = math.copysign(1, left) == math.copysign(1, right)
        return left == right and signs if left == left else right != right
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return type(left) is type(right) and left == right
