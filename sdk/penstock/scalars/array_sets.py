"""The functions that take arrays for sets: without duplicates, in common, and without some elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.elements.row import Row
from penstock.scalars.conditions import same
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.nested_resolving import (
    check_order,
    element_of,
    takes_array_and_value,
    takes_nested,
    takes_same_arrays,
)
from penstock.scalars.nested_values import hashable, make_row
from penstock.scalars.tree import Scalar
from penstock.scalars.types import BOOLEAN

# Values


def _keyed(array: Iterable[Any]) -> dict[Any, Any]:
    """The elements by what equal ones have in common, the first of each; of the two zeros, 0.0."""
    found: dict[Any, Any] = {}
    for each in array:
        found.setdefault(hashable(each), _with_one_zero(each))
    return found


def _with_one_zero(value: object) -> object:
    if type(value) is float:
        return value + 0.0
    if isinstance(value, Row):
        return make_row(value.as_dict(), map(_with_one_zero, value))
    return list(map(_with_one_zero, value)) if isinstance(value, list) else value


def _distinct(array: Iterable[Any]) -> list[Any]:
    return list(_keyed(array).values())


def _union(left: list[Any], right: list[Any]) -> list[Any]:
    return _distinct([*left, *right])


def _intersect(left: Iterable[Any], right: Iterable[Any]) -> list[Any]:
    others = _keyed(right)
    return [value for key, value in _keyed(left).items() if key in others]


def _except(left: Iterable[Any], right: Iterable[Any]) -> list[Any]:
    others = _keyed(right)
    return [value for key, value in _keyed(left).items() if key not in others]


def _overlap(left: list[Any], right: list[Any]) -> bool | None:
    ones, others = _keyed(left), _keyed(right)
    if any(key in others for key, value in ones.items() if value is not None):
        return True
    return None if left and right and (None in ones or None in others) else False


def _remove(array: Iterable[Any], value: object) -> list[Any]:
    return [each for each in array if each is None or not same(each, value)]


# Types


def _distinct_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_nested("ARRAY", lambda array: array.or_null(False))(function, arguments)
    check_order(function, found.type)
    return found


def _combined_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_same_arrays(lambda array: array.or_null(False))(function, arguments)
    check_order(function, found.type)
    return found


def _overlap_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_same_arrays(
        lambda array: BOOLEAN.or_null(element_of(array).nullable),
    )(function, arguments)
    for each in arguments:
        check_order(function, each.type)
    return found


def _remove_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = takes_array_and_value(lambda array: array.or_null(False))(function, arguments)
    check_order(function, found.type)
    return found


# Records

FUNCTIONS = (
    ScalarFunction(
        name="ARRAY_DISTINCT",
        resolve=_distinct_of,
        python=choose_always(_distinct),
        spark="array_distinct({0})",
        whole="first",
    ),
    ScalarFunction(
        name="ARRAY_UNION",
        resolve=_combined_of,
        python=choose_always(_union),
        spark="array_union({0}, {1})",
        whole="operands",
    ),
    ScalarFunction(
        name="ARRAY_INTERSECT",
        resolve=_combined_of,
        python=choose_always(_intersect),
        spark="array_intersect({0}, {1})",
        whole="operands",
    ),
    ScalarFunction(
        name="ARRAY_EXCEPT",
        resolve=_combined_of,
        python=choose_always(_except),
        spark="array_except({0}, {1})",
        whole="operands",
    ),
    ScalarFunction(
        name="ARRAYS_OVERLAP",
        resolve=_overlap_of,
        python=choose_always(_overlap),
        spark="arrays_overlap({0}, {1})",
    ),
    ScalarFunction(
        name="ARRAY_REMOVE",
        resolve=_remove_of,
        python=choose_always(_remove),
        spark="array_remove({0}, {1})",
        whole="first",
    ),
)
"""The records."""
