"""The type of an expression from the types of its parts: arithmetic, comparison, index, slice and attribute.

Each function returns ``Any`` whenever values of the parts' types could have another result.
"""

from __future__ import annotations

import inspect
import types

from penstock.typehints.code_reading import stored_names
from penstock.typehints.column_types import RecordConstraint
from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    ABCSequenceTypeConstraint,
    DictConstraint,
    FrozenSetTypeConstraint,
    InferredListConstraint,
    ListConstraint,
    MappingTypeConstraint,
    SequenceTypeConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.known_values import (
    BUILT_IN,
    Bound,
    Const,
    Exact,
    Method,
    Value,
    forget_changeable,
    hint_of,
)
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint
from penstock.typehints.unions import UnionConstraint, union_of

_NUMBERS: list[Hint] = [bool, int, float, complex]
_PLAIN: frozenset[Hint] = frozenset({*_NUMBERS, str, bytes, type(None)})
_SET_CLASSES = (SetTypeConstraint, FrozenSetTypeConstraint)
_COMPARABLE = (ListConstraint, TupleConstraint, TupleSequenceConstraint, DictConstraint, *_SET_CLASSES)
_INDEXED = (ListConstraint, TupleSequenceConstraint, ABCSequenceTypeConstraint)


def infer_arithmetic(operator: str, left: Value, right: Value) -> Hint:
    """Returns the type of ``left operator right``.

    >>> infer_arithmetic("+", int, Const(1.5)), infer_arithmetic("%", Const("%s"), object)
    (<class 'float'>, <class 'str'>)
    >>> infer_arithmetic("+", object, int)
    Any
    """
    first, second = Const.unwrap(left), Const.unwrap(right)
    if first in _NUMBERS and second in _NUMBERS:
        return _number(operator, first, second, right)
    if operator == "%" and first in (str, bytes):
        return first
    if operator == "+":
        return _concatenation(first, second)
    if operator == "*" and second in (int, bool):
        first, second = second, first
    if operator == "*" and first in (int, bool):
        return second if second in (str, bytes) or isinstance(second, ListConstraint) else Any
    if type(first) is type(second) and isinstance(first, _SET_CLASSES):
        if operator in "|^":
            return type(first)(union_of((first.inner_type, second.inner_type)))
        return first if operator in "&-" else Any
    return Any


def _number(operator: str, first: Hint, second: Hint, right: Value) -> Hint:
    rank = max(_NUMBERS.index(first), _NUMBERS.index(second))
    widest = _NUMBERS[max(rank, 1)]
    if operator in ("+", "-", "*"):
        return widest
    if operator == "/":
        return complex if widest is complex else float
    if operator in ("//", "%"):
        return Any if widest is complex else widest
    if operator in ("&", "|", "^", "<<", ">>") and rank < 2:
        return bool if rank == 0 and operator in ("&", "|", "^") else int
    if operator == "**" and isinstance(right, Const) and second is int and right.value >= 0:
        return int if first is bool else first
    return Any


def _concatenation(first: Hint, second: Hint) -> Hint:
    if first in (str, bytes):
        return first if first is second else Any
    if isinstance(first, ListConstraint) and isinstance(second, ListConstraint):
        parts = isinstance(first, InferredListConstraint) or isinstance(second, InferredListConstraint)
        kind = InferredListConstraint if parts else ListConstraint
        return kind(union_of((first.inner_type, second.inner_type)))
    if isinstance(first, TupleConstraint) and isinstance(second, TupleConstraint):
        return TupleConstraint(first.tuple_types + second.tuple_types)
    return Any


def infer_negative(operand: Value) -> Hint:
    """Returns the type of ``-operand`` and ``+operand``.

    >>> infer_negative(bool), infer_negative(str)
    (<class 'int'>, Any)
    """
    hint = Const.unwrap(operand)
    return (int if hint is bool else hint) if hint in _NUMBERS else Any


def infer_comparison(left: Value, right: Value) -> Hint:
    """Returns the type of comparisons such as ``left < right``; objects of other classes may not return a bool.

    >>> infer_comparison(int, Const(1)), infer_comparison(object, int)
    (<class 'bool'>, Any)
    """
    return bool if _is_plain(Const.unwrap(left)) and _is_plain(Const.unwrap(right)) else Any


def _is_plain(hint: Hint) -> bool:
    if isinstance(hint, UnionConstraint):
        return all(map(_is_plain, hint.parameters))
    return isinstance(hint, _COMPARABLE) or hint in _PLAIN


def infer_item(container: Value, index: Value) -> Hint:
    """Returns the type of ``container[index]``.

    >>> infer_item(TupleConstraint((str, int)), Const(-1)), infer_item(DictConstraint(str, int), Any)
    (<class 'int'>, <class 'int'>)
    >>> infer_item(Any, int)
    Any
    """
    hint, index_type = Const.unwrap(container), Const.unwrap(index)
    if index_type is slice:
        return infer_slice(hint, index.value if isinstance(index, Const) else None)
    if isinstance(hint, RecordConstraint) and isinstance(index, Const):
        return hint.get_type_for(index.value)
    if isinstance(hint, MappingTypeConstraint):
        return one_of(hint.value_type)
    if hint is str:
        return str
    if index_type not in (int, bool):
        return Any
    if isinstance(hint, TupleConstraint):
        if not isinstance(index, Const):
            return one_of(union_of(hint.tuple_types))
        inside = -len(hint.tuple_types) <= index.value < len(hint.tuple_types)
        return hint.tuple_types[index.value] if inside else Any
    if isinstance(hint, _INDEXED):
        return one_of(hint.inner_type)
    if isinstance(index, Const) and isinstance(hint, type) and hasattr(hint, "_fields"):
        names = hint._fields
        return infer_attribute(hint, names[index.value]) if -len(names) <= index.value < len(names) else Any
    return int if hint is bytes else Any


