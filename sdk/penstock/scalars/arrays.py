"""The functions that make arrays, and those that find something in them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.scalars.casting import refuse, text_of
from penstock.scalars.conditions import order, same
from penstock.scalars.function import (
    Arguments,
    ScalarFunction,
    choose_always,
    choose_at_run_time,
    choose_by_type,
)
from penstock.scalars.nested_resolving import (
    array_and_value,
    as_kind,
    check_order,
    element_of,
    key_of,
    of,
    of_value,
    takes_array_and_value,
    takes_nested,
)
from penstock.scalars.nested_values import key_of_map
from penstock.scalars.resolving import (
    cast,
    coerce,
    common_type,
    cost_of,
    do_not_fit,
    is_any_nullable,
    takes,
    unify_types,
)
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import BIGINT, BOOLEAN, NULL, STRING, SqlType, array_of, map_of

BY_ORDER = functools.cmp_to_key(order)
"""Makes of a value what Python orders as SQL orders the values."""

# Values


def _element_at(array: Sequence[Any], index: int) -> object:
    if not index or abs(index) > len(array):
        refuse(
            "ELEMENT_AT asks for an element that the array does not have",
            "write TRY_ELEMENT_AT to get NULL instead; 1 is the first",
        )
    return array[index - 1 if index > 0 else index]


def _try_element_at(array: Sequence[Any], index: int) -> object:
    if not index:
        refuse("TRY_ELEMENT_AT asks for element 0", "1 is the first, and -1 is the last")
    return array[index - 1 if index > 0 else index] if abs(index) <= len(array) else None


def _item(array: Sequence[Any], index: int) -> object:
    if not 0 <= index < len(array):
        refuse(
            "an index asks for an element that the array does not have",
            "write GET(array, index) to get NULL instead; 0 is the first",
        )
    return array[index]


def _get(array: Sequence[Any], index: int) -> object:
    return array[index] if 0 <= index < len(array) else None


def _value_of(held: dict[Any, Any], key: object) -> object:
    return held.get(key_of_map(key))


def _array_contains(array: Iterable[Any], value: object) -> bool | None:
    unknown = False
    for element in array:
        if element is None:
            unknown = True
        elif same(element, value):
            return True
    return None if unknown else False


def _array_position(array: Iterable[Any], value: object) -> int:
    places = (at for at, element in enumerate(array, 1) if element is not None and same(element, value))
    return next(places, 0)


def _extreme(choose: Callable[..., Any]) -> Callable[[Iterable[Any]], Any]:
    def extreme(array: Iterable[Any]) -> object:
        return choose((each for each in array if each is not None), key=BY_ORDER, default=None)

    return extreme


def _join(array: Iterable[Any], separator: str, instead: str | None = None) -> str:
    strings = (instead if each is None else text_of(each) for each in array)
    return separator.join(each for each in strings if each is not None)


# Types


def _array_from(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        return function.of((), array_of(NULL, False))
    parts, found = unify_types(function, arguments)
    return function.of(parts, array_of(found.or_null(is_any_nullable(parts)), False))


def _element_from(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 2 and arguments[0].type.name == "MAP" and function.name != "GET":
        return _of_key(function, arguments)
    if len(arguments) != 2 or arguments[0].type.name != "ARRAY" or cost_of(arguments[1], "INT") is None:
        raise do_not_fit(function, arguments, "(ARRAY, BIGINT)" + ", (MAP, key)" * (function.name != "GET"))
    array, index = arguments
    return function.of((array, coerce(index, "INT")), element_of(array.type).or_null())


def _of_key(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """A call of a map and a key of it."""
    held, key = map_and_key(function, arguments)
    return function.of((held, key), element_of(held.type).or_null())


def map_and_key(function: ScalarFunction, arguments: Arguments) -> tuple[Scalar, Scalar]:
    """Returns a map and a key, as a map with keys of one type and such a key."""
    held, key = as_kind(function, arguments, "MAP"), arguments[1]
    if isinstance(key, Literal) and key.type.name == "STRING" and key_of(held.type).name != "STRING":
        raise do_not_fit(function, arguments, f"a key of type {key_of(held.type).or_null()}")
    found = common_type([Literal(None, key_of(held.type)), key])
    if found is None:
        raise do_not_fit(function, arguments, f"a key of type {key_of(held.type).or_null()}")
    return cast(held, map_of(found, element_of(held.type), held.type.nullable)), cast(key, found)


def _compared(result: SqlType) -> Callable[[ScalarFunction, Arguments], Scalar]:
    resolve = takes_array_and_value(lambda array: result)

    def checked(function: ScalarFunction, arguments: Arguments) -> Scalar:
        found = resolve(function, arguments)
        check_order(function, arguments[0].type)
        return found

    return checked


def _extreme_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_nested("ARRAY", lambda array: element_of(array).or_null())(function, arguments)
    check_order(function, found.type)
    return found


def _join_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) not in (2, 3) or arguments[0].type.name != "ARRAY":
        raise do_not_fit(function, arguments, "(ARRAY<STRING>, STRING, [STRING])")
    if element_of(arguments[0].type).is_nested or any(
        cost_of(each, "STRING") is None for each in arguments[1:]
    ):
        raise do_not_fit(function, arguments, "(ARRAY<STRING>, STRING, [STRING])")
    array = as_kind(function, arguments, "ARRAY")
    strings = cast(array, array_of(STRING.or_null(element_of(array.type).nullable), array.type.nullable))
    return of(function, (strings, *(coerce(each, "STRING") for each in arguments[1:])), STRING.or_null(False))


def _repeat_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or cost_of(arguments[1], "INT") is None:
        raise do_not_fit(function, arguments, "a value and a BIGINT")
    value, count = arguments[0], coerce(arguments[1], "INT")
    return function.of((value, count), array_of(value.type, count.type.nullable))


def _insert_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 3 or cost_of(arguments[1], "INT") is None:
        raise do_not_fit(function, arguments, "an ARRAY, a BIGINT and a value of the type of its elements")
    array, value = array_and_value(function, arguments, 2)
    index = coerce(arguments[1], "INT")
    nullable = array.type.nullable or index.type.nullable
    return function.of((array, index, value), array_of(element_of(array.type).or_null(), nullable))


# Values of changed arrays


def _append(array: list[Any] | None, value: object) -> list[Any] | None:
    return None if array is None else [*array, value]


def _prepend(array: list[Any] | None, value: object) -> list[Any] | None:
    return None if array is None else [value, *array]


def _insert(array: list[Any] | None, index: int | None, value: object) -> list[Any] | None:
    if array is None or index is None:
        return None
    if not index:
        refuse("ARRAY_INSERT has the index 0", "1 is the first place, and -1 is after the last element")
    _check_length(abs(index))
    place = index - 1 if index > 0 else len(array) + index + 1
    if place < 0:
        return [value, *[None] * -place, *array]
    return [*array[:place], *[None] * (place - len(array)), value, *array[place:]]


LENGTH_MAX = 10_000_000
"""The maximum number of elements of an array that a function makes."""


def _check_length(length: int) -> None:
    if length > LENGTH_MAX:
        refuse("an array of an SQL expression has more than ten million elements", "make rows instead")


def _repeat(value: object, count: int | None) -> list[Any] | None:
    if count is None:
        return None
    _check_length(count)
    return [value] * max(0, count)


def _slice(array: list[Any], start: int, length: int) -> list[Any]:
    if not start:
        refuse("SLICE starts at element 0", "1 is the first, and -1 is the last")
    if length < 0:
        refuse("SLICE has a length below 0", "write GREATEST(length, 0)")
    first = start - 1 if start > 0 else len(array) + start
    return array[first : first + length] if first >= 0 else []


def _sort(array: Iterable[Any], ascending: bool = True) -> list[Any]:
    known = sorted((each for each in array if each is not None), key=BY_ORDER, reverse=not ascending)
    nulls = [each for each in array if each is None]
    return nulls + known if ascending else known + nulls


def _flatten(arrays: Iterable[list[Any] | None]) -> list[Any] | None:
    found: list[Any] = []
    for each in arrays:
        if each is None:
            return None
        found += each
    return found


def _concatenate(*arrays: list[Any]) -> list[Any]:
    return [element for array in arrays for element in array]


def _flatten_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1 or element_of(as_kind(function, arguments, "ARRAY").type).name not in (
        "ARRAY",
        "NULL",
    ):
        raise do_not_fit(function, arguments, "an ARRAY of arrays")
    [array] = arguments
    inner = element_of(array.type)
    return function.of((array,), array_of(element_of(inner), array.type.nullable or inner.nullable))


def _sort_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    if not all(isinstance(each, Literal) for each in call.arguments[1:]):
        raise NotForSpark("Spark sorts all arrays in the same direction")
    return f"sort_array({', '.join(operands)})"


def _sort_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_nested("ARRAY", lambda array: array.or_null(False), "BOOLEAN", optional=1)(
        function, arguments
    )
    check_order(function, found.type)
    return found


def _changed(value_may_be_null: bool = True) -> Callable[[ScalarFunction, Arguments], Scalar]:
    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) != 2 or arguments[0].type.name == "NULL":
            raise do_not_fit(function, arguments, "an ARRAY and a value of the type of its elements")
        array, value = array_and_value(function, arguments)
        kind = array_of(
            element_of(array.type).or_null(element_of(array.type).nullable or value.type.nullable)
        )
        return of_value(function, (array, value), lambda _: kind.or_null(False), value_may_be_null)

    return resolve


# Records

CONCATENATION = ScalarFunction(
    name="CONCATENATION", python=choose_always(_concatenate), spark="concat({all})", whole="operands"
)
"""CONCAT of arrays."""

REVERSAL = ScalarFunction(
    name="REVERSAL", python=choose_always(lambda array: array[::-1]), spark="reverse({0})", whole="first"
)
"""REVERSE of an array."""

FUNCTIONS = (
    ScalarFunction(
        name="ARRAY",
        resolve=_array_from,
        python=choose_at_run_time(lambda *elements: list(elements)),
        takes_null=True,
        spark="array({all})",
        whole="operands",
    ),
    ScalarFunction(
        name="ELEMENT_AT",
        resolve=_element_from,
        python=choose_by_type({"ARRAY": _element_at, "MAP": _value_of}),
        spark="element_at({0}, {1})",
        whole="first",
    ),
    ScalarFunction(
        name="TRY_ELEMENT_AT",
        resolve=_element_from,
        python=choose_by_type({"ARRAY": _try_element_at, "MAP": _value_of}),
        spark="try_element_at({0}, {1})",
        whole="first",
    ),
    ScalarFunction(
        name="ITEM",
        resolve=_element_from,
        python=choose_by_type({"ARRAY": _item, "MAP": _value_of}),
        spark="{0}[{1}]",
        whole="first",
    ),
    ScalarFunction(
        name="GET", resolve=_element_from, python=choose_always(_get), spark="get({0}, {1})", whole="first"
    ),
    ScalarFunction(
        name="SIZE",
        resolve=takes("ARRAY -> BIGINT", "MAP -> BIGINT"),
        spellings=("CARDINALITY",),
        python=choose_always(len),
        spark="size({0})",
        whole="INT",
    ),
    ScalarFunction(
        name="ARRAY_SIZE",
        resolve=takes("ARRAY -> BIGINT"),
        python=choose_always(len),
        spark="array_size({0})",
        whole="INT",
    ),
    ScalarFunction(
        name="ARRAY_CONTAINS",
        resolve=_compared(BOOLEAN),
        python=choose_always(_array_contains),
        spark="array_contains({0}, {1})",
    ),
    ScalarFunction(
        name="ARRAY_POSITION",
        resolve=_compared(BIGINT.or_null(False)),
        python=choose_always(_array_position),
        spark="array_position({0}, {1})",
    ),
    ScalarFunction(
        name="ARRAY_MIN",
        resolve=_extreme_of,
        python=choose_always(_extreme(min)),
        spark="array_min({0})",
        whole="first",
    ),
    ScalarFunction(
        name="ARRAY_MAX",
        resolve=_extreme_of,
        python=choose_always(_extreme(max)),
        spark="array_max({0})",
        whole="first",
    ),
    ScalarFunction(
        name="ARRAY_JOIN", resolve=_join_of, python=choose_always(_join), spark="array_join({all})"
    ),
    ScalarFunction(
        name="ARRAY_REPEAT",
        resolve=_repeat_of,
        python=choose_at_run_time(_repeat),
        takes_null=True,
        spark="array_repeat({0}, {1})",
        whole="first",
    ),
    ScalarFunction(
        name="ARRAY_APPEND",
        resolve=_changed(),
        python=choose_always(_append),
        takes_null=True,
        spark="array_append({0}, {1})",
        whole="operands",
    ),
    ScalarFunction(
        name="ARRAY_PREPEND",
        resolve=_changed(),
        python=choose_always(_prepend),
        takes_null=True,
        spark="array_prepend({0}, {1})",
        whole="operands",
    ),
    ScalarFunction(
        name="ARRAY_INSERT",
        resolve=_insert_of,
        python=choose_always(_insert),
        takes_null=True,
        spark="array_insert({0}, {1}, {2})",
        whole="first",
    ),
    ScalarFunction(
        name="ARRAY_COMPACT",
        resolve=takes_nested("ARRAY", lambda array: array_of(element_of(array).or_null(False), False)),
        python=choose_always(lambda array: [each for each in array if each is not None]),
        spark="array_compact({0})",
        whole="first",
    ),
    ScalarFunction(
        name="SLICE",
        resolve=takes_nested("ARRAY", lambda array: array.or_null(False), "INT", "INT"),
        python=choose_always(_slice),
        spark="slice({0}, {1}, {2})",
        whole="first",
    ),
    ScalarFunction(
        name="SORT_ARRAY",
        resolve=_sort_of,
        python=choose_always(_sort),
        spark=_sort_text,
        whole="first",
    ),
    ScalarFunction(
        name="FLATTEN",
        resolve=_flatten_of,
        python=choose_always(_flatten),
        spark="flatten({0})",
        whole="first",
    ),
    CONCATENATION,
    REVERSAL,
)
"""The records."""
