"""The constraints on containers: lists, sets, tuples, dictionaries, iterables and windowed values."""

from __future__ import annotations

import typing
from collections import abc
from collections.abc import Mapping

from penstock.typehints.constraints import (
    GetitemConstructor,
    Hint,
    IndexableTypeConstraint,
    ParameterizedConstraint,
    describe_mismatch,
    describe_non_instance,
    is_composite,
    is_consistent_with,
    match_type_variables,
    show_type,
)
from penstock.utils.windowed_value import WindowedValue


class SequenceTypeConstraint(ParameterizedConstraint, IndexableTypeConstraint):
    """The base of constraints on containers of any length whose elements have one type (Beam's name)."""

    _sequence_type: type = abc.Iterable

    def __init__(self, inner_type: Hint, sequence_type: type | None = None) -> None:
        super().__init__(inner_type)
        if sequence_type is not None:
            self._sequence_type = sequence_type

    @property
    def inner_type(self) -> Hint:
        """The type of the elements."""
        return self.parameters[0]

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        """Returns the constraint classes whose elements decide whether they are consistent with this one."""
        return (type(self),)

    def _consistent_with_check_(self, sub: Hint) -> bool:
        if isinstance(sub, self._accepted()):
            return all(is_consistent_with(item, self.inner_type) for item in element_types(sub))
        return _is_container_class(sub) and issubclass(sub, self._sequence_type)

    def _mismatch(self, instance: object) -> str | None:
        name = self._sequence_type.__name__
        if not isinstance(instance, self._sequence_type):
            return describe_non_instance(f"{name.title()} type-constraint violated", name.lower(), instance)
        if isinstance(instance, abc.Iterator):
            # Looking at the elements of an iterator would use them up.
            return None
        for index, element in enumerate(typing.cast("abc.Iterable[object]", instance)):
            reason = describe_mismatch(self.inner_type, element)
            if reason is not None:
                place = (
                    f"{name} is incorrect:"
                    if is_composite(self.inner_type)
                    else f"{self._sequence_type} is incorrect."
                )
                return f"{_of_element(self, index)} {place} {reason}"
        return None

    def match_type_variables(self, concrete_type: Hint) -> dict[typing.Any, Hint]:
        """Returns the variables of the element type, from the elements of any other container."""
        types_inside = element_types(concrete_type)
        return match_type_variables(self.inner_type, types_inside[0]) if len(set(types_inside)) == 1 else {}


class ListConstraint(SequenceTypeConstraint):
    """The result of ``List[X]`` (Beam's name)."""

    label = "List"
    _sequence_type = list


class InferredListConstraint(ListConstraint):
    """A list that is known by inference only, such as the result of ``str.split`` (penstock's own).

    Beam infers ``Any`` there, so that programs use such lists as pairs. Here it may also be a pair; otherwise it is
    ``List[X]``.

    >>> pair = TupleConstraint((str, str))
    >>> is_consistent_with(InferredListConstraint(str), pair), is_consistent_with(ListConstraint(str), pair)
    (True, False)
    """

    _is_known_to_beam = False

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return (ListConstraint,)


class SetTypeConstraint(SequenceTypeConstraint):
    """The result of ``Set[X]`` (Beam's name)."""

    label = "Set"
    _sequence_type = set


class FrozenSetTypeConstraint(SequenceTypeConstraint):
    """The result of ``FrozenSet[X]`` (Beam's name)."""

    label = "FrozenSet"
    _sequence_type = frozenset


class TupleSequenceConstraint(SequenceTypeConstraint):
    """The result of ``Tuple[X, ...]``: a tuple of any length (Beam's name).

    >>> TupleSequenceConstraint(int)
    Tuple[<class 'int'>, ...]
    """

    label = "Tuple"
    _sequence_type = tuple

    def __repr__(self) -> str:
        return f"Tuple[{show_type(self.inner_type)}, ...]"

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return TupleSequenceConstraint, TupleConstraint


class TupleConstraint(ParameterizedConstraint, IndexableTypeConstraint):
    """The result of ``Tuple[X, Y]`` and ``KV[X, Y]``: a tuple of exactly these (Beam's name)."""

    label = "Tuple"

    def __init__(self, type_params: abc.Iterable[Hint]) -> None:
        super().__init__(*type_params)

    @property
    def tuple_types(self) -> tuple[Hint, ...]:
        """The type at each position."""
        return self.parameters

    def _consistent_with_check_(self, sub: Hint) -> bool:
        if isinstance(sub, InferredListConstraint):
            return all(is_consistent_with(sub.inner_type, own) for own in self.tuple_types)
        return (
            isinstance(sub, TupleConstraint)
            and len(sub.tuple_types) == len(self.tuple_types)
            and all(map(is_consistent_with, sub.tuple_types, self.tuple_types))
        )

    def _mismatch(self, instance: object) -> str | None:
        if not isinstance(instance, tuple):
            return describe_non_instance("Tuple type constraint violated", "tuple", instance)
        if len(instance) != len(self.tuple_types):
            return (
                "Passed object instance is of the proper type, but differs in length from the hinted type. "
                f"Expected a tuple of length {len(self.tuple_types)}, received a tuple of length {len(instance)}."
            )
        for index, (expected, element) in enumerate(zip(self.tuple_types, instance, strict=True)):
            reason = describe_mismatch(expected, element)
            if reason is not None:
                return f"{_of_element(self, index)} tuple is incorrect. {reason}"
        return None


class CollectionTypeConstraint(SequenceTypeConstraint):
    """The result of ``Collection[X]``: anything with a length, iteration and ``in`` (Beam's name).

    >>> CollectionTypeConstraint(int)
    Collection[<class 'int'>]
    """

    label = "Collection"
    _sequence_type = abc.Collection

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return (
            CollectionTypeConstraint,
            ABCSequenceTypeConstraint,
            ListConstraint,
            SetTypeConstraint,
            FrozenSetTypeConstraint,
            TupleSequenceConstraint,
            TupleConstraint,
            MappingTypeConstraint,
            DictConstraint,
        )


