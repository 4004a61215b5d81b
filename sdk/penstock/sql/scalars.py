"""Scalar expressions of SQL as values, and the Python functions that are compiled from them."""

from __future__ import annotations

import ast
import datetime
import decimal
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, Union

from penstock.functions.field_functions import Forwarding, Stamping
from penstock.sql import casting, meanings
from penstock.sql.types import BOOLEAN, SqlType

Scalar: TypeAlias = Union["Column", "Literal", "Call", "UserCall"]
"""An expression over the columns of one row."""


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
class Literal:
    """A value that the query names; None is NULL (penstock's own).

    Attributes:
        value: The value.
        type: The type.
        suffixed: For a whole number, the type that its suffix names, such as SMALLINT in ``5S``; else empty.
    """

    value: Any
    type: SqlType
    suffixed: str = ""

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
                return casting.text_of(self.value)
            case datetime.date():
                return f"{self.type.name} '{casting.text_of(self.value)}'"
            case int() | float() | decimal.Decimal():
                return casting.text_of(self.value)
        return repr(self.value)


@dataclass(frozen=True)
class Call:
    """A function or an operator of SQL, by its canonical name (penstock's own).

    `penstock.sql.functions.call` makes calls whose types fit; nothing checks them later.
    """

    name: str
    arguments: tuple[Scalar, ...]
    type: SqlType

    def __str__(self) -> str:
        shown = list(map(str, self.arguments))
        if self.name in ("INT", "EXPECT"):
            return shown[0]
        if self.name.startswith("AS "):
            return f"CAST({shown[0]} {self.name})"
        if self.name == "ITEM":
            return f"{shown[0]}[{shown[1]}]"
        if self.name in ("CAST", "TRY_CAST"):
            return f"{self.name}({shown[0]} AS {self.type.or_null()})"
        if self.name == "CASE":
            pairs = zip(shown[:-1:2], shown[1::2], strict=True)
            return (
                f"CASE {' '.join(f'WHEN {test} THEN {value}' for test, value in pairs)} ELSE {shown[-1]} END"
            )
        if self.name in _POSTFIX:
            return f"({shown[0]} {self.name})"
        if self.name in _INFIX and len(shown) == 2:
            return f"({shown[0]} {self.name} {shown[1]})"
        return f"{self.name}({', '.join(shown)})"


@dataclass(frozen=True)
class UserCall:
    """A call of the user's own function, which gets None for NULL (penstock's own)."""

    name: str
    fn: Callable[..., Any]
    arguments: tuple[Scalar, ...]
    type: SqlType

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


_COMPARISONS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_POSTFIX = frozenset(["IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE"])
_INFIX = frozenset(["+", "-", "*", "/", "%", "DIV", "||", "AND", "OR", "<=>", "LIKE", "ILIKE", "RLIKE"])
_INFIX |= frozenset(_COMPARISONS)


def parts_of(scalar: Scalar) -> tuple[Scalar, ...]:
    """The expressions that an expression is made of directly."""
    return scalar.arguments if isinstance(scalar, (Call, UserCall)) else ()


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """An expression and all expressions inside it."""
    waiting = [scalar]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(parts_of(found))


def columns_of(scalar: Scalar) -> frozenset[int]:
    """The columns that an expression reads.

    >>> from penstock.sql.types import BIGINT
    >>> sorted(columns_of(Call("+", (Column(3, "a", BIGINT), Column(1, "b", BIGINT)), BIGINT)))
    [1, 3]
    """
    return frozenset(part.index for part in walk(scalar) if isinstance(part, Column))


