"""Makes records of columns of values, in loops that are written for the names of the columns and compiled once.

A general loop makes a mapping of each row first, which takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any

from penstock.elements.row import Row, make_row_class

_SETS_KEPT = 1_000
"""The number of sets of names whose loops are kept."""


def dicts_of(names: Sequence[str], columns: Sequence[Sequence[Any]], count: int) -> list[dict[str, Any]]:
    """Makes a dict of each row of columns, which all have `count` values.

    >>> dicts_of(["a", "b c"], [[1, 2], ["x", "y"]], 2)
    [{'a': 1, 'b c': 'x'}, {'a': 2, 'b c': 'y'}]
    """
    if not columns:
        return [{} for _ in range(count)]
    made: list[dict[str, Any]] = _dict_loop(tuple(names))(*columns)
    return made


def rows_of(names: Sequence[str], columns: Sequence[Sequence[Any]], count: int) -> list[Row]:
    """Makes a Row of each row of columns, which all have `count` values.

    >>> rows_of(["a", "b c"], [[1, 2], ["x", "y"]], 2)
    [Row(a=1, b c='x'), Row(a=2, b c='y')]
    """
    kind = make_row_class(tuple(names))
    if not columns:
        return [kind() for _ in range(count)]
    return list(map(_row_maker(tuple(names)), *columns))


@lru_cache(_SETS_KEPT)
def _dict_loop(names: tuple[str, ...]) -> Callable[..., list[dict[str, Any]]]:
    values = _values(names)
    record = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    every = ", ".join(values)
    text = f"def loop({every},):\n return [{{{record}}} for {every}, in zip({every}, strict=True)]"
    return _compile(text, "loop", {})


@lru_cache(_SETS_KEPT)
def _row_maker(names: tuple[str, ...]) -> Callable[..., Row]:
    values = _values(names)
    # A call of the class would make a mapping of the arguments; attributes that are set need none.
    if all(map(_is_plain_attribute, names)):
        lines = [f"made.{name} = {value}" for name, value in zip(names, values, strict=True)]
    else:
        record = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
        lines = [f"made.__dict__ = {{{record}}}"]
    body = "".join(f" {line}\n" for line in ["made = new(kind)", *lines, "return made"])
    return _compile(
        f"def make({', '.join(values)}):\n{body}",
        "make",
        {"new": object.__new__, "kind": make_row_class(names)},
    )


def _is_plain_attribute(name: str) -> bool:
    """True if a statement may set an attribute of that name: Python changes some letters that are not ASCII."""
    return name.isascii() and name.isidentifier() and not iskeyword(name) and not name.startswith("__")


def _values(names: tuple[str, ...]) -> list[str]:
    return [f"value{place}" for place in range(len(names))]


def _compile(text: str, name: str, known: dict[str, Any]) -> Callable[..., Any]:
    # With the name of this module, its lines do not count as lines of the program in a traceback.
    names = {"__name__": __name__, **known}
    exec(compile(text, "<the loop that makes records>", "exec"), names)
    made: Callable[..., Any] = names[name]
    return made
