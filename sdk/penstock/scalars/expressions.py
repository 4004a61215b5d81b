"""Expressions: functions of an element that can also be read, so that an engine can compute them itself.

Beyond Beam. An expression is made of `field` and Python's operators, and is called like any other function. None is
SQL's null: an operation on None returns None, and ``&``, ``|`` and ``~`` have three truth values.

>>> fast = (field("speed") > 100) & ~field("driver").is_null()
>>> fast
(speed > 100) & ~driver.is_null()
>>> fast({"speed": 120, "driver": "amy"}), fast({"speed": None, "driver": "amy"}), fast({"speed": 1, "driver": None})
(True, None, False)
"""

from __future__ import annotations

import datetime
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import noun_for, refusal
from penstock.scalars.compiled_elements import compile_element_function
from penstock.scalars.row_functions import Forwarding
from penstock.scalars.tree import Call, Field, Literal, Scalar, WindowBound, parts_of, spell
from penstock.scalars.types import BOOLEAN, PYTHON
from penstock.typehints import row_type, typehints
from penstock.typehints.unions import without_none

ARITHMETIC = frozenset(["+", "-", "*", "//", "%"])
"""The names of the operators that compute numbers."""
COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">="])
"""The names of the operators that compare."""

_PLAIN = frozenset([int, float, str, bool, bytes, datetime.date, datetime.datetime])


def _operator(name: str, is_reflected: bool = False) -> Callable[[Expression, Any], Expression]:
    """The method of an operator, whose operands stay as Python has them."""

    def method(self: Expression, other: object) -> Expression:
        parts = (_operand(other), self.scalar) if is_reflected else (self.scalar, _operand(other))
        return Expression(Call(name, parts, PYTHON))

    return method


def _connective(name: str, is_reflected: bool = False) -> Callable[[Expression, Any], Expression]:
    def method(self: Expression, other: Expression) -> Expression:
        parts = (_operand(other), self.scalar) if is_reflected else (self.scalar, _operand(other))
        return Expression(Call(name, tuple(map(_truth, parts)), BOOLEAN))

    return method


@dataclass(frozen=True, eq=False, repr=False)
class Expression(Forwarding):
    """A function of an element, made of fields, values and operators.

    Python does not let a class define ``and``, ``or`` and ``not``; write ``&``, ``|`` and ``~``, with parentheses
    around comparisons. ``&`` and ``|`` stop at the operand that decides, as ``and`` and ``or`` do.

    Attributes:
        scalar: What it computes, as a value.
    """

    scalar: Scalar

    def __call__(self, element: object) -> Any:
        """The value for an element."""
        return self.function(element)

    @functools.cached_property
    def function(self) -> Callable[[Any], Any]:
        """The compiled function, which loops over elements call without more calls."""
        return compile_element_function([self.scalar], lambda writer: writer.value(self.scalar).text)

    def __getstate__(self) -> dict[str, Any]:
        return {"scalar": self.scalar}

    def type_of(self, input_type: object) -> Any:
        """Returns the type of the values for elements of a type."""
        return _hint_of(self.scalar, input_type)

    @property
    def field_name(self) -> str | None:
        """The name of the field that it is; None for every other expression."""
        return self.scalar.name if isinstance(self.scalar, Field) else None

    def fields(self) -> Iterator[str]:
        """Yields the names of the fields that it reads.

        >>> list((field("a") + field("b") > 3).fields())
        ['a', 'b']
        """
        yield from (part.name for part in _leaves(self.scalar) if isinstance(part, Field))

    def is_null(self) -> Expression:
        """Returns an expression that is True if the value is None, and False otherwise.

        >>> field("a").is_null()({"a": None})
        True
        """
        return Expression(Call("IS NULL", (self.scalar,), BOOLEAN.or_null(False)))

    def default_label(self) -> str:
        """Returns the expression in the spelling of Python."""
        return repr(self)

    # Else Python looks for a signature by comparing the object with others.
    __signature__ = inspect.Signature([inspect.Parameter("element", inspect.Parameter.POSITIONAL_ONLY)])

    @property
    def __name__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return spell(self.scalar)

    def __bool__(self) -> bool:
        what = f"the expression {self} is neither true nor false: it is a function of an element"
        hint = "write (a > 1) & (b < 2), | and ~ in place of and, or and not, and no chain such as 1 < a < 2"
        raise refusal(TypeError, what, hint=hint)

    # An expression is itself and no other: what looks like a comparison makes a new one.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _EQUALS(self, self._not_none(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _DIFFERS(self, self._not_none(other))

    def _not_none(self, other: object) -> object:
        if other is None:
            what = f"{self!r} is compared with None, and the result is None for every element"
            raise refusal(TypeError, what, hint="write field(...).is_null(), or ~field(...).is_null()")
        return other

    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __add__ = _operator("+")
    __radd__ = _operator("+", is_reflected=True)
    __sub__ = _operator("-")
    __rsub__ = _operator("-", is_reflected=True)
    __mul__ = _operator("*")
    __rmul__ = _operator("*", is_reflected=True)
    __floordiv__ = _operator("//")
    __mod__ = _operator("%")
    __and__ = _connective("AND")
    __rand__ = _connective("AND", is_reflected=True)
    __or__ = _connective("OR")
    __ror__ = _connective("OR", is_reflected=True)

    def __invert__(self) -> Expression:
        return Expression(Call("NOT", (_truth(self.scalar),), BOOLEAN))


