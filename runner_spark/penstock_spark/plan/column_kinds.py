"""Says which expressions Spark computes exactly as Python does, and the kind of their results.

Each rule has its reason beside it; an expression without a rule raises `NotInColumns`, whose text `explain` prints.
"""

from __future__ import annotations

from pyspark.sql import types as T

from penstock.functions.expressions import (
    Arithmetic,
    Comparison,
    Connective,
    Expression,
    Field,
    IsNull,
    Literal,
    Not,
)
from penstock.functions.field_functions import WindowBound
from penstock.values import types as values
from penstock_spark.columns.types import in_spark, value_in_spark

Fields = tuple[tuple[str, T.DataType], ...]

_NAMES = {
    values.INTEGER: "int",
    values.FLOAT: "float",
    values.BOOLEAN: "bool",
    values.TEXT: "str",
    values.BINARY: "bytes",
    values.DATE: "date",
    values.INSTANT: "instant",
}
_KINDS = {type(column): name for value, name in _NAMES.items() for column in in_spark(value)}
_TYPES = {name: in_spark(value)[-1] for value, name in _NAMES.items()}
WINDOW_BOUNDS = {"start": "\0start", "end": "\0end"}
"""The names of a window's bounds among the fields; no field of the user's has such a name."""

_ORDERED = ("int", "float", "str", "bytes", "date", "instant")
_EXACT_IN_FLOAT = 1 << values.FLOAT_DIGIT_BITS[64]


class NotInColumns(Exception):
    """Spark cannot do it, or not as Python does; the text gives the reason, as a clause."""


def kind_of(column: T.DataType) -> str | None:
    """The kind of Python value that a column holds; None for columns that expressions cannot use.

    >>> kind_of(T.ShortType()), kind_of(T.DecimalType(10, 2))
    ('int', None)
    """
    if type(column) is T.StringType:
        # Text with another collation compares differently.
        return "str" if column == T.StringType() else None
    return _KINDS.get(type(column))


def is_flat(column: T.DataType) -> bool:
    """Whether a column holds single values, which are the same in a dict and in a Row."""
    return kind_of(column) is not None or value_in_spark(column) in (values.DECIMAL, values.LOCAL_TIME)


def column_type(expression: Expression, fields: Fields) -> T.DataType:
    return _TYPES[kind(expression, fields)]


def kind(expression: Expression, fields: Fields) -> str:
    """The kind of an expression's values, ``int``, ``float``, ``bool``, ``str``, ``bytes``, ``date`` or
    ``instant``.

    >>> table = (("points", T.LongType()), ("team", T.StringType()))
    >>> kind((Field("points") + 1 > 3) & (Field("team") == "red"), table)
    'bool'
    """
    match expression:
        case Field(name):
            return _field_kind(name, fields)
        case WindowBound():
            if expression.bound not in WINDOW_BOUNDS or WINDOW_BOUNDS[expression.bound] not in dict(fields):
                raise NotInColumns(f"{expression} belongs to a window that has no column")
            return "instant"
        case Literal(value):
            return _literal_kind(value)
        case IsNull(operand):
            if not isinstance(operand, Field) or operand.name not in dict(fields):
                kind(operand, fields)
            return "bool"
        case Arithmetic():
            return _arithmetic_kind(expression, fields)
        case Comparison():
            return _comparison_kind(expression, fields)
        case Connective() | Not():
            if {kind(part, fields) for part in expression.parts} != {"bool"}:
                raise NotInColumns(f"a part of {expression} is not a boolean")
            return "bool"
    raise NotInColumns(f"{expression} has no equivalent in Spark")


def _field_kind(name: str, fields: Fields) -> str:
    columns = dict(fields)
    if name not in columns:
        raise NotInColumns(f"the column {name} does not exist")
    found = kind_of(columns[name])
    if found is None:
        raise NotInColumns(f"the column {name} has the type {columns[name].simpleString()}")
    return found


def _literal_kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and values.INTEGER.least <= value <= values.INTEGER.greatest:
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str) and _is_unicode(value):
        return "str"
    raise NotInColumns(f"it has a value of type {type(value).__name__}, which Spark cannot hold")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        # A Python text may contain lone surrogates, which a text column cannot hold.
        return False
    return True


def _arithmetic_kind(expression: Arithmetic, fields: Fields) -> str:
    left, right = (kind(part, fields) for part in expression.parts)
    if not {left, right} <= {"int", "float"}:
        # In Python, a boolean is a number, and a text can be added to another.
        raise NotInColumns(f"{expression} computes with {left} and {right}")
    if expression.symbol in ("//", "%"):
        # Python rounds down, Spark towards zero; a quotient by zero has no value.
        divisor = expression.right
        if left != "int" or not (isinstance(divisor, Literal) and right == "int" and divisor.value > 0):
            raise NotInColumns(f"{expression} does not divide an integer by a positive integer constant")
    return "int" if (left, right) == ("int", "int") else "float"


def _comparison_kind(expression: Comparison, fields: Fields) -> str:
    left, right = (kind(part, fields) for part in expression.parts)
    if left != right and not is_float_and_small_int(expression, left, right):
        # Python compares an int with a float exactly; Spark rounds the int first.
        raise NotInColumns(f"{expression} compares {left} with {right}")
    if left == right == "bool" and expression.symbol not in ("==", "!="):
        raise NotInColumns(f"{expression} orders booleans")
    assert left in (*_ORDERED, "bool")
    return "bool"


def is_float_and_small_int(expression: Comparison, left: str, right: str) -> bool:
    """Whether one side is a float and the other a constant that is exact as a float."""
    other = {"float": expression.right, "int": expression.left}.get(left)
    return {left, right} == {"float", "int"} and (
        isinstance(other, Literal) and abs(other.value) <= _EXACT_IN_FLOAT
    )
