"""The type of an expression from the types of its parts: arithmetic, comparison, index, slice and attribute.

Each function gives ``Any`` whenever a value of the parts' types could give something else.
"""

from __future__ import annotations

import types
import typing

from penstock.typehints.column_types import RecordConstraint
from penstock.typehints.constraints import Any, Hint, TypeConstraint
from penstock.typehints.containers import (
    ABCSequenceTypeConstraint,
    DictConstraint,
    FrozenSetTypeConstraint,
    ListConstraint,
    MappingTypeConstraint,
    SequenceTypeConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint
from penstock.typehints.unions import UnionConstraint, union_of
from penstock.typehints.value_types import Const

Value = typing.Any
"""What inference knows of a value: a hint, a `Const` or a `Method`."""

_NUMBERS: list[Hint] = [bool, int, float, complex]
_PLAIN: frozenset[Hint] = frozenset({*_NUMBERS, str, bytes, type(None)})
_SET_CLASSES = (SetTypeConstraint, FrozenSetTypeConstraint)
_COMPARABLE = (ListConstraint, TupleConstraint, TupleSequenceConstraint, DictConstraint, *_SET_CLASSES)
_INDEXED = (ListConstraint, TupleSequenceConstraint, ABCSequenceTypeConstraint)
_BUILT_IN: dict[type, type] = {
    ListConstraint: list,
    TupleConstraint: tuple,
    TupleSequenceConstraint: tuple,
    DictConstraint: dict,
    SetTypeConstraint: set,
    FrozenSetTypeConstraint: frozenset,
}


class Method(typing.NamedTuple):
    """A method of a built-in class, taken from a receiver of a known type."""

    receiver: Hint
    name: str

    @property
    def owner(self) -> Hint:
        """The built-in class."""
        return _BUILT_IN.get(type(self.receiver), self.receiver)


def arithmetic(operator: str, left: Value, right: Value) -> Hint:
    """The type of ``left operator right``.

    >>> arithmetic("+", int, Const(1.5)), arithmetic("%", Const("%s"), object), arithmetic("+", object, int)
    (<class 'float'>, <class 'str'>, Any)
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
        return ListConstraint(union_of((first.inner_type, second.inner_type)))
    if isinstance(first, TupleConstraint) and isinstance(second, TupleConstraint):
        return TupleConstraint(first.tuple_types + second.tuple_types)
    return Any


def negative(operand: Value) -> Hint:
    """The type of ``-operand`` and ``+operand``.

    >>> negative(bool), negative(str)
    (<class 'int'>, Any)
    """
    hint = Const.unwrap(operand)
    return (int if hint is bool else hint) if hint in _NUMBERS else Any


def comparison(left: Value, right: Value) -> Hint:
    """The type of ``left < right`` and the like: other classes may answer with something that is no bool.

    >>> comparison(int, Const(1)), comparison(object, int)
    (<class 'bool'>, Any)
    """
    return bool if _is_plain(Const.unwrap(left)) and _is_plain(Const.unwrap(right)) else Any


def _is_plain(hint: Hint) -> bool:
    if isinstance(hint, UnionConstraint):
        return all(map(_is_plain, hint.parameters))
    return isinstance(hint, _COMPARABLE) or hint in _PLAIN


def item(container: Value, index: Value) -> Hint:
    """The type of ``container[index]``.

    >>> item(TupleConstraint((str, int)), Const(-1)), item(DictConstraint(str, int), Any), item(Any, int)
    (<class 'int'>, <class 'int'>, Any)
    """
    hint, index_type = Const.unwrap(container), Const.unwrap(index)
    if index_type is slice:
        return part(hint)
    if isinstance(hint, RecordConstraint) and isinstance(index, Const):
        return hint.get_type_for(index.value)
    if isinstance(hint, MappingTypeConstraint):
        return hint.value_type
    if hint is str:
        return str
    if index_type not in (int, bool):
        return Any
    if isinstance(hint, TupleConstraint):
        if not isinstance(index, Const):
            return union_of(hint.tuple_types)
        inside = -len(hint.tuple_types) <= index.value < len(hint.tuple_types)
        return hint.tuple_types[index.value] if inside else Any
    if isinstance(hint, _INDEXED):
        return hint.inner_type
    if isinstance(index, Const) and isinstance(hint, type) and hasattr(hint, "_fields"):
        names = hint._fields
        return attribute(hint, names[index.value]) if -len(names) <= index.value < len(names) else Any
    return int if hint is bytes else Any


def part(container: Value) -> Hint:
    """The type of a slice.

    >>> part(str), part(TupleConstraint((str, int)))
    (<class 'str'>, Tuple[Union[<class 'int'>, <class 'str'>], ...])
    """
    hint = Const.unwrap(container)
    if isinstance(hint, TupleConstraint):
        return TupleSequenceConstraint(union_of(hint.tuple_types))
    return (
        hint if hint in (str, bytes) or isinstance(hint, (ListConstraint, TupleSequenceConstraint)) else Any
    )


def attribute(receiver: Value, name: str) -> Value:
    """What is known of ``receiver.name``.

    >>> attribute(str, "lower"), attribute(RowTypeConstraint.from_fields([("x", int)]), "x")
    (Method(receiver=<class 'str'>, name='lower'), <class 'int'>)
    """
    if isinstance(receiver, Const) and isinstance(receiver.value, (types.ModuleType, type)):
        return fixed(getattr(receiver.value, name, None))
    hint = Const.unwrap(receiver)
    row = hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)
    if row is not None:
        return _as_class(row.get_type_for(name))
    method = Method(hint, name)
    if method.owner in (*_PLAIN, *_BUILT_IN.values()) and hasattr(method.owner, name):
        return method
    return Any


def _as_class(hint: Hint) -> Hint:
    """The user's own class instead of its row hint."""
    if isinstance(hint, RowTypeConstraint) and not isinstance(hint, GeneratedClassRowTypeConstraint):
        return hint.user_type
    return hint


def fixed(value: object) -> Value:
    """A module, class or function as a constant; ``Any`` for data, which may change before it is read.

    >>> fixed(len), fixed(5)
    (Const[<class 'builtin_function_or_method'>], Any)
    """
    kinds = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    if isinstance(value, (*kinds, types.MethodDescriptorType)):
        return Const(value)
    return Any


def unpacked(hint: Value, count: int) -> list[Hint]:
    """The types of the names in ``a, b = value``.

    >>> unpacked(TupleConstraint((str, int)), 2), unpacked(ListConstraint(int), 2), unpacked(Any, 1)
    ([<class 'str'>, <class 'int'>], [<class 'int'>, <class 'int'>], [Any])
    """
    known = Const.unwrap(hint)
    if isinstance(known, TupleConstraint) and len(known.tuple_types) == count:
        return list(known.tuple_types)
    if isinstance(known, SequenceTypeConstraint):
        return [known.inner_type] * count
    return [Any] * count


def loosened(value: Value) -> Value:
    """A value once it has a name: a list, set or dictionary may since have got other elements.

    >>> loosened(TupleConstraint((ListConstraint(int), str)))
    Tuple[List[Any], <class 'str'>]
    """
    hint = Const.unwrap(value)
    if isinstance(hint, (ListConstraint, SetTypeConstraint, DictConstraint)):
        return hint._with_parameters(tuple(Any for _parameter in hint.parameters))
    if isinstance(hint, TypeConstraint) and isinstance(hint, (TupleConstraint, TupleSequenceConstraint)):
        return hint._with_parameters(tuple(map(loosened, hint.parameters)))
    return value
