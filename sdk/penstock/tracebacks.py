"""Decides which lines of a failure are shown: only the lines of the program, or with ``--full_trace`` all lines.

The lines of penstock, PySpark and Py4J are taken out of the exception itself, where it leaves penstock. So every reader
of the exception sees the same lines: Python, a notebook, pytest, and a log. Nothing is taken out of an error that
penstock did not expect, which says that it wants to be reported.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from opcode import opmap
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

from penstock.checks.meant_names import find_meant_keyword, is_passed_on
from penstock.where import OUR_PACKAGES, is_library_file, is_our_file

FLAG = "--full_trace"
VARIABLE = "PENSTOCK_FULL_TRACE"
"""The flag and the variable of the environment by which a program asks for all lines."""

FAULT_NOTE = "  hint: penstock did not expect this error: please report it, with all of these lines"
_EXPECTED = "_penstock_expected"
"""The attribute of an error whose traceback `shorten_traceback` has shortened."""

_OURS = frozenset((*OUR_PACKAGES, "penstock_conformance", "penstock_figures"))
_ENGINE = frozenset(("pyspark", "py4j"))
_CALLED_BY_US = frozenset(("apache_beam", "cloudpickle", "fsspec", "numpy", "pandas", "pyarrow", "sqlglot"))
"""Packages that penstock calls itself, and that may call the user's functions in turn."""

_OVER_USERS_VALUES = (
    *(
        "penstock.coders.",
        "penstock.functions.",
        "penstock.scalars.",
        "penstock.sql.",
        "penstock.transforms.",
    ),
    *("penstock_spark.beam.", "penstock_spark.columns.", "penstock_spark.folding.", "penstock_spark.stages."),
    "penstock_spark.worker.",
)
"""The code that calls a user's functions, and computes with a user's values. What it calls may be written in C, such as
``int``, and leaves no line of its own."""

_SHOWN_LINES = 12
_P = ParamSpec("_P")
_ResultT = TypeVar("_ResultT")


class _Owner(Enum):
    USER = "the user"
    PENSTOCK = "penstock"
    ENGINE = "Spark"
    LIBRARY = "a library"


@dataclass(frozen=True)
class TraceLine:
    """A line of a traceback as a value, which another process can show.

    Attributes:
        file: The path of the file.
        function: The name of the function.
        package: The name of the module's package, or of the module.
        line: The line of the instruction, from 1.
        end_line: Its last line.
        column: Its first byte in the line, from 0.
        end_column: The byte behind its last one.
    """

    file: str
    function: str
    package: str
    line: int
    end_line: int
    column: int
    end_column: int


_asked = False


def show_all_lines(asked: bool = True) -> None:
    """Sets whether errors of this process show all lines."""
    global _asked
    _asked = asked


def shows_all_lines() -> bool:
    """True if the program's option, its command line or its environment asks for all lines."""
    by_variable = os.environ.get(VARIABLE, "").lower() not in ("", "0", "false")
    return _asked or by_variable or FLAG in getattr(sys, "argv", ())


def is_fault(error: BaseException, over_users_values: bool = False) -> bool:
    """True if penstock did not expect an error, which then shows all lines.

    It did if a ``raise`` of penstock has made the error, for that has a text for the user, or if a line of the user's
    program was executed last. Errors of the operating system, and of classes that a library defines, say what is wrong
    outside of penstock.

    Args:
        error: The error, with its traceback.
        over_users_values: Whether what was executed last may be a function in C that the user has chosen. This is so
            within a step.

    >>> from penstock.error import refusal
    >>> try:
    ...     raise refusal(ValueError, "n is -1", hint="pass 1")
    ... except ValueError as error:
    ...     is_fault(error)
    False
    """
    if FAULT_NOTE in getattr(error, "__notes__", ()):
        return True
    if getattr(error, _EXPECTED, False):
        # An inner call has taken the lines out that show who raised it.
        return False
    if not isinstance(error, Exception) or _is_from_outside(error) or not _is_unexpected(error):
        return False
    return not (over_users_values and _module_of(_last_written(error)).startswith(_OVER_USERS_VALUES))


def _is_from_outside(error: BaseException) -> bool:
    """True if the operating system, or a library by a class of its own, has refused something."""
    home = type(error).__module__.partition(".")[0]
    is_of_python = home == "builtins" or home in sys.stdlib_module_names
    return isinstance(error, MemoryError | OSError) or not (is_of_python or home in _OURS)


