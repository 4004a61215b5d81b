"""The functions that take lambdas: TRANSFORM, FILTER, AGGREGATE and others of their kind."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from penstock.scalars.arrays import BY_ORDER
from penstock.scalars.casting import refuse
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_at_run_time
from penstock.scalars.maps import make_map, refuse_key
from penstock.scalars.nested_resolving import (
    all_nullable,
    as_kind,
    check_order,
    element_of,
    is_same_shape,
    key_of,
)
from penstock.scalars.resolving import SqlTypeError, cast, coerce, cost_of, do_not_fit
from penstock.scalars.tree import Lambda, Literal, Scalar, make_lambda
from penstock.scalars.types import BOOLEAN, INT, SqlType, array_of, find_common_type, map_of

_INDEX = INT.or_null(False)

# Values. They are given None for NULL, and return None for an array that is NULL.


def _transform(array: list[Any], compute: Callable[..., Any]) -> list[Any]:
    return [compute(each) for each in array]


def _transform_numbered(array: list[Any], compute: Callable[..., Any]) -> list[Any]:
    return [compute(each, number) for number, each in enumerate(array)]


def _filter(array: list[Any], test: Callable[..., Any]) -> list[Any]:
    return [each for each in array if test(each)]


def _filter_numbered(array: list[Any], test: Callable[..., Any]) -> list[Any]:
    return [each for number, each in enumerate(array) if test(each, number)]


def _exists(array: list[Any], test: Callable[..., Any]) -> bool | None:
    unknown = False
    for each in array:
        found = test(each)
        if found:
            return True
        unknown = unknown or found is None
    return None if unknown else False


def _for_all(array: list[Any], test: Callable[..., Any]) -> bool | None:
    unknown = False
    for each in array:
        found = test(each)
        if found is False:
            return False
        unknown = unknown or found is None
    return None if unknown else True


def _aggregate(
    array: list[Any], start: object, merge: Callable[..., Any], finish: Callable[..., Any] | None = None
) -> object:
    found = functools.reduce(merge, array, start)
    return found if finish is None else finish(found)


def _zip_with(left: list[Any], right: list[Any] | None, compute: Callable[..., Any]) -> list[Any] | None:
    return None if right is None else [compute(*pair) for pair in itertools.zip_longest(left, right)]


def _sorted(array: list[Any], compare: Callable[..., Any] | None = None) -> list[Any]:
    if compare is None:
        known = sorted((each for each in array if each is not None), key=BY_ORDER)
        return known + [None] * (len(array) - len(known))

    def compared(left: object, right: object) -> int:
        found: int | None = compare(left, right)
        if found is None:
            refuse("the lambda of ARRAY_SORT returns NULL", "write COALESCE(…, 0), or treat NULL first")
        return found

    return sorted(array, key=functools.cmp_to_key(compared))


def _map_filter(held: dict[Any, Any], test: Callable[..., Any]) -> dict[Any, Any]:
    return {key: value for key, value in held.items() if test(key, value)}


def _transform_keys(held: dict[Any, Any], compute: Callable[..., Any]) -> dict[Any, Any]:
    return make_map((compute(key, value), value) for key, value in held.items())


def _transform_values(held: dict[Any, Any], compute: Callable[..., Any]) -> dict[Any, Any]:
    return {key: compute(key, value) for key, value in held.items()}


def _map_zip_with(
    left: dict[Any, Any], right: dict[Any, Any] | None, compute: Callable[..., Any]
) -> dict[Any, Any] | None:
    if right is None:
        return None
    return {key: compute(key, left.get(key), right.get(key)) for key in (left | right)}


# Types


def _check_lambdas(
    function: ScalarFunction, arguments: Arguments, first: int, counts: tuple[int, ...]
) -> None:
    """Refuses a call without its lambdas, or whose lambdas have too few parameters."""
    lambdas = arguments[first:]
    for each in lambdas:
        if not isinstance(each, Lambda):
            raise do_not_fit(function, arguments, "a lambda there, such as x -> x + 1")
    for each, count in zip(lambdas, counts, strict=False):
        if isinstance(each, Lambda) and count and len(each.parameters) != count:
            what = f"a lambda of {function.name} has {count} parameters, not {len(each.parameters)}"
            raise SqlTypeError(what, "name them all, such as (x, y) -> x + y")


def _with_body(each: Scalar, change: Callable[[Scalar], Scalar]) -> Lambda:
    assert isinstance(each, Lambda)
    return make_lambda(each.parameters, change(each.body))


def _test(function: ScalarFunction, each: Scalar) -> Lambda:
    """A lambda that is a condition."""
    if each.type.name not in ("BOOLEAN", "NULL", "ANY"):
        raise SqlTypeError(f"the lambda of {function.name} is {each.type}", "compare it with something")
    return _with_body(each, lambda body: coerce(body, "BOOLEAN"))


def _of_held(
    name: str,
    parameters: int,
    result: Callable[[SqlType, SqlType], SqlType],
    *,
    tests: bool = False,
) -> Resolve:
    """Returns the resolver of an array, or a map, and one lambda.

    Args:
        name: ARRAY or MAP.
        parameters: The number of parameters that the lambda must have; 0 if some may be left out.
        result: From the types of the array and of the lambda's result to the type of the call.
        tests: Whether the lambda is a condition.
    """

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) != 2:
            raise do_not_fit(function, arguments, f"a {name} and a lambda")
        held = as_kind(function, arguments, name)
        _check_lambdas(function, arguments, 1, (parameters,))
        compute = _test(function, arguments[1]) if tests else arguments[1]
        kind = result(held.type, compute.type)
        if isinstance(compute, Lambda) and len(compute.parameters) > 1:
            function = _NUMBERED.get(function.name, function)
        return function.of((held, compute), kind.or_null(kind.nullable or held.type.nullable))

    return resolve


def _of_elements(arguments: Arguments) -> tuple[SqlType, ...]:
    """The parameters of a lambda of an array: an element, and its number."""
    return (element_of(arguments[0].type) if arguments else _INDEX, _INDEX)


def _one_element(arguments: Arguments) -> tuple[SqlType, ...]:
    return _of_elements(arguments)[:1]


def _two_elements(arguments: Arguments) -> tuple[SqlType, ...]:
    return _of_elements(arguments)[:1] * 2


def _of_entries(arguments: Arguments) -> tuple[SqlType, ...]:
    """The parameters of a lambda of a map: a key, and its value."""
    kind = arguments[0].type if arguments else map_of(_INDEX, _INDEX)
    return (key_of(kind), element_of(kind))


def _of_accumulators(arguments: Arguments) -> tuple[SqlType, ...]:
    """The parameters of the lambdas of AGGREGATE: what is accumulated, and an element."""
    if len(arguments) < 2:
        return (_INDEX, _INDEX)
    accumulated = all_nullable(arguments[1].type)
    return (accumulated, element_of(arguments[0].type)) if len(arguments) == 2 else (accumulated,)


def widened_start(start: Scalar, merge: Scalar) -> Scalar | None:
    """Returns an integer of the query as the start of AGGREGATE with the width of its results; None if it has it.

    Spark takes the 0 of ``AGGREGATE(a, 0, (n, x) -> n + x)`` for an INT, and refuses results that are BIGINTs.
    """
    kinds = start.type, merge.type
    if not isinstance(start, Literal) or {each.name for each in kinds} != {"BIGINT"}:
        return None
    return cast(start, merge.type.or_null(False)) if merge.type.bits > start.type.bits else None


def _aggregate_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) not in (3, 4):
        raise do_not_fit(function, arguments, "an ARRAY, a start, a lambda of two parameters, and one of one")
    array, start = as_kind(function, arguments, "ARRAY"), arguments[1]
    _check_lambdas(function, arguments, 2, (2, 1))
    merge = arguments[2]
    if not is_same_shape(start.type, merge.type) and merge.type.name != "NULL":
        what = f"{function.name} starts with {start.type.or_null()}, and its lambda returns {merge.type.or_null()}"
        raise SqlTypeError(what, "CAST the start, or the result, so that both are of one type")
    if start.type.name == "NULL":
        raise SqlTypeError(
            f"the start of {function.name} is NULL without a type", "write CAST(NULL AS BIGINT)"
        )
    accumulated = all_nullable(start.type)
    parts = (
        array,
        cast(start, accumulated),
        _with_body(merge, lambda body: cast(body, accumulated)),
        *arguments[3:],
    )
    result = arguments[3].type if len(arguments) == 4 else accumulated
    return function.of(parts, result.or_null())


def _zip_parameters(arguments: Arguments) -> tuple[SqlType, ...]:
    return tuple(element_of(each.type).or_null() for each in arguments[:2])


def _zip_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise do_not_fit(function, arguments, "two arrays and a lambda")
    left, right = (as_kind(function, arguments, "ARRAY", at) for at in (0, 1))
    _check_lambdas(function, arguments, 2, (2,))
    nullable = left.type.nullable or right.type.nullable
    return function.of((left, right, arguments[2]), array_of(arguments[2].type, nullable))


def _key_of_both(maps: Arguments) -> SqlType:
    found = find_common_type(key_of(each.type) for each in maps)
    if found is None:
        raise SqlTypeError("the keys of the two maps have no common type", "CAST one of the maps")
    return found.or_null(False)


def _map_zip_parameters(arguments: Arguments) -> tuple[SqlType, ...]:
    maps = arguments[:2]
    return (_key_of_both(maps), *(element_of(each.type).or_null() for each in maps))


def _map_zip_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise do_not_fit(function, arguments, "two maps and a lambda")
    maps = tuple(as_kind(function, arguments, "MAP", at) for at in (0, 1))
    _check_lambdas(function, arguments, 2, (3,))
    key = _key_of_both(maps)
    parts = tuple(cast(each, map_of(key, element_of(each.type), each.type.nullable)) for each in maps)
    nullable = any(each.type.nullable for each in maps)
    return function.of((*parts, arguments[2]), map_of(key, arguments[2].type, nullable))


def _sort_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) not in (1, 2):
        raise do_not_fit(function, arguments, "an ARRAY, and a lambda that compares two elements")
    array = as_kind(function, arguments, "ARRAY")
    _check_lambdas(function, arguments, 1, (2,))
    if len(arguments) == 1:
        check_order(function, array.type)
        return function.of((array,), array.type)
    compare = arguments[1]
    if compare.type.name != "BIGINT" or cost_of(compare, "INT") is None:
        raise SqlTypeError(f"the lambda of ARRAY_SORT is {compare.type}", "return -1, 0 or 1")
    parts = (array, _with_body(compare, lambda body: coerce(body, "INT")))
    return function.of(parts, array.type)


def _keys_of(held: SqlType, key: SqlType) -> SqlType:
    refuse_key(key)
    return map_of(key, element_of(held), False)


# Records


def _function(
    name: str,
    resolve: Resolve,
    parameters: Callable[[Arguments], tuple[SqlType, ...]],
    compute: Callable[..., Any],
    *,
    spellings: tuple[str, ...] = (),
    whole: str = "",
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=resolve,
        spellings=spellings,
        python=choose_at_run_time(_unless_null(compute)),
        takes_null=True,
        spark=f"{name.lower()}({{all}})",
        parameters=parameters,
        whole=whole,
    )


def _unless_null(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda held, *others: None if held is None else compute(held, *others)


def _numbered(name: str, compute: Callable[..., Any], whole: str = "") -> ScalarFunction:
    """The record of calls of a function whose lambda also takes the number of the element."""
    return ScalarFunction(
        name=f"{name} NUMBERED",
        python=choose_at_run_time(_unless_null(compute)),
        takes_null=True,
        spark=f"{name.lower()}({{all}})",
        whole=whole,
    )


_NUMBERED = {
    "TRANSFORM": _numbered("TRANSFORM", _transform_numbered),
    "FILTER": _numbered("FILTER", _filter_numbered, "first"),
}

FUNCTIONS = (
    _function(
        "TRANSFORM",
        _of_held("ARRAY", 0, lambda array, result: array_of(result, False)),
        _of_elements,
        _transform,
    ),
    _function(
        "FILTER",
        _of_held("ARRAY", 0, lambda array, result: array.or_null(False), tests=True),
        _of_elements,
        _filter,
        whole="first",
    ),
    _function(
        "EXISTS", _of_held("ARRAY", 1, lambda array, result: BOOLEAN, tests=True), _one_element, _exists
    ),
    _function(
        "FORALL", _of_held("ARRAY", 1, lambda array, result: BOOLEAN, tests=True), _one_element, _for_all
    ),
    _function("AGGREGATE", _aggregate_of, _of_accumulators, _aggregate, spellings=("REDUCE",)),
    _function("ZIP_WITH", _zip_of, _zip_parameters, _zip_with),
    _function("ARRAY_SORT", _sort_of, _two_elements, _sorted, whole="first"),
    _function(
        "MAP_FILTER",
        _of_held("MAP", 2, lambda held, result: held.or_null(False), tests=True),
        _of_entries,
        _map_filter,
    ),
    _function("TRANSFORM_KEYS", _of_held("MAP", 2, _keys_of), _of_entries, _transform_keys),
    _function(
        "TRANSFORM_VALUES",
        _of_held("MAP", 2, lambda held, result: map_of(key_of(held), result, False)),
        _of_entries,
        _transform_values,
    ),
    _function("MAP_ZIP_WITH", _map_zip_of, _map_zip_parameters, _map_zip_with),
    *_NUMBERED.values(),
)
"""The records."""