def one_of(members: Hint) -> Hint:
    """Returns the type of a member of a container; Any if there are several types, since only the program knows which.

    A row as a dictionary has numbers and strings, and ``row["price"]`` is always a number. A union would be refused.

    >>> one_of(int), one_of(union_of((int, str)))
    (<class 'int'>, Any)
    """
    return Any if isinstance(members, UnionConstraint) else members


def infer_slice(container: Value, bounds: slice | None = None) -> Hint:
    """Returns the type of a slice, whose `bounds` may be known.

    >>> pair = TupleConstraint((str, int))
    >>> infer_slice(str), infer_slice(pair), infer_slice(pair, slice(1, None))
    (<class 'str'>, Tuple[Union[<class 'int'>, <class 'str'>], ...], Tuple[<class 'int'>])
    """
    hint = Const.unwrap(container)
    if isinstance(hint, TupleConstraint):
        if bounds is not None:
            return TupleConstraint(hint.tuple_types[bounds])
        return TupleSequenceConstraint(union_of(hint.tuple_types))
    return (
        hint if hint in (str, bytes) or isinstance(hint, (ListConstraint, TupleSequenceConstraint)) else Any
    )


def infer_attribute(receiver: Value, name: str) -> Value:
    """Returns the knowledge of ``receiver.name``, found without running any of the user's code.

    >>> infer_attribute(str, "lower"), infer_attribute(RowTypeConstraint.from_fields([("x", int)]), "x")
    (Method(receiver=<class 'str'>, name='lower'), <class 'int'>)
    """
    if isinstance(receiver, Const) and isinstance(receiver.value, types.ModuleType):
        return forget_changeable(vars(receiver.value).get(name))
    if isinstance(receiver, Const) and isinstance(receiver.value, type):
        return _of_class(receiver.value, receiver, name)
    if isinstance(receiver, (Const, Exact)):
        cls = receiver.cls if isinstance(receiver, Exact) else type(receiver.value)
        if _finds_methods_in_class(cls, receiver, name):
            found = inspect.getattr_static(cls, name, None)
            if isinstance(found, types.FunctionType):
                return Bound(found, receiver)
            if isinstance(found, (staticmethod, classmethod)):
                return _of_class(cls, Const(cls), name)
    hint = hint_of(receiver)
    row = hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)
    if row is not None:
        return _as_class(row.get_type_for(name))
    method = Method(hint, name)
    if method.owner in (*_PLAIN, *BUILT_IN.values()) and hasattr(method.owner, name):
        return method
    return Any


def _of_class(cls: type, receiver: Value, name: str) -> Value:
    found = inspect.getattr_static(cls, name, None)
    if isinstance(found, staticmethod):
        return forget_changeable(found.__func__)
    if isinstance(found, classmethod):
        return Bound(found.__func__, receiver) if isinstance(found.__func__, types.FunctionType) else Any
    return forget_changeable(found)


def _finds_methods_in_class(cls: type, receiver: Value, name: str) -> bool:
    """True if an instance surely has no attribute of its own instead of a method."""
    if not isinstance(inspect.getattr_static(cls, "__getattribute__"), types.WrapperDescriptorType):
        return False
    if isinstance(receiver, Const) and name in getattr(receiver.value, "__dict__", ()):
        return False
    functions = (value for base in cls.__mro__ for value in vars(base).values())
    return not any(
        name in stored_names(function.__code__, "STORE_ATTR")
        for function in functions
        if isinstance(function, types.FunctionType) and name in function.__code__.co_names
    )


def _as_class(hint: Hint) -> Hint:
    if isinstance(hint, RowTypeConstraint) and not isinstance(hint, GeneratedClassRowTypeConstraint):
        return hint.user_type
    return hint


def infer_unpacked(hint: Value, count: int) -> list[Hint]:
    """Returns the types of the names in ``a, b = value``.

    >>> infer_unpacked(TupleConstraint((str, int)), 2), infer_unpacked(ListConstraint(int), 2), infer_unpacked(Any, 1)
    ([<class 'str'>, <class 'int'>], [<class 'int'>, <class 'int'>], [Any])
    """
    known = hint_of(hint)
    if isinstance(known, TupleConstraint):
        if len(known.tuple_types) == count:
            return list(known.tuple_types)
        # Python raises an error for a tuple of this length. A hint may be wrong about the length, a constant is not.
        return [Any if isinstance(hint, Const) else union_of(known.tuple_types)] * count
    if isinstance(known, SequenceTypeConstraint):
        return [known.inner_type] * count
    return [Any] * count