def _is_unexpected(error: BaseException) -> bool:
    """True if penstock was executed last, of all code but libraries, and did not raise the error itself."""
    last = _last_written(error)
    if last is None or _owner(last.tb_frame) is _Owner.USER:
        return False
    is_assert = isinstance(error, AssertionError) and not _module_of(last).startswith("penstock.testing.")
    is_last = last.tb_next is None and not is_assert
    return not (is_last and (_is_raise(last) or _passes_on(error, last)))


def _last_written(error: BaseException) -> TracebackType | None:
    """The last entry of a traceback whose code belongs to the user or to penstock."""
    written = (_Owner.USER, _Owner.PENSTOCK)
    entries = [each for each in _entries(error.__traceback__) if _owner(each.tb_frame) in written]
    return entries[-1] if entries else None


def _module_of(entry: TracebackType | None) -> str:
    """The name of the module, with a dot at its end."""
    return "" if entry is None else f"{entry.tb_frame.f_globals.get('__name__', '')}."


def shorten_traceback(error: BaseException) -> None:
    """Takes the lines of penstock and of Spark out of an error, and of the errors that led to it.

    An error that penstock did not expect keeps them, and gets a note that asks for a report; an error from outside gets
    a note that says how to see them.
    """
    if shows_all_lines() or not _passes_through_us(error.__traceback__):
        return
    if is_fault(error):
        if FAULT_NOTE not in getattr(error, "__notes__", ()):
            error.add_note(FAULT_NOTE)
        return
    is_first = not getattr(error, _EXPECTED, False)
    if is_first and _is_from_outside(error) and _is_unexpected(error):
        error.add_note(f"  hint: add {FLAG} to see what penstock did")
    vars(error)[_EXPECTED] = True
    for each in _with_earlier_errors(error):
        before = each.__traceback__
        if _passes_through_us(before):
            each.__traceback__ = _join(_shown(before))
        earlier = each.__cause__ or each.__context__
        if earlier is not None and _is_only_ours(earlier.__traceback__):
            # The later error says the same in the user's terms.
            each.__cause__ = None
            each.__suppress_context__ = True


def shortens_tracebacks(function: Callable[_P, _ResultT]) -> Callable[_P, _ResultT]:
    """Decorates a function that users call: what it raises is as `shorten_traceback` leaves it.

    A call within another such call leaves that to the outer one. The frame of the decorator is not shown either: a bare
    ``raise`` adds no entry to a traceback.
    """

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _ResultT:
        if getattr(_border, "is_inside", False):
            return function(*args, **kwargs)
        _border.is_inside = True
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            shorten_traceback(error)
            raise
        finally:
            _border.is_inside = False

    return called


_border = threading.local()


def list_lines(trace: TracebackType | None, all_lines: bool = False) -> tuple[TraceLine, ...]:
    """Returns the last lines of a traceback that are shown, or the last of all lines, as values."""
    entries = list(_entries(trace) if all_lines else _shown(trace))[-_SHOWN_LINES:]
    return tuple(_line_of(each) for each in entries)


def make_traceback(lines: Iterable[TraceLine]) -> TracebackType | None:
    r"""Returns a traceback of lines that another process has executed; its frames have no variables.

    >>> made = make_traceback([TraceLine("game.py", "parse", "game", 7, 7, 4, 15)])
    >>> traceback.format_tb(made)
    ['  File "game.py", line 7, in parse\n']
    """
    made = None
    for line in reversed(list(lines)):
        made = _make_entry(line, made)
    return made


def format_failure(error: BaseException) -> list[str]:
    """Returns an exception as text, as `traceback.format_exception` does, with the lines that are shown.

    The exception is not changed.
    """
    shown = traceback.TracebackException.from_exception(error)
    if shows_all_lines() or is_fault(error, over_users_values=True):
        return list(shown.format())
    summary: traceback.TracebackException | None = shown
    for each in _with_earlier_errors(error):
        assert summary is not None
        summary.stack = traceback.StackSummary.from_list(
            [
                frame
                for frame, entry in zip(summary.stack, _entries(each.__traceback__), strict=False)
                if entry in set(_shown(each.__traceback__))
            ]
        )
        summary = summary.__cause__ or summary.__context__
    return list(shown.format())


