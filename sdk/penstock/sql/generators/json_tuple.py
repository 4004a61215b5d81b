"""The generator that makes columns of the fields of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.scalars.json_texts import Members, parse, written
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.types import STRING
from penstock.sql.generators.generator import Arguments, Generator
from penstock.sql.plan.relations import ColumnDef, Columns


def _json_tuple(arguments: Arguments) -> tuple[Arguments, Columns]:
    if len(arguments) < 2:
        what = "JSON_TUPLE takes a string of JSON and the names of fields"
        raise SqlTypeError(what, "write JSON_TUPLE(text, 'a', 'b')")
    for each in arguments:
        if each.type.name != "STRING":
            raise SqlTypeError(f"JSON_TUPLE takes strings, and {each} is {each.type.or_null()}", "CAST it")
    return arguments, tuple(ColumnDef(f"c{at}", STRING) for at in range(len(arguments) - 1))


def _row(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    text, *names = values
    found = None if text is None else parse(text)
    row: list[str | None] = [None] * width
    if isinstance(found, Members):
        # Of a name that is there twice, the last value counts.
        known = {
            name: value if isinstance(value, str) else written(value)
            for name, value in found
            if value is not None
        }
        row = [known.get(name) for name in names]
    return (tuple(row),)


GENERATORS = (Generator("JSON_TUPLE", _json_tuple, _row, "JSON_TUPLE({all})", has_outer=False),)
"""The records."""
