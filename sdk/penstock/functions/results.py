"""The values that the ``process`` of a DoFn may return."""

from __future__ import annotations

from collections.abc import Iterable
from types import AsyncGeneratorType, CoroutineType
from typing import Any

from penstock.error import noun_for, refusal

UNAWAITED = (CoroutineType, AsyncGeneratorType)
"""The types of the results of a function with ``async def`` that is called without ``await``."""


def check_result(result: object) -> None:
    """Refuses a result that is not a sequence of outputs: also strings, bytes and dicts, as in Beam."""
    if isinstance(result, (str, bytes, dict)):
        kind = type(result).__name__
        what = f"Returning {noun_for(result)} from a ParDo or FlatMap is discouraged, and refused"
        raise refusal(TypeError, what, hint=f"return list({kind} ...), or a list with the one element")
    if not (hasattr(result, "__iter__") or hasattr(result, "__getitem__")):
        if isinstance(result, UNAWAITED):
            raise make_unawaited_error([result])
        what = (
            f"FlatMap and ParDo must return an iterable. {type(result)} was returned instead: "
            f"{type(result).__name__!r} object is not iterable and yields no outputs"
        )
        raise refusal(TypeError, what, hint="yield the element, return [element], or use Map")


def make_unawaited_error(values: Iterable[Any]) -> TypeError:
    """Returns the error about coroutines and asynchronous generators among values, and closes coroutines."""
    kind = "an asynchronous generator"
    for value in values:
        if isinstance(value, CoroutineType):
            kind = "a coroutine"
            value.close()
    what = f"the function returns {kind}, which is never awaited"
    hint = (
        "define the function itself with async def; a lambda or a plain function that calls one does not do"
    )
    return refusal(TypeError, what, hint=hint)
