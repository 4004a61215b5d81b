"""The line of the user's own files at which a step was written."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RUNNER_FOLDER = f"{os.sep}penstock_spark{os.sep}"


@dataclass(frozen=True)
class Location:
    """A line of the user's program: the file's path as Python knows it, and the line, counted from 1.

    >>> str(Location("/home/me/game.py", 41))
    'game.py:41'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def caller() -> Location | None:
    """The innermost line on the stack that is outside of penstock and its runner; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == "<string>" and frame.f_globals.get("__name__", "").startswith("penstock."):
            # The method of a dataclass that calls `__post_init__` is in no file.
            file = _PACKAGE_FOLDER
        if not file.startswith(_PACKAGE_FOLDER) and _RUNNER_FOLDER not in file:
            return Location(file, frame.f_lineno)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def here() -> str | None:
    """The middle part of an error that is not about a step yet: the line of the user's program."""
    location = caller()
    return f"at {location}" if location else None


def at_step(label: str, location: Location | None) -> str:
    """The middle part of an error about a step."""
    return f"at step {label!r} ({location})" if location else f"at step {label!r}"