_EQUALS, _DIFFERS = _operator("="), _operator("<>")


def field(name: str) -> Expression:
    """Returns a field of each element, to compute with (penstock's own).

    Args:
        name: The name of an attribute, or of an item if elements are dicts.

    Returns:
        An expression, which is a function of an element: ``Filter(field("score") > 10)``,
        ``Select("team", double=field("score") * 2)``, ``GroupBy(hour=field("at") // 3600)``.

    >>> from penstock.elements.row import Row
    >>> (field("score") * 2 + 1)(Row(score=20)), (field("team") == "red")({"team": "blue"})
    (41, False)
    """
    if not isinstance(name, str):
        what = f"a field has a name, not {noun_for(name)}"
        raise refusal(TypeError, what, hint="write field('score')")
    return Expression(Field(name))


def _operand(value: object) -> Scalar:
    return value.scalar if isinstance(value, Expression) else Literal(value, PYTHON)


def _truth(scalar: Scalar) -> Scalar:
    """An operand of ``&``, ``|`` or ``~``, which must be true, false or None."""
    return scalar if scalar.type.name == "BOOLEAN" else Call("TRUTH", (scalar,), BOOLEAN)


def _leaves(scalar: Scalar) -> Iterator[Scalar]:
    parts = parts_of(scalar)
    if not parts:
        yield scalar
    for part in parts:
        yield from _leaves(part)


# Types of values


def _hint_of(scalar: Scalar, input_type: object) -> object:
    match scalar:
        case Field(name):
            if hasattr(input_type, "get_type_for"):
                return input_type.get_type_for(name)
            row = row_type.RowTypeConstraint.from_user_type(input_type)
            return typehints.Any if row is None else row.get_type_for(name)
        case WindowBound():
            return datetime.datetime
        case Literal(value):
            return type(value)
        case Call("IS NULL"):
            return bool
        case Call("TRUTH", [part]):
            return _hint_of(part, input_type)
        case Call(name, arguments):
            hints = [_hint_of(part, input_type) for part in arguments]
            kinds = set(map(without_none, hints))
            if name in ARITHMETIC:
                # An int of ints, and a float if one of the numbers is a float.
                kind = float if float in kinds else int
                return _of_parts(kind, hints) if kinds <= {int, float} else typehints.Any
            # Objects of other classes may compare to anything.
            return _of_parts(bool, hints) if kinds <= _PLAIN else typehints.Any
    return typehints.Any


def _of_parts(kind: object, hints: list[Any]) -> object:
    """A type, with None if a part may be None."""
    nullable = [each for each in hints if typehints.is_nullable(each)]
    return typehints.Union[kind, *(each.with_members((kind, type(None))) for each in nullable)]
