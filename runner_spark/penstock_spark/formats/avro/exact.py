"""Values that ``fastavro`` would write as another value without a word: 1.5 as the integer 1, a text as true."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

Keeps = Callable[[list[Any]], bool]
"""Whether all these values are written as they are, as far as the package itself does not look."""


def keeps_of(schema: Any) -> Keeps | None:
    """The check for values of a schema; None if there is nothing to check.

    It looks at all values of a column at once. Unions need no check: the package looks for the branch that fits.

    >>> keeps = keeps_of({"type": "array", "items": "long"})
    >>> keeps([[1, 2], []]), keeps([[1.5]]), keeps_of("string")
    (True, False, None)
    """
    match schema:
        case "int" | "long" | {"type": "int" | "long"}:
            return None if isinstance(schema, dict) and "logicalType" in schema else _are_whole
        case "boolean" | {"type": "boolean"}:
            return _are_truths
        case {"type": "record", "fields": fields}:
            return _in_fields({field["name"]: keeps_of(field["type"]) for field in fields})
        case {"type": "array", "items": items}:
            return _inside(keeps_of(items), lambda values: chain.from_iterable(values))
        case {"type": "map", "values": items}:
            return _inside(keeps_of(items), lambda values: chain.from_iterable(map(dict.values, values)))
    return None


def _are_whole(values: list[Any]) -> bool:
    return all(hasattr(kind, "__index__") for kind in set(map(type, values)))


def _are_truths(values: list[Any]) -> bool:
    return all(kind.__name__ in ("bool", "bool_") for kind in set(map(type, values)))


def _in_fields(checks: dict[str, Keeps | None]) -> Keeps | None:
    wanted = [(name, keeps) for name, keeps in checks.items() if keeps is not None]
    if not wanted:
        return None
    # The package refuses a field that is missing, or writes its default.
    return lambda values: all(
        keeps([value[name] for value in values if name in value]) for name, keeps in wanted
    )


def _inside(keeps: Keeps | None, parts: Callable[[list[Any]], Any]) -> Keeps | None:
    return None if keeps is None else lambda values: keeps(list(parts(values)))
