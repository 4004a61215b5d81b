"""The Python values of arrays, maps and structs: lists, dicts and Rows, and how values of inputs become them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from penstock.elements.row import Row
from penstock.scalars.types import SqlType

ToValue = Callable[[Any], Any]
"""Makes of a value that is not None the value that SQL has for it."""


def make_row(names: Iterable[str], values: Iterable[Any]) -> Row:
    """Returns the value of a struct.

    >>> make_row(["team", "points"], ["blue", 3])
    Row(team='blue', points=3)
    """
    row = object.__new__(Row)
    row.__dict__ = dict(zip(names, values, strict=True))
    return row


def of_elements(compute: ToValue) -> ToValue:
    """Returns what computes a list from the elements of an array, where None stays None.

    >>> of_elements(str)([1, None])
    ['1', None]
    """
    return lambda array: [None if each is None else compute(each) for each in array]


def value_maker_of(kind: SqlType, of_moment: ToValue | None = None) -> ToValue | None:
    """Returns what makes SQL's values of the values of an input; None if they are the same.

    Structs become Rows, and arrays lists.

    Args:
        kind: The type of the values.
        of_moment: What makes a datetime with a zone of a TIMESTAMP.

    >>> from typing import NamedTuple
    >>> from penstock.scalars.types import from_hint
    >>> class Point(NamedTuple):
    ...     x: int
    >>> value_maker_of(from_hint(list[Point]))([Point(1)])
    [Row(x=1)]
    """
    if kind.name == "TIMESTAMP":
        return of_moment
    if not kind.is_nested:
        return None
    makers = [value_maker_of(each, of_moment) for each in kind.parts]
    if kind.name == "STRUCT":
        return _row_maker([name for name, _ in kind.fields], makers)
    if kind.name == "ARRAY":
        return _list if makers == [None] or not makers else of_elements(makers[0] or _same)
    return _dict_maker(makers[0] or _same, makers[1])


def _row_maker(names: list[str], makers: list[ToValue | None]) -> ToValue:
    parts = list(zip(names, makers, strict=True))

    def make(value: object) -> Row:
        row = object.__new__(Row)
        fields = {}
        # Records of files may be dicts, where an item that is absent is None.
        items = value if isinstance(value, dict) else None
        for name, maker in parts:
            found = getattr(value, name) if items is None else items.get(name)
            fields[name] = found if maker is None or found is None else maker(found)
        row.__dict__ = fields
        return row

    return make


def _dict_maker(of_key: ToValue, of_value: ToValue | None) -> ToValue:
    def make(value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        # Maps of files may be lists of pairs.
        pairs = value.items() if isinstance(value, dict) else value
        return {
            key_of_map(of_key(key)): each if of_value is None or each is None else of_value(each)
            for key, each in pairs
        }

    return make


def key_of_map(key: object) -> object:
    """Returns a key as maps have it: one of the two zeros, and one NaN.

    >>> key_of_map(-0.0), key_of_map("a")
    (0.0, 'a')
    """
    if type(key) is float:
        return key + 0.0 if key == key else math.nan
    return key


def _list(value: Iterable[Any]) -> list[Any]:
    return value if type(value) is list else list(value)


def _same(value: object) -> object:
    return value


class ResultOfUser:
    """Makes SQL's value of the result of a user's function.

    Args:
        fn: The function.
        kind: The type of its results.
    """

    def __init__(self, fn: Callable[..., Any], kind: SqlType) -> None:
        self._fn = fn
        self._kind = kind
        self._make = value_maker_of(kind) or _same

    def __reduce__(self) -> tuple[Any, ...]:
        return ResultOfUser, (self._fn, self._kind)

    def __call__(self, *values: object) -> object:
        """Returns the value."""
        found = self._fn(*values)
        return None if found is None else self._make(found)


def hashable(value: object) -> object:
    """Returns what is the same, and has the same hash, for values that are equal in SQL.

    >>> hashable(float("nan")) == hashable(float("nan")), hashable([1, None])
    (True, (<class 'tuple'>, 1, None))
    """
    if isinstance(value, (list, tuple, Row)):
        return (tuple, *map(hashable, value))
    return _NAN if value != value else value


_NAN = (float, "NaN")