def install_hook() -> None:
    """Installs a hook: errors that end a program show the program's own lines, printed by the earlier hook."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            add_meant_keyword(error)
            shorten_traceback(error)
            trace = error.__traceback__
        finally:
            before(kind, error, trace)

    if getattr(before, "__module__", None) != __name__:
        sys.excepthook = show


def add_meant_keyword(error: BaseException) -> None:
    """Adds a note about the keyword argument of penstock that a program has misspelled, once."""
    meant = find_meant_keyword(error)
    note = f"  hint: did you mean {meant}?"
    if meant is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def print_failure(error: BaseException) -> None:
    """Prints what has made a command fail on standard error: its text, after the lines of the user's program."""
    shorten_traceback(error)
    if error.__traceback__ is None or not (shows_all_lines() or _has_user_line(error)):
        print("\n".join((str(error), *getattr(error, "__notes__", ()))), file=sys.stderr)
    else:
        traceback.print_exception(error)


def _has_user_line(error: BaseException) -> bool:
    return is_fault(error) or any(
        _owner(entry.tb_frame) is _Owner.USER
        for each in _with_earlier_errors(error)
        for entry in _entries(each.__traceback__)
    )


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _owner(frame: FrameType) -> _Owner:
    """Says who has written the code of a frame."""
    file, names = frame.f_code.co_filename, frame.f_globals
    package = str(names.get("__package__") or names.get("__name__") or "").partition(".")[0]
    if package in _OURS or is_our_file(file):
        return _Owner.PENSTOCK
    if package in _ENGINE:
        return _Owner.ENGINE
    return _Owner.LIBRARY if package in _CALLED_BY_US or is_library_file(file) else _Owner.USER


def _shown(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yields the entries of a traceback that are shown: the user's own, and those of libraries that the user calls."""
    is_by_user = True
    for entry in _entries(trace):
        owner = _owner(entry.tb_frame)
        is_by_user = owner is _Owner.USER or (owner is _Owner.LIBRARY and is_by_user)
        if is_by_user:
            yield entry


def _passes_through_us(trace: TracebackType | None) -> bool:
    return any(_owner(entry.tb_frame) is _Owner.PENSTOCK for entry in _entries(trace))


def _is_only_ours(trace: TracebackType | None) -> bool:
    return _passes_through_us(trace) and not list(_shown(trace))


def _join(entries: Iterable[TracebackType]) -> TracebackType | None:
    made: TracebackType | None = None
    for entry in reversed(list(entries)):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made


def _is_raise(entry: TracebackType) -> bool:
    """True if the instruction of an entry is a ``raise``, and not something that failed."""
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == opmap["RAISE_VARARGS"]


def _passes_on(error: BaseException, entry: TracebackType) -> bool:
    """True if penstock has passed on a wrong keyword argument of the user."""
    return is_passed_on(error, linecache.getline(entry.tb_frame.f_code.co_filename, entry.tb_lineno))


def _with_earlier_errors(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, and the errors that are shown before it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _line_of(entry: TracebackType) -> TraceLine:
    code, names = entry.tb_frame.f_code, entry.tb_frame.f_globals
    positions = itertools.islice(code.co_positions(), entry.tb_lasti // 2, None)
    _, end_line, column, end_column = next(positions, (None, None, None, None))
    return TraceLine(
        code.co_filename,
        code.co_name,
        str(names.get("__package__") or names.get("__name__") or ""),
        entry.tb_lineno,
        end_line or entry.tb_lineno,
        column or 0,
        end_column or 0,
    )


def _make_entry(line: TraceLine, following: TracebackType | None) -> TracebackType:
    """Makes an entry by raising an exception at the line, in a code with its name."""
    tree = ast.parse("raise Exception")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno, node.end_lineno = line.line, max(line.line, line.end_line)
            node.col_offset, node.end_col_offset = line.column, line.end_column
    code = compile(tree, line.file, "exec").replace(co_name=line.function, co_qualname=line.function)
    names: dict[str, Any] = {"__name__": line.package, "__package__": line.package}
    try:
        exec(code, names)
    except Exception as error:
        *_, entry = _entries(error.__traceback__)
    return TracebackType(following, entry.tb_frame, entry.tb_lasti, line.line)
