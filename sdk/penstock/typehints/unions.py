"""The constraint that a value is of one of several types, and how unions are simplified."""

from __future__ import annotations

import operator
import typing
from collections.abc import Iterable, Iterator, Mapping

from penstock.error import refusal
from penstock.typehints.constraints import (
    Any,
    AnyTypeConstraint,
    Hint,
    ParameterizedConstraint,
    TypeConstraint,
    bind_type_variables,
    describe_mismatch,
    is_consistent_with,
    match_type_variables,
    normalize,
    show_type,
)
from penstock.typehints.containers import DictConstraint


class UnionConstraint(ParameterizedConstraint):
    """The result of ``Union[X, Y]`` (Beam's name); members are in the order of their names."""

    label = "Union"

    def __init__(self, union_types: Iterable[Hint]) -> None:
        members = {normalize(item, none_as_type=True) for item in union_types}
        super().__init__(*sorted(members, key=show_type))
        self._hash = hash((type(self), frozenset(self.parameters)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnionConstraint) or type(self) is not type(other):
            return False
        return set(self.parameters) == set(other.parameters)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return type(self), (self.parameters,)

    @property
    def union_types(self) -> list[Hint]:
        """The members."""
        return list(self.parameters)

    @property
    def _certain_types(self) -> list[Hint]:
        """The members, which all have to fit where a value of the union goes."""
        return self.union_types

    def with_members(self, members: Iterable[Hint]) -> Hint:
        """Returns a union of this kind of other members."""
        return union_of(members)

    def inner_types(self) -> Iterator[Hint]:
        """Returns the members, one after the other."""
        return iter(self.parameters)

    def contains_type(self, maybe_type: Hint) -> bool:
        """True if a type is one of the members."""
        return maybe_type in self.parameters

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return any(is_consistent_with(sub, item) for item in self.parameters)

    def _mismatch(self, instance: object) -> str | None:
        for item in self.parameters:
            if describe_mismatch(item, instance) is None:
                return None
        members = tuple(map(show_type, self.parameters))
        found = f"received {type(instance).__name__} instead."
        return f"{self} type-constraint violated. Expected an instance of one of: {members}, {found}"

    def match_type_variables(self, concrete_type: Hint) -> dict[typing.Any, Hint]:
        """Returns the variables that every fitting member binds, to the union of their bindings."""
        matches = [
            match_type_variables(item, concrete_type)
            for item in self.parameters
            if is_consistent_with(concrete_type, item)
        ]
        if not matches:
            return {}
        common = set.intersection(*(set(match) for match in matches))
        return {variable: union_of(match[variable] for match in matches) for variable in common}

    def bind_type_variables(self, bindings: Mapping[typing.Any, Hint]) -> Hint:
        members = [bind_type_variables(item, bindings) for item in self.parameters]
        if all(map(operator.is_, members, self.parameters)):
            return self
        return self.with_members(members)


class ColumnUnionConstraint(UnionConstraint):
    """Values of a column that may be null: a union with None that may go where None may not (penstock's own).

    Nearly all columns are declared nullable, and nearly all programs know which are. So this is an ``Optional`` to
    sinks, but a function that does not accept None is not refused.

    >>> [is_consistent_with(kind([int, None]), int) for kind in (ColumnUnionConstraint, UnionConstraint)]
    [True, False]
    """

    @property
    def _certain_types(self) -> list[Hint]:
        return [item for item in self.parameters if item is not type(None)]

    def with_members(self, members: Iterable[Hint]) -> Hint:
        """Returns a union of this kind of other members."""
        return column_of(union_of(item for item in members if item is not type(None)))


def column_of(typehint: Hint) -> Hint:
    """Returns the hint for values of a column that may be null; ``Any`` stays.

    >>> column_of(int), column_of(Any)
    (Union[<class 'NoneType'>, <class 'int'>], Any)
    """
    if isinstance(typehint, AnyTypeConstraint) or typehint is type(None):
        return typehint
    inside = typehint.parameters if isinstance(typehint, UnionConstraint) else (typehint,)
    return ColumnUnionConstraint((*inside, type(None)))


def union_of(members: Iterable[Hint]) -> Hint:
    """Returns the simplest hint that all these types are consistent with.

    Unions inside are flattened, ``Any`` absorbs the rest, dictionaries become one, and rows with the same
    field names become one row.

    >>> union_of([int, int]), union_of([str, None]), union_of([int, Any])
    (<class 'int'>, Union[<class 'NoneType'>, <class 'str'>], Any)
    """
    flat: dict[Hint, None] = {}
    dictionaries: list[DictConstraint] = []
    hints = [normalize(member, none_as_type=True) for member in members]
    certain = [item for hint in hints for item in _certain_types(hint)]
    if type(None) not in certain and any(isinstance(hint, ColumnUnionConstraint) for hint in hints):
        return column_of(union_of(certain))
    for hint in hints:
        for item in hint.parameters if isinstance(hint, UnionConstraint) else (hint,):
            if type(item) is DictConstraint:
                dictionaries.append(item)
            else:
                flat[item] = None
    if dictionaries:
        keys, values = zip(*(item.parameters for item in dictionaries), strict=True)
        flat[DictConstraint(union_of(keys), union_of(values))] = None
    if Any in flat:
        return Any
    if len(flat) == 1:
        return next(iter(flat))
    return _one_row(tuple(flat)) or UnionConstraint(flat)


def _certain_types(hint: Hint) -> Iterable[Hint]:
    return hint._certain_types if isinstance(hint, UnionConstraint) else (hint,)


def _one_row(members: tuple[Hint, ...]) -> Hint | None:
    """The row that stands for several rows with the same names; None if they are not all such rows."""
    return members[0].one_for(members) if members and isinstance(members[0], TypeConstraint) else None


def is_nullable(typehint: Hint) -> bool:
    """True if a hint is ``Optional[X]`` (Beam's name)."""
    return (
        isinstance(typehint, UnionConstraint)
        and len(typehint.parameters) == 2
        and typehint.contains_type(type(None))
    )


def get_concrete_type_from_nullable(typehint: Hint) -> Hint:
    """Returns the X of ``Optional[X]``; TypeError for any other hint (Beam's name)."""
    if not is_nullable(typehint):
        raise refusal(TypeError, f"Typehint is not of nullable type: {typehint}", hint="use Optional[X]")
    return next(item for item in typehint.inner_types() if item is not type(None))


def without_none(typehint: Hint) -> Hint:
    """Returns the X of ``Optional[X]``; any other hint unchanged (penstock's own).

    >>> without_none(UnionConstraint([int, None])), without_none(str)
    (<class 'int'>, <class 'str'>)
    """
    return get_concrete_type_from_nullable(typehint) if is_nullable(typehint) else typehint
