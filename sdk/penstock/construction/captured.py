"""Refuses PCollections that user code uses as if they were values, while the pipeline is built."""

from __future__ import annotations

import dis
import functools
import itertools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType

from penstock import graph
from penstock.base.labels import label_from_callable
from penstock.construction import pvalue
from penstock.construction.applied import AppliedPTransform
from penstock.construction.nodes import AppliedTransform
from penstock.construction.ptransform import PTransform
from penstock.error import SideInputError
from penstock.typehints.decorators import WithTypeHints
from penstock.typehints.io_hints import IOTypeHints
from penstock.where import OUR_PACKAGES

_NO_VALUES = (pvalue.PValue, pvalue.DoOutputsTuple, pvalue.AsSideInput)
_MAY_HOLD = (*_NO_VALUES, dict, list, tuple)
_USER_CODE = (WithTypeHints, graph.Source, graph.Sink)
"""DoFns, CombineFns, functions of Partition, sources and sinks: their attributes are searched."""

_OWN_MODULES = tuple(f"{name}." for name in OUR_PACKAGES)
_SEEN_OF_A_CONTAINER = 100
"""The number of items of a container that are searched: PCollections are in small ones, large ones hold data."""


def refuse_captured(node: AppliedPTransform) -> None:
    """Refuses a step whose user code refers to a PCollection that is not one of its side inputs.

    The search covers closures, default arguments, global variables that a function reads, and attributes of DoFns,
    CombineFns and sinks. Transforms may hold PCollections, because they apply other transforms to them.
    """
    if node.parts or node.transform is None:
        return
    found = next(_search(node.transform), None)
    if found is None:
        return
    holder, name = found
    raise SideInputError(
        f"{holder} uses the PCollection {name!r}, whose elements user code cannot see",
        where=node.where,
        hint=f"use a side input: add a parameter to the function or to process, and pass AsList({name}), "
        f"AsIter({name}) or AsSingleton({name}) to the transform",
    )


def _search(transform: AppliedTransform) -> Iterator[tuple[str, str]]:
    """The holder and the name of each PCollection that user code of a transform refers to."""
    seen: set[int] = set()
    for name, value in vars(transform).items():
        if name in ("side_inputs", "raw_side_inputs"):
            continue
        if isinstance(value, PTransform):
            # The original of a variant, such as the transform inside the one with tagged outputs.
            yield from _search(value)
        else:
            yield from _inside(type(transform).__name__, name, value, seen)


def _inside(holder: str, name: str, value: object, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The PCollections in a value that `holder` refers to as `name`."""
    if isinstance(value, _NO_VALUES):
        yield holder, name
        return
    if id(value) in seen or isinstance(value, IOTypeHints):
        return
    seen.add(id(value))
    match value:
        case FunctionType():
            yield from _in_function(value, seen)
        case MethodType():
            yield from _inside(holder, name, value.__func__, seen)
            yield from _in_object(value.__self__, seen)
        case functools.partial():
            yield from _inside(holder, name, value.func, seen)
            yield from _inside(holder, name, (*value.args, *value.keywords.values()), seen)
        case dict() | list() | tuple() | set() | frozenset():
            parts = value.values() if isinstance(value, dict) else value
            for part in itertools.islice(parts, _SEEN_OF_A_CONTAINER):
                yield from _inside(holder, name, part, seen)
        case _ if callable(value) or isinstance(value, _USER_CODE):
            yield from _in_object(value, seen)


def _in_function(function: FunctionType, seen: set[int]) -> Iterator[tuple[str, str]]:
    holder = label_from_callable(function)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # The variable has no value yet.
        yield from _inside(holder, name, value, seen)
    defaults = function.__defaults__ or ()
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    named = dict(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
    for name, value in {**named, **(function.__kwdefaults__ or {})}.items():
        yield from _inside(holder, name, value, seen)
    if _is_own(function.__module__):
        return
    variables = function.__globals__
    if not any(
        _is_or_holds_pcollection(value) for value in variables.values() if isinstance(value, _MAY_HOLD)
    ):
        return  # Only modules of the user have such variables; the functions of others need no search.
    for name in _global_names(function.__code__):
        value = variables.get(name)
        is_neighbour = isinstance(value, FunctionType) and value.__globals__ is variables
        if is_neighbour or _is_or_holds_pcollection(value):
            yield from _inside(holder, name, value, seen)


def _in_object(value: object, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The PCollections in the attributes of an object with user code, and in the methods of its class."""
    if isinstance(value, PTransform | type) or value is None:
        return
    holder = type(value).__name__
    for name, attribute in getattr(value, "__dict__", {}).items():
        yield from _inside(holder, name, attribute, seen)
    for cls in type(value).__mro__:
        if cls is object or _is_own(cls.__module__):
            continue
        for name, attribute in vars(cls).items():
            function = attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
            if isinstance(function, (FunctionType, *_NO_VALUES)):
                yield from _inside(holder, name, function, seen)


def _is_or_holds_pcollection(value: object) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return isinstance(value, _NO_VALUES)
    return any(isinstance(part, _NO_VALUES) for part in itertools.islice(value, _SEEN_OF_A_CONTAINER))


def _is_own(module: str | None) -> bool:
    return f"{module}.".startswith(_OWN_MODULES)


@functools.lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> tuple[str, ...]:
    """The global variables that a function and the functions inside it read."""
    own = [step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"]
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _global_names(part)]
    return tuple(dict.fromkeys(own + inner))
