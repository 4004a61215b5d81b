"""Which functions are asynchronous."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType


def is_asynchronous(function: object) -> bool:
    """True if a function, a method or a callable object is defined with ``async def``.

    >>> async def ask(question):
    ...     return [question]
    >>> is_asynchronous(ask), is_asynchronous(len)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    if _is_async_def(function):
        return True
    # The ``__call__`` of plain functions and classes says nothing, and looking at it is slow.
    is_plain = isinstance(function, FunctionType | MethodType | type)
    return not is_plain and _is_async_def(getattr(type(function), "__call__", None))  # noqa: B004


def gives_asynchronously(function: object) -> bool:
    """True if a function is an asynchronous generator.

    >>> async def words(text):
    ...     yield text
    >>> gives_asynchronously(words)
    True
    """
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.isasyncgenfunction(function)


def _is_async_def(function: object) -> bool:
    if type(function) is FunctionType and not function.__dict__:
        # Nobody has marked it, so its code says everything, and much faster.
        return bool(function.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
