"""Beam's ``typehints.typehints``: all hints, constraints and questions about them, under Beam's path."""

from __future__ import annotations

import logging
import typing
from collections import abc
from collections.abc import Iterable as NativeIterable

from penstock.error import refusal
from penstock.typehints.constraints import (
    DISALLOWED_PRIMITIVE_TYPES,
    Any,
    AnyTypeConstraint,
    CompositeTypeHintError,
    GetitemConstructor,
    Hint,
    IndexableTypeConstraint,
    NotAHintError,
    SimpleTypeHintError,
    TypeConstraint,
    TypeVariable,
    bind_type_variables,
    check_constraint,
    describe_mismatch,
    is_composite,
    is_consistent_with,
    is_typing_generic,
    match_type_variables,
    normalize,
    regex_consistency,
    show_type,
    validate_composite_type_param,
    visit_inner_types,
)
from penstock.typehints.containers import (
    ABCSequenceTypeConstraint,
    CollectionTypeConstraint,
    DictConstraint,
    FrozenSetTypeConstraint,
    InferredListConstraint,
    IterableTypeConstraint,
    IteratorTypeConstraint,
    ListConstraint,
    MappingTypeConstraint,
    SequenceTypeConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
    WindowedTypeConstraint,
    element_types,
)
from penstock.typehints.unions import UnionConstraint, get_concrete_type_from_nullable, is_nullable, union_of

__all__ = [
    "ABCSequenceTypeConstraint",
    "Any",
    "AnyTypeConstraint",
    "Collection",
    "CollectionHint",
    "CollectionTypeConstraint",
    "CompositeTypeHint",
    "CompositeTypeHintError",
    "DISALLOWED_PRIMITIVE_TYPES",
    "Dict",
    "DictConstraint",
    "DictHint",
    "FrozenSet",
    "FrozenSetHint",
    "FrozenSetTypeConstraint",
    "Generator",
    "GeneratorHint",
    "GetitemConstructor",
    "IndexableTypeConstraint",
    "Iterable",
    "IterableHint",
    "IterableTypeConstraint",
    "Iterator",
    "IteratorHint",
    "IteratorTypeConstraint",
    "KV",
    "KVHint",
    "List",
    "ListConstraint",
    "ListHint",
    "Mapping",
    "MappingHint",
    "MappingTypeConstraint",
    "Optional",
    "OptionalHint",
    "Sequence",
    "SequenceHint",
    "SequenceTypeConstraint",
    "Set",
    "SetHint",
    "SetTypeConstraint",
    "SimpleTypeHintError",
    "Tuple",
    "TupleConstraint",
    "TupleHint",
    "TupleSequenceConstraint",
    "TypeConstraint",
    "TypeVariable",
    "Union",
    "UnionConstraint",
    "UnionHint",
    "WindowedTypeConstraint",
    "WindowedValue",
    "bind_type_variables",
    "check_constraint",
    "coerce_to_kv_type",
    "get_concrete_type_from_nullable",
    "get_yielded_type",
    "is_composite",
    "is_consistent_with",
    "is_nullable",
    "is_typing_generic",
    "key_value_types",
    "match_type_variables",
    "describe_mismatch",
    "normalize",
    "regex_consistency",
    "show_type",
    "validate_composite_type_param",
    "visit_inner_types",
]


_LOGGER = logging.getLogger(__name__)


class CompositeTypeHint:
    """The base of the hints that take parameters in square brackets (Beam's name)."""

    def __getitem__(self, parameters: Hint) -> typing.Any:
        """Returns the constraint for these parameters; TypeError if one is not a type, or their number is wrong."""
        raise NotImplementedError


class _OfOne(CompositeTypeHint):
    _constraint: typing.ClassVar[typing.Any]
    _noun: typing.ClassVar[str]

    def __getitem__(self, parameters: Hint) -> object:
        validate_composite_type_param(parameters, error_msg_prefix=f"Parameter to {self._noun} hint")
        return type(self)._constraint(parameters)


def _pair(parameters: Hint, name: str) -> tuple[Hint, Hint]:
    hint = f"write {name}[str, int], for example"
    if not isinstance(parameters, tuple):
        what = f"Parameter to {name} type-hint must be a tuple of types: {name}[.., ..]."
        raise NotAHintError(what, hint)
    if len(parameters) != 2:
        what = f"Length of parameters to a {name} type-hint must be exactly 2."
        given = f"Passed parameters: {parameters!r}, have a length of {len(parameters)}."
        raise NotAHintError(f"{what} {given}", hint)
    for role, parameter in zip(("Key", "Value"), parameters, strict=True):
        validate_composite_type_param(
            parameter, error_msg_prefix=f"{role}-type parameter to a {name} type-hint"
        )
    return parameters


