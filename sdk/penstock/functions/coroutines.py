"""Which functions are asynchronous."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def is_asynchronous(function: Any) -> bool:
    """Whether a function, a method or a callable object is defined with ``async def``.

    >>> async def ask(question):
    ...     return [question]
    >>> is_asynchronous(ask), is_asynchronous(len)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    return _is_async_def(function) or (
        not isinstance(function, type) and _is_async_def(getattr(type(function), "__call__", None))  # noqa: B004
    )


def gives_asynchronously(function: Any) -> bool:
    """Whether a function is an asynchronous generator.

    >>> async def words(text):
    ...     yield text
    >>> gives_asynchronously(words)
    True
    """
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.isasyncgenfunction(function)


def _is_async_def(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
