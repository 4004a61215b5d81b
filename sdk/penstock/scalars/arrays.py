"""The functions of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.scalars.casting import refuse
from penstock.scalars.conditions import same
from penstock.scalars.function import Arguments, ScalarFunction, choose_always, choose_at_run_time
from penstock.scalars.resolving import cast, coerce, cost_of, do_not_fit, is_any_nullable, takes, unify_types
from penstock.scalars.tree import Scalar
from penstock.scalars.types import ANY, BOOLEAN, NULL, SqlType, find_common_type

# Values


def _element_at(array: Sequence[Any], index: int) -> object:
    if not index or abs(index) > len(array):
        refuse(
            "ELEMENT_AT asks for an element that the array does not have",
            "test SIZE(array) first; 1 is the first",
        )
    return array[index - 1 if index > 0 else index]


def _item(array: Sequence[Any], index: int) -> object:
    if not 0 <= index < len(array):
        refuse(
            "an index asks for an element that the array does not have",
            "test SIZE(array) first; 0 is the first",
        )
    return array[index]


def _array_contains(array: Iterable[Any], value: object) -> bool | None:
    unknown = False
    for element in array:
        if element is None:
            unknown = True
        elif same(element, value):
            return True
    return None if unknown else False


# Types


def _array_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        return function.of((), SqlType("ARRAY", False, NULL))
    parts, found = unify_types(function, arguments)
    return function.of(parts, SqlType("ARRAY", False, found.or_null(is_any_nullable(parts))))


def _element_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or arguments[0].type.name != "ARRAY":
        raise do_not_fit(function, arguments, "(ARRAY, BIGINT)")
    array, index = arguments
    if cost_of(index, "INT") is None:
        raise do_not_fit(function, (index,), "(ARRAY, BIGINT)")
    return function.of((array, coerce(index, "INT")), (array.type.element or ANY).or_null())


def _contains_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or arguments[0].type.name != "ARRAY":
        raise do_not_fit(function, arguments, "an ARRAY and a value of its type")
    array, value = arguments
    found = find_common_type(((array.type.element or NULL), value.type))
    if found is None:
        raise do_not_fit(function, arguments, "an ARRAY and a value of its type")
    of_type = cast(array, SqlType("ARRAY", array.type.nullable, found))
    return function.of((of_type, cast(value, found)), BOOLEAN)


# Records

FUNCTIONS = (
    ScalarFunction(
        name="ARRAY",
        resolve=_array_of,
        python=choose_at_run_time(lambda *elements: list(elements)),
        takes_null=True,
        spark="array({all})",
        whole="operands",
    ),
    ScalarFunction(
        name="ELEMENT_AT",
        resolve=_element_of,
        python=choose_always(_element_at),
        spark="element_at({0}, {1})",
        whole="first",
    ),
    ScalarFunction(
        name="ITEM", resolve=_element_of, python=choose_always(_item), spark="{0}[{1}]", whole="first"
    ),
    ScalarFunction(
        name="SIZE",
        resolve=takes("ARRAY -> BIGINT"),
        spellings=("CARDINALITY",),
        python=choose_always(len),
        spark="size({0})",
        whole="INT",
    ),
    ScalarFunction(
        name="ARRAY_CONTAINS",
        resolve=_contains_of,
        python=choose_always(_array_contains),
        spark="array_contains({0}, {1})",
    ),
)
"""The records."""
