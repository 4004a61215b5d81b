"""The hint that describes a given value, and the small steps that type inference is made of."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable

from penstock.base.row import Row
from penstock.typehints.constraints import (
    Any,
    Hint,
    ParameterizedConstraint,
    normalize,
    show_type,
)
from penstock.typehints.containers import (
    DictConstraint,
    FrozenSetTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    element_types,
)
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import UnionConstraint, union_of

NOTHING = UnionConstraint(())
"""The type of the elements of an empty container, until it is known what else may be in it."""

_HOMOGENEOUS: dict[type, typing.Any] = {
    list: ListConstraint,
    set: SetTypeConstraint,
    frozenset: FrozenSetTypeConstraint,
}
_ELEMENTS_OF_CLASSES: dict[Hint, type] = {str: str, bytes: int, range: int}


class Const:
    """A value that is known before anything runs, and its type (Beam's name).

    >>> Const("a").type
    <class 'str'>
    """

    def __init__(self, value: typing.Any) -> None:
        self.value = value
        self.type = instance_to_type(value)

    def __eq__(self, other: object) -> bool:
        # The types too: 1 and True and 1.0 are equal.
        return isinstance(other, Const) and self.type == other.type and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"Const[{show_type(self.type)}]"

    @staticmethod
    def unwrap(x: typing.Any) -> Hint:
        """The type, if `x` is a constant; otherwise `x` itself."""
        return x.type if isinstance(x, Const) else x

    @staticmethod
    def unwrap_all(xs: Iterable[typing.Any]) -> list[Hint]:
        """The type of each constant; the others as they are."""
        return [Const.unwrap(x) for x in xs]


def instance_to_type(o: object) -> Hint:
    """The hint that describes a value (Beam's name).

    >>> instance_to_type(("a", [1, 2.5])), instance_to_type({})
    (Tuple[<class 'str'>, List[Union[<class 'float'>, <class 'int'>]]], Dict[Any, Any])
    """
    cls = type(o)
    if cls in _HOMOGENEOUS:
        return _HOMOGENEOUS[cls](_union_of_values(typing.cast("Iterable[object]", o)))
    if isinstance(o, tuple) and cls is tuple:
        return TupleConstraint(map(instance_to_type, o))
    if isinstance(o, dict) and cls is dict:
        return DictConstraint(_union_of_values(o.keys()), _union_of_values(o.values()))
    if isinstance(o, Row):
        return RowTypeConstraint.from_fields(
            (name, instance_to_type(item)) for name, item in o.as_dict().items()
        )
    if isinstance(o, types.MethodType):
        return types.MethodType
    return cls


def _union_of_values(values: Iterable[object]) -> Hint:
    hints = set(map(instance_to_type, values))
    return union_of(hints) if hints else Any


def union(a: typing.Any, b: typing.Any) -> typing.Any:
    """The union of two types or constants; an empty container takes the elements of another (Beam's name).

    >>> union(int, str)
    Union[<class 'int'>, <class 'str'>]
    """
    if type(a) is type(b) and a == b:
        return a
    if a is None or a == NOTHING:
        return b
    if b is None or b == NOTHING:
        return a
    left, right = Const.unwrap(a), Const.unwrap(b)
    if type(left) is type(right) and isinstance(left, ParameterizedConstraint):
        if left.parameters == (NOTHING,):
            return right
        if right.parameters == (NOTHING,):
            return left
    return union_of((left, right))


def finalize_hints(type_hint: Hint) -> Hint:
    """The hint with ``Any`` for the elements of containers that were only ever seen empty (Beam's name).

    >>> finalize_hints(ListConstraint(NOTHING))
    List[Any]
    """
    if isinstance(type_hint, UnionConstraint):
        return (
            type_hint._with_members(map(finalize_hints, type_hint.parameters))
            if type_hint.parameters
            else Any
        )
    if isinstance(type_hint, ParameterizedConstraint):
        finished = tuple(map(finalize_hints, type_hint.parameters))
        return type_hint if finished == type_hint.parameters else type_hint._with_parameters(finished)
    return type_hint


def element_type(hint: typing.Any) -> Hint:
    """The type of what iteration gives; ``Any`` if it is not known (Beam's name).

    >>> element_type(ListConstraint(int)), element_type(str), element_type(float)
    (<class 'int'>, <class 'str'>, Any)
    """
    known = normalize(Const.unwrap(hint))
    if isinstance(known, UnionConstraint):
        return union_of(map(element_type, known.parameters)) if known.parameters else known
    if isinstance(known, TupleConstraint):
        return union_of(known.tuple_types)
    types_inside = element_types(known)
    if types_inside:
        return types_inside[0]
    return _ELEMENTS_OF_CLASSES.get(known, Any)


def key_value_types(kv_type: Hint) -> tuple[Hint, ...]:
    """The types of the key and of the value of a pair; twice ``Any`` for another hint (Beam's name).

    >>> key_value_types(TupleConstraint((str, int)))
    (<class 'str'>, <class 'int'>)
    """
    if isinstance(kv_type, TupleConstraint) and len(kv_type.tuple_types) == 2:
        return kv_type.tuple_types
    if kv_type == NOTHING:
        return NOTHING, NOTHING
    return Any, Any
