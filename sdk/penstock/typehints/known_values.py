"""What inference knows of a value, and how two such pieces of knowledge are joined."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping

from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    DictConstraint,
    FrozenSetTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.unions import UnionConstraint, union_of
from penstock.typehints.value_types import Const, union

Value = typing.Any
"""What inference knows of a value: a hint, a `Const`, or one of the classes of this module."""

BUILT_IN: dict[type, type] = {
    ListConstraint: list,
    TupleConstraint: tuple,
    TupleSequenceConstraint: tuple,
    DictConstraint: dict,
    SetTypeConstraint: set,
    FrozenSetTypeConstraint: frozenset,
}
"""The class of the values that a hint is for."""
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
    """An instance of just this class, and not of one that inherits from it."""

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
    """The place of a value that is not there."""


NULL = _Nothing()
"""What Python puts on the stack beside a callable that has no receiver."""
UNBOUND = _Nothing()
"""The value of a name that has none."""


def hint_of(value: Value) -> Hint:
    """The type of a value.

    >>> hint_of(Const(1)), hint_of(Exact(str)), hint_of(Method(str, "lower"))
    (<class 'int'>, <class 'str'>, Any)
    """
    if isinstance(value, Exact):
        return value.cls
    if isinstance(value, (Method, Bound, Closure, Spread, _Nothing)):
        return Any
    return Const.unwrap(value)


def fixed(value: object) -> Value:
    """What is known of a value that the function finds by a name, and that may change before it is read.

    A module, class or function stays what it is. A number or a text keeps its class. Other data may do
    anything, and None most likely stands for what comes later.

    >>> fixed(len), fixed(5), fixed([5]), fixed(None)
    (Const[<class 'builtin_function_or_method'>], <class 'int'>, Any, Any)
    """
    kinds = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    if isinstance(value, (*kinds, types.MethodDescriptorType)):
        return Const(value)
    return type(value) if type(value) in _KEPT_CLASSES else Any


def same(first: Value, second: Value) -> bool:
    """Whether two pieces of knowledge are equal; it runs no comparison of the user's.

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


def joined(first: Value, second: Value) -> Value:
    """What is known of a value that is one or the other.

    >>> joined(Const(1), Const("a")), joined(UNBOUND, int)
    (Union[<class 'int'>, <class 'str'>], <class 'int'>)
    """
    if same(first, second):
        return first
    if first is UNBOUND or second is UNBOUND:
        # Reading a name without a value raises an error, so that what follows has the other one.
        return second if first is UNBOUND else first
    return union(hint_of(first), hint_of(second))


def loosened(value: Value) -> Value:
    """A value once it has a name: a list, set or dictionary may since have got other elements.

    >>> loosened(TupleConstraint((ListConstraint(int), str)))
    Tuple[List[Any], <class 'str'>]
    """
    if isinstance(value, Method):
        return Method(loosened(value.receiver), value.name)
    if isinstance(value, Const) and isinstance(value.value, (types.FunctionType, type, types.ModuleType)):
        return value
    hint = Const.unwrap(value)
    if isinstance(hint, _CHANGEABLE):
        return hint._with_parameters(tuple(Any for _parameter in hint.parameters))
    if isinstance(hint, (TupleConstraint, TupleSequenceConstraint)):
        inside = tuple(map(loosened, hint.parameters))
        return value if inside == tuple(hint.parameters) else hint._with_parameters(inside)
    if isinstance(hint, UnionConstraint):
        return union_of(map(loosened, hint.parameters))
    return value
