"""The type a plain Python function returns, by running its byte code on types instead of values.

It follows every forward branch. A loop, an exception handler or an operation not listed here ends the
attempt with the answer ``Any``: a wrong type would do harm, an unknown one does not. It knows the byte code
of Python 3.11 to 3.13.
"""

from __future__ import annotations

import builtins
import dis
import types
import typing
from collections.abc import Callable, Mapping, Sequence

from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    DictConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.operator_inference import (
    Method,
    Value,
    arithmetic,
    attribute,
    comparison,
    fixed,
    item,
    loosened,
    negative,
    part,
    unpacked,
)
from penstock.typehints.unions import union_of
from penstock.typehints.value_types import NOTHING, Const, element_type, finalize_hints, union

Call = Callable[[Value, Sequence[Value], Mapping[str, Value]], Hint]
_LARGEST_STEPS = 1000
_NULL = object()
# The number since Python 3.12 of what was an operation of its own before.
_LIST_TO_TUPLE = 6
_NO_EFFECT = frozenset(
    {"RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "TO_BOOL", "MAKE_CELL"}
)


class _GiveUp(Exception):
    """The function does something that is not followed here."""


class _State:
    """One path through the function: where it is, its stack and its local names."""

    def __init__(self, position: int, stack: list[Value], local: dict[str, Value]) -> None:
        self.position, self.stack, self.local = position, stack, local
        self.keyword_names: tuple[str, ...] = ()

    def fork(self, position: int) -> _State:
        return _State(position, list(self.stack), dict(self.local))

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def pop_type(self) -> Hint:
        return _type_of(self.stack.pop())

    def pop_many(self, count: int) -> list[Value]:
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def pop_types(self, count: int) -> list[Hint]:
        return [_type_of(value) for value in self.pop_many(count)]

    def store(self, name: str, value: Value) -> None:
        self.local[name] = loosened(value)


def _type_of(value: Value) -> Hint:
    return Any if isinstance(value, Method) or value is _NULL else Const.unwrap(value)


def infer_code(function: types.FunctionType, local: dict[str, Value], call: Call) -> Hint:
    """The type of what a function returns.

    Args:
        function: Neither a generator nor a coroutine.
        local: What is known of each parameter.
        call: Gives the type of a call from what is called, the arguments and the keyword arguments.

    >>> infer_code(lambda x: (x, 1), {"x": str}, lambda callee, arguments, keywords: Any)
    Tuple[<class 'str'>, <class 'int'>]
    """
    try:
        return finalize_hints(_run(function, local, call))
    except (_GiveUp, IndexError, KeyError, TypeError, ValueError, AttributeError):
        return Any


def _run(function: types.FunctionType, local: dict[str, Value], call: Call) -> Hint:
    code = function.__code__
    if code.co_exceptiontable:
        raise _GiveUp
    instructions = list(dis.get_instructions(code))
    position_of = {instruction.offset: position for position, instruction in enumerate(instructions)}
    paths, returned, steps = [_State(0, [], dict(local))], [], 0
    while paths:
        state = paths.pop()
        while True:
            steps += 1
            if steps > _LARGEST_STEPS:
                raise _GiveUp
            instruction = instructions[state.position]
            state.position += 1
            name = instruction.opname
            if name == "RETURN_VALUE":
                returned.append(state.pop_type())
                break
            if name == "RETURN_CONST":
                returned.append(Const(instruction.argval).type)
                break
            if name == "RAISE_VARARGS":
                break
            if "JUMP" in name:
                _jump(state, instruction, position_of, paths)
            elif name not in _NO_EFFECT:
                _step(state, instruction, function, call)
    if not returned:
        return Any
    result = returned[0]
    for other in returned[1:]:
        result = union(result, other)
    return result


def _jump(
    state: _State, instruction: dis.Instruction, position_of: Mapping[int, int], paths: list[_State]
) -> None:
    target = position_of[instruction.argval]
    if target < state.position:
        raise _GiveUp
    if instruction.opname == "JUMP_FORWARD":
        state.position = target
        return
    if instruction.opname.endswith("_OR_POP"):
        paths.append(state.fork(target))
        state.pop()
        return
    state.pop()
    paths.append(state.fork(target))


def _step(state: _State, instruction: dis.Instruction, function: types.FunctionType, call: Call) -> None:
    name, argument = instruction.opname, instruction.argval
    if name in _SIMPLE:
        _SIMPLE[name](state, argument)
    elif name in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"):
        _load(state, instruction, function)
    elif name == "LOAD_DEREF":
        state.push(_from_closure(function, argument))
    elif name == "BINARY_OP":
        left, right = state.pop_many(2)
        mutates = instruction.argrepr.endswith("=")
        result = arithmetic(instruction.argrepr.rstrip("="), _plain(left), _plain(right))
        state.push(loosened(result) if mutates else result)
    elif name in ("CALL", "CALL_KW"):
        _call(state, name, argument, call)
    elif name == "KW_NAMES":
        # Python 3.11 does not resolve the argument of this operation.
        state.keyword_names = function.__code__.co_consts[instruction.arg or 0]
    elif name == "CALL_FUNCTION_EX":
        state.pop_many(3 + (instruction.arg or 0) % 2)
        state.push(Any)
    else:
        raise _GiveUp


def _plain(value: Value) -> Value:
    return value if isinstance(value, Const) else _type_of(value)


def _load(state: _State, instruction: dis.Instruction, function: types.FunctionType) -> None:
    name, flag = instruction.argval, (instruction.arg or 0) & 1
    if instruction.opname == "LOAD_GLOBAL":
        if flag:
            state.push(_NULL)
        state.push(fixed(function.__globals__.get(name, getattr(builtins, name, None))))
        return
    receiver = state.pop()
    # Since Python 3.12 the lowest bit tells a method that is about to be called from another attribute.
    if instruction.opname == "LOAD_METHOD" or (flag and "NULL" in instruction.argrepr):
        state.push(_NULL)
    state.push(attribute(_plain(receiver), name))


def _from_closure(function: types.FunctionType, name: str) -> Value:
    if name not in function.__code__.co_freevars:
        # A name that an inner function shares; that function may change it.
        return Any
    cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
    return fixed(cell.cell_contents)


def _call(state: _State, name: str, count: int, call: Call) -> None:
    names = state.pop().value if name == "CALL_KW" else state.keyword_names
    state.keyword_names = ()
    values = state.pop_many(count)
    lower, upper = state.pop_many(2)
    arguments = values[: len(values) - len(names)]
    keywords = dict(zip(names, values[len(arguments) :], strict=True))
    if _NULL in (lower, upper):
        callee = upper if lower is _NULL else lower
    else:
        callee, arguments = lower, [upper, *arguments]
    result = call(
        callee, list(map(_plain, arguments)), {key: _plain(value) for key, value in keywords.items()}
    )
    state.push(result)


def _build_dict(state: _State, keys: Sequence[Hint], values: Sequence[Hint]) -> None:
    state.push(DictConstraint(union_of(keys), union_of(values)) if keys else DictConstraint(NOTHING, NOTHING))


def _build_map(state: _State, count: int) -> None:
    pairs = state.pop_types(2 * count)
    _build_dict(state, pairs[::2], pairs[1::2])


def _build_const_key_map(state: _State, count: int) -> None:
    keys = [Const(key).type for key in state.pop().value]
    _build_dict(state, keys, state.pop_types(count))


def _extend(state: _State, depth: int) -> None:
    state.push(element_type(state.pop_type()))
    _append(state, depth)


def _append(state: _State, depth: int) -> None:
    added = state.pop_type()
    grown = state.stack[-depth]
    state.stack[-depth] = type(grown)(union_of((grown.inner_type, added)))


def _merge(state: _State, depth: int) -> None:
    added = state.pop_type()
    known = isinstance(added, DictConstraint)
    state.stack[-depth] = union_of((state.stack[-depth], added)) if known else DictConstraint(Any, Any)


def _copy(state: _State, depth: int) -> None:
    state.stack[-depth] = loosened(state.stack[-depth])
    state.push(state.stack[-depth])


def _swap(state: _State, depth: int) -> None:
    state.stack[-1], state.stack[-depth] = state.stack[-depth], state.stack[-1]


def _format_value(state: _State, argument: typing.Any) -> None:
    # The second part of the argument says whether there is a format on the stack as well.
    state.pop_many(2 if argument[1] else 1)
    state.push(str)


def _replace(count: int, result: Hint) -> Callable[[_State, typing.Any], None]:
    def step(state: _State, argument: typing.Any) -> None:
        state.pop_many(count)
        state.push(result)

    return step


def _make_function(state: _State, argument: int) -> None:
    state.pop_many(1 + (argument or 0).bit_count())
    state.push(Any)


def _load_two(state: _State, names: tuple[str, str]) -> None:
    for name in names:
        state.push(state.local[name])


def _store_two(state: _State, names: tuple[str, str]) -> None:
    for name in names:
        state.store(name, state.pop())


def _store_load(state: _State, names: tuple[str, str]) -> None:
    state.store(names[0], state.pop())
    state.push(state.local[names[1]])


def _subscript(state: _State, argument: typing.Any) -> None:
    container, index = state.pop_many(2)
    state.push(item(_plain(container), _plain(index)))


def _list_to_tuple(state: _State, argument: typing.Any) -> None:
    state.push(TupleSequenceConstraint(state.pop().inner_type))


def _intrinsic(state: _State, number: int) -> None:
    if number != _LIST_TO_TUPLE:
        raise _GiveUp
    _list_to_tuple(state, number)


_SIMPLE: dict[str, Callable[[_State, typing.Any], object]] = {
    "BINARY_SLICE": lambda state, _: state.push(part(_type_of(state.pop_many(3)[0]))),
    "BINARY_SUBSCR": _subscript,
    "BUILD_CONST_KEY_MAP": _build_const_key_map,
    "BUILD_LIST": lambda state, count: state.push(ListConstraint(union_of(state.pop_types(count)))),
    "BUILD_MAP": _build_map,
    "BUILD_SET": lambda state, count: state.push(SetTypeConstraint(union_of(state.pop_types(count)))),
    "BUILD_SLICE": lambda state, count: _replace(count, slice)(state, None),
    "BUILD_STRING": lambda state, count: _replace(count, str)(state, None),
    "BUILD_TUPLE": lambda state, count: state.push(TupleConstraint(state.pop_types(count))),
    "CALL_INTRINSIC_1": _intrinsic,
    "COMPARE_OP": lambda state, _: state.push(comparison(*state.pop_types(2))),
    "CONTAINS_OP": _replace(2, bool),
    "CONVERT_VALUE": _replace(1, str),
    "COPY": _copy,
    "DICT_MERGE": _merge,
    "DICT_UPDATE": _merge,
    "FORMAT_SIMPLE": _replace(1, str),
    "FORMAT_VALUE": _format_value,
    "FORMAT_WITH_SPEC": _replace(2, str),
    "GET_ITER": _replace(1, Any),
    "IMPORT_FROM": lambda state, _: state.push(Any),
    "IMPORT_NAME": _replace(2, Any),
    "IS_OP": _replace(2, bool),
    "LIST_APPEND": _append,
    "LIST_EXTEND": _extend,
    "LIST_TO_TUPLE": _list_to_tuple,
    "LOAD_CLOSURE": lambda state, _: state.push(Any),
    "LOAD_CONST": lambda state, value: state.push(Const(value)),
    "LOAD_FAST": lambda state, name: state.push(state.local[name]),
    "LOAD_FAST_CHECK": lambda state, name: state.push(state.local[name]),
    "LOAD_FAST_LOAD_FAST": _load_two,
    "MAKE_FUNCTION": _make_function,
    "POP_TOP": lambda state, _: state.pop(),
    "PUSH_NULL": lambda state, _: state.push(_NULL),
    "SET_FUNCTION_ATTRIBUTE": _replace(2, Any),
    "SET_ADD": _append,
    "SET_UPDATE": _extend,
    "STORE_ATTR": lambda state, _: state.pop_many(2),
    "STORE_DEREF": lambda state, _: state.pop(),
    "STORE_FAST": lambda state, name: state.store(name, state.pop()),
    "STORE_FAST_LOAD_FAST": _store_load,
    "STORE_FAST_STORE_FAST": _store_two,
    "STORE_SUBSCR": lambda state, _: state.pop_many(3),
    "SWAP": _swap,
    "UNARY_INVERT": _replace(1, Any),
    "UNARY_NEGATIVE": lambda state, _: state.push(negative(state.pop_type())),
    "UNARY_NOT": _replace(1, bool),
    "UNPACK_SEQUENCE": lambda state, count: state.stack.extend(unpacked(state.pop_type(), count)[::-1]),
}
