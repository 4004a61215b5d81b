"""Expressions: functions of an element that can also be read, so that an engine may compute them on its own.

Beyond Beam. An expression is made of `field` and Python's operators, and is called like any other function. None is
SQL's null: an operation on None gives None, and ``&``, ``|`` and ``~`` know three truth values.

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
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import noun_for, refusal
from penstock.typehints import row_type, typehints
from penstock.typehints.unions import without_none

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_PLAIN = frozenset([int, float, str, bool, bytes, datetime.date, datetime.datetime])


def _operator(kind: str, symbol: str, is_reflected: bool = False) -> Callable[[Expression, Any], Expression]:
    """The method of an operator, which makes an expression of a class that is defined below."""

    def method(self: Expression, other: Any) -> Expression:
        parts = (_operand(other), self) if is_reflected else (self, _operand(other))
        made: Expression = globals()[kind](symbol, *parts)
        return made

    return method


class Expression(ABC):
    """A function of an element, made of fields, values and operators.

    Python does not let a class define ``and``, ``or`` and ``not``; write ``&``, ``|`` and ``~``, with parentheses
    around comparisons.
    """

    @abstractmethod
    def __call__(self, element: Any) -> Any:
        """The value for an element."""

    @abstractmethod
    def type_of(self, input_type: Any) -> Any:
        """The type of the values for elements of a type."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that this one is made of."""
        return ()

    def fields(self) -> Iterator[str]:
        """The names of the fields that it reads.

        >>> list((field("a") + field("b") > 3).fields())
        ['a', 'b']
        """
        for part in self.parts:
            yield from part.fields()

    def is_null(self) -> Expression:
        """Whether the value is None; never None itself.

        >>> field("a").is_null()({"a": None})
        True
        """
        return IsNull(self)

    def default_label(self) -> str:
        """The expression as it is written."""
        return repr(self)

    # Else Python looks for a signature by comparing the object with others.
    __signature__ = inspect.Signature([inspect.Parameter("element", inspect.Parameter.POSITIONAL_ONLY)])

    @property
    def __name__(self) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        what = f"the expression {self} is neither true nor false: it is a function of an element"
        hint = "write (a > 1) & (b < 2), | and ~ in place of and, or and not, and no chain such as 1 < a < 2"
        raise refusal(TypeError, what, hint=hint)

    # An expression is itself and no other: what looks like a comparison makes a new one.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("==", self, _not_none(self, other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("!=", self, _not_none(self, other))

    __lt__ = _operator("Comparison", "<")
    __le__ = _operator("Comparison", "<=")
    __gt__ = _operator("Comparison", ">")
    __ge__ = _operator("Comparison", ">=")
    __add__ = _operator("Arithmetic", "+")
    __radd__ = _operator("Arithmetic", "+", is_reflected=True)
    __sub__ = _operator("Arithmetic", "-")
    __rsub__ = _operator("Arithmetic", "-", is_reflected=True)
    __mul__ = _operator("Arithmetic", "*")
    __rmul__ = _operator("Arithmetic", "*", is_reflected=True)
    __floordiv__ = _operator("Arithmetic", "//")
    __mod__ = _operator("Arithmetic", "%")
    __and__ = _operator("Connective", "&")
    __rand__ = _operator("Connective", "&", is_reflected=True)
    __or__ = _operator("Connective", "|")
    __ror__ = _operator("Connective", "|", is_reflected=True)

    def __invert__(self) -> Expression:
        return Not(self)


