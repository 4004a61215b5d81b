"""Pickles code that a worker cannot import: cloudpickle, with file names and with cached functions.

From version 3.1.3 on, cloudpickle leaves out the file that a function is from, and a traceback of a worker would not
say which line of the user's program failed.

cloudpickle sends a function with ``functools.cache`` or ``lru_cache`` as a name to import, which does not exist in a
worker if the function is one of the main program, or of a module that travels by value. Here it travels whole, with an
empty cache. A ``cached_property`` has a lock in Python 3.11, which stays behind.

cloudpickle sends a class method with the code of its function, since that has no name of its own: every Timestamp and
Duration would carry it. Here it travels as a name of its class.

cloudpickle sends what a ``type`` statement or ``NewType`` makes as a name to import. Here it travels whole, as cached
functions do.

In Python 3.14, cloudpickle leaves out the annotations of a class, and fails on a function whose annotations name types
that exist for type checkers only. Here annotations travel; an annotation that cannot be evaluated travels as a string.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections import ChainMap
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

import cloudpickle

from penstock.typehints.annotations import texts_of
from penstock.typehints.constraints import ALIASES
from penstock.where import OUR_PACKAGES

_OWN = tuple(f"{name}." for name in OUR_PACKAGES)

CachedFunction: Any = functools._lru_cache_wrapper
NewType: Any = typing.NewType


def _reduce_cached(cached: functools._lru_cache_wrapper[Any]) -> object:
    if _is_importable(cached, cached.__qualname__):
        return cached.__qualname__
    parameters = cached.cache_parameters()
    # The function may call itself, so it is filled when it is there.
    return _empty, (parameters["maxsize"], parameters["typed"]), cached.__wrapped__, None, None, _fill


def _is_importable(value: object, name: str) -> bool:
    """True if a worker finds a value by its name."""
    module = value.__module__
    if module == "__main__" or any(
        module == by_value or module.startswith(f"{by_value}.")
        for by_value in cloudpickle.list_registry_pickle_by_value()
    ):
        return False
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


class _Later:
    """Calls a function that is known later."""

    function: Callable[..., Any]

    def __call__(self, *arguments: object, **named: object) -> object:
        return self.function(*arguments, **named)


def _empty(maxsize: int | None, typed: bool) -> object:
    return functools.lru_cache(maxsize, typed)(_Later())


def _fill(cached: Any, function: Callable[..., Any]) -> None:
    cached.__wrapped__.function = function
    functools.update_wrapper(cached, function)


def _reduce_property(found: functools.cached_property[Any]) -> tuple[Any, ...]:
    return _property, (found.attrname,), found.func, None, None, _fill_property


def _property(name: str) -> object:
    made = functools.cached_property(_Later())
    # The class, which would set its name, is not made in the usual way.
    made.attrname = name
    return made


def _fill_property(found: functools.cached_property[Any], function: Callable[..., Any]) -> None:
    found.func, found.__doc__ = function, function.__doc__


def _reduce_code(code: CodeType) -> tuple[Any, ...]:
    constructor, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _code, (constructor, arguments, code.co_filename)


def _code(constructor: type[CodeType], arguments: tuple[Any, ...], file: str) -> CodeType:
    return constructor(*arguments).replace(co_filename=file)


def _reduce_method(method: MethodType) -> tuple[Any, ...]:
    # A decorator may have renamed the function, which then differs from its name in its class.
    if isinstance(method.__self__, type) and getattr(method.__self__, method.__name__, None) == method:
        return getattr, (method.__self__, method.__name__)
    return MethodType, (method.__func__, method.__self__)


def _reduce_alias(alias: Any) -> object:
    if _is_importable(alias, alias.__name__):
        return alias.__name__
    # Nothing can be made that contains itself before it is there.
    value = typing.Any if _contains(alias.__value__, alias, set()) else alias.__value__
    return _alias, (type(alias), alias.__name__, value, alias.__type_params__)


def _contains(hint: object, alias: object, seen: set[int]) -> bool:
    """True if an alias is a part of a hint, also by way of other aliases."""
    if hint is alias:
        return True
    if id(hint) in seen:
        return False
    seen.add(id(hint))
    return any(_contains(part, alias, seen) for part in _parts(hint))


def _parts(hint: object) -> Sequence[Any]:
    if isinstance(hint, ALIASES):
        return [hint.__value__]
    if isinstance(hint, list):  # The parameters of a Callable.
        return hint
    return [typing.get_origin(hint), *typing.get_args(hint)]


def _alias(kind: Any, name: str, value: object, variables: tuple[Any, ...]) -> object:
    return kind(name, value, type_params=variables)


def _reduce_new_type(made: Any) -> object:
    if _is_importable(made, made.__qualname__):
        return made.__qualname__
    return _new_type, (made.__qualname__, made.__supertype__, made.__module__)


def _new_type(name: str, supertype: Any, module: str) -> object:
    made = NewType(name, supertype)
    made.__module__ = module
    return made


class CodePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Sends functions and classes that a worker cannot import along."""

    dispatch_table = ChainMap(
        {
            CachedFunction: _reduce_cached,
            CodeType: _reduce_code,
            MethodType: _reduce_method,
            functools.cached_property: _reduce_property,
            NewType: _reduce_new_type,
            **dict.fromkeys(ALIASES, _reduce_alias),
        },
        cloudpickle.Pickler.dispatch_table,
    )

    def reducer_override(self, value: object) -> object:
        """Most values in a program are objects of our classes, and cloudpickle looks up each class every time.

        It has something to say of classes and functions only.
        """
        if not isinstance(value, type | FunctionType):
            return NotImplemented
        if isinstance(value, type) and value.__module__.startswith(_OWN) and _is_at_the_top(value):
            return NotImplemented
        try:
            reduced = super().reducer_override(value)
        except NameError:
            if not isinstance(value, FunctionType):
                raise
            return super().reducer_override(_with_texts(value))
        if isinstance(value, type) and isinstance(reduced, tuple) and len(reduced) > 2:
            _keep_annotations(value, reduced[2])
        return reduced


def _with_texts(function: FunctionType) -> FunctionType:
    """A function like another one, with annotations that need not be evaluated."""
    code, names = function.__code__, function.__globals__
    copy = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    functools.update_wrapper(copy, function)
    del copy.__wrapped__  # type: ignore[attr-defined]
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = texts_of(function)
    return copy


def _keep_annotations(value: type, state: tuple[Any, ...]) -> None:
    """Adds the annotations of a class to what is sent of it."""
    attributes = state[0]
    if "__annotate_func__" not in vars(value) or "__annotations_cache__" in attributes:
        return
    try:
        attributes["__annotations__"] = value.__annotations__
    except NameError:
        attributes["__annotations__"] = texts_of(value)


@functools.cache
def _is_at_the_top(own: type) -> bool:
    """True if a worker can import one of our classes."""
    return getattr(sys.modules.get(own.__module__), own.__qualname__, None) is own
