"""The user's own modules: which ones a pipeline needs, and how they reach workers that do not have them."""

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

_PICKLERS = (cloudpickle, pyspark.cloudpickle)
"""PySpark serializes what it sends with a cloudpickle of its own, and this runner's values are pickled with
the
installed one; each has its own list of the modules that travel by value."""

_OURS = frozenset({"penstock", "penstock_spark"})
_ITEMS_MAX = 1_000
"""The number of items of a collection that are looked at: mostly they are all of the same classes."""


def graph_objects(graph: Graph) -> Iterator[Any]:
    """Everything in a graph that may hold the user's code: functions, sources, windows, element types."""
    for step in graph.steps:
        yield from _fields(step.primitive)
        for side in step.side_inputs:
            yield from (side.default, side.window_mapping_fn)
    for edge in graph.edges:
        yield from (edge.element_type, edge.windowing)


def pickle_by_value_modules(objects: Iterable[Any]) -> tuple[types.ModuleType, ...]:
    """The user's modules that these objects need.

    They are found from the functions and classes themselves, from what those close over, and from the globals
    they name; then every user's module that a found one has imported is found too. Modules of Python, of
    installed packages and of penstock are on the workers already, and the main program always travels by
    value.

    Args:
        objects: Such as `graph_objects` gives.

    Returns:
        Modules, by name.

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
        # The value is kept, so that no other one gets its id.
        seen[id(value)] = value
        module = _module_of(value)
        if module is not None and is_user_module(module) and module.__name__ not in found:
            found[module.__name__] = module
            pending.extend(_code_in(module))
        pending.extend(_parts(value))
    return tuple(found[name] for name in sorted(found))


@contextmanager
def by_value(modules: Iterable[types.ModuleType]) -> Iterator[None]:
    """Within the block, functions and classes of these modules are pickled whole, not as a name to import.

    Args:
        modules: Such as `pickle_by_value_modules` gives.

    >>> import colorsys
    >>> with by_value([colorsys]):
    ...     whole = cloudpickle.dumps(colorsys.rgb_to_hls)
    >>> len(whole) > 10 * len(cloudpickle.dumps(colorsys.rgb_to_hls))
    True
    """
    registered: list[tuple[Any, types.ModuleType]] = []
    try:
        for module in modules:
            for pickler in _PICKLERS:
                # What the user has registered stays registered.
                if module.__name__ not in pickler.list_registry_pickle_by_value():
                    pickler.register_pickle_by_value(module)
                    registered.append((pickler, module))
        yield
    finally:
        for pickler, module in registered:
            pickler.unregister_pickle_by_value(module)


def is_user_module(module: types.ModuleType) -> bool:
    """Whether a module is one of the user's own: a Python file outside of Python's and of installed packages.

    >>> is_user_module(dataclasses), is_user_module(cloudpickle), is_user_module(sys)
    (False, False, False)
    """
    top = module.__name__.partition(".")[0]
    if top in _OURS or top in sys.stdlib_module_names or module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or sys.modules.get(module.__name__) is not module:
        return False
    return not os.path.abspath(file).startswith(_installed_folders())


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.abspath(folder) + os.sep for folder in folders})


def _module_of(value: Any) -> types.ModuleType | None:
    if isinstance(value, types.ModuleType):
        return value
    is_code = isinstance(value, type | types.FunctionType)
    name = getattr(value if is_code else type(value), "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None


def _code_in(module: types.ModuleType) -> list[Any]:
    """The modules, functions and classes that a module's names stand for; its other values do not travel."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, types.ModuleType | types.FunctionType | type)
    ]


def _parts(value: Any) -> Iterable[Any]:
    """What an object refers to and would take along when it is pickled."""
    match value:
        case types.FunctionType():
            return _function_parts(value)
        case types.MethodType():
            return (value.__self__, value.__func__)
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
    """What a function closes over, its defaults, and the globals that its code names."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # The cell of a name that has no value yet.
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
        if isinstance(inner, types.FunctionType | type):
            yield inner


def _is_looked_into(code: Any) -> bool:
    """Whether code is the user's or penstock's: what other libraries refer to is not the user's."""
    name = getattr(code, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None:
        return False
    return name == "__main__" or module.__name__.partition(".")[0] in _OURS or is_user_module(module)


def _fields(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))
    yield from getattr(value, "__dict__", {}).values()