@dataclass(frozen=True, eq=False, repr=False)
class Field(Expression):
    """A field of a record: an attribute, or an item of a dict."""

    name: str

    def __call__(self, element: Any) -> Any:
        return element[self.name] if isinstance(element, dict) else getattr(element, self.name)

    def fields(self) -> Iterator[str]:
        yield self.name

    def type_of(self, input_type: Any) -> Any:
        if hasattr(input_type, "get_type_for"):
            return input_type.get_type_for(self.name)
        row = row_type.RowTypeConstraint.from_user_type(input_type)
        return typehints.Any if row is None else row.get_type_for(self.name)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expression):
    """The same value for every element."""

    value: Any

    def __call__(self, element: Any) -> Any:
        return self.value

    def type_of(self, input_type: Any) -> Any:
        return type(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class _Binary(Expression):
    symbol: str
    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def __repr__(self) -> str:
        return f"{_bracketed(self.left)} {self.symbol} {_bracketed(self.right)}"


class Arithmetic(_Binary):
    """A sum, difference, product, quotient rounded down, or remainder; None if a part is None."""

    def __call__(self, element: Any) -> Any:
        left, right = self.left(element), self.right(element)
        return None if left is None or right is None else _ARITHMETIC[self.symbol](left, right)

    def type_of(self, input_type: Any) -> Any:
        """An int of ints, a float if one of the numbers is a float; otherwise unknown."""
        hints = [part.type_of(input_type) for part in self.parts]
        kinds = set(map(without_none, hints))
        return _of_parts(float if float in kinds else int, hints) if kinds <= {int, float} else typehints.Any


class Comparison(_Binary):
    """The comparison of two values; None if one is None."""

    def __call__(self, element: Any) -> Any:
        left, right = self.left(element), self.right(element)
        return None if left is None or right is None else self._compare(left, right)

    @functools.cached_property
    def _compare(self) -> Callable[[Any, Any], Any]:
        return _COMPARISONS[self.symbol]

    def type_of(self, input_type: Any) -> Any:
        return _truth(self, input_type)


class Connective(_Binary):
    """Whether both are true (``&``), or one of them (``|``); None where a part that is None would decide."""

    def __call__(self, element: Any) -> bool | None:
        return self.of(truth_of(self.left, self.left(element)), truth_of(self.right, self.right(element)))

    def of(self, left: bool | None, right: bool | None) -> bool | None:
        """The truth value of two.

        >>> (field("a") & field("b")).of(None, False)
        False
        """
        deciding = self.symbol == "|"
        if left is deciding or right is deciding:
            return deciding
        return None if left is None or right is None else not deciding

    def type_of(self, input_type: Any) -> Any:
        return _truth(self, input_type)


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expression):
    """True for false, false for true, None for None."""

    operand: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __call__(self, element: Any) -> bool | None:
        value = truth_of(self.operand, self.operand(element))
        return None if value is None else not value

    def type_of(self, input_type: Any) -> Any:
        return _truth(self, input_type)

    def __repr__(self) -> str:
        return f"~{_bracketed(self.operand)}"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Expression):
    """Whether a value is None."""

    operand: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __call__(self, element: Any) -> bool:
        return self.operand(element) is None

    def type_of(self, input_type: Any) -> Any:
        return bool

    def __repr__(self) -> str:
        return f"{_bracketed(self.operand)}.is_null()"


def field(name: str) -> Field:
    """A field of each element, to compute with (penstock's own).

    Args:
        name: The name of an attribute, or of an item if elements are dicts.

    Returns:
        An expression, which is a function of an element: ``Filter(field("score") > 10)``,
        ``Select("team", double=field("score") * 2)``, ``GroupBy(hour=field("at") // 3600)``.

    >>> from penstock.base.row import Row
    >>> (field("score") * 2 + 1)(Row(score=20)), (field("team") == "red")({"team": "blue"})
    (41, False)
    """
    if not isinstance(name, str):
        what = f"a field has a name, not {noun_for(name)}"
        raise refusal(TypeError, what, hint="write field('score')")
    return Field(name)


def _operand(value: Any) -> Expression:
    return value if isinstance(value, Expression) else Literal(value)


def _not_none(part: Expression, other: Any) -> Expression:
    if other is None:
        what = f"{part!r} is compared with None, and the result is None for every element"
        raise refusal(TypeError, what, hint="write field(...).is_null(), or ~field(...).is_null()")
    return _operand(other)


def _bracketed(part: Expression) -> str:
    return f"({part})" if isinstance(part, _Binary) else repr(part)


def truth_of(part: Expression, value: Any) -> bool | None:
    """The value of an operand of ``&``, ``|`` or ``~``; TypeError if it is neither true, false nor None."""
    if value is None or isinstance(value, bool):
        return value
    what = f"{part} is {noun_for(value)}, and &, | and ~ take what is true, false or None"
    raise refusal(TypeError, what, hint="compare it, e.g. with != 0, and put the comparison in parentheses")


def _truth(whole: Expression, input_type: Any) -> Any:
    """The type of comparisons of fields with known types; objects of other classes may compare to anything."""
    hints = [part.type_of(input_type) for part in whole.parts]
    return _of_parts(bool, hints) if set(map(without_none, hints)) <= _PLAIN else typehints.Any


def _of_parts(kind: Any, hints: list[Any]) -> Any:
    """A type, with None if a part may be None."""
    nullable = [each for each in hints if typehints.is_nullable(each)]
    return typehints.Union[kind, *(each.with_members((kind, type(None))) for each in nullable)]