class UnionHint(CompositeTypeHint):
    """``Union[X, Y]``: an X or a Y; nested unions are flattened and the order does not matter (Beam's name).

    >>> Union[str, Union[int, str]]
    Union[<class 'int'>, <class 'str'>]
    """

    UnionConstraint = UnionConstraint

    def __getitem__(self, parameters: Hint) -> typing.Any:
        if not isinstance(parameters, NativeIterable):
            raise NotAHintError("Cannot create Union without a sequence of types.", "write Union[int, str]")
        members = tuple(parameters)
        for member in members:
            validate_composite_type_param(member, error_msg_prefix="All parameters to a Union hint")
        return union_of(members)


class OptionalHint(UnionHint):
    """``Optional[X]``: an X or None (Beam's name)."""

    def __getitem__(self, parameters: Hint) -> typing.Any:
        if isinstance(parameters, (tuple, list, str)):
            raise NotAHintError("An Option type-hint only accepts a single type parameter.", "use Union")
        return super().__getitem__((parameters, type(None)))


class TupleHint(CompositeTypeHint):
    """``Tuple[X, Y]``: a tuple of exactly these; ``Tuple[X, ...]``: of any length (Beam's name).

    >>> Tuple[str, int], Tuple[str, ...], Tuple[()]
    (Tuple[<class 'str'>, <class 'int'>], Tuple[<class 'str'>, ...], Tuple[])
    """

    TupleConstraint = TupleConstraint
    TupleSequenceConstraint = TupleSequenceConstraint

    def __getitem__(self, parameters: Hint) -> typing.Any:
        members = tuple(parameters) if isinstance(parameters, (tuple, list)) else (parameters,)
        any_length = bool(members) and members[-1] is Ellipsis
        if any_length and len(members) != 2:
            what = (
                "Ellipsis can only be used to type-hint an arbitrary length tuple of containing a single type"
            )
            raise NotAHintError(f"{what}: Tuple[A, ...].", "write Tuple[int, ...]")
        members = members[:1] if any_length else members
        for member in members:
            validate_composite_type_param(member, error_msg_prefix="All parameters to a Tuple hint")
        return TupleSequenceConstraint(members[0]) if any_length else TupleConstraint(members)


class KVHint(CompositeTypeHint):
    """``KV[K, V]``: the same as ``Tuple[K, V]`` (Beam's name)."""

    def __getitem__(self, parameters: Hint) -> typing.Any:
        return TupleConstraint(_pair(parameters, "KV"))


class ListHint(_OfOne):
    """``List[X]`` (Beam's name)."""

    ListConstraint = _constraint = ListConstraint
    _noun = "List"


class DictHint(CompositeTypeHint):
    """``Dict[K, V]`` (Beam's name)."""

    DictConstraint = DictConstraint

    def __getitem__(self, parameters: Hint) -> typing.Any:
        return DictConstraint(*_pair(parameters, "Dict"))


class MappingHint(CompositeTypeHint):
    """``Mapping[K, V]``: a dictionary or anything like it (Beam's name)."""

    MappingTypeConstraint = MappingTypeConstraint

    def __getitem__(self, parameters: Hint) -> typing.Any:
        return MappingTypeConstraint(*_pair(parameters, "Mapping"))


class SetHint(_OfOne):
    """``Set[X]`` (Beam's name)."""

    SetTypeConstraint = _constraint = SetTypeConstraint
    _noun = "a Set"


class FrozenSetHint(_OfOne):
    """``FrozenSet[X]`` (Beam's name)."""

    FrozenSetTypeConstraint = _constraint = FrozenSetTypeConstraint
    _noun = "a FrozenSet"


class CollectionHint(_OfOne):
    """``Collection[X]``: anything with a length, iteration and ``in`` (Beam's name)."""

    CollectionTypeConstraint = _constraint = CollectionTypeConstraint
    _noun = "a Collection"


class SequenceHint(_OfOne):
    """``Sequence[X]``: a list, a tuple or anything like them (Beam's name)."""

    ABCSequenceTypeConstraint = _constraint = ABCSequenceTypeConstraint
    _noun = "a Sequence"