def conjuncts(condition: Scalar | None) -> list[Scalar]:
    """The parts of a condition that must all hold."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.name == "AND":
        return [part for each in condition.arguments for part in conjuncts(each)]
    return [condition]


def shifted(scalar: Scalar, mapping: Mapping[int, int]) -> Scalar:
    """The same expression over rows whose columns stand elsewhere.

    Args:
        scalar: The expression.
        mapping: The new number of each column that the expression reads.

    >>> from penstock.sql.types import BIGINT
    >>> shifted(Column(3, "a", BIGINT), {3: 0}).index
    0
    """
    return _rebuilt(scalar, lambda column: replace(column, index=mapping[column.index]))


def replaced(scalar: Scalar, scalars: Sequence[Scalar]) -> Scalar:
    """The same expression, with an expression in place of each column.

    Args:
        scalar: The expression.
        scalars: The expression that stands for each column, by its number.

    >>> from penstock.sql.types import BIGINT
    >>> print(replaced(Call("+", (Column(0, "a", BIGINT),) * 2, BIGINT), [Literal(5, BIGINT)]))
    (5 + 5)
    """
    return _rebuilt(scalar, lambda column: scalars[column.index])


def _rebuilt(scalar: Scalar, of_column: Callable[[Column], Scalar]) -> Scalar:
    if isinstance(scalar, Column):
        return of_column(scalar)
    if isinstance(scalar, Literal):
        return scalar
    return replace(scalar, arguments=tuple(_rebuilt(part, of_column) for part in scalar.arguments))


class _Compiled:
    """What is compiled when it is first called, and compiled anew after it was pickled."""

    @functools.cached_property
    def function(self) -> Callable[[tuple[Any, ...]], Any]:
        """The compiled function itself, which saves callers of many rows one call a row."""
        return _Writer().compiled(self._all(), self._lines)

    def _all(self) -> tuple[Scalar, ...]:
        raise NotImplementedError

    def _lines(self, writer: _Writer) -> str:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "function"}


@dataclass(frozen=True)
class Projection(_Compiled, Forwarding):
    """A function from a row to a row, which computes one expression for each of its columns (penstock's own).

    >>> from penstock.sql.types import BIGINT
    >>> column = Column(1, "score", BIGINT)
    >>> Projection((column, Call("+", (column, Literal(1, BIGINT)), BIGINT)))(("amy", 7))
    (7, 8)
    """

    scalars: tuple[Scalar, ...]

    def __call__(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The row of results."""
        result: tuple[Any, ...] = self.function(row)
        return result

    def _all(self) -> tuple[Scalar, ...]:
        return self.scalars

    def _lines(self, writer: _Writer) -> str:
        return writer.row(self.scalars)


@dataclass(frozen=True)
class Pairing(_Compiled, Forwarding):
    """A function from a row to a pair of a key and a value (penstock's own).

    A single expression gives its value, and several give a tuple.

    Attributes:
        keys: The expressions of the key; without any, all rows have the key 0.
        values: The expressions of the value; without any, it is None. None stands for the row itself.
        in_row: Whether the value is a tuple even of a single expression.

    >>> from penstock.sql.types import BIGINT
    >>> score, bonus = Column(1, "score", BIGINT), Column(2, "bonus", BIGINT)
    >>> Pairing((Column(0, "name", BIGINT),), (score, bonus))(("amy", 7, 2)), Pairing((), None)((1, 2))
    (('amy', (7, 2)), (0, (1, 2)))
    """

    keys: tuple[Scalar, ...]
    values: tuple[Scalar, ...] | None
    in_row: bool = False

    def __call__(self, row: tuple[Any, ...]) -> tuple[Any, Any]:
        """The pair."""
        pair: tuple[Any, Any] = self.function(row)
        return pair

    def _all(self) -> tuple[Scalar, ...]:
        return (*self.keys, *(self.values or ()))

    def _lines(self, writer: _Writer) -> str:
        if self.values is None:
            value = "row"
        else:
            value = writer.row(self.values) if self.in_row else writer.one_or_tuple(self.values, "None")
        return f"({writer.one_or_tuple(self.keys, '0')}, {value})"


@dataclass(frozen=True)
class AtTime(_Compiled, Stamping):
    """Gives a row the time of an expression, which is not NULL, as its timestamp (penstock's own).

    >>> from penstock.sql.types import TIMESTAMP
    >>> time = datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC)
    >>> AtTime(Column(1, "at", TIMESTAMP))(("amy", time))
    TimestampedValue(('amy', datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.timezone.utc)), Timestamp(2))
    """

    time: Scalar

    def _all(self) -> tuple[Scalar, ...]:
        return (self.time,)

    def _lines(self, writer: _Writer) -> str:
        return f"whole_micros({writer.value(self.time).code})"


@dataclass(frozen=True)
class Predicate(_Compiled, Forwarding):
    """Whether an expression is true for a row, and not false or NULL (penstock's own).

    >>> from penstock.sql.types import BIGINT
    >>> positive = Predicate(Call(">", (Column(0, "score", BIGINT), Literal(0, BIGINT)), BOOLEAN))
    >>> positive((1,)), positive((-1,)), positive((None,))
    (True, False, False)
    """

    scalar: Scalar

    def __call__(self, row: tuple[Any, ...]) -> bool:
        """Whether the expression is true."""
        result: bool = self.function(row)
        return result

    def _all(self) -> tuple[Scalar, ...]:
        return (self.scalar,)

    def _lines(self, writer: _Writer) -> str:
        return writer.all_true(self.scalar)


DEPTH_MAX: Final = 20
"""How many calls nest in one Python expression; Python reads 200 parentheses inside each other, and no more."""

_BRANCHES_MAX: Final = 100
_WHOLE_MIN: Final = -(1 << 63)
_WHOLE_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True)
class _Code:
    """The Python text of an expression.

    Attributes:
        code: The text, which stands where any operand may.
        nullable: Whether the value may be None.
        plain: Whether the text is a name or a number, which costs nothing to repeat.
        number: Whether the value is a number other than NaN, as far as the text tells.
    """

    code: str
    nullable: bool
    plain: bool = False
    number: bool = False


