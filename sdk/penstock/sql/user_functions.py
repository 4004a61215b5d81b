"""Functions in Python that queries call: their number of arguments, and errors that show the call and their lines."""

from __future__ import annotations

import copy
import inspect
import linecache
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from penstock.error import RunnerError
from penstock.functions.combinefn import CombineFn
from penstock.scalars.types import SqlType
from penstock.tracebacks import list_lines, shows_all_lines

_SHOWN_FRAMES = 6
_METHODS = (
    *("create_accumulator", "add_input", "add_inputs", "merge_accumulators"),
    *("compact", "extract_output", "subtract_input", "subtracts"),
)


class FunctionError(RunnerError):
    """A user's function in Python, which a query calls, has raised an exception (penstock's own)."""


@dataclass(frozen=True)
class UserFunction:
    """A function in Python that queries may call.

    Attributes:
        fn: The function of one row's values, or a CombineFn.
        type: The type of its result.
        aggregates: Whether it is a CombineFn.
        caller: What errors call the text with the calls.
    """

    fn: Any
    type: SqlType
    aggregates: bool = False
    caller: str = "the query"


@dataclass(frozen=True)
class GuardedFunction:
    """A user's function whose exceptions show where it is called, and the user's own lines.

    Attributes:
        fn: The function.
        name: What statements call it.
        place: Where it is called; empty if that is not known.

    >>> def half(n): return 1 // n
    >>> print(GuardedFunction(half, "HALF", "line 1, column 8 of the query")(1))
    1
    """

    fn: Callable[..., object]
    name: str
    # Two calls with the same arguments are one value, wherever they stand.
    place: str = field(compare=False)

    def __call__(self, *arguments: object, **named: object) -> object:
        """The result of the function."""
        try:
            return self.fn(*arguments, **named)
        except Exception as error:
            trace = error.__traceback__
            raise make_function_error(self.name, self.place, error, trace and trace.tb_next) from None


def make_function_error(
    name: str, place: str, error: Exception, trace: TracebackType | None
) -> FunctionError:
    """Returns the error of a function that has raised an exception.

    Args:
        name: What statements call the function.
        place: Where it is called; empty if that is not known.
        error: The exception.
        trace: The lines that have led to it, without those of penstock.

    >>> print(make_function_error("HALF", "", ValueError("no half"), None))
    the function HALF has raised ValueError: no half
      hint: correct the function, or filter out such rows first; set show_elements_in_errors to see the row
    """
    text = str(error)
    what = f"the function {name} has raised {type(error).__name__}{': ' if text else ''}{text}"
    where = "\n  ".join([*([place] if place else []), *list_frames(trace)])
    hint = "correct the function, or filter out such rows first; set show_elements_in_errors to see the row"
    return FunctionError(what, where=where, hint=hint)


def list_frames(trace: TracebackType | None) -> list[str]:
    """The last lines of a traceback, from the outermost call to the innermost; those of imports are left out."""
    return [
        f"in {each.function} ({os.path.basename(each.file)}:{each.line})"
        + (f": {line}" if (line := linecache.getline(each.file, each.line).strip()) else "")
        for each in list_lines(trace, shows_all_lines())
        if "importlib" not in each.file
    ][-_SHOWN_FRAMES:]


def guard_combine_fn(fn: CombineFn, name: str, place: str) -> CombineFn:
    """Returns a CombineFn with guarded methods; one of penstock, which the engine knows, stays unchanged."""
    if type(fn).__module__.partition(".")[0] == "penstock":
        return fn
    guarded = copy.copy(fn)
    for method in _METHODS:
        of_class = getattr(type(fn), method, None)
        if of_class is not None and of_class is not getattr(CombineFn, method, None):
            setattr(guarded, method, GuardedFunction(getattr(fn, method), name, place))
    return guarded


def why_not_called_with(fn: Callable[..., object], number: int) -> str | None:
    """Says why a function cannot be called with a number of arguments; None if it can be, or if that is unknown.

    >>> why_not_called_with(lambda a, b=1: a, 3), why_not_called_with(lambda a, b=1: a, 1)
    ('takes from 1 to 2 arguments, not 3', None)
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * number)
    except TypeError:
        by_place = [
            each
            for each in signature.parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        named = [
            each.name
            for each in signature.parameters.values()
            if each.kind is each.KEYWORD_ONLY and each.default is each.empty
        ]
        if named:
            return f"has an argument {named[0]!r} that can only be passed by name"
        least, most = sum(each.default is each.empty for each in by_place), len(by_place)
        takes = f"from {least} to {most}" if least < most else str(most)
        if any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values()):
            takes = f"at least {least}"
        return f"takes {takes} argument{'s' * (takes != '1')}, not {number}"
    return None
