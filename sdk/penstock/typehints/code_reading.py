"""Byte code as inference reads it: operations, jumps, handlers, and which names a function changes."""

from __future__ import annotations

import dis
import functools
import inspect
import types
import typing
from collections.abc import Mapping

# A function that names one of these may put other elements into its arguments.
_CHANGES = frozenset(
    {
        *("append", "extend", "insert", "add", "update", "setdefault", "appendleft", "extendleft"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
        *("__setitem__", "__iadd__", "__ior__", "shuffle", "heappush", "insort"),
    }
)
_CHANGING_OPERATIONS = frozenset({"STORE_SUBSCR", "STORE_SLICE"})


class Handler(typing.NamedTuple):
    """The target of an exception: a position, how much of the stack is left, whether it has the error's place on it."""

    position: int
    depth: int
    has_place: bool


class Reading(typing.NamedTuple):
    """The operations of a function."""

    operations: list[dis.Instruction]
    position_of: dict[int, int]
    """The position of each offset in the byte code."""
    arrivals: frozenset[int]
    """The positions that something jumps to."""
    handlers: list[Handler | None]
    """The handler of an exception at each position."""
    changes_containers: bool
    """True if it, or a function in it, may change a list, set or dictionary."""


@functools.lru_cache(maxsize=1024)
def read(code: types.CodeType) -> Reading:
    """Returns the operations of a function, without those that only reserve space.

    Operations that differ only in how they count references have one name.

    >>> [operation.opname for operation in read((lambda x: x).__code__).operations]
    ['RESUME', 'LOAD_FAST', 'RETURN_VALUE']
    """
    byte_code = dis.Bytecode(code)
    operations = [each._replace(opname=each.opname.replace("_BORROW", "")) for each in byte_code]
    position_of = {operation.offset: position for position, operation in enumerate(operations)}
    arrivals = {position_of[each.argval] for each in operations if _jumps(each)}
    handlers: list[Handler | None] = [None] * len(operations)
    # The first entry for an offset counts, and entries do not overlap.
    for entry in getattr(byte_code, "exception_entries", ()) if code.co_exceptiontable else ():
        handler = Handler(position_of[entry.target], entry.depth, entry.lasti)
        if _only_raises(operations, handler.position):
            continue
        arrivals.add(handler.position)
        for position, operation in enumerate(operations):
            if entry.start <= operation.offset < entry.end:
                handlers[position] = handler
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    changes = (
        not _CHANGES.isdisjoint(code.co_names)
        or any(operation.opname in _CHANGING_OPERATIONS for operation in operations)
        or any(read(const).changes_containers for const in inner)
    )
    return Reading(operations, position_of, frozenset(arrivals), handlers, changes)


def _jumps(operation: dis.Instruction) -> bool:
    return "JUMP" in operation.opname or operation.opname in ("FOR_ITER", "SEND")


def _only_raises(operations: list[dis.Instruction], position: int) -> bool:
    """True if a handler raises every error again, as the handler around a whole generator does."""
    quiet = ("SWAP", "POP_TOP", "STORE_FAST", "CALL_INTRINSIC_1", "COPY", "POP_EXCEPT")
    while operations[position].opname in quiet:
        position += 1
    return operations[position].opname == "RERAISE"


@functools.lru_cache(maxsize=1024)
def attributes_surely_read(code: types.CodeType) -> tuple[str, ...]:
    """Returns the attributes of its first argument that a function reads before anything may happen to the argument.

    The reading ends where something decides which way the function takes, where an attribute is set, and where the
    argument is used in another way: a function that gets it, or another name for it, may set attributes.

    >>> attributes_surely_read((lambda row, least: row.score > least and row.team).__code__)
    ('score',)
    >>> attributes_surely_read((lambda row: (row.team, print(row), row.later)).__code__)
    ('team',)
    """
    reading = read(code)
    own_ways = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if not code.co_argcount or code.co_flags & own_ways or any(reading.handlers):
        return ()
    element, is_loaded, found = code.co_varnames[0], False, dict[str, None]()
    for operation in reading.operations:
        # Some operations name two variables.
        names = operation.argval if "FAST" in operation.opname else (operation.argval,)
        names = names if isinstance(names, tuple) else (names,)
        if is_loaded:
            if operation.opname not in ("LOAD_ATTR", "LOAD_METHOD") or operation.argval == "__dict__":
                break
            found[operation.argval] = None
            is_loaded = False
            continue
        if _jumps(operation) or operation.opname == "STORE_ATTR" or element in names[:-1]:
            break
        if names[-1] == element:
            if "LOAD_FAST" not in operation.opname:
                break
            is_loaded = True
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def stored_names(code: types.CodeType, operation: str) -> frozenset[str]:
    """Returns the names that a function, or one inside of it, stores or deletes with operations such as ``STORE_ATTR``.

    >>> def change(self):
    ...     self.total = 1
    >>> stored_names(change.__code__, "STORE_ATTR")
    frozenset({'total'})
    """
    deleting = operation.replace("STORE", "DELETE")
    names = {each.argval for each in read(code).operations if each.opname in (operation, deleting)}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= stored_names(const, operation)
    return frozenset(names)


def is_rebound(namespace: Mapping[str, object], name: str) -> bool:
    """True if a function of a module assigns another value to a global name."""
    functions = [value for value in list(namespace.values()) if isinstance(value, types.FunctionType)]
    return any(
        name in function.__code__.co_names and name in stored_names(function.__code__, "STORE_GLOBAL")
        for function in functions
        if function.__globals__ is namespace
    )
