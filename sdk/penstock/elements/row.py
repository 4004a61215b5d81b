"""The Row: a record with named fields."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from penstock.checks.similar_names import find_nearest
from penstock.error import refusal


class Row:
    """A record with named fields (Beam's ``Row``); field order matters for equality.

    >>> Row(x=3, y="b")
    Row(x=3, y='b')
    >>> Row(x=3, y="b").as_dict()
    {'x': 3, 'y': 'b'}
    >>> Row(x=1, y=2) == Row(y=2, x=1)
    False
    """

    def __init__(self, /, **fields: object) -> None:
        self.__dict__.update(fields)

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields by name, in order."""
        return dict(self.__dict__)

    # The spelling of named tuples, for code that takes either.
    _asdict = as_dict

    def __getattr__(self, name: str) -> Any:
        # Only reached for missing fields; it lets type checkers accept all others.
        if name == "_fields":
            # As in a named tuple, but not in the class, since each row has its own fields.
            return tuple(self.__dict__)
        what = f"a Row with the fields {tuple(self.__dict__)} has no field {name!r}"
        near = None if name.startswith("_") else find_nearest(name, self.__dict__)
        raise refusal(AttributeError, what, hint=f"did you mean {near!r}?") if near else AttributeError(what)

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return tuple(self.__dict__.items()) == tuple(other.__dict__.items())

    def __reduce__(self) -> tuple[Any, ...]:
        make = _make_row if type(self) is Row else _make_row_of_class
        return make, (tuple(self.__dict__), tuple(self.__dict__.values()))


@functools.lru_cache(maxsize=1000)
def make_row_class(names: tuple[str, ...]) -> type[Row]:
    """Returns a class of Rows that all have the same fields, which it has in ``_fields`` like a named tuple class.

    >>> score = make_row_class(("team", "points"))(team="red", points=3)
    >>> type(score)._fields, score == Row(team="red", points=3), score
    (('team', 'points'), True, Row(team='red', points=3))
    """
    return type("Row", (Row,), {"_fields": names, "__module__": Row.__module__, "__doc__": Row.__doc__})


def _make_row(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return Row(**dict(zip(names, values, strict=True)))


def _make_row_of_class(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return make_row_class(names)(**dict(zip(names, values, strict=True)))


# Programs print the class and import it from there, as in Beam.
Row.__module__ = "penstock.pvalue"
