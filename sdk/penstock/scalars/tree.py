"""Scalar expressions as a tree of values, the same for queries and for functions of fields.

Each node knows its type, and the type says what happens to a number that is too large for it: see
`penstock.scalars.types`.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Union

from penstock.scalars.casting import text_of, text_of_single
from penstock.scalars.types import PYTHON, SqlType

Scalar: TypeAlias = Union[
    "Column",
    "OuterColumn",
    "Field",
    "WindowBound",
    "Local",
    "Literal",
    "Call",
    "UserCall",
    "Parameter",
    "Lambda",
]
"""An expression over the columns of one row, or over the fields of one element."""


@dataclass(frozen=True)
class Column:
    """The value of a column (penstock's own).

    Attributes:
        index: The place of the column in the row.
        name: The name to show.
        type: The type of the values.
    """

    index: int
    name: str
    type: SqlType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OuterColumn:
    """The value of a column of a query around this one; `penstock.sql.plan.decorrelation` removes it.

    Attributes:
        level: How many queries are around that query.
        index: The place of the column in its rows.
        name: The name to show.
        type: The type of the values.
    """

    level: int
    index: int
    name: str
    type: SqlType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Field:
    """The value of a field of an element: of an attribute, or of an item of a dict.

    Attributes:
        name: The name of the field.
        type: The type of the values.
    """

    name: str
    type: SqlType = PYTHON

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class WindowBound:
    """The start or the end of an element's window; `bound` is ``"start"`` or ``"end"``."""

    bound: str
    type: SqlType = PYTHON

    def __str__(self) -> str:
        return f"window_{self.bound}()"


@dataclass(frozen=True)
class Local:
    """A value that generated code has computed already; only a writer makes one.

    Attributes:
        name: The name of the variable.
        type: The type of the value.
    """

    name: str
    type: SqlType


@dataclass(frozen=True)
class Literal:
    """A value that the query names; None is NULL (penstock's own).

    Attributes:
        value: The value.
        type: The type.
    """

    value: Any
    type: SqlType

    def __str__(self) -> str:
        match self.value:
            case None:
                return "NULL"
            case bool():
                return str(self.value).upper()
            case str():
                return "'" + self.value.replace("'", "''") + "'"
            case bytes():
                return f"X'{self.value.hex().upper()}'"
            case datetime.timedelta():
                return text_of(self.value)
            case int() if self.type.name == "MONTHS":
                return f"INTERVAL '{self.value}' MONTH"
            case datetime.date():
                return f"{self.type.name} '{text_of(self.value)}'"
            case float() if self.type.bits == 32:
                return text_of_single(self.value)
            case int() | float() | decimal.Decimal():
                return text_of(self.value)
        return repr(self.value)


@dataclass(frozen=True)
class Call:
    """A call of a function or an operator, by its canonical name (penstock's own).

    `penstock.scalars.functions.call` makes calls whose types fit; nothing checks them later.

    Attributes:
        name: The name of the function's record.
        arguments: The arguments.
        type: The type of the result.
    """

    name: str
    arguments: tuple[Scalar, ...]
    type: SqlType

    def __str__(self) -> str:
        shown = list(map(str, self.arguments))
        if self.name in ("EXPECT", "EXPECT INT"):
            return shown[0]
        if self.name.endswith(" NUMBERED"):
            return f"{self.name.removesuffix(' NUMBERED')}({', '.join(shown)})"
        if self.name == "ITEM":
            return f"{shown[0]}[{shown[1]}]"
        if self.name == "FIELD" and isinstance(name := self.arguments[1], Literal):
            return f"{shown[0]}.{name.value}"
        if self.name in ("CAST", "TRY_CAST"):
            return f"{self.name}({shown[0]} AS {self.type.or_null()})"
        if self.name == "CASE":
            pairs = zip(shown[:-1:2], shown[1::2], strict=True)
            return (
                f"CASE {' '.join(f'WHEN {test} THEN {value}' for test, value in pairs)} ELSE {shown[-1]} END"
            )
        if self.name.startswith("IS "):
            return f"({shown[0]} {self.name})"
        if len(shown) == 2 and (not self.name[0].isalpha() or self.name in _INFIX):
            return f"({shown[0]} {self.name} {shown[1]})"
        return f"{self.name}({', '.join(shown)})"


_INFIX = frozenset(["AND", "DIV", "ILIKE", "LIKE", "OR", "RLIKE"])


@dataclass(frozen=True)
class UserCall:
    """A call of the user's own function, which gets None for NULL (penstock's own)."""

    name: str
    fn: Callable[..., Any]
    arguments: tuple[Scalar, ...]
    type: SqlType

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Parameter:
    """The value that a lambda around this expression is called with.

    Attributes:
        number: How many parameters are around it, which distinguishes it from them.
        name: The name to show.
        type: The type of the values.
    """

    number: int
    name: str
    type: SqlType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Lambda:
    """A function in an expression, such as ``x -> x + 1``, which is an argument of a call.

    Attributes:
        parameters: What it is called with.
        arguments: Its body alone.
        type: The type of its results.
    """

    parameters: tuple[Parameter, ...]
    arguments: tuple[Scalar, ...]
    type: SqlType

    @property
    def body(self) -> Scalar:
        """The expression that it computes."""
        [body] = self.arguments
        return body

    def __str__(self) -> str:
        names = ", ".join(map(str, self.parameters))
        return f"{names if len(self.parameters) == 1 else f'({names})'} -> {self.body}"


def make_lambda(parameters: tuple[Parameter, ...], body: Scalar) -> Lambda:
    """Returns the function of parameters that an expression is."""
    return Lambda(parameters, (body,), body.type)


def parts_of(scalar: Scalar) -> tuple[Scalar, ...]:
    """Returns the expressions that an expression is made of directly."""
    return scalar.arguments if isinstance(scalar, (Call, UserCall, Lambda)) else ()


def free_parameters(scalar: Scalar) -> frozenset[int]:
    """Returns the numbers of the parameters of lambdas around an expression that it reads."""
    if isinstance(scalar, Parameter):
        return frozenset([scalar.number])
    found = frozenset[int]().union(*map(free_parameters, parts_of(scalar)))
    bound = {each.number for each in scalar.parameters} if isinstance(scalar, Lambda) else ()
    return found.difference(bound)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yields an expression and all expressions inside it."""
    waiting = [scalar]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(parts_of(found))


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Returns the columns that an expression reads.

    >>> from penstock.scalars.types import BIGINT
    >>> sorted(columns_of(Call("+", (Column(3, "a", BIGINT), Column(1, "b", BIGINT)), BIGINT)))
    [1, 3]
    """
    return frozenset(part.index for part in walk(scalar) if isinstance(part, Column))


def split_conjuncts(condition: Scalar | None) -> list[Scalar]:
    """Returns the parts of a condition that must all hold."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.name == "AND":
        return [part for each in condition.arguments for part in split_conjuncts(each)]
    return [condition]


def shift_columns(scalar: Scalar, mapping: Mapping[int, int]) -> Scalar:
    """Returns the same expression over rows whose columns stand elsewhere.

    Args:
        scalar: The expression.
        mapping: The new number of each column that the expression reads.

    >>> from penstock.scalars.types import BIGINT
    >>> shift_columns(Column(3, "a", BIGINT), {3: 0}).index
    0
    """

    def move(leaf: Scalar) -> Scalar:
        return replace(leaf, index=mapping[leaf.index]) if isinstance(leaf, Column) else leaf

    return map_leaves(scalar, move)


def replace_scalars(scalar: Scalar, scalars: Sequence[Scalar]) -> Scalar:
    """Returns the same expression, with an expression in place of each column.

    Args:
        scalar: The expression.
        scalars: The expression that stands for each column, by its number.

    >>> from penstock.scalars.types import BIGINT
    >>> print(replace_scalars(Call("+", (Column(0, "a", BIGINT),) * 2, BIGINT), [Literal(5, BIGINT)]))
    (5 + 5)
    """
    return map_leaves(scalar, lambda leaf: scalars[leaf.index] if isinstance(leaf, Column) else leaf)


def map_leaves(scalar: Scalar, of_leaf: Callable[[Scalar], Scalar]) -> Scalar:
    """Returns the same expression with what a function makes of each column, field and value in its place."""
    if isinstance(scalar, (Call, UserCall, Lambda)):
        return replace(scalar, arguments=tuple(map_leaves(part, of_leaf) for part in scalar.arguments))
    return of_leaf(scalar)


# As a function of fields is written

_SYMBOLS = {"=": "==", "<>": "!=", "AND": "&", "OR": "|"}


def spell(scalar: Scalar) -> str:
    """Returns an expression of fields as Python spells it.

    >>> spell(Call("=", (Field("team"), Literal("red", PYTHON)), PYTHON))
    "team == 'red'"
    """
    match scalar:
        case Literal():
            return repr(scalar.value)
        case Call("TRUTH", [part]):
            return spell(part)
        case Call("NOT", [part]):
            return f"~{_bracketed(part)}"
        case Call("IS NULL", [part]):
            return f"{_bracketed(part)}.is_null()"
        case Call(name, [left, right]):
            return f"{_bracketed(left)} {_SYMBOLS.get(name, name)} {_bracketed(right)}"
    return str(scalar)


def _bracketed(scalar: Scalar) -> str:
    if isinstance(scalar, Call) and scalar.name == "TRUTH":
        return _bracketed(scalar.arguments[0])
    is_binary = isinstance(scalar, Call) and len(scalar.arguments) == 2
    return f"({spell(scalar)})" if is_binary else spell(scalar)
