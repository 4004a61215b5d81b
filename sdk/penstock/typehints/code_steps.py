"""What each operation of Python's byte code does to a stack of types."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable

from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    DictConstraint,
    IterableTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.known_values import NULL, UNBOUND, Value, hint_of, joined, loosened, same
from penstock.typehints.operator_inference import comparison, item, negative, unpacked
from penstock.typehints.unions import union_of
from penstock.typehints.value_types import NOTHING, Const, element_type, key_value_types

# The numbers since Python 3.12 of what were operations of their own before.
_UNARY_POSITIVE, _LIST_TO_TUPLE = 5, 6


class GiveUp(Exception):
    """The function does something that is not followed here."""


class State:
    """What is known at one place of a function: its stack and its local names."""

    def __init__(self, stack: list[Value], local: dict[str, Value]) -> None:
        self.stack, self.local = stack, local
        self.keyword_names: tuple[str, ...] = ()

    def push(self, value: Value) -> None:
        """Puts a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Takes a value off the stack."""
        return self.stack.pop()

    def pop_type(self) -> Hint:
        """Takes a value off the stack, and tells its type."""
        return hint_of(self.stack.pop())

    def pop_many(self, count: int) -> list[Value]:
        """Takes some values off the stack, the lowest first."""
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def pop_types(self, count: int) -> list[Hint]:
        """Takes some values off the stack, and tells their types."""
        return [hint_of(value) for value in self.pop_many(count)]

    def store(self, name: str, value: Value) -> None:
        """Gives a local name a value."""
        if value is UNBOUND:
            self.local.pop(name, None)
        else:
            self.local[name] = loosened(value)

    def push_local(self, name: str, missing: Value = UNBOUND) -> bool:
        """Puts the value of a local name on the stack; False if it has none, which raises an error."""
        value = self.local.get(name, missing)
        self.stack.append(value)
        return value is not UNBOUND

    def absorb(self, other: State, impatient: bool) -> bool:
        """Whether this changes by what is known on another way to the same place.

        Args:
            other: The state on the other way.
            impatient: Whether to take for Any what changes.
        """
        if len(self.stack) != len(other.stack):
            raise GiveUp
        changed = False
        for position, value in enumerate(other.stack):
            known = self.stack[position]
            merged = known if known is value else joined(known, value)
            if not same(merged, known):
                self.stack[position], changed = Any if impatient else merged, True
        for name, value in other.local.items():
            known = self.local.get(name, UNBOUND)
            merged = known if known is value else joined(known, value)
            if not same(merged, known):
                self.local[name], changed = Any if impatient else merged, True
        return changed


def _build_dict(state: State, keys: list[Hint], values: list[Hint]) -> None:
    state.push(DictConstraint(union_of(keys), union_of(values)) if keys else DictConstraint(NOTHING, NOTHING))


def _build_map(state: State, count: int) -> None:
    pairs = state.pop_types(2 * count)
    _build_dict(state, pairs[::2], pairs[1::2])


def _build_const_key_map(state: State, count: int) -> None:
    keys = [Const(key).type for key in state.pop().value]
    _build_dict(state, keys, state.pop_types(count))


def _build_slice(state: State, count: int) -> None:
    parts = state.pop_many(count)
    known = all(isinstance(each, Const) for each in parts)
    state.push(Const(slice(*(each.value for each in parts))) if known else slice)


def _binary_slice(state: State, argument: typing.Any) -> None:
    _build_slice(state, 2)
    _subscript(state, argument)


def _extend(state: State, depth: int) -> None:
    state.push(element_type(state.pop_type()))
    _append(state, depth)


def _append(state: State, depth: int) -> None:
    added = state.pop_type()
    grown = state.stack[-depth]
    state.stack[-depth] = type(grown)(union_of((grown.inner_type, added)))


def _map_add(state: State, depth: int) -> None:
    key, value = state.pop_types(2)
    grown = state.stack[-depth]
    state.stack[-depth] = DictConstraint(union_of((grown.key_type, key)), union_of((grown.value_type, value)))


def _merge(state: State, depth: int) -> None:
    added = state.pop_type()
    grown = state.stack[-depth]
    if isinstance(added, DictConstraint):
        pair = added.parameters
    elif isinstance(added, ListConstraint):
        # Python raises an error, so that every answer is right.
        pair = key_value_types(added.inner_type)
    else:
        pair = Any, Any
    key, value = (union_of(both) for both in zip(grown.parameters, pair, strict=True))
    state.stack[-depth] = DictConstraint(key, value)


def _copy(state: State, depth: int) -> None:
    state.stack[-depth] = loosened(state.stack[-depth])
    state.push(state.stack[-depth])


def _swap(state: State, depth: int) -> None:
    state.stack[-1], state.stack[-depth] = state.stack[-depth], state.stack[-1]


def _format_value(state: State, argument: typing.Any) -> None:
    # The second part of the argument says whether there is a format on the stack as well.
    state.pop_many(2 if argument[1] else 1)
    state.push(str)


def _replace(count: int, *results: Hint) -> Callable[[State, typing.Any], None]:
    def step(state: State, argument: typing.Any) -> None:
        state.pop_many(count)
        state.stack.extend(results)

    return step


def _take(count: int) -> Callable[[State, typing.Any], None]:
    return _replace(count)


def _give(*results: Hint) -> Callable[[State, typing.Any], None]:
    return _replace(0, *results)


def _load_two(state: State, names: tuple[str, str]) -> bool:
    return all(state.push_local(name) for name in names)


def _store_two(state: State, names: tuple[str, str]) -> None:
    for name in names:
        state.store(name, state.pop())


def _store_load(state: State, names: tuple[str, str]) -> bool:
    state.store(names[0], state.pop())
    return state.push_local(names[1])


def _subscript(state: State, argument: typing.Any) -> None:
    container, index = state.pop_many(2)
    state.push(item(*(each if isinstance(each, Const) else hint_of(each) for each in (container, index))))


def _list_to_tuple(state: State, argument: typing.Any) -> None:
    state.push(TupleSequenceConstraint(state.pop().inner_type))


def _intrinsic(state: State, number: int) -> None:
    if number == _LIST_TO_TUPLE:
        _list_to_tuple(state, number)
    elif number == _UNARY_POSITIVE:
        _sign(state, number)
    else:
        raise GiveUp


def _sign(state: State, argument: typing.Any) -> None:
    state.push(negative(state.pop_type()))


def _iterate(state: State, argument: typing.Any) -> None:
    state.push(IterableTypeConstraint(element_type(state.pop_type())))


def _unpack(state: State, count: int) -> None:
    value = state.pop()
    state.stack.extend(unpacked(value if isinstance(value, Const) else hint_of(value), count)[::-1])


def _unpack_with_rest(state: State, counts: int) -> None:
    before, after = counts & 0xFF, counts >> 8
    element = element_type(state.pop_type())
    state.stack.extend([element] * after)
    state.push(ListConstraint(element))
    state.stack.extend([element] * before)


def _load_and_clear(state: State, name: str) -> None:
    state.push(state.local.pop(name, UNBOUND))


STEPS: dict[str, Callable[[State, typing.Any], object]] = {
    "BEFORE_WITH": _replace(1, Any, Any),
    "BINARY_SLICE": _binary_slice,
    "BINARY_SUBSCR": _subscript,
    "BUILD_CONST_KEY_MAP": _build_const_key_map,
    "BUILD_LIST": lambda state, count: state.push(ListConstraint(union_of(state.pop_types(count)))),
    "BUILD_MAP": _build_map,
    "BUILD_SET": lambda state, count: state.push(SetTypeConstraint(union_of(state.pop_types(count)))),
    "BUILD_SLICE": _build_slice,
    "BUILD_STRING": lambda state, count: _replace(count, str)(state, None),
    "BUILD_TUPLE": lambda state, count: state.push(TupleConstraint(state.pop_types(count))),
    "CALL_INTRINSIC_1": _intrinsic,
    "CHECK_EXC_MATCH": _replace(1, bool),
    "CLEANUP_THROW": _replace(3, Any, Any),
    "COMPARE_OP": lambda state, _: state.push(comparison(*state.pop_types(2))),
    "CONTAINS_OP": _replace(2, bool),
    "CONVERT_VALUE": _replace(1, str),
    "COPY": _copy,
    "DELETE_ATTR": _take(1),
    "DELETE_FAST": lambda state, name: state.store(name, UNBOUND),
    "DELETE_SUBSCR": _take(2),
    "DICT_MERGE": _merge,
    "DICT_UPDATE": _merge,
    "END_FOR": _take(1 if sys.version_info >= (3, 13) else 2),
    "END_SEND": lambda state, _: state.stack.pop(-2),
    "FORMAT_SIMPLE": _replace(1, str),
    "FORMAT_VALUE": _format_value,
    "FORMAT_WITH_SPEC": _replace(2, str),
    "GET_ITER": _iterate,
    "GET_LEN": _give(int),
    "GET_YIELD_FROM_ITER": _iterate,
    "IMPORT_FROM": _give(Any),
    "IMPORT_NAME": _replace(2, Any),
    "IS_OP": _replace(2, bool),
    "LIST_APPEND": _append,
    "LIST_EXTEND": _extend,
    "LIST_TO_TUPLE": _list_to_tuple,
    "LOAD_ASSERTION_ERROR": _give(Any),
    "LOAD_BUILD_CLASS": _give(Any),
    "LOAD_CLOSURE": _give(Any),
    "LOAD_CONST": lambda state, value: state.push(Const(value)),
    "LOAD_FAST_AND_CLEAR": _load_and_clear,
    "LOAD_FAST_CHECK": lambda state, name: state.push_local(name),
    "LOAD_FAST_LOAD_FAST": _load_two,
    "MAP_ADD": _map_add,
    "MATCH_CLASS": _replace(3, Any),
    "MATCH_KEYS": _give(Any),
    "MATCH_MAPPING": _give(bool),
    "MATCH_SEQUENCE": _give(bool),
    "POP_EXCEPT": _take(1),
    "POP_TOP": _take(1),
    "PUSH_EXC_INFO": _give(Any),
    "PUSH_NULL": _give(NULL),
    "RETURN_GENERATOR": _give(Any),
    "SET_FUNCTION_ATTRIBUTE": lambda state, _: state.stack.pop(-2),
    "SET_ADD": _append,
    "SET_UPDATE": _extend,
    "STORE_ATTR": _take(2),
    "STORE_FAST": lambda state, name: state.store(name, state.pop()),
    "STORE_FAST_LOAD_FAST": _store_load,
    "STORE_FAST_STORE_FAST": _store_two,
    "STORE_GLOBAL": _take(1),
    "STORE_SLICE": _take(4),
    "STORE_SUBSCR": _take(3),
    "SWAP": _swap,
    "UNARY_INVERT": _replace(1, Any),
    "UNARY_NEGATIVE": _sign,
    "UNARY_NOT": _replace(1, bool),
    "UNARY_POSITIVE": _sign,
    "UNPACK_EX": _unpack_with_rest,
    "UNPACK_SEQUENCE": _unpack,
    "WITH_EXCEPT_START": _give(Any),
}
"""By the name of an operation, what it does; False if it surely raises an error."""
