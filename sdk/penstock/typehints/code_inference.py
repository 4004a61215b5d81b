"""Finds the type that a plain Python function returns or yields, by running its byte code on types.

It follows every branch, every turn of a loop and every handler until nothing new is learned. An unknown operation
ends the attempt with the answer ``Any``: a wrong type would do harm, an unknown one does not. So does a Python
that is newer than `NEWEST`, in which a known operation may do something else. None of the user's code runs.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence

from penstock.typehints.code_reading import Handler, is_rebound, read, stored_names
from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    DictConstraint,
    IterableTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.known_values import (
    NOTHING,
    NULL,
    UNBOUND,
    Closure,
    Const,
    Exact,
    Method,
    Spread,
    Value,
    element_type,
    finalize_hints,
    forget_changeable,
    hint_of,
    join_values,
    key_value_types,
    loosen,
    same,
    union,
)
from penstock.typehints.operator_inference import (
    infer_arithmetic,
    infer_attribute,
    infer_comparison,
    infer_item,
    infer_negative,
    infer_unpacked,
)
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import union_of

NEWEST = (3, 14)
"""The newest Python whose byte code is known."""

# The numbers since Python 3.12 of two former operations.
_UNARY_POSITIVE, _LIST_TO_TUPLE = 5, 6
# The functions that Python 3.14 compares with a global name before it calls them in a shorter way, as `dis` shows them.
_SHORTENED: dict[str, object] = {"tuple": tuple, repr(all): all, repr(any): any}


class GiveUp(Exception):
    """The function contains something that inference does not follow."""


class State:
    """The knowledge at one place of a function: its stack and its local names."""

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
        """Takes a value off the stack, and returns its type."""
        return hint_of(self.stack.pop())

    def pop_many(self, count: int) -> list[Value]:
        """Takes some values off the stack, the lowest first."""
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def pop_types(self, count: int) -> list[Hint]:
        """Takes some values off the stack, and returns their types."""
        return [hint_of(value) for value in self.pop_many(count)]

    def store(self, name: str, value: Value) -> None:
        """Gives a local name a value."""
        if value is UNBOUND:
            self.local.pop(name, None)
        else:
            self.local[name] = loosen(value)

    def push_local(self, name: str, missing: Value = UNBOUND) -> bool:
        """Puts the value of a local name on the stack; False if it has no value, which raises an error."""
        value = self.local.get(name, missing)
        self.stack.append(value)
        return value is not UNBOUND

    def absorb(self, other: State, impatient: bool) -> bool:
        """Adds the knowledge from another way to the same place, and returns whether anything changes.

        If `impatient`, values that change become Any.
        """
        if len(self.stack) != len(other.stack):
            raise GiveUp
        changed = False
        for position, value in enumerate(other.stack):
            known = self.stack[position]
            merged = known if known is value else join_values(known, value)
            if not same(merged, known):
                self.stack[position], changed = Any if impatient else merged, True
        for name, value in other.local.items():
            known = self.local.get(name, UNBOUND)
            merged = known if known is value else join_values(known, value)
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


def _binary_slice(state: State, argument: object) -> None:
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
        # Python raises an error, so any answer is right.
        pair = key_value_types(added.inner_type)
    else:
        pair = Any, Any
    key, value = (union_of(both) for both in zip(grown.parameters, pair, strict=True))
    state.stack[-depth] = DictConstraint(key, value)


def _copy(state: State, depth: int) -> None:
    state.stack[-depth] = loosen(state.stack[-depth])
    state.push(state.stack[-depth])


def _swap(state: State, depth: int) -> None:
    state.stack[-1], state.stack[-depth] = state.stack[-depth], state.stack[-1]


def _format_value(state: State, argument: typing.Any) -> None:
    # The second part of the argument says whether there is a format on the stack as well.
    state.pop_many(2 if argument[1] else 1)
    state.push(str)


def _replace(count: int, *results: Hint) -> Callable[[State, typing.Any], None]:
    def step(state: State, argument: object) -> None:
        state.pop_many(count)
        state.stack.extend(results)

    return step


def _take(count: int) -> Callable[[State, typing.Any], None]:
    return _replace(count)


def _give(*results: Hint) -> Callable[[State, typing.Any], None]:
    return _replace(0, *results)


def _store_attribute(state: State, _: str) -> None:
    _, owner = state.pop_many(2)
    if isinstance(owner, RowTypeConstraint):
        # It may be a field that the type of the row does not have.
        raise GiveUp


def _store_two(state: State, names: tuple[str, str]) -> None:
    for name in names:
        state.store(name, state.pop())


def _store_load(state: State, names: tuple[str, str]) -> bool:
    state.store(names[0], state.pop())
    return state.push_local(names[1])


def _subscript(state: State, argument: object) -> None:
    container, index = state.pop_many(2)
    state.push(
        infer_item(*(each if isinstance(each, Const) else hint_of(each) for each in (container, index)))
    )


def _list_to_tuple(state: State, argument: object) -> None:
    state.push(TupleSequenceConstraint(state.pop().inner_type))


def _intrinsic(state: State, number: int) -> None:
    if number == _LIST_TO_TUPLE:
        _list_to_tuple(state, number)
    elif number == _UNARY_POSITIVE:
        _sign(state, number)
    else:
        raise GiveUp


def _identity(state: State, argument: object) -> None:
    left, right = state.pop_many(2)
    # The arm for the other answer would add a type that the function never returns.
    if isinstance(left, Const) and isinstance(right, Const) and right.value in _SHORTENED.values():
        state.push(Const((left.value is right.value) is not bool(argument)))
    else:
        state.push(bool)


def _sign(state: State, argument: object) -> None:
    state.push(infer_negative(state.pop_type()))


def _iterate(state: State, argument: object) -> None:
    state.push(IterableTypeConstraint(element_type(state.pop_type())))


def _unpack(state: State, count: int) -> None:
    value = state.pop()
    state.stack.extend(infer_unpacked(value if isinstance(value, Const) else hint_of(value), count)[::-1])


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
    "COMPARE_OP": lambda state, _: state.push(infer_comparison(*state.pop_types(2))),
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
    "IS_OP": _identity,
    "LIST_APPEND": _append,
    "LIST_EXTEND": _extend,
    "LIST_TO_TUPLE": _list_to_tuple,
    "LOAD_ASSERTION_ERROR": _give(Any),
    "LOAD_BUILD_CLASS": _give(Any),
    "LOAD_CLOSURE": _give(Any),
    "LOAD_CONST": lambda state, value: state.push(Const(value)),
    "LOAD_FAST_AND_CLEAR": _load_and_clear,
    "LOAD_FAST_CHECK": lambda state, name: state.push_local(name),
    "LOAD_SMALL_INT": lambda state, value: state.push(Const(value)),
    "LOAD_SPECIAL": _replace(1, Any, Any),
    "MAP_ADD": _map_add,
    "MATCH_CLASS": _replace(3, Any),
    "MATCH_KEYS": _give(Any),
    "MATCH_MAPPING": _give(bool),
    "MATCH_SEQUENCE": _give(bool),
    "POP_EXCEPT": _take(1),
    "POP_ITER": _take(1),
    "POP_TOP": _take(1),
    "PUSH_EXC_INFO": _give(Any),
    "PUSH_NULL": _give(NULL),
    "RETURN_GENERATOR": _give(Any),
    "SET_FUNCTION_ATTRIBUTE": lambda state, _: state.stack.pop(-2),
    "SET_ADD": _append,
    "SET_UPDATE": _extend,
    "STORE_ATTR": _store_attribute,
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
"""The effect of each operation, by its name; False if it surely raises an error."""


Call = Callable[[Value, Sequence[Value], Mapping[str, Value]], Value]

# After this many turns, values that still change at one place become Any, so that every attempt ends.
_PATIENCE = 6
_NO_EFFECT = frozenset(
    {
        *("RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "TO_BOOL", "MAKE_CELL"),
        *("DELETE_GLOBAL", "DELETE_DEREF", "NOT_TAKEN"),
    }
)
_KEEPS_ITERATOR = sys.version_info >= (3, 12)
# A call with ``*`` has an entry on the stack for ``**`` even where the program has none.
_HAS_KEYWORDS = sys.version_info >= (3, 14)


class Budget:
    """The number of operations that may still be looked at, in all functions together."""

    def __init__(self, operations: int) -> None:
        self.left = operations

    def spend(self) -> None:
        """Takes one operation off; GiveUp if none is left."""
        self.left -= 1
        if self.left < 0:
            raise GiveUp


class Frame(typing.NamedTuple):
    """The names that a function finds, other than its local names."""

    code: types.CodeType
    namespace: Mapping[str, object]
    outer: Mapping[str, Value]
    """The names of the enclosing function."""


def frame_of(function: types.FunctionType) -> Frame:
    """Returns the frame of a function that exists."""
    names = function.__code__.co_freevars
    changed = stored_names(function.__code__, "STORE_DEREF") if names else ()
    outer: dict[str, Value] = {}
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            outer[name] = Any if name in changed else forget_changeable(cell.cell_contents)
        except ValueError:
            # It has no value yet.
            outer[name] = Any
    return Frame(function.__code__, function.__globals__, outer)


def infer_code(frame: Frame, local: Mapping[str, Value], call: Call, budget: Budget) -> Value:
    """Returns the type of the result of a function, which is not a coroutine; for a generator, an Iterable.

    Args:
        frame: The function.
        local: The knowledge of each parameter.
        call: Gives the type of a call from the callee, the arguments and the keyword arguments.
        budget: How much work it may be.

    >>> function = lambda x: (x, 1)
    >>> infer_code(frame_of(function), {"x": str}, lambda callee, arguments, keywords: Any, Budget(100))
    Tuple[<class 'str'>, <class 'int'>]
    """
    if sys.version_info[:2] > NEWEST:
        return Any
    try:
        if read(frame.code).changes_containers:
            local = {name: loosen(value) for name, value in local.items()}
        run = _Run(frame, local, call, budget)
        result = run.result()
    except (GiveUp, IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return Any
    if frame.code.co_flags & inspect.CO_GENERATOR:
        return IterableTypeConstraint(finalize_hints(run.yielded))
    return result if isinstance(result, Exact) else finalize_hints(hint_of(result))


def _stored_inside(code: types.CodeType) -> frozenset[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset().union(*(stored_names(const, "STORE_DEREF") for const in inner))


def _first_cells(code: types.CodeType, local: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the first knowledge of the names that inner functions share."""
    if not code.co_cellvars:
        return {}
    stored = _stored_inside(code)
    return {name: Any if name in stored else local.get(name, UNBOUND) for name in code.co_cellvars}