class ABCSequenceTypeConstraint(SequenceTypeConstraint):
    """The result of ``Sequence[X]``: anything with a length and indexes (Beam's name).

    >>> ABCSequenceTypeConstraint(int)
    Sequence[<class 'int'>]
    """

    label = "Sequence"
    _sequence_type = abc.Sequence

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return ABCSequenceTypeConstraint, ListConstraint, TupleConstraint, TupleSequenceConstraint


class IterableTypeConstraint(SequenceTypeConstraint):
    """The result of ``Iterable[X]`` (Beam's name).

    >>> is_consistent_with(ListConstraint(int), IterableTypeConstraint(int))
    True
    """

    label = "Iterable"
    _sequence_type = abc.Iterable

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return SequenceTypeConstraint, TupleConstraint, MappingTypeConstraint, IteratorTypeConstraint


class IteratorTypeConstraint(ParameterizedConstraint):
    """The result of ``Iterator[X]`` and ``Generator[X]`` (Beam's name).

    A check of a value does not look at the elements: that would use them up.
    """

    label = "Iterator"

    def __init__(self, t: Hint) -> None:
        super().__init__(t)

    @property
    def yielded_type(self) -> Hint:
        """The type of the elements."""
        return self.parameters[0]

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return isinstance(sub, IteratorTypeConstraint) and is_consistent_with(
            sub.yielded_type, self.yielded_type
        )

    def _mismatch(self, instance: object) -> str | None:
        if isinstance(instance, abc.Iterator):
            return None
        return describe_non_instance("Iterator type-constraint violated", "iterator", instance)


class MappingTypeConstraint(ParameterizedConstraint):
    """The result of ``Mapping[K, V]`` (Beam's name).

    >>> is_consistent_with(DictConstraint(str, bool), MappingTypeConstraint(str, int))
    True
    """

    label = "Mapping"
    _mapping_type: type = abc.Mapping

    def __init__(self, key_type: Hint, value_type: Hint) -> None:
        super().__init__(key_type, value_type)

    @property
    def key_type(self) -> Hint:
        """The type of the keys."""
        return self.parameters[0]

    @property
    def value_type(self) -> Hint:
        """The type of the values."""
        return self.parameters[1]

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return MappingTypeConstraint, DictConstraint

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return isinstance(sub, self._accepted()) and all(
            map(is_consistent_with, sub.parameters, self.parameters)
        )

    def _mismatch(self, instance: object) -> str | None:
        if not isinstance(instance, self._mapping_type):
            kind = f"All passed instances must be of type {self._mapping_type.__name__}"
            return f"{self.label} type-constraint violated. {kind}. One is of type {type(instance).__name__}."
        for key, value in typing.cast("Mapping[object, object]", instance).items():
            for role, hint, item in (("key", self.key_type, key), ("value", self.value_type, value)):
                reason = describe_mismatch(hint, item)
                if reason is not None:
                    found = (
                        f": {reason}" if is_composite(hint) else f", one is of type {type(item).__name__}."
                    )
                    expected = f"All {role}s should be of type {show_type(hint)}"
                    return f"{self} hint {role}-type constraint violated. {expected}. Instead{found}"
        return None

    def _matches(self, other: Hint) -> bool:
        return isinstance(other, MappingTypeConstraint)


class DictConstraint(MappingTypeConstraint):
    """The result of ``Dict[K, V]`` (Beam's name)."""

    label = "Dict"
    _mapping_type = dict

    def _accepted(self) -> tuple[type[ParameterizedConstraint], ...]:
        return (DictConstraint,)


class WindowedTypeConstraint(ParameterizedConstraint, metaclass=GetitemConstructor):
    """The result of ``WindowedValue[X]`` (Beam's name).

    >>> WindowedTypeConstraint[int]
    WindowedValue[<class 'int'>]
    """

    label = "WindowedValue"

    def __init__(self, inner_type: Hint) -> None:
        super().__init__(inner_type)

    @property
    def inner_type(self) -> Hint:
        """The type of the value without its window."""
        return self.parameters[0]

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return isinstance(sub, WindowedTypeConstraint) and is_consistent_with(sub.inner_type, self.inner_type)

    def _mismatch(self, instance: object) -> str | None:
        if not isinstance(instance, WindowedValue):
            return describe_non_instance("WindowedValue type-constraint violated", "WindowedValue", instance)
        reason = describe_mismatch(self.inner_type, instance.value)
        return (
            None
            if reason is None
            else f"{self} hint type-constraint violated. Its value is incorrect. {reason}"
        )


def _of_element(constraint: ParameterizedConstraint, index: int) -> str:
    return f"{constraint} hint type-constraint violated. The type of element #{index} in the passed"


def _is_container_class(hint: Hint) -> bool:
    """True if a hint is a class of containers other than strings and mappings."""
    return isinstance(hint, type) and not issubclass(hint, (str, bytes, abc.Mapping))


def element_types(hint: Hint) -> tuple[Hint, ...]:
    """Returns the types of the elements that iteration over a hint yields; () if they are unknown.

    >>> element_types(TupleConstraint((str, int))), element_types(int)
    ((<class 'str'>, <class 'int'>), ())
    """
    match hint:
        case TupleConstraint():
            return hint.tuple_types
        case SequenceTypeConstraint():
            return (hint.inner_type,)
        case IteratorTypeConstraint():
            return (hint.yielded_type,)
        case MappingTypeConstraint():
            return (hint.key_type,)
        case _:
            return ()
