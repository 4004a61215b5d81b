"""Types the expressions that Spark computes exactly as Python does; `NotInColumns` says why it does not compute others.

Each rule has its reason beside it, and `explain` prints the text of the error. Of integers, INTEGER has as many
bits as it needs in Python, and BIGINT is known to have no more than 64.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import types as T

from penstock.scalars.expressions import ARITHMETIC, COMPARISONS, Expression
from penstock.scalars.tree import Call, Field, Literal, Scalar, WindowBound, spell
from penstock.scalars.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    SqlType,
)
from penstock.values import types as values
from penstock_spark.columns.types import in_spark, value_in_spark
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds

Fields = tuple[tuple[str, T.DataType], ...]

_KINDS_OF_VALUES = {
    values.INTEGER: "int",
    values.FLOAT: "float",
    values.BOOLEAN: "bool",
    values.TEXT: "str",
    values.BINARY: "bytes",
    values.DATE: "date",
    values.INSTANT: "instant",
}
_KINDS = {type(column): name for value, name in _KINDS_OF_VALUES.items() for column in in_spark(value)}
_TYPES = {name: in_spark(value)[-1] for value, name in _KINDS_OF_VALUES.items()}
_SCALARS = {
    "int": INTEGER,
    "float": FLOAT,
    "bool": BOOLEAN,
    "str": STRING,
    "bytes": BINARY,
    "date": DATE,
    "instant": TIMESTAMP,
}
_KIND_NAMES = {"BIGINT": "int", **{kind.name: name for name, kind in _SCALARS.items()}}
WINDOW_BOUNDS = {"start": "\0start", "end": "\0end"}
"""The names of a window's bounds among the fields; no field of the user's has such a name."""

_EXACT_IN_FLOAT = 1 << values.FLOAT_DIGIT_BITS[64]


class NotInColumns(Exception):
    """Spark cannot do it, or not like Python; the text is the reason, as a clause."""


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
    """True if a column holds single values, which are the same in a dict and in a Row."""
    return kind_of(column) is not None or value_in_spark(column) in (values.DECIMAL, values.LOCAL_TIME)


def column_type(expression: Expression, fields: Fields) -> T.DataType:
    return _TYPES[name_kind(expression, fields)]


def name_kind(expression: Expression, fields: Fields) -> str:
    """The kind of an expression's values, ``int``, ``float``, ``bool``, ``str``, ``bytes``, ``date`` or
    ``instant``.

    >>> from penstock.scalars.expressions import field
    >>> table = (("points", T.LongType()), ("team", T.StringType()))
    >>> name_kind((field("points") + 1 > 3) & (field("team") == "red"), table)
    'bool'
    """
    return _KIND_NAMES[type_expression(expression, fields).type.name]


def type_expression(expression: Expression, fields: Fields, bounds: Bounds = UNBOUNDED) -> Scalar:
    """Returns what an expression computes, with the types of all its parts.

    A field that Spark keeps unchanged, whatever its type, has the type PYTHON.

    Args:
        expression: The expression.
        fields: The names of fields, and their types in Spark.
        bounds: What is known about the numbers in fields.

    Raises:
        NotInColumns: Spark does not compute it exactly as Python does.
    """
    return _Typing(dict(fields), bounds).of(expression.scalar)


class _Typing:
    def __init__(self, columns: dict[str, T.DataType], bounds: Bounds) -> None:
        self._columns = columns
        self._bounds = bounds

    def of(self, scalar: Scalar) -> Scalar:
        match scalar:
            case Field(name):
                return Field(name, _SCALARS[self._kind_of_field(name)])
            case WindowBound(bound):
                name = WINDOW_BOUNDS.get(bound, "")
                if name not in self._columns:
                    raise NotInColumns(f"{scalar} belongs to a window that has no column")
                return Field(name, TIMESTAMP)
            case Literal(value):
                return Literal(value, _type_of_literal(value))
            case Call("TRUTH", [part]):
                return self.of(part)
            case Call("IS NULL", [part]):
                is_any = isinstance(part, Field) and part.name in self._columns
                return replace(scalar, arguments=(part if is_any else self.of(part),))
            case Call("AND" | "OR" | "NOT", arguments):
                parts = tuple(map(self.of, arguments))
                if {part.type.name for part in parts} != {"BOOLEAN"}:
                    raise NotInColumns(f"a part of {spell(scalar)} is not a boolean")
                return replace(scalar, arguments=parts)
            case Call(name) if name in ARITHMETIC:
                return self._arithmetic(scalar)
            case Call(name) if name in COMPARISONS:
                return self._comparison(scalar)
        raise NotInColumns(f"{spell(scalar)} has no equivalent in Spark")

    def _kind_of_field(self, name: str) -> str:
        if name not in self._columns:
            raise NotInColumns(f"the column {name} does not exist")
        found = kind_of(self._columns[name])
        if found is None:
            raise NotInColumns(f"the column {name} has the type {self._columns[name].simpleString()}")
        return found

    def _arithmetic(self, call: Call) -> Scalar:
        left, right = map(self.of, call.arguments)
        kinds = _KIND_NAMES[left.type.name], _KIND_NAMES[right.type.name]
        if not set(kinds) <= {"int", "float"}:
            # In Python, a boolean is a number, and a text can be added to another.
            raise NotInColumns(f"{spell(call)} computes with {kinds[0]} and {kinds[1]}")
        if call.name in ("//", "%"):
            # Python rounds down, Spark towards zero; a quotient by zero has no value.
            is_constant = isinstance(right, Literal) and kinds[1] == "int" and right.value > 0
            if kinds[0] != "int" or not is_constant:
                raise NotInColumns(f"{spell(call)} does not divide an integer by a positive integer constant")
            return Call(call.name, (left, right), INTEGER)
        if "float" in kinds:
            return Call(call.name, (_as_float(left), _as_float(right)), FLOAT)
        is_small = self._bounds.range_of(Expression(call)) is not None
        return Call(call.name, (left, right), BIGINT if is_small else INTEGER)

    def _comparison(self, call: Call) -> Scalar:
        left, right = map(self.of, call.arguments)
        kinds = _KIND_NAMES[left.type.name], _KIND_NAMES[right.type.name]
        if kinds[0] != kinds[1]:
            if not _is_float_and_small_int(left, right):
                # Python compares an int with a float exactly; Spark rounds the int first.
                raise NotInColumns(f"{spell(call)} compares {kinds[0]} with {kinds[1]}")
            left, right = _as_float(left), _as_float(right)
        elif kinds[0] == "bool" and call.name not in ("=", "<>"):
            raise NotInColumns(f"{spell(call)} orders booleans")
        return Call(call.name, (left, right), BOOLEAN)


def _as_float(scalar: Scalar) -> Scalar:
    return scalar if scalar.type.name == "FLOAT" else Call("CAST", (scalar,), FLOAT)


def _is_float_and_small_int(left: Scalar, right: Scalar) -> bool:
    """True if one side is a float and the other a constant that is exact as a float."""
    constant = right if left.type.name == "FLOAT" else left
    return (
        {_KIND_NAMES[left.type.name], _KIND_NAMES[right.type.name]} == {"float", "int"}
        and isinstance(constant, Literal)
        and isinstance(constant.value, int)
        and abs(constant.value) <= _EXACT_IN_FLOAT
    )


def _type_of_literal(value: object) -> SqlType:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int) and values.INTEGER.least <= value <= values.INTEGER.greatest:
        return INTEGER
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, str) and _is_unicode(value):
        return STRING
    raise NotInColumns(f"it has a value of type {type(value).__name__}, which Spark cannot hold")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        # A Python text may contain lone surrogates, which a text column cannot hold.
        return False
    return True
