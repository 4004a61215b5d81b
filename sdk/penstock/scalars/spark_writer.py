"""Writes expressions as Spark's SQL, where Spark computes exactly the values that Python computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.scalars.functions import RECORDS
from penstock.scalars.spark_forms import NotForSpark, quote_name, write_literal, write_type
from penstock.scalars.tree import Call, Column, Field, Lambda, Literal, Parameter, Scalar, UserCall, walk


def write_scalar(scalar: Scalar, names: Sequence[str]) -> str:
    """Returns an expression over rows in Spark's SQL.

    The text means the same where ``spark.sql.ansi.enabled`` is set and the time zone of the session is UTC. Times
    outside of the years 1 to 9999 are the exception: they are errors in Python, and Spark computes with them. And
    where one argument is NULL, such as in NULL + a, Spark and Python may leave out different others, and with them
    errors.

    Args:
        scalar: The expression.
        names: The names of the columns in Spark, by the columns' numbers.

    Raises:
        NotForSpark: Spark does not compute exactly the same values.

    >>> from penstock.scalars.functions import call
    >>> from penstock.scalars.types import BIGINT
    >>> write_scalar(call("+", [Column(0, "a", BIGINT), Literal(1, BIGINT.or_null(False))]), ["score"])
    '(`score` + 1L)'
    """
    for part in walk(scalar):
        if part.type.has("ANY"):
            raise NotForSpark(f"the type of {part} is not known")
    return _Writer(names, _no_field, "").text(scalar)


def _no_field(name: str) -> str:
    raise NotForSpark(f"the field {name} is not a column")


def write_field_expression(scalar: Scalar, text_of: Callable[[str], str], overflow: str) -> str:
    """Returns an expression of fields, whose parts have their types, in Spark's SQL.

    Args:
        scalar: The expression.
        text_of: From the name of a field to the text of its column.
        overflow: The text that fails for an integer of more than 64 bits.

    >>> from penstock.scalars.types import BOOLEAN, STRING
    >>> is_red = Call("=", (Field("team", STRING), Literal("red", STRING)), BOOLEAN)
    >>> write_field_expression(is_red, lambda name: f"c_{name}", "")
    "(c_team = 'red')"
    """
    return _Writer((), text_of, overflow).text(scalar)


class _Writer:
    def __init__(self, names: Sequence[str], text_of: Callable[[str], str], overflow: str) -> None:
        self._names = names
        self._text_of = text_of
        self._overflow = overflow

    def text(self, scalar: Scalar) -> str:
        match scalar:
            case Column(index):
                return quote_name(self._names[index])
            case Field(name, kind):
                text = self._text_of(name)
                # Numbers have 64 bits, whatever the column has.
                return f"CAST({text} AS {write_type(kind)})" if kind.name in ("INTEGER", "FLOAT") else text
            case Literal(value, kind):
                return write_literal(value, kind)
            case Parameter(number):
                return f"parameter{number}"
            case Lambda(parameters):
                names = ", ".join(f"parameter{each.number}" for each in parameters)
                # Spark does not read one name in parentheses.
                return f"{names if len(parameters) == 1 else f'({names})'} -> {self.text(scalar.body)}"
            case UserCall(name):
                raise NotForSpark(f"{name} is a function of the user")
            case Call():
                return self._call(scalar)
        raise NotForSpark(f"{scalar} has no equivalent in Spark")

    def _call(self, call: Call) -> str:
        types = [call.type, *(part.type for part in call.arguments)]
        has_any_digits = any(each.name == "DECIMAL" and each.precision is None for each in types)
        if has_any_digits and not call.name.endswith(" NULL"):
            raise NotForSpark("Spark computes decimals with other numbers of digits")
        function = RECORDS[call.name]
        if function.not_in_spark:
            raise NotForSpark(f"{call.name}: {function.not_in_spark}")
        written = [self.text(part) for part in call.arguments]
        if callable(function.spark):
            return function.spark(call, written, self._overflow)
        return function.spark.format(*written, all=", ".join(written), rest=", ".join(written[1:]))
