"""The functions of maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.elements.row import Row
from penstock.scalars import regexes
from penstock.scalars.arrays import map_and_key
from penstock.scalars.casting import refuse
from penstock.scalars.function import Arguments, ScalarFunction, choose_always, choose_at_run_time
from penstock.scalars.nested_resolving import (
    as_kind,
    element_of,
    entries_of,
    is_any_value_nullable,
    key_of,
    of,
    takes_nested,
)
from penstock.scalars.nested_values import key_of_map, make_row
from penstock.scalars.resolving import (
    SqlTypeError,
    cast,
    common_type,
    do_not_fit,
    is_any_nullable,
    takes,
    unify_types,
)
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import BOOLEAN, NULL, STRING, SqlType, array_of, is_key_of_map, map_of

# Values


def make_map(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Returns the map of pairs; refuses a key that is NULL or that is there twice.

    >>> make_map([("a", 1), ("b", None)])
    {'a': 1, 'b': None}
    """
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key is None:
            refuse("a key of a map is NULL", "filter it out first, or write COALESCE(key, …)")
        known = key_of_map(key)
        if known in found:
            refuse("a map has a key twice", "remove one of the two first")
        found[known] = value
    return found


def _of_turns(*parts: object) -> dict[Any, Any]:
    return make_map(zip(parts[::2], parts[1::2], strict=True))


def _of_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        refuse("MAP_FROM_ARRAYS has arrays of different lengths", "make them equally long, e.g. with SLICE")
    return make_map(zip(keys, values, strict=True))


def _of_entries(entries: Iterable[Row | None]) -> dict[Any, Any] | None:
    pairs = [None if each is None else tuple(each) for each in entries]
    known = [each for each in pairs if each is not None]
    return None if len(known) < len(pairs) else make_map((key, value) for key, value in known)


def _concatenated(*maps: dict[Any, Any]) -> dict[Any, Any]:
    return make_map(pair for each in maps for pair in each.items())


def _entries(held: dict[Any, Any]) -> list[Row]:
    return [make_row(("key", "value"), pair) for pair in held.items()]


def _of_text(text: str, between: str = ",", behind: str = ":") -> dict[Any, Any]:
    found = []
    for entry in regexes.split(text, between):
        key, *value = regexes.split(entry, behind, 2)
        found.append((key, value[0] if value else None))
    return make_map(found)


# Types


def refuse_key(kind: SqlType) -> None:
    """Refuses a type of keys that maps in Python cannot have."""
    if not is_key_of_map(kind):
        what = f"a MAP with keys of {kind.or_null()} is not supported"
        raise SqlTypeError(what, "use strings, numbers or times, e.g. CAST(key AS STRING)")


def _checked(kind: SqlType) -> SqlType:
    if key_of(kind).name != "NULL":
        refuse_key(key_of(kind))
    return kind


def _map_from(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) % 2:
        raise do_not_fit(function, arguments, "keys and values in turn")
    if not arguments:
        return function.of((), map_of(NULL, NULL, False))
    keys, key = unify_types(function, arguments[::2])
    values, value = unify_types(function, arguments[1::2])
    parts = tuple(each for pair in zip(keys, values, strict=True) for each in pair)
    kind = map_of(key, value.or_null(is_any_nullable(values)), False)
    return function.of(parts, _checked(kind))


def _from_arrays(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "an ARRAY of keys and one of values")
    keys, values = (as_kind(function, arguments, "ARRAY", at) for at in (0, 1))
    kind = map_of(element_of(keys.type), element_of(values.type), False)
    return of(function, (keys, values), _checked(kind))


def _from_entries(function: ScalarFunction, arguments: Arguments) -> Scalar:
    entry = element_of(arguments[0].type) if len(arguments) == 1 else NULL
    if len(entry.fields) != 2:
        raise do_not_fit(function, arguments, "an ARRAY of structs with a key and a value")
    (_, key), (_, value) = entry.fields
    nullable = entry.nullable or arguments[0].type.nullable
    return function.of(arguments, _checked(map_of(key, value, nullable)))


def _concat_from(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        return function.of((), map_of(STRING, STRING, False))
    found = common_type(arguments)
    if found is None or any(each.type.name != "MAP" for each in arguments):
        raise do_not_fit(function, arguments, "maps of one type")
    return of(function, tuple(cast(each, found) for each in arguments), found.or_null(False))


def _contains_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or arguments[1].type.name == "NULL":
        raise do_not_fit(function, arguments, "a MAP and a key")
    return of(function, map_and_key(function, arguments), BOOLEAN.or_null(False))


def _text_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes("STRING [STRING] [STRING] -> STRING")(function, arguments)
    assert isinstance(found, Call)
    kind = map_of(STRING, STRING, is_any_value_nullable(found.arguments))
    return function.of(found.arguments, kind)


def _text_to_map(call: Call, operands: Sequence[str], overflow: str) -> str:
    if not all(isinstance(each, Literal) for each in call.arguments[1:]):
        raise NotForSpark("a regular expression of the data may mean something else in Java")
    return f"str_to_map({', '.join(operands)})"


# Records

FUNCTIONS = (
    ScalarFunction(
        name="MAP",
        resolve=_map_from,
        python=choose_at_run_time(_of_turns),
        takes_null=True,
        spark="map({all})",
        whole="operands",
    ),
    ScalarFunction(
        name="MAP_FROM_ARRAYS",
        resolve=_from_arrays,
        python=choose_always(_of_arrays),
        spark="map_from_arrays({0}, {1})",
    ),
    ScalarFunction(
        name="MAP_FROM_ENTRIES",
        resolve=_from_entries,
        python=choose_always(_of_entries),
        spark="map_from_entries({0})",
    ),
    ScalarFunction(
        name="MAP_CONCAT",
        resolve=_concat_from,
        python=choose_at_run_time(_concatenated),
        spark="map_concat({all})",
    ),
    ScalarFunction(
        name="MAP_KEYS",
        resolve=takes_nested("MAP", lambda held: array_of(key_of(held).or_null(False), False)),
        python=choose_always(list),
        spark="map_keys({0})",
    ),
    ScalarFunction(
        name="MAP_VALUES",
        resolve=takes_nested("MAP", lambda held: array_of(element_of(held), False)),
        python=choose_always(lambda held: list(held.values())),
        spark="map_values({0})",
    ),
    ScalarFunction(
        name="MAP_ENTRIES",
        resolve=takes_nested("MAP", lambda held: array_of(entries_of(held), False)),
        python=choose_always(_entries),
        spark="map_entries({0})",
    ),
    ScalarFunction(
        name="MAP_CONTAINS_KEY",
        resolve=_contains_of,
        python=choose_always(lambda held, key: key_of_map(key) in held),
        spark="map_contains_key({0}, {1})",
    ),
    ScalarFunction(name="STR_TO_MAP", resolve=_text_of, python=choose_always(_of_text), spark=_text_to_map),
)
"""The records."""
