"""The extension behind ``%load_ext penstock``: a notebook shows penstock's errors without Python's traceback."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


def shorten_errors(shell: Any) -> None:
    """Makes an IPython shell show only the message of errors in three parts."""
    shell.set_custom_exc((Exception,), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType,
    tb_offset: object = None,
) -> None:
    if has_short_form(error):
        print(f"{kind.__name__}: {error}", file=sys.stderr)
    else:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)


def has_short_form(error: BaseException) -> bool:
    """True if the message of an error names the step or the line, so that a traceback would not add anything.

    >>> from penstock.error import refusal
    >>> has_short_form(refusal(ValueError, "n is -1", where="at a.py:3", hint="pass 1")), has_short_form(KeyError("a"))
    (True, False)
    """
    text = str(error)
    return "\n  hint: " in text or "\n  at " in text or "[while running " in text
