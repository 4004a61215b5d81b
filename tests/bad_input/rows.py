"""What a row of the table of bad input is, and how it is played."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock as beam

PROGRAM = "game.py"
"""The name of the file in which the user has written the program."""

FOLDER = "/data"
"""What is shown for the folder in which the program runs."""

_VARIES = re.compile(r"0x[0-9a-f]{6,}|(?<=_penstock-temp-)[0-9a-f]+")
"""Addresses of objects, and names that are made for each run."""


@dataclass(frozen=True)
class Row:
    """Something that a user may write, and all that the user then sees.

    Attributes:
        name: What is particular about it, in a few words; distinct in the whole table.
        write: The program. It finds `beam`, and the pipeline `p`.
        see: What Python prints at the end of an error's traceback, or else what the program prints.
        files: The files that are there, by name.
        on_spark: Whether it has to run.
        server: What the server of Spark Connect does that the program names; see `tests.bad_input.stand_in`.
    """

    name: str
    write: str
    see: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    on_spark: bool = False
    server: str = ""

    @property
    def program(self) -> str:
        return inspect.cleandoc(self.write)

    @property
    def seen(self) -> str:
        return inspect.cleandoc(self.see)


@dataclass(frozen=True)
class Subject:
    """The rows about one subject.

    Attributes:
        title: The subject.
        words: What holds for all of its rows, for the page; may be empty.
        rows: The rows.
    """

    title: str
    words: str
    rows: tuple[Row, ...]


def played(row: Row, folder: Path) -> str:
    """What a user sees who writes the program of a row in a folder."""
    for name, content in row.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out, error = io.StringIO(), io.StringIO()
    names: dict[str, Any] = {"__name__": "game", "beam": beam, "p": beam.Pipeline()}
    with _inside(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            exec(compile(row.program, PROGRAM, "exec"), names)
            shown = out.getvalue()
        except SystemExit:
            shown = error.getvalue()
        except Exception as raised:
            shown = _last_lines(raised)
    return _VARIES.sub("...", shown.replace(str(folder), FOLDER)).rstrip()


def _last_lines(error: Exception) -> str:
    """The type and the text of an error as Python prints them, without the notes after them."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {error}" if str(error) else name


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Makes a folder the working folder of the block; warnings are no part of what a row shows."""
    before = os.getcwd()
    os.chdir(folder)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        os.chdir(before)