class IterableHint(_OfOne):
    """``Iterable[X]`` (Beam's name)."""

    IterableTypeConstraint = _constraint = IterableTypeConstraint
    _noun = "an Iterable"


class IteratorHint(_OfOne):
    """``Iterator[X]`` (Beam's name)."""

    IteratorTypeConstraint = _constraint = IteratorTypeConstraint
    _noun = "an Iterator"


class GeneratorHint(IteratorHint):
    """``Generator[X]`` or ``Generator[X, None, None]``: the same as ``Iterator[X]`` (Beam's name).

    >>> Generator[int, None, None]
    Iterator[<class 'int'>]
    """

    def __getitem__(self, parameters: Hint) -> typing.Any:
        if isinstance(parameters, tuple) and len(parameters) == 3:
            parameters, *rest = parameters
            for role, ignored in zip(("send_type", "return_type"), rest, strict=True):
                if ignored is not None and ignored is not type(None):
                    _LOGGER.warning("Ignoring %s hint: %s", role, ignored)
        return super().__getitem__(parameters)


Union = UnionHint()
Optional = OptionalHint()
Tuple = TupleHint()
List = ListHint()
KV = KVHint()
Dict = DictHint()
Set = SetHint()
FrozenSet = FrozenSetHint()
Collection = CollectionHint()
Sequence = SequenceHint()
Mapping = MappingHint()
Iterable = IterableHint()
Iterator = IteratorHint()
Generator = GeneratorHint()
WindowedValue = WindowedTypeConstraint


def get_yielded_type(type_hint: Hint) -> Hint:
    """Returns the type of the elements that a ``for`` loop gets; ValueError if no loop is possible (Beam's name).

    Strings and dictionaries do not count as iterables here.

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
    what = f"{type_hint} is not iterable"
    raise refusal(ValueError, what, hint="return a list, or a hint such as Iterable[int]")


def _is_iterable_class(hint: Hint) -> bool:
    if isinstance(hint, TypeConstraint) or not isinstance(hint, type):
        return False
    return issubclass(hint, abc.Iterable) and not issubclass(hint, (str, bytes, abc.Mapping))


def key_value_types(kv: Hint) -> tuple[Hint, ...]:
    """Returns the types of the key and of the value of a ``KV`` hint; twice ``Any`` for another hint (Beam's name).

    >>> key_value_types(TupleConstraint((str, int))), key_value_types(int)
    ((<class 'str'>, <class 'int'>), (Any, Any))
    """
    return kv.tuple_types if isinstance(kv, TupleConstraint) else (Any, Any)


def coerce_to_kv_type(
    element_type: Hint, label: str | None = None, side_input_producer: str | None = None
) -> TupleConstraint:
    """Returns the ``KV`` hint for elements of a step that needs keys; ValueError if they cannot be pairs (Beam's name).

    ``Any`` and None become ``KV[Any, Any]``. Lists that may be pairs count as pairs. The other arguments name the step,
    or the producer of its side input, in the error.
    """
    if element_type is None or isinstance(element_type, AnyTypeConstraint):
        return TupleConstraint((Any, Any))
    if isinstance(element_type, TupleConstraint) and len(element_type.tuple_types) == 2:
        return element_type
    if isinstance(element_type, InferredListConstraint):
        return TupleConstraint((element_type.inner_type, element_type.inner_type))
    if isinstance(element_type, UnionConstraint) and any(
        isinstance(item, InferredListConstraint) for item in element_type.union_types
    ):
        return TupleConstraint((Any, Any))
    consumer = repr(label)
    if side_input_producer:
        consumer = f"side-input of {label!r} (producer: {side_input_producer!r})"
    if isinstance(element_type, TupleConstraint):
        what = f"Tuple input to {consumer} must have two components. Found {element_type}."
        raise refusal(ValueError, what, hint="make the elements (key, value) pairs first")
    if isinstance(element_type, UnionConstraint):
        pairs = [coerce_to_kv_type(item, label, side_input_producer) for item in element_type.union_types]
        return TupleConstraint(union_of(pair.tuple_types[index] for pair in pairs) for index in (0, 1))
    what = f"Input to {consumer} must be compatible with KV[Any, Any]. Found {element_type}."
    raise refusal(ValueError, what, hint="make the elements (key, value) pairs first")
