"""Questions about hints: what iteration yields, and what the key and the value are."""

from __future__ import annotations

from collections import abc

from penstock.error import three_parts
from penstock.typehints.constraints import Any, AnyTypeConstraint, Hint, TypeConstraint, normalize
from penstock.typehints.containers import MappingTypeConstraint, TupleConstraint, element_types
from penstock.typehints.unions import UnionConstraint, union_of


def get_yielded_type(type_hint: Hint) -> Hint:
    """The type of the elements that a ``for`` loop over a value gets (Beam's name).

    Args:
        type_hint: Any hint; strings and dictionaries do not count as iterables here.

    Raises:
        ValueError: If a value of this type cannot be iterated over.

    >>> get_yielded_type(list[int]), get_yielded_type(TupleConstraint((int, str)))
    (<class 'int'>, Union[<class 'int'>, <class 'str'>])
    """
    hint = normalize(type_hint, none_as_type=True)
    if isinstance(hint, AnyTypeConstraint):
        return Any
    if isinstance(hint, UnionConstraint):
        return union_of(get_yielded_type(item) for item in hint.inner_types())
    types_inside = element_types(hint)
    if isinstance(hint, TupleConstraint) or (types_inside and not isinstance(hint, MappingTypeConstraint)):
        return union_of(types_inside)
    if _is_iterable_class(hint):
        return Any
    raise ValueError(
        three_parts(f"{type_hint} is not iterable", hint="return a list, or a hint such as Iterable[int]")
    )


def _is_iterable_class(hint: Hint) -> bool:
    if isinstance(hint, TypeConstraint) or not isinstance(hint, type):
        return False
    return issubclass(hint, abc.Iterable) and not issubclass(hint, (str, bytes, abc.Mapping))


def key_value_types(kv: Hint) -> tuple[Hint, ...]:
    """The types of the key and of the value of a ``KV`` hint; twice ``Any`` for another hint (Beam's name).

    >>> key_value_types(TupleConstraint((str, int))), key_value_types(int)
    ((<class 'str'>, <class 'int'>), (Any, Any))
    """
    return kv.tuple_types if isinstance(kv, TupleConstraint) else (Any, Any)


def coerce_to_kv_type(
    element_type: Hint, label: str | None = None, side_input_producer: str | None = None
) -> TupleConstraint:
    """The ``KV`` hint for elements that a step needs keys of (Beam's name).

    Args:
        element_type: The hint there is; ``Any`` and None become ``KV[Any, Any]``.
        label: The step, for the error.
        side_input_producer: The step that makes the side input, for the error.

    Raises:
        ValueError: If no element of this type can be a pair.

    >>> coerce_to_kv_type(Any, "Group")
    Tuple[Any, Any]
    """
    if element_type is None or isinstance(element_type, AnyTypeConstraint):
        return TupleConstraint((Any, Any))
    if isinstance(element_type, TupleConstraint) and len(element_type.tuple_types) == 2:
        return element_type
    consumer = repr(label)
    if side_input_producer:
        consumer = f"side-input of {label!r} (producer: {side_input_producer!r})"
    if isinstance(element_type, TupleConstraint):
        raise ValueError(
            three_parts(
                f"Tuple input to {consumer} must have two components. Found {element_type}.",
                hint="make the elements (key, value) pairs first",
            )
        )
    if isinstance(element_type, UnionConstraint):
        pairs = [coerce_to_kv_type(item, label, side_input_producer) for item in element_type.union_types]
        return TupleConstraint(union_of(pair.tuple_types[index] for pair in pairs) for index in (0, 1))
    raise ValueError(
        three_parts(
            f"Input to {consumer} must be compatible with KV[Any, Any]. Found {element_type}.",
            hint="make the elements (key, value) pairs first",
        )
    )
