"""Shows errors of penstock in a notebook: their text alone, or the lines of the program."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from penstock.tracebacks import add_meant_keyword, is_fault, shorten_traceback, shows_all_lines


def shorten_errors(shell: Any) -> None:
    """Makes an IPython shell show only the message of errors in three parts."""
    shell.set_custom_exc((Exception,), _show)


def shorten_errors_here() -> None:
    """Does that in the shell that runs this process, if there is one, and if nothing else shows its errors."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not getattr(shell, "custom_exceptions", True):
        shorten_errors(shell)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType,
    tb_offset: object = None,
) -> None:
    add_meant_keyword(error)
    shorten_traceback(error)
    if has_short_form(error) and not shows_all_lines():
        print("\n".join((f"{kind.__name__}: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
    else:
        shell.showtraceback((kind, error, error.__traceback__ or traceback), tb_offset=tb_offset)


def has_short_form(error: BaseException) -> bool:
    """True if the message of an error names the step or the line, so that a traceback would not add anything.

    The traceback of an exception of the user's own code shows the lines of that code.

    >>> from penstock.error import refusal
    >>> has_short_form(refusal(ValueError, "n is -1", where="at a.py:3", hint="pass 1")), has_short_form(KeyError("a"))
    (True, False)
    """
    text = str(error)
    return ("\n  hint: " in text or "\n  at " in text) and not is_fault(error)
