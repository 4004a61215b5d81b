"""Finds the user's own modules that a pipeline needs, and sends them to workers that lack them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import site
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import cloudpickle
import pyspark.cloudpickle

from penstock.graph import Graph
from penstock.where import OUR_PACKAGES
from penstock_spark.plan.query_rows import RowsOfGraph
from penstock_spark.shipping.code_pickler import CachedFunction

_PICKLERS = (cloudpickle, pyspark.cloudpickle)
"""PySpark pickles with its own copy of cloudpickle, and this runner with the installed one; each has its own list of
the modules that travel by value."""

_ITEMS_MAX = 1_000
"""The number of items of a collection that are examined: mostly they are all of the same classes."""


def graph_objects(graph: Graph) -> Iterator[Any]:
    """Everything in a graph that may hold the user's code: functions, sources, windows, element types."""
    for step in graph.steps:
        yield from _fields(step.primitive)
        for table in getattr(getattr(step.primitive, "source", None), "tables", ()):
            if isinstance(table.rows, RowsOfGraph):
                yield from graph_objects(table.rows.graph)
        for side in step.side_inputs:
            yield from (side.default, side.window_mapping_fn)
    for edge in graph.edges:
        yield from (edge.element_type, edge.windowing)


def pickle_by_value_modules(objects: Iterable[Any]) -> tuple[types.ModuleType, ...]:
    """The user's modules that these objects need.

    The search follows the functions and classes, their closures and the globals that they name, and then
    every user module that a found module has imported. The workers already have Python, installed packages
    and penstock, and the main program always travels by value.

    >>> import colorsys
    >>> pickle_by_value_modules([colorsys.rgb_to_hls, lambda pixel: colorsys.rgb_to_hls(*pixel)])
    ()
    """
    pending = list(objects)
    seen: dict[int, Any] = {}
    found: dict[str, types.ModuleType] = {}
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        # Keeping the value keeps another one from getting its id.
        seen[id(value)] = value
        module = _module_of(value)
        if module is not None and is_user_module(module) and module.__name__ not in found:
            found[module.__name__] = module
            pending.extend(_code_in(module))
        pending.extend(_parts(value))
    return tuple(found[name] for name in sorted(found))


@contextmanager
def pickle_by_value(modules: Iterable[types.ModuleType]) -> Iterator[None]:
    """Within the block, functions and classes of these modules are pickled whole, not as a name to import.

    >>> import colorsys
    >>> with pickle_by_value([colorsys]):
    ...     whole = cloudpickle.dumps(colorsys.rgb_to_hls)
    >>> len(whole) > 10 * len(cloudpickle.dumps(colorsys.rgb_to_hls))
    True
    """
    registered: list[tuple[Any, types.ModuleType]] = []
    try:
        for module in modules:
            for pickler in _PICKLERS:
                # The user's own registrations stay.
                if module.__name__ not in pickler.list_registry_pickle_by_value():
                    pickler.register_pickle_by_value(module)
                    registered.append((pickler, module))
        yield
    finally:
        for pickler, module in registered:
            pickler.unregister_pickle_by_value(module)


def is_user_module(module: types.ModuleType) -> bool:
    """True if a module is a Python file outside of the standard library and of installed packages.

    >>> is_user_module(dataclasses), is_user_module(cloudpickle), is_user_module(sys)
    (False, False, False)
    """
    top = module.__name__.partition(".")[0]
    if top in OUR_PACKAGES or top in sys.stdlib_module_names or module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or sys.modules.get(module.__name__) is not module:
        return False
    return not os.path.abspath(file).startswith(_list_installed_folders())


@functools.cache
def _list_installed_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.abspath(folder) + os.sep for folder in folders})


def _module_of(value: object) -> types.ModuleType | None:
    if isinstance(value, types.ModuleType):
        return value
    is_code = isinstance(value, type | types.FunctionType | CachedFunction)
    name = getattr(value if is_code else type(value), "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None


def _code_in(module: types.ModuleType) -> list[Any]:
    """The modules, functions and classes that a module's names refer to; its other values do not travel."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, types.ModuleType | types.FunctionType | CachedFunction | type)
    ]


def _parts(value: object) -> Iterable[Any]:
    """The objects that a pickle of this object would include."""
    match value:
        case types.FunctionType():
            return _function_parts(value)
        case types.MethodType():
            return (value.__self__, value.__func__)
        case CachedFunction():
            return (value.__wrapped__,)
        case functools.partial():
            return (value.func, *value.args, *value.keywords.values())
        case type():
            return _class_parts(value)
        case tuple() | list() | set() | frozenset():
            return itertools.islice(value, _ITEMS_MAX)
        case Mapping():
            return itertools.chain.from_iterable(itertools.islice(value.items(), _ITEMS_MAX))
        case types.ModuleType():
            return ()
    return (type(value), *_fields(value)) if _is_looked_into(type(value)) else ()


def _function_parts(function: types.FunctionType) -> Iterator[Any]:
    """A function's closure, its defaults, and the globals that its code names."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # The name has no value yet.
            continue
    if _is_looked_into(function):
        for name in _names(function.__code__):
            if name in function.__globals__:
                yield function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _class_parts(cls: type) -> Iterator[Any]:
    if not _is_looked_into(cls):
        return
    yield from cls.__bases__
    for member in vars(cls).values():
        inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if isinstance(inner, types.FunctionType | CachedFunction | type):
            yield inner


def _is_looked_into(code: object) -> bool:
    """True if code is the user's or penstock's; other libraries cannot refer to the user's code."""
    name = getattr(code, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None:
        return False
    return name == "__main__" or module.__name__.partition(".")[0] in OUR_PACKAGES or is_user_module(module)


def _fields(value: object) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))
    yield from getattr(value, "__dict__", {}).values()
