"""The knowledge of inference about a value, and how two pieces of it are joined."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping

from penstock.elements.row import Row
from penstock.typehints.constraints import Any, Hint, ParameterizedConstraint, normalize, show_type
from penstock.typehints.containers import (
    DictConstraint,
    FrozenSetTypeConstraint,
    InferredListConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
    element_types,
)
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import UnionConstraint, union_of

NOTHING = UnionConstraint(())
"""The type of the elements of an empty container, until other elements are known."""

_HOMOGENEOUS: dict[type, typing.Any] = {
    list: ListConstraint,
    set: SetTypeConstraint,
    frozenset: FrozenSetTypeConstraint,
}
_ELEMENTS_OF_CLASSES: dict[Hint, type] = {str: str, bytes: int, range: int}


class Const:
    """A value that is known before anything runs, and its type (Beam's name)."""

    def __init__(self, value: typing.Any) -> None:
        self.value = value
        self.type = instance_to_type(value)

    def __eq__(self, other: object) -> bool:
        # The types differ too: 1 and True and 1.0 are equal.
        return isinstance(other, Const) and self.type == other.type and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"Const[{show_type(self.type)}]"

    @staticmethod
    def unwrap(x: object) -> Hint:
        """Returns the type, if `x` is a constant; otherwise `x` itself."""
        return x.type if isinstance(x, Const) else x

    @staticmethod
    def unwrap_all(xs: Iterable[typing.Any]) -> list[Hint]:
        """Returns the type of each constant; the others unchanged."""
        return [Const.unwrap(x) for x in xs]


def instance_to_type(o: object) -> Hint:
    """Returns the hint that describes a value (Beam's name)."""
    cls = type(o)
    if cls in _HOMOGENEOUS:
        return _HOMOGENEOUS[cls](_union_of_values(typing.cast("Iterable[object]", o)))
    if isinstance(o, tuple) and cls is tuple:
        return TupleConstraint(map(instance_to_type, o))
    if isinstance(o, dict) and cls is dict:
        return DictConstraint(_union_of_values(o.keys()), _union_of_values(o.values()))
    if isinstance(o, Row) and cls is Row:
        return RowTypeConstraint.from_fields(
            (name, instance_to_type(item)) for name, item in o.as_dict().items()
        )
    if isinstance(o, types.MethodType):
        return types.MethodType
    return cls


def _union_of_values(values: Iterable[object]) -> Hint:
    hints = set(map(instance_to_type, values))
    return union_of(hints) if hints else Any


def union(a: object, b: object) -> typing.Any:
    """Returns the union of two types or constants; an empty container takes the elements of another (Beam's name)."""
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
    """Returns the hint with ``Any`` for the elements of containers that were only ever seen empty (Beam's name).

    >>> finalize_hints(ListConstraint(NOTHING))
    List[Any]
    """
    if isinstance(type_hint, UnionConstraint):
        return (
            type_hint.with_members(map(finalize_hints, type_hint.parameters)) if type_hint.parameters else Any
        )
    if isinstance(type_hint, ParameterizedConstraint):
        finished = tuple(map(finalize_hints, type_hint.parameters))
        return type_hint if finished == type_hint.parameters else type_hint.with_parameters(finished)
    return type_hint


def element_type(hint: object) -> Hint:
    """Returns the type of the elements that iteration yields; ``Any`` if it is not known (Beam's name).

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
    """Returns the types of the key and of the value of a pair; twice ``Any`` for another hint (Beam's name)."""
    if isinstance(kv_type, TupleConstraint) and len(kv_type.tuple_types) == 2:
        return kv_type.tuple_types
    if kv_type == NOTHING:
        return NOTHING, NOTHING
    return Any, Any


Value = typing.Any
"""The knowledge of inference about a value: a hint, a `Const`, or one of the classes of this module."""

BUILT_IN: dict[type, type] = {
    ListConstraint: list,
    InferredListConstraint: list,
    TupleConstraint: tuple,
    TupleSequenceConstraint: tuple,
    DictConstraint: dict,
    SetTypeConstraint: set,
    FrozenSetTypeConstraint: frozenset,
}
"""The class of the values of each hint."""
_CHANGEABLE = (ListConstraint, SetTypeConstraint, DictConstraint)
_KEPT_CLASSES = frozenset({bool, int, float, complex, str, bytes})
_COMPARED_BY_VALUE = frozenset({*_KEPT_CLASSES, type(None)})


class Method(typing.NamedTuple):
    """A method of a built-in class, taken from a receiver of a known type."""

    receiver: Hint
    name: str

    @property
    def owner(self) -> Hint:
        """The built-in class."""
        return BUILT_IN.get(type(self.receiver), self.receiver)


class Bound(typing.NamedTuple):
    """A Python function with its first argument, such as a method of the user's class."""

    function: types.FunctionType
    receiver: Value


class Exact(typing.NamedTuple):
    """An instance of just this class, and not of a derived class."""

    cls: type


class Closure:
    """A function that the code itself has made: a lambda, an inner function, a comprehension."""

    def __init__(
        self, code: types.CodeType, namespace: Mapping[str, object], cells: Mapping[str, Value]
    ) -> None:
        self.code, self.namespace, self.cells = code, namespace, cells


class Spread(typing.NamedTuple):
    """Any number of positional arguments of one type: ``*values``."""

    element: Hint


class _Nothing:
    """The place of a missing value."""


NULL = _Nothing()
"""Python's entry on the stack beside a callable without a receiver."""
UNBOUND = _Nothing()
"""The value of a name without a value."""


def hint_of(value: Value) -> Hint:
    """Returns the type of a value.

    >>> hint_of(Const(1)), hint_of(Exact(str)), hint_of(Method(str, "lower"))
    (<class 'int'>, <class 'str'>, Any)
    """
    if isinstance(value, Exact):
        return value.cls
    if isinstance(value, (Method, Bound, Closure, Spread, _Nothing)):
        return Any
    return Const.unwrap(value)


def forget_changeable(value: object) -> Value:
    """Returns the knowledge of a value that the function finds by a name, and that may change before it is read.

    A module, class or function stays the same. A number or a text keeps its class. Other data may change in any
    way, and None most likely stands for a later value.

    >>> forget_changeable(len), forget_changeable(5), forget_changeable([5]), forget_changeable(None)
    (Const[<class 'builtin_function_or_method'>], <class 'int'>, Any, Any)
    """
    kinds = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    if isinstance(value, (*kinds, types.MethodDescriptorType)):
        return Const(value)
    return type(value) if type(value) in _KEPT_CLASSES else Any


def same(first: Value, second: Value) -> bool:
    """True if two pieces of knowledge are equal; it runs no comparison that a user wrote.

    >>> same(Const(1), Const(True)), same(Const("a"), Const("a")), same(int, int)
    (False, True, True)
    """
    if first is second:
        return True
    if isinstance(first, Const) or isinstance(second, Const):
        if type(first) is not type(second):
            return False
        kind = type(first.value)
        by_value = kind in _COMPARED_BY_VALUE and kind is type(second.value)
        return first.value is second.value or (by_value and bool(first.value == second.value))
    if isinstance(first, Bound) and isinstance(second, Bound):
        return first.function is second.function and same(first.receiver, second.receiver)
    if isinstance(first, (_Nothing, Closure)) or type(first) is not type(second):
        return False
    return bool(first == second)


def join_values(first: Value, second: Value) -> Value:
    """Returns the knowledge of a value that is one or the other.

    >>> join_values(Const(1), Const("a")), join_values(UNBOUND, int)
    (Union[<class 'int'>, <class 'str'>], <class 'int'>)
    """
    if same(first, second):
        return first
    if first is UNBOUND or second is UNBOUND:
        # Reading a name without a value raises an error, so that the code after it has the other value.
        return second if first is UNBOUND else first
    return union(hint_of(first), hint_of(second))


def loosen(value: Value) -> Value:
    """Returns the knowledge of a value once it has a name: a list, set or dictionary may have got other elements since.

    >>> loosen(TupleConstraint((ListConstraint(int), str)))
    Tuple[List[Any], <class 'str'>]
    """
    if isinstance(value, Method):
        return Method(loosen(value.receiver), value.name)
    if isinstance(value, Const) and isinstance(value.value, (types.FunctionType, type, types.ModuleType)):
        return value
    hint = Const.unwrap(value)
    if isinstance(hint, _CHANGEABLE):
        return hint.with_parameters(tuple(Any for _parameter in hint.parameters))
    if isinstance(hint, (TupleConstraint, TupleSequenceConstraint)):
        inside = tuple(map(loosen, hint.parameters))
        return value if inside == tuple(hint.parameters) else hint.with_parameters(inside)
    if isinstance(hint, UnionConstraint):
        return hint.with_members(map(loosen, hint.parameters))
    return value
