"""Functions of named fields as one Python function each, which a loop over many elements calls without more calls.

What an expression is made of is written into the text of the function. Parts that are not known here are called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from penstock.base.row import Row
from penstock.functions.expressions import (
    Arithmetic,
    Comparison,
    Connective,
    Expression,
    Field,
    IsNull,
    Literal,
    Not,
    truth_of,
)
from penstock.functions.field_functions import (
    Forwarding,
    KeyAndValues,
    KeyedBy,
    KeyOf,
    RowOf,
    named_tuple,
)

_DEEPEST = 20
"""How deep expressions are written into each other: Python's compiler has a limit. Deeper ones are called."""

_TEXT = """\
def call(element):
    if isinstance(element, dict):
        return {of_dict}
    return {of_object}
"""


def one_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an element with the same results and errors, and with fewer calls if there is such a one.

    >>> from penstock.functions.expressions import field
    >>> fast = one_function(field("speed") * 2 > 100)
    >>> fast({"speed": 60}), fast({"speed": None}), fast(Row(speed=1))
    (True, None, False)
    """
    if isinstance(function, Forwarding):
        return function.function
    names: dict[str, Any] = {
        "__name__": __name__,
        "make_row": _make_row,
        "new_tuple": tuple.__new__,
        "truth_of": truth_of,
    }
    texts = [_Writer(names, is_dict).whole(function) for is_dict in (True, False)]
    if None in texts:
        return function
    of_dict, of_object = texts
    exec(_compiled(_TEXT.format(of_dict=of_dict, of_object=of_object)), names)
    made: Callable[..., Any] = names["call"]
    return made


@functools.lru_cache(1_000)
def _compiled(text: str) -> Any:
    # Errors look for the user's line above code that is named so.
    return compile(text, "<string>", "exec")


def _make_row(fields: dict[str, Any]) -> Row:
    row = object.__new__(Row)
    row.__dict__ = fields
    return row


class _Writer:
    """Writes expressions of ``element``; `names` gets the values that they name."""

    def __init__(self, names: dict[str, Any], is_dict: bool) -> None:
        self._names = names
        self._is_dict = is_dict
        self._parts = 0
        self._depth = 0

    def whole(self, function: Any) -> str | None:
        """The text of a function; None if a call of it is all that there is to write."""
        match function:
            case RowOf(fields=fields) if type(function) is RowOf:
                parts = ", ".join(f"{name!r}: {self._part(each)}" for name, each in fields)
                return f"make_row({{{parts}}})"
            case KeyAndValues(key=key, values=values) if type(function) is KeyAndValues:
                return f"({self._key(key)}, [{', '.join(map(self._part, values))}])"
            case KeyedBy(key=key) if type(function) is KeyedBy:
                return f"({self._key(key)}, element)"
            case KeyOf() if type(function) is KeyOf:
                return self._key(function)
            case Expression():
                text = self._part(function)
                return text if self._parts or type(function) is Field else None
        return None

    def _key(self, key: Any) -> str:
        if type(key) is not KeyOf:
            return self._part(key)
        kind = self._named(named_tuple("Key", tuple(name for name, _ in key.fields)))
        return f"new_tuple({kind}, ({''.join(f'{self._part(each)}, ' for _, each in key.fields)}))"

    def _part(self, part: Any) -> str:
        self._depth += 1
        text = self._written(part) if self._depth <= _DEEPEST else None
        self._depth -= 1
        return text or f"{self._named(part)}(element)"

    def _written(self, part: Any) -> str | None:
        kind = type(part)
        if kind is Field:
            return self._field(part.name)
        if kind is Literal:
            return self._named(part.value)
        if kind is IsNull:
            self._parts += 1
            return f"({self._part(part.operand)} is None)"
        if kind is Arithmetic or kind is Comparison:
            return self._binary(part)
        if kind is Connective:
            return f"{self._named(part.of)}({self._truth(part.left)}, {self._truth(part.right)})"
        if kind is Not:
            self._parts += 1
            value = f"part{self._parts}"
            return f"(None if ({value} := {self._truth(part.operand)}) is None else not {value})"
        return None

    def _truth(self, part: Expression) -> str:
        self._parts += 1
        return f"truth_of({self._named(part)}, {self._part(part)})"

    def _binary(self, part: Arithmetic | Comparison) -> str:
        self._parts += 1
        left, right = f"part{self._parts}", f"other{self._parts}"
        made = f"(None if ({left} := {self._part(part.left)}) is None"
        if type(part.right) is Literal and part.right.value is not None:
            return f"{made} else {left} {part.symbol} {self._part(part.right)})"
        # Both are computed before either is looked at.
        nothing = (
            f"(({left} := {self._part(part.left)}) is None) | (({right} := {self._part(part.right)}) is None)"
        )
        return f"(None if {nothing} else {left} {part.symbol} {right})"

    def _field(self, name: str) -> str:
        if self._is_dict:
            return f"element[{name!r}]"
        # Python changes some letters that are not ASCII.
        is_plain = name.isascii() and name.isidentifier() and not iskeyword(name)
        return f"element.{name}" if is_plain else f"getattr(element, {name!r})"

    def _named(self, value: Any) -> str:
        name = f"known{len(self._names)}"
        self._names[name] = value
        return name