@dataclass(frozen=True)
class _Local:
    """A value that the code has computed already; it stands where an expression does."""

    name: str
    type: SqlType


class _Writer:
    """Writes Python text for expressions, and compiles it."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"overflow": casting.overflow, "whole_micros": casting.whole_micros}
        self._columns: dict[int, str] = {}
        self._definitions: list[str] = []
        self._apart: set[int] = set()
        self._count = 0

    def compiled(
        self, scalars: Sequence[Scalar], write: Callable[[_Writer], str]
    ) -> Callable[[tuple[Any, ...]], Any]:
        """The function that returns the value of the text that `write` makes of the expressions."""
        for scalar in scalars:
            self._find_deep(scalar)
        self._define("result", lambda: write(self))
        exec(compile("\n".join(self._definitions), "<SQL expression>", "exec"), self._names)
        function: Callable[[tuple[Any, ...]], Any] = self._names["result"]
        return function

    def _find_deep(self, scalar: Scalar) -> int:
        """How deep calls nest; finds those that become functions of their own, so that none nests too deep."""
        depth = 1 + max(map(self._find_deep, parts_of(scalar)), default=0)
        if depth < DEPTH_MAX:
            return depth
        self._apart.add(id(scalar))
        return 1

    def _define(self, name: str, write: Callable[[], str]) -> None:
        outer, self._columns = self._columns, {}
        value = write()
        reads = "".join(f"    {local} = row[{index}]\n" for index, local in self._columns.items())
        self._definitions.append(f"def {name}(row):\n{reads}    return {value}\n")
        self._columns = outer

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _name_of(self, value: Any) -> str:
        """A name in the text for a value."""
        name = self._fresh("given")
        self._names[name] = value
        return name

    def value(self, scalar: Scalar | _Local) -> _Code:
        """The text of an expression."""
        match scalar:
            case _Local(name, sql_type):
                return _Code(name, sql_type.nullable, plain=True)
            case Column(index, _, sql_type):
                local = self._columns.setdefault(index, f"column{index}")
                return _Code(local, sql_type.nullable, plain=True)
            case Literal(value):
                return self._literal(value)
        if id(scalar) in self._apart:
            self._apart.remove(id(scalar))
            text = self._apart_call(lambda: self.value(scalar).code)
            self._apart.add(id(scalar))
            return _Code(text, scalar.type.nullable)
        if isinstance(scalar, UserCall):
            arguments = ", ".join(self.value(part).code for part in scalar.arguments)
            return _Code(f"{self._name_of(scalar.fn)}({arguments})", scalar.type.nullable)
        special = _SPECIAL.get(scalar.name)
        if special:
            return _Code(special(self, scalar), scalar.type.nullable)
        checks, body = self._strict(scalar)
        if not checks:
            return _Code(body, scalar.type.nullable)
        return _Code(f"(None if {_any(checks, 'is None')} else {body})", True)

    def row(self, scalars: tuple[Scalar, ...]) -> str:
        """The text of a tuple of the values of expressions."""
        return "(" + "".join(f"{self.value(scalar).code}, " for scalar in scalars) + ")"

    def one_or_tuple(self, scalars: tuple[Scalar, ...], nothing: str) -> str:
        """The text of the value of an expression, or of a tuple of the values of several."""
        if len(scalars) == 1:
            return self.value(scalars[0]).code
        return self.row(scalars) if scalars else nothing

    def truth(self, scalar: Scalar | _Local) -> str:
        """The text of whether an expression is true; False where it is false or NULL."""
        if isinstance(scalar, Call) and id(scalar) not in self._apart:
            if scalar.name == "OR":
                return f"({' or '.join(map(self.truth, scalar.arguments))})"
            if scalar.name in _COMPARISONS:
                checks, body = self._strict(scalar)
                known = "".join(f"{check} is not None and " for check in checks)
                return f"({known}{body})"
        return f"({self.value(scalar).code} is True)"

    def all_true(self, scalar: Scalar) -> str:
        """The text of whether a filter keeps a row: like Spark, it stops at the first part that is not true."""
        if isinstance(scalar, Call) and scalar.name == "AND" and id(scalar) not in self._apart:
            return f"({' and '.join(map(self.all_true, scalar.arguments))})"
        return self.truth(scalar)

    def _apart_call(self, write: Callable[[], str]) -> str:
        name = self._fresh("part")
        self._define(name, write)
        return f"{name}(row)"

    def _literal(self, value: Any) -> _Code:
        number = isinstance(value, (int, float)) and value == value
        if type(value) in (bool, int, str, bytes, type(None)):
            text = f"({value!r})" if type(value) is int and value < 0 else repr(value)
        elif type(value) is float and math.isfinite(value):
            text = f"({value!r})"
        else:
            text = self._name_of(value)
        return _Code(text, value is None, plain=True, number=number)

    def _strict(self, call: Call) -> tuple[list[str], str]:
        """The values that must not be None, and the text of the result if none is."""
        checks: list[str] = []
        codes = []
        template = _template(call) or self._matching(call)
        found = list(map(self.value, call.arguments))
        sees_null = call.name in meanings.SEES_NULL
        last = max((place for place, code in enumerate(found) if code.nullable), default=-1)
        for place, code in enumerate(found):
            repeated = template is not None and template.count(f"{{{place}}}") > 1
            # What stands before a value that may be None is computed before it, since it may fail.
            bound_first = not code.plain and (repeated or place < last)
            if not sees_null and (code.nullable or bound_first):
                name, bound = self._bound(code)
                checks.append(bound)
                code = replace(code, code=name, plain=True)
            codes.append(code)
        texts = [code.code for code in codes]
        if template is None:
            meaning = self._name_of(
                meanings.meaning_of(call.name, call.type, [part.type for part in call.arguments])
            )
            return checks, f"{meaning}({', '.join(texts)})"
        if call.type.name == "BIGINT" and call.name != "INT":
            local = self._fresh("whole")
            whole = template.format(*texts)
            return (
                checks,
                f"({local} if {_WHOLE_MIN} <= ({local} := {whole}) <= {_WHOLE_MAX} else overflow())",
            )
        if call.name in _COMPARISONS and call.arguments[0].type.name == "DOUBLE":
            template = _double_comparison(call.name, *(code.number for code in codes))
        return checks, template.format(*texts)

    def _matching(self, call: Call) -> str | None:
        """The text of a match with a pattern that the query names, which is read once."""
        matcher = meanings.MATCHERS.get(call.name)
        known = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
        if matcher is None or None in known or len(known) < len(call.arguments) - 1:
            return None
        return f"({self._name_of(matcher(*known))}({{0}}) is not None)"

    def _and(self, call: Call) -> str:
        """AND and OR, which stop at the first value that decides."""
        decides = call.name == "OR"
        left, right = map(self.value, call.arguments)
        if not left.nullable and not right.nullable:
            return f"({left.code} {call.name.lower()} {right.code})"
        (first, bound_first), (second, bound_second) = self._bound(left), self._bound(right)
        return (
            f"({decides} if {bound_first} is {decides} else {decides} if {bound_second} is {decides}"
            f" else None if {first} is None or {second} is None else {not decides})"
        )

    def _bound(self, code: _Code) -> tuple[str, str]:
        """A name for a value, and the text that computes the value and gives it the name."""
        if code.plain:
            # Python warns where a literal is compared by `is`, as bound values are.
            name = code.code if code.code.isidentifier() else self._name_of(ast.literal_eval(code.code))
            return name, name
        local = self._fresh("value")
        return local, f"({local} := {code.code})"

    def _not(self, call: Call) -> str:
        code = self.value(call.arguments[0])
        if not code.nullable:
            return f"(not {code.code})"
        name, bound = self._bound(code)
        return f"(None if {bound} is None else not {name})"

    def _is(self, call: Call) -> str:
        compared = {
            "IS NULL": "is None",
            "IS NOT NULL": "is not None",
            "IS TRUE": "is True",
            "IS FALSE": "is False",
        }
        _, bound = self._bound(self.value(call.arguments[0]))
        return f"({bound} {compared[call.name]})"

    def _case(self, call: Call) -> str:
        *branches, default = call.arguments
        texts = []
        here = 2 * _BRANCHES_MAX
        for place in range(0, len(branches[:here]), 2):
            texts.append(f"{self.value(branches[place + 1]).code} if {self.truth(branches[place])} else ")
        if branches[here:]:
            rest = replace(call, arguments=call.arguments[here:])
            texts.append(self._apart_call(lambda: self.value(rest).code))
        else:
            texts.append(self.value(default).code)
        return f"({''.join(texts)})"

    def _coalesce(self, call: Call) -> str:
        *first, last = call.arguments
        texts = []
        for part in first:
            code = self.value(part)
            name, bound = self._bound(code)
            texts.append(f"{name} if {bound} is not None else ")
        return f"({''.join(texts)}{self.value(last).code})"

    def _null_safe(self, call: Call) -> str:
        left, right = map(self.value, call.arguments)
        names = {part.type.name for part in call.arguments}
        if names & {"ARRAY", "ANY"}:
            return f"{self._name_of(meanings.same)}({left.code}, {right.code})"
        if "DOUBLE" not in names or left.number or right.number:
            return f"({left.code} == {right.code})"
        (first, bound_first), (second, bound_second) = self._bound(left), self._bound(right)
        return f"({bound_first} == {bound_second} or ({first} != {first} and {second} != {second}))"

    def _between(self, call: Call) -> str:
        tested, low, high = call.arguments
        name, bound = self._bound(self.value(tested))
        local = _Local(name, tested.type.or_null(False))
        both = Call(
            "AND",
            (
                Call(">=", (local, low), BOOLEAN.or_null(low.type.nullable)),  # type: ignore[arg-type]
                Call("<=", (local, high), BOOLEAN.or_null(high.type.nullable)),  # type: ignore[arg-type]
            ),
            BOOLEAN,
        )
        return f"(None if {bound} is None else {self.value(both).code})"

    def _in(self, call: Call) -> str:
        tested, *items = call.arguments
        name, bound = self._bound(self.value(tested))
        local = _Local(name, tested.type.or_null(False))
        found = []
        nulls = []
        for item in items:
            if isinstance(item, Literal) and item.value is None:
                nulls.append("True")
                continue
            held: Scalar | _Local = item
            if item.type.nullable and not isinstance(item, Literal):
                held_name, held_bound = self._bound(self.value(item))
                held = _Local(held_name, item.type.or_null(False))
                found.append(f"{held_bound} is not None and")
                nulls.append(f"{held_name} is None")
            equal = Call("=", (local, held), BOOLEAN.or_null(False))  # type: ignore[arg-type]
            found.append(f"{self.value(equal).code} or")
        test = " ".join([*found, "False"])
        other = f"None if {' or '.join(nulls)} else False" if nulls else "False"
        return f"(None if {bound} is None else True if {test} else {other})"

    def _nullif(self, call: Call) -> str:
        kept, other = call.arguments
        name, bound = self._bound(self.value(kept))
        local = _Local(name, kept.type.or_null(False))
        equal = Call("=", (local, other), BOOLEAN)  # type: ignore[arg-type]
        return f"(None if {bound} is None or {self.truth(equal)} else {local.name})"


_SPECIAL: dict[str, Callable[[_Writer, Call], str]] = {
    "AND": _Writer._and,
    "OR": _Writer._and,
    "NOT": _Writer._not,
    **dict.fromkeys(_POSTFIX, _Writer._is),
    "CASE": _Writer._case,
    "COALESCE": _Writer._coalesce,
    "<=>": _Writer._null_safe,
    "BETWEEN": _Writer._between,
    "IN": _Writer._in,
    "NULLIF": _Writer._nullif,
}
"""The calls that do not compute all arguments, or that take NULL."""


def _any(checks: Sequence[str], test: str) -> str:
    return " or ".join(f"{check} {test}" for check in checks)


def _template(call: Call) -> str | None:
    """The Python text of a call of a plain operator, with its arguments by number; None for any other call."""
    name, first = call.name, call.arguments[0].type.name if call.arguments else ""
    if any(part.type.name in ("ARRAY", "ANY") for part in call.arguments):
        return None
    if name in _COMPARISONS:
        if first == "DOUBLE":
            return _double_comparison(name, False, False)
        return f"({{0}} {_COMPARISONS[name]} {{1}})"
    if call.type.name in ("BIGINT", "DOUBLE") and first == call.type.name:
        if name in ("+", "-", "*"):
            return f"({{0}} {name} {{1}})"
        if name == "NEGATIVE":
            return "(-{0})"
    if name == "INT" and isinstance(call.arguments[0], Literal):
        return "{0}"
    if name == "CAST" and (first, call.type.name) == ("BIGINT", "DOUBLE"):
        return "float({0})"
    return None


def _double_comparison(name: str, left_number: bool, right_number: bool) -> str:
    """Compares floats as Spark does: NaN equals itself, and is above all numbers."""
    plain = f"{{0}} {_COMPARISONS[name]} {{1}}"
    left_nan, right_nan = "{0} != {0}", "{1} != {1}"
    match name:
        case "=":
            return f"({plain})" if left_number or right_number else f"({plain} or {left_nan} and {right_nan})"
        case "<>":
            if left_number or right_number:
                return f"({plain})"
            return f"({plain} and ({{0}} == {{0}} or {{1}} == {{1}}))"
        case "<":
            return f"({plain})" if right_number else f"({plain} or {right_nan} and {{0}} == {{0}})"
        case "<=":
            return f"({plain})" if right_number else f"({plain} or {right_nan})"
        case ">":
            return f"({plain})" if left_number else f"({plain} or {left_nan} and {{1}} == {{1}})"
        case _:
            return f"({plain})" if left_number else f"({plain} or {left_nan})"
