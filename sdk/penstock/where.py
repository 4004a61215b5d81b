"""The line of the user's own files at which a step was written."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_LIBRARY_FOLDER = os.path.dirname(os.__file__) + os.sep
_PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
OUR_PACKAGES = ("penstock", "penstock_spark", "penstock_connectors")
"""The packages that run pipelines: no user wrote their lines, and workers get them in the driver's version."""

GENERATED_FILE = "<expression>"
"""The file of functions that penstock writes for expressions and queries."""

_OUR_FOLDERS = tuple(
    f"{os.sep}{name}{os.sep}" for name in (*OUR_PACKAGES[1:], "penstock_conformance", "penstock_figures")
)
_COMMAND = "penstock"
"""The script that pip writes for our command."""
_ENGINE = ("pyspark", "py4j", "IPython")


@dataclass(frozen=True)
class Location:
    """A line of the user's program: the file's path as Python knows it, and the line, counted from 1.

    >>> str(Location("/home/me/game.py", 41))
    'game.py:41'
    """

    file: str
    line: int

    def __str__(self) -> str:
        cell = _cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{os.path.basename(self.file)}:{self.line}"


def _cell_of(file: str) -> str | None:
    """The name that a notebook shows for a cell, whose file has a number that its user never sees; or None."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    name_of = getattr(getattr(get_shell(), "compile", None), "format_code_name", None)
    named: tuple[str, str] | None = name_of(file) if name_of else None
    return f"{named[0].lower()} {named[1]}" if named else None


_stated: ContextVar[Location | None] = ContextVar("stated", default=None)


@contextmanager
def stated(location: Location) -> Iterator[None]:
    """Within the block, `find_caller` returns a line of a text that is not Python, such as a statement of SQL.

    >>> with stated(Location("/home/me/job.sql", 12)):
    ...     print(find_caller())
    job.sql:12
    """
    token = _stated.set(location)
    try:
        yield
    finally:
        _stated.reset(token)


def find_caller() -> Location | None:
    """Returns the innermost line on the stack that the user wrote; None if there is none, as in a Spark worker."""
    found = _stated.get()
    if found is not None:
        return found
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == "<string>" and frame.f_globals.get("__name__", "").startswith("penstock."):
            # The method of a dataclass that calls `__post_init__` is in no file.
            file = _PACKAGE_FOLDER
        if not _is_of_others(file) and not _is_of_engine(frame.f_globals.get("__package__")):
            return Location(file, frame.f_lineno)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def is_raised_by_user(error: BaseException) -> bool:
    """True if an error was raised by a line that the user wrote, and not by code that such a line has called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not _is_of_others(trace.tb_frame.f_code.co_filename)


def _is_of_others(file: str) -> bool:
    """True if a file is part of penstock or of Python, and not of the user's program."""
    return is_our_file(file) or is_library_file(file)


@functools.cache
def is_our_file(file: str) -> bool:
    """True if a file is part of penstock."""
    if file == GENERATED_FILE or os.path.basename(file) == _COMMAND or file.startswith(_PACKAGE_FOLDER):
        return True
    return not is_library_file(file) and any(folder in file for folder in _OUR_FOLDERS)


@functools.cache
def is_library_file(file: str) -> bool:
    """True if a file is part of Python itself."""
    if file.startswith(_LIBRARY_FOLDER):
        return not file.startswith((f"{_LIBRARY_FOLDER}site-packages", f"{_LIBRARY_FOLDER}dist-packages"))
    return file.startswith("<frozen ")


def _is_of_engine(package: str | None) -> bool:
    return (package or "").partition(".")[0] in _ENGINE


def here() -> str | None:
    """Returns the middle part of an error that is not about a step yet: the line of the user's program."""
    location = find_caller()
    return f"at {location}" if location else None


def at_step(label: str, location: Location | None) -> str:
    """Returns the middle part of an error about a step."""
    return f"at step {label!r} ({location})" if location else f"at step {label!r}"
