"""The generators that make a row of each element of an array, or of each entry of a map."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.types import ANY, BIGINT, SqlType
from penstock.sql.generators.generator import Arguments, Generator
from penstock.sql.plan.relations import ColumnDef, Columns

_POSITION = ColumnDef("pos", BIGINT.or_null(False))
_ORDINALITY = ColumnDef("ordinality", BIGINT.or_null(False))
_HINT = "make one, such as SPLIT(text, ',') or ARRAY(a, b)"


# One array or map


def _explode(arguments: Arguments) -> tuple[Arguments, Columns]:
    return arguments, _columns_of("EXPLODE", _only("EXPLODE", arguments))


def _posexplode(arguments: Arguments) -> tuple[Arguments, Columns]:
    return arguments, (_POSITION, *_columns_of("POSEXPLODE", _only("POSEXPLODE", arguments)))


def _only(name: str, arguments: Arguments) -> SqlType:
    if len(arguments) != 1:
        raise SqlTypeError(f"{name} takes one argument, not {len(arguments)}", f"write {name}(array)")
    return arguments[0].type


def _inline(arguments: Arguments) -> tuple[Arguments, Columns]:
    kind = _only("INLINE", arguments)
    if kind.name != "ARRAY" or kind.element is None or kind.element.name != "STRUCT":
        hint = "write EXPLODE for an array of other values"
        raise SqlTypeError(f"INLINE takes an ARRAY of structs, not {kind.or_null()}", hint)
    # NULL in place of a struct makes NULLs.
    may_be_null = kind.element.nullable
    fields = kind.element.fields
    return arguments, tuple(
        ColumnDef(name, each.or_null(each.nullable or may_be_null)) for name, each in fields
    )


def _columns_of(name: str, kind: SqlType) -> Columns:
    if kind.name == "ARRAY":
        return (ColumnDef("col", kind.element or ANY),)
    if kind.name == "MAP":
        return ColumnDef("key", kind.key or ANY), ColumnDef("value", kind.element or ANY)
    raise SqlTypeError(f"{name} takes an ARRAY or a MAP, not {kind.or_null()}", _HINT)


def _rows(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    [held] = values
    if not held:
        return ()
    return held.items() if isinstance(held, dict) else zip(held, strict=True)


def _numbered_rows(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    [held] = values
    if isinstance(held, dict):
        return ((at, *each) for at, each in enumerate(held.items()))
    return enumerate(held) if held else ()


def _rows_of_structs(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    [held] = values
    return ((None,) * width if each is None else tuple(each) for each in held or ())


# Several arrays


def _unnest(arguments: Arguments) -> tuple[Arguments, Columns]:
    if not arguments:
        raise SqlTypeError("UNNEST takes an array", "write UNNEST(array)")
    for each in arguments:
        if each.type.name != "ARRAY":
            raise SqlTypeError(f"UNNEST takes arrays, not {each.type.or_null()}", _HINT)
    elements = [each.type.element or ANY for each in arguments]
    if len(arguments) == 1:
        return arguments, (ColumnDef("col", elements[0]),)
    # A shorter array has NULL where a longer one has an element.
    return arguments, tuple(ColumnDef(f"col{at}", each.or_null()) for at, each in enumerate(elements))


def _unnest_with_ordinality(arguments: Arguments) -> tuple[Arguments, Columns]:
    arguments, columns = _unnest(arguments)
    return arguments, (*columns, _ORDINALITY)


def _rows_of_all(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    return itertools.zip_longest(*(each or () for each in values))


def _ordinal_rows_of_all(values: Sequence[Any], width: int) -> Iterable[tuple[Any, ...]]:
    return ((*each, number) for number, each in enumerate(_rows_of_all(values, width), 1))


# Records

GENERATORS = (
    Generator("EXPLODE", _explode, _rows, "EXPLODE({all})"),
    Generator("POSEXPLODE", _posexplode, _numbered_rows, "POSEXPLODE({all})"),
    Generator("INLINE", _inline, _rows_of_structs, "INLINE({all})"),
    Generator("UNNEST", _unnest, _rows_of_all, "UNNEST({all})", in_from_only=True),
    Generator(
        "UNNEST WITH ORDINALITY",
        _unnest_with_ordinality,
        _ordinal_rows_of_all,
        "UNNEST({all}) WITH ORDINALITY",
        in_from_only=True,
    ),
)
"""The records."""
