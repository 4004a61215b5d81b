"""The record of a scalar function: all that is known about it, for the binder and both writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from penstock.error import three_parts
from penstock.scalars.casting import Compute, type_of_value
from penstock.scalars.tree import Call, Scalar
from penstock.scalars.types import SqlType

Arguments = tuple[Scalar, ...]
Resolve = Callable[["ScalarFunction", Arguments], Scalar]
"""Makes the call of arguments, with the casts that a query leaves out."""
Choose = Callable[[SqlType, Sequence[SqlType]], Compute]
"""Chooses the function of Python by the types of a result and of arguments."""


@dataclass(frozen=True)
class Code:
    """The Python text of an expression.

    Attributes:
        text: The text, which stands where any operand may.
        nullable: Whether the value may be None.
        plain: Whether the text is a name or a number, which costs nothing to repeat.
        number: Whether the value is a number other than NaN, as far as the text shows.
    """

    text: str
    nullable: bool
    plain: bool = False
    number: bool = False


class PythonForms(Protocol):
    """The part of the writer to Python that functions use which write their own text."""

    def value(self, scalar: Scalar) -> Code:
        """Returns the text of an expression."""

    def truth(self, scalar: Scalar) -> str:
        """Returns the text of whether an expression is true; False where it is false or NULL."""

    def bound(self, code: Code) -> tuple[str, str]:
        """Returns a name for a value, and the text that computes the value and assigns it to the name."""

    def name_of(self, value: object) -> str:
        """Returns a name in the text for a value of the program."""

    def apart(self, scalar: Scalar) -> str:
        """Returns the text of a call of a function of its own that computes an expression."""


Inline = Callable[[Call, Sequence[Code]], str | None]
"""Returns the Python text of a call, with {0} and {1} for its arguments; None if it has to be a call in Python."""
SparkForm = str | Callable[[Call, Sequence[str], str], str]
"""A call's text in Spark's SQL, with {0} and {1} for its arguments, {all} for all of them and {rest} for all but the
first; or a function from the call, the arguments as text, and the text that fails for a number of too many
bits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalarFunction:
    """A function or an operator.

    Attributes:
        name: The canonical name, which its calls have.
        resolve: Checks the types of arguments, casts these, and returns a call; its own or one of other functions. None
            if no query names it.
        spellings: Other names that queries may use.
        python: Chooses what computes it, of values that are not None; None if it is always a call of others.
        takes_null: Whether that is given None for NULL; else the result is NULL where an argument is.
        inline: Writes the text that computes it without a call of what `python` chooses.
        prepared: From arguments that the query names to what computes the first: it is made once, and not for each row.
        write: Writes the text of a call that does not compute all its arguments, or that is not NULL where one is.
        spark: The text of a call in Spark's SQL.
        not_in_spark: Why Spark does not compute exactly the same; empty if it does.
        parameters: From the arguments before a lambda to the types of the values that the lambda may be called with;
            None for a function that takes no lambdas.
        whole: Which width a result has that is an integer or a DOUBLE: the width of the widest of ``operands``, of
            the ``first`` one, or of a type such as INT; if empty, the width that `resolve` says.
    """

    name: str
    resolve: Resolve | None = None
    spellings: tuple[str, ...] = ()
    python: Choose | None = None
    takes_null: bool = False
    inline: Inline | None = None
    prepared: Callable[..., Compute] | None = None
    write: Callable[[PythonForms, Call], str] | None = None
    spark: SparkForm = ""
    not_in_spark: str = ""
    parameters: Callable[[Arguments], tuple[SqlType, ...]] | None = None
    whole: str = ""

    def __call__(self, *arguments: Scalar) -> Scalar:
        """Returns a call, with the casts that a query leaves out."""
        assert self.resolve is not None, f"no query calls {self.name}"
        return self.resolve(self, arguments)

    def of(self, arguments: Arguments, result: SqlType) -> Call:
        """Returns a call of arguments that fit."""
        return Call(self.name, arguments, self._of_width(arguments, result))

    def _of_width(self, arguments: Arguments, result: SqlType) -> SqlType:
        if not self.whole or result.name not in ("BIGINT", "DOUBLE"):
            return result
        if self.whole in BITS:
            return replace(result, bits=BITS[self.whole]) if result.name == "BIGINT" else result
        used = arguments[:1] if self.whole == "first" else arguments
        found = [each.type.bits for each in used if each.type.name == result.name]
        return replace(result, bits=max(found)) if found else result


BITS = {"BIGINT": 64, "INT": 32, "SMALLINT": 16, "TINYINT": 8}
"""The number of bits of each type of integers."""


def write_by_template(templates: Mapping[str, str]) -> Inline:
    """Returns what writes a call by the type of its first argument, or by PYTHON for a call of that type."""
    return lambda call, codes: templates.get(
        "PYTHON" if call.type.name == "PYTHON" else call.arguments[0].type.name
    )


def write_always(template: str) -> Inline:
    """Returns what writes each call in the same way."""
    return lambda call, codes: template


# The choice of the function of Python by types


def choose_always(compute: Compute) -> Choose:
    """Returns the choice of a function that is the same for all types."""
    return lambda result, arguments: _of_any(compute) if _starts_with_any(arguments) else compute


def choose_by_type(computes: Mapping[str, Compute]) -> Choose:
    """Returns the choice of a function by the type of its first argument."""
    return lambda result, arguments: (
        _of_any(computes) if _starts_with_any(arguments) else computes[arguments[0].name]
    )


def choose_at_run_time(compute: Compute) -> Choose:
    """Returns the choice of a function that takes values of types that are known only when it runs."""
    return lambda result, arguments: compute


def _starts_with_any(arguments: Sequence[SqlType]) -> bool:
    return bool(arguments) and arguments[0].name == "ANY"


def _of_any(computes: Compute | Mapping[str, Compute]) -> Compute:
    """Returns the function of a value whose type is known only when it runs."""

    def compute(first: object, *others: object) -> object:
        found = computes.get(type_of_value(first).name) if isinstance(computes, Mapping) else computes
        if found is not None:
            try:
                return found(first, *others)
            except (AttributeError, TypeError):
                pass
        do_not_fit(first, *others)

    return compute


def do_not_fit(*values: object) -> NoReturn:
    """Refuses values whose types were not known when the query was read."""
    names = " and ".join(type(value).__name__ for value in values)
    raise TypeError(
        three_parts(
            f"an SQL operator does not take values of {names}",
            hint="declare the types of the columns, or CAST the values",
        )
    ) from None
