"""The type a plain Python function returns or yields, by running its byte code on types instead of values.

It follows every branch, every turn of a loop and every handler until nothing new is learned. An operation that
is not known ends the attempt with the answer ``Any``: a wrong type would do harm, an unknown one does not. It
knows the byte code of Python 3.11 to 3.13. Nothing of the user's runs.
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
from penstock.typehints.code_steps import STEPS, GiveUp, State
from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import IterableTypeConstraint, TupleConstraint
from penstock.typehints.known_values import (
    NULL,
    UNBOUND,
    Closure,
    Exact,
    Method,
    Spread,
    Value,
    fixed,
    hint_of,
    joined,
    loosened,
    same,
)
from penstock.typehints.operator_inference import arithmetic, attribute
from penstock.typehints.value_types import NOTHING, Const, element_type, finalize_hints, union

Call = Callable[[Value, Sequence[Value], Mapping[str, Value]], Value]

# From then on what still changes at one place is taken for Any, so that every attempt ends.
_PATIENCE = 6
_NO_EFFECT = frozenset(
    {
        *("RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "TO_BOOL", "MAKE_CELL"),
        *("DELETE_GLOBAL", "DELETE_DEREF"),
    }
)
_KEEPS_ITERATOR = sys.version_info >= (3, 12)


class Budget:
    """How many operations may still be looked at, in all functions together."""

    def __init__(self, operations: int) -> None:
        self.left = operations

    def spend(self) -> None:
        """Takes one operation off.

        Raises:
            GiveUp: If none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise GiveUp


class Frame(typing.NamedTuple):
    """What a function finds by name, besides its local names."""

    code: types.CodeType
    namespace: Mapping[str, object]
    outer: Mapping[str, Value]
    """The names that it takes from the function around it."""


def frame_of(function: types.FunctionType) -> Frame:
    """The frame of a function that exists."""
    names = function.__code__.co_freevars
    changed = stored_names(function.__code__, "STORE_DEREF") if names else ()
    outer: dict[str, Value] = {}
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            outer[name] = Any if name in changed else fixed(cell.cell_contents)
        except ValueError:
            # It has no value yet.
            outer[name] = Any
    return Frame(function.__code__, function.__globals__, outer)


def infer_code(frame: Frame, local: Mapping[str, Value], call: Call, budget: Budget) -> Value:
    """The type of what a function returns; for a generator, an Iterable of what it yields.

    Args:
        frame: No coroutine's.
        local: What is known of each parameter.
        call: Gives the type of a call from what is called, the arguments and the keyword arguments.
        budget: How much work it may be.

    >>> function = lambda x: (x, 1)
    >>> infer_code(frame_of(function), {"x": str}, lambda callee, arguments, keywords: Any, Budget(100))
    Tuple[<class 'str'>, <class 'int'>]
    """
    try:
        if read(frame.code).changes_containers:
            local = {name: loosened(value) for name, value in local.items()}
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
    """What is known at first of the names that inner functions share."""
    if not code.co_cellvars:
        return {}
    stored = _stored_inside(code)
    return {name: Any if name in stored else local.get(name, UNBOUND) for name in code.co_cellvars}


class _Run:
    """One attempt: the states in which each place of the code is reached, and what has come out."""

    def __init__(self, frame: Frame, local: Mapping[str, Value], call: Call, budget: Budget) -> None:
        self.frame, self.call, self.budget = frame, call, budget
        self.reading = read(frame.code)
        self.returned: Value = None
        self.yielded: Hint = NOTHING
        self.own_cells = _first_cells(frame.code, local)
        self._inner_stores = _stored_inside(frame.code) if frame.code.co_cellvars else frozenset()
        self._first_local = dict(local)

    def result(self) -> Value:
        """What it returns; Any if it never does."""
        # A cell may be read before the code that gives it another value: again, until that changes nothing.
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
            self.own_cells[name] = joined(self.own_cells[name], loosened(value))

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
        """Runs until the path ends or meets a place that others jump to."""
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
                self.returned = value if self.returned is None else joined(self.returned, value)
                return
            if name in ("RAISE_VARARGS", "RERAISE"):
                return
            if "JUMP" in name:
                if not self._jump(state, instruction):
                    return
            elif not self._step(state, instruction):
                return

    def _jump(self, state: State, instruction: dis.Instruction) -> bool:
        """Whether the path also goes on behind the jump."""
        name, target = instruction.opname, self.reading.position_of[instruction.argval]
        if name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            self._arrive(target, state)
            return False
        if name.endswith("_OR_POP"):
            self._arrive(target, state)
            state.pop()
            return True
        state.pop()
        self._arrive(target, state)
        return True

    def _step(self, state: State, instruction: dis.Instruction) -> bool:
        """Whether the path goes on."""
        name, argument = instruction.opname, instruction.argval
        if name in STEPS:
            return STEPS[name](state, argument) is not False
        if name in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            self._load(state, instruction)
        elif name == "LOAD_FAST":
            # Python 3.13 takes a cell from its place in the same way.
            missing = Any if argument in self.own_cells else UNBOUND
            return state.push_local(argument, missing)
        elif name == "LOAD_DEREF":
            value = self.own_cells[argument] if argument in self.own_cells else self.frame.outer[argument]
            state.push(Any if value is UNBOUND else value)
        elif name == "STORE_DEREF":
            self._store_cell(argument, state.pop())
        elif name == "BINARY_OP":
            left, right = state.pop_many(2)
            mutates = instruction.argrepr.endswith("=")
            result = arithmetic(instruction.argrepr.rstrip("="), _plain(left), _plain(right))
            state.push(loosened(result) if mutates else result)
        elif name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
            self._call(state, name, argument, bool((instruction.arg or 0) & 1))
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
        # Since Python 3.12 the lowest bit tells a method that is about to be called from another attribute.
        if instruction.opname == "LOAD_METHOD" or (flag and "NULL" in instruction.argrepr):
            state.push(NULL)
        state.push(Any if instruction.opname == "LOAD_SUPER_ATTR" else attribute(_plain(receiver), name))

    def _global(self, name: str) -> Value:
        namespace = self.frame.namespace
        if name not in namespace:
            return fixed(getattr(builtins, name, None))
        value = fixed(namespace[name])
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
        keywords = hint_of(state.pop()) if has_keywords else None
        given = hint_of(state.pop())
        lower, upper = state.pop_many(2)
        if keywords is not None:
            return Any
        spread = (
            list(given.tuple_types) if isinstance(given, TupleConstraint) else [Spread(element_type(given))]
        )
        return self.call(upper if lower is NULL else lower, spread, {})


def _plain(value: Value) -> Value:
    return Any if isinstance(value, Method) or value is NULL else value