class _Run:
    """One attempt: the states in which each place of the code is reached, and the types of the results."""

    def __init__(self, frame: Frame, local: Mapping[str, Value], call: Call, budget: Budget) -> None:
        self.frame, self.call, self.budget = frame, call, budget
        self.reading = read(frame.code)
        self.returned: Value = None
        self.yielded: Hint = NOTHING
        self.own_cells = _first_cells(frame.code, local)
        self._inner_stores = _stored_inside(frame.code) if frame.code.co_cellvars else frozenset()
        self._first_local = dict(local)

    def result(self) -> Value:
        # A cell may be read before the code that assigns another value to it, so this repeats until nothing changes.
        for turn in range(_PATIENCE):
            cells = dict(self.own_cells)
            self.returned, self.yielded = None, NOTHING
            self._arrived: dict[int, State] = {}
            self._waiting: list[int] = []
            self._visits: dict[int, int] = {}
            self._arrive(0, State([], self._first_local))
            while self._waiting:
                position = self._waiting.pop()
                arrived = self._arrived[position]
                self._follow(position, State(list(arrived.stack), dict(arrived.local)))
            changed = [name for name in cells if not same(cells[name], self.own_cells[name])]
            if not changed:
                return Any if self.returned is None else self.returned
            if turn:
                self.own_cells.update(dict.fromkeys(changed, Any))
        raise GiveUp

    def _store_cell(self, name: str, value: Value) -> None:
        if name in self.own_cells and name not in self._inner_stores:
            self.own_cells[name] = join_values(self.own_cells[name], loosen(value))

    def _arrive(self, position: int, state: State) -> None:
        known = self._arrived.get(position)
        if known is None:
            self._arrived[position] = State(list(state.stack), dict(state.local))
            self._waiting.append(position)
            return
        visits = self._visits[position] = self._visits.get(position, 0) + 1
        if known.absorb(state, visits > _PATIENCE) and position not in self._waiting:
            self._waiting.append(position)

    def _raise_to(self, handler: Handler, state: State) -> None:
        place = [Any] if handler.has_place else []
        self._arrive(handler.position, State([*state.stack[: handler.depth], *place, Any], state.local))

    def _follow(self, position: int, state: State) -> None:
        """Follows a path until it ends or meets a place that others jump to."""
        reading, stored = self.reading, True
        start = position
        while True:
            if position != start and position in reading.arrivals:
                self._arrive(position, state)
                return
            self.budget.spend()
            handler = reading.handlers[position]
            if handler is not None and (stored or handler is not reading.handlers[position - 1]):
                self._raise_to(handler, state)
            instruction = reading.operations[position]
            position += 1
            name = instruction.opname
            stored = name.startswith(("STORE", "DELETE"))
            if name in _NO_EFFECT:
                continue
            if name in ("RETURN_VALUE", "RETURN_CONST"):
                value = Const(instruction.argval) if name == "RETURN_CONST" else state.pop()
                self.returned = value if self.returned is None else join_values(self.returned, value)
                return
            if name in ("RAISE_VARARGS", "RERAISE"):
                return
            if "JUMP" in name:
                if not self._jump(state, instruction):
                    return
            elif not self._step(state, instruction):
                return

    def _jump(self, state: State, instruction: dis.Instruction) -> bool:
        """True if the path also continues behind the jump."""
        name, target = instruction.opname, self.reading.position_of[instruction.argval]
        if name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            self._arrive(target, state)
            return False
        if name.endswith("_OR_POP"):
            self._arrive(target, state)
            state.pop()
            return True
        condition = state.pop()
        if isinstance(condition, Const) and isinstance(condition.value, bool) and not name.endswith("NONE"):
            jumps = name.endswith("IF_TRUE") is condition.value
            if jumps:
                self._arrive(target, state)
            return not jumps
        self._arrive(target, state)
        return True

    def _step(self, state: State, instruction: dis.Instruction) -> bool:
        """True if the path continues."""
        name, argument = instruction.opname, instruction.argval
        if name in STEPS:
            return STEPS[name](state, argument) is not False
        if name in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            self._load(state, instruction)
        elif name in ("LOAD_FAST", "LOAD_FAST_LOAD_FAST"):
            # Since Python 3.13 a cell is taken from its place in the same way.
            names = (argument,) if name == "LOAD_FAST" else argument
            return all(state.push_local(each, Any if each in self.own_cells else UNBOUND) for each in names)
        elif name == "LOAD_COMMON_CONSTANT":
            shortened = instruction.argrepr in _SHORTENED
            state.push(Const(_SHORTENED[instruction.argrepr]) if shortened else Any)
        elif name == "LOAD_DEREF":
            value = self.own_cells[argument] if argument in self.own_cells else self.frame.outer[argument]
            state.push(Any if value is UNBOUND else value)
        elif name == "STORE_DEREF":
            self._store_cell(argument, state.pop())
        elif name == "BINARY_OP" and instruction.argrepr == "[]":
            # Since Python 3.14 an index is one more binary operation.
            _subscript(state, argument)
        elif name == "BINARY_OP":
            left, right = state.pop_many(2)
            mutates = instruction.argrepr.endswith("=")
            result = infer_arithmetic(instruction.argrepr.rstrip("="), _plain(left), _plain(right))
            state.push(loosen(result) if mutates else result)
        elif name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
            self._call(state, name, argument, bool((instruction.arg or 0) & 1) or _HAS_KEYWORDS)
        elif name == "KW_NAMES":
            # Python 3.11 does not resolve the argument of this operation.
            state.keyword_names = self.frame.code.co_consts[instruction.arg or 0]
        elif name == "MAKE_FUNCTION":
            self._make_function(state, argument)
        elif name in ("FOR_ITER", "SEND"):
            self._next(state, name, self.reading.position_of[argument])
        elif name == "YIELD_VALUE":
            self.yielded = union(self.yielded, hint_of(state.pop()))
            state.push(Any)
        else:
            raise GiveUp
        return True

    def _load(self, state: State, instruction: dis.Instruction) -> None:
        name, flag = instruction.argval, (instruction.arg or 0) & 1
        if instruction.opname == "LOAD_GLOBAL":
            if flag:
                state.push(NULL)
            state.push(self._global(name))
            return
        if instruction.opname == "LOAD_SUPER_ATTR":
            state.pop_many(2)
        receiver = state.pop()
        # Since Python 3.12 the lowest bit distinguishes a method that is about to be called from another attribute.
        if instruction.opname == "LOAD_METHOD" or (flag and "NULL" in instruction.argrepr):
            state.push(NULL)
        state.push(
            Any if instruction.opname == "LOAD_SUPER_ATTR" else infer_attribute(_plain(receiver), name)
        )

    def _global(self, name: str) -> Value:
        namespace = self.frame.namespace
        if name not in namespace:
            return forget_changeable(getattr(builtins, name, None))
        value = forget_changeable(namespace[name])
        if isinstance(value, Const):
            return value
        own = name in stored_names(self.frame.code, "STORE_GLOBAL")
        return Any if value is Any or own or is_rebound(namespace, name) else value

    def _make_function(self, state: State, flags: int | None) -> None:
        code = state.pop()
        state.pop_many((flags or 0).bit_count())
        if not isinstance(code, Const) or not isinstance(code.value, types.CodeType):
            raise GiveUp
        cells = {**self.frame.outer, **self.own_cells}
        state.push(Closure(code.value, self.frame.namespace, cells))

    def _next(self, state: State, name: str, target: int) -> None:
        if name == "SEND":
            state.pop()
        element = element_type(hint_of(state.stack[-1]))
        ended = State(list(state.stack), state.local)
        if not _KEEPS_ITERATOR:
            ended.pop()
        if _KEEPS_ITERATOR or name == "SEND":
            ended.push(Any)
        self._arrive(target, ended)
        state.push(element)

    def _call(self, state: State, name: str, count: int, has_keywords: bool) -> None:
        if name == "CALL_FUNCTION_EX":
            state.push(self._call_spread(state, has_keywords))
            return
        names = state.pop().value if name == "CALL_KW" else state.keyword_names
        state.keyword_names = ()
        values = state.pop_many(count)
        lower, upper = state.pop_many(2)
        arguments = values[: len(values) - len(names)]
        keywords = dict(zip(names, values[len(arguments) :], strict=True))
        if lower is NULL or upper is NULL:
            callee = upper if lower is NULL else lower
        else:
            callee, arguments = lower, [upper, *arguments]
        plain_keywords = {key: _plain(value) for key, value in keywords.items()}
        state.push(self.call(callee, list(map(_plain, arguments)), plain_keywords))

    def _call_spread(self, state: State, has_keywords: bool) -> Value:
        keywords = state.pop() if has_keywords else NULL
        given = hint_of(state.pop())
        lower, upper = state.pop_many(2)
        if keywords is not NULL:
            return Any
        spread = (
            list(given.tuple_types) if isinstance(given, TupleConstraint) else [Spread(element_type(given))]
        )
        return self.call(upper if lower is NULL else lower, spread, {})


def _plain(value: Value) -> Value:
    return Any if isinstance(value, Method) or value is NULL else value
