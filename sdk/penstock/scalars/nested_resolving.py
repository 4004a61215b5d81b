"""The types of calls whose arguments are arrays, maps, structs and lambdas."""

from __future__ import annotations

from collections.abc import Callable

from penstock.scalars.function import Arguments, Resolve, ScalarFunction
from penstock.scalars.resolving import SqlTypeError, cast, coerce, common_type, cost_of, do_not_fit
from penstock.scalars.tree import Lambda, Scalar
from penstock.scalars.types import NULL, SqlType, array_of, find_common_type, map_of

ResultOf = Callable[[SqlType], SqlType]
"""The type of a result for the type of an argument; one that is not nullable is so if no argument is."""


def element_of(array: SqlType) -> SqlType:
    """Returns the type of an array's elements, or of a map's values.

    >>> print(element_of(array_of(NULL)))
    NULL
    """
    return array.element or NULL


def entries_of(kind: SqlType) -> SqlType:
    """Returns the type of the structs that are the entries of a map."""
    return SqlType("STRUCT", False, fields=(("key", key_of(kind)), ("value", element_of(kind))))


def key_of(kind: SqlType) -> SqlType:
    """Returns the type of a map's keys."""
    return kind.key or NULL


def same(kind: SqlType) -> SqlType:
    """Returns the type itself, for a result that is NULL only for NULL."""
    return kind.or_null(False)


def is_any_value_nullable(arguments: Arguments) -> bool:
    """True if one of the arguments that are values may be NULL."""
    return any(each.type.nullable for each in arguments if not isinstance(each, Lambda))


def of(function: ScalarFunction, parts: Arguments, result: SqlType) -> Scalar:
    """Returns a call; its result may be NULL if the type says so, or if an argument may be."""
    return function.of(parts, result.or_null(result.nullable or is_any_value_nullable(parts)))


def as_kind(function: ScalarFunction, arguments: Arguments, name: str, place: int = 0) -> Scalar:
    """Returns an argument that is an array, or of another kind of nested values."""
    argument = arguments[place]
    if argument.type.name != name:
        raise do_not_fit(function, arguments, f"{'an ARRAY' if name == 'ARRAY' else f'a {name}'} there")
    return argument


def takes_nested(name: str, result: ResultOf, *others: str, optional: int = 0) -> Resolve:
    """Returns the resolver of an array, or of a map, and of other values behind it.

    Args:
        name: ARRAY or MAP.
        result: The type of the result.
        others: The types of the other arguments.
        optional: How many of these may be left out.
    """
    shown = f"({', '.join([name, *others])})"

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if not len(others) - optional <= len(arguments) - 1 <= len(others):
            raise do_not_fit(function, arguments, shown)
        held = as_kind(function, arguments, name)
        rest = []
        for argument, wanted in zip(arguments[1:], others, strict=False):
            if cost_of(argument, wanted) is None:
                raise do_not_fit(function, arguments, shown)
            rest.append(coerce(argument, wanted))
        return of(function, (held, *rest), result(held.type))

    return resolve


def array_and_value(function: ScalarFunction, arguments: Arguments, place: int = 1) -> tuple[Scalar, Scalar]:
    """Returns an array and a value beside it, as an array of elements of one type and such an element."""
    array = as_kind(function, arguments, "ARRAY")
    value = arguments[place]
    found = find_common_type([element_of(array.type), value.type])
    if found is None:
        raise do_not_fit(function, arguments, "an ARRAY and a value of the type of its elements")
    return cast(array, array_of(found, array.type.nullable)), cast(value, found)


def takes_array_and_value(result: ResultOf, value_may_be_null: bool = False) -> Resolve:
    """Returns the resolver of an array and a value that may be one of its elements.

    Args:
        result: The type of the result.
        value_may_be_null: Whether the result is not NULL for a value that is.
    """

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) != 2:
            raise do_not_fit(function, arguments, "an ARRAY and a value of the type of its elements")
        parts = array_and_value(function, arguments)
        return of_value(function, parts, result, value_may_be_null)

    return resolve


def of_value(function: ScalarFunction, parts: Arguments, result: ResultOf, value_may_be_null: bool) -> Scalar:
    """Returns a call of an array and other values, which are NULL for a NULL among them, or not."""
    kind = result(parts[0].type)
    nullable = parts[0].type.nullable if value_may_be_null else is_any_value_nullable(parts)
    return function.of(parts, kind.or_null(kind.nullable or nullable))


def takes_same_arrays(result: ResultOf, count: int = 2) -> Resolve:
    """Returns the resolver of several arrays of elements of one type; `count` of them, or any number for 0."""

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if not arguments or (count and len(arguments) != count):
            raise do_not_fit(function, arguments, "two arrays of one type" if count else "arrays of one type")
        parts = tuple(as_kind(function, arguments, "ARRAY", at) for at in range(len(arguments)))
        found = common_type(parts)
        if found is None:
            raise do_not_fit(function, arguments, "arrays of one type")
        parts = tuple(cast(each, found) for each in parts)
        return of(function, parts, result(found))

    return resolve


def check_order(function: ScalarFunction, kind: SqlType) -> None:
    """Refuses to compare values that have no order: maps, and what holds them."""
    if kind.has("MAP"):
        hint = "compare SORT_ARRAY(MAP_ENTRIES(map)), or the values of keys"
        raise SqlTypeError(f"{function.name} does not compare maps", hint)


def is_same_shape(one: SqlType, other: SqlType) -> bool:
    """True if two types differ only in the names of fields, and in what may be NULL.

    >>> is_same_shape(array_of(NULL), array_of(NULL, False))
    True
    """
    plain, others = ((each.name, each.precision, each.scale, each.bits) for each in (one, other))
    return (
        plain == others
        and len(one.parts) == len(other.parts)
        and all(map(is_same_shape, one.parts, other.parts))
    )


def all_nullable(kind: SqlType) -> SqlType:
    """Returns a type whose parts may all be NULL."""
    parts = [all_nullable(each) for each in kind.parts]
    if kind.name == "STRUCT":
        names = [name for name, _ in kind.fields]
        return SqlType("STRUCT", fields=tuple(zip(names, parts, strict=True)))
    if kind.name == "MAP":
        return map_of(parts[0], parts[1])
    return array_of(parts[0]) if parts else kind.or_null()
