"""The extension behind ``%load_ext penstock``: short errors, SQL in a cell, and the live page of a run in a cell."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from penstock.error import refusal
from penstock.tracebacks import add_meant_keyword, is_fault, shorten_traceback, shows_all_lines
from penstock.utils import clock
from penstock.utils.identifiers import identifier

_SHOW_SECONDS = 1.0
"""The time between two updates of a page in a cell."""


class Shell(Protocol):
    """An IPython shell."""

    user_ns: dict[str, object]
    execution_count: int

    def set_custom_exc(self, kinds: tuple[type[BaseException], ...], handler: Callable[..., None]) -> None:
        """Sets what shows exceptions of some kinds."""

    def register_magic_function(self, function: Callable[..., object], kind: str, name: str) -> None:
        """Adds a magic."""


class Snapshot(Protocol):
    """The state of a run."""

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""

    def to_json(self) -> str:
        """Returns it as JSON."""


def load_extension(shell: Shell) -> None:
    """Makes an IPython shell show only the message of errors in three parts, and run SQL in cells."""
    shorten_errors(shell)

    def penstock_sql(line: str, cell: str) -> object:
        """Runs the SQL of the cell; see `penstock.sql.notebook_cells.run_cell`."""
        # A notebook without SQL does not load it.
        run_cell: Callable[..., object] = importlib.import_module("penstock.sql.notebook_cells").run_cell
        return run_cell(line, cell, shell.user_ns, f"cell In[{shell.execution_count}]")

    shell.register_magic_function(penstock_sql, "cell", "penstock_sql")


class LiveResult(Protocol):
    """A result of ``run()`` that has a live page."""

    def page_html(self, height: int, name: str) -> str:
        """Returns the page as a frame for a notebook."""

    def snapshot(self) -> Snapshot:
        """Returns the state of the run now."""


def show(result: LiveResult, height: int = 720) -> None:
    """Shows the live page of a run in a notebook, and keeps it up to date until the run is over (penstock's own).

    The page is in the cell itself: it needs neither a port nor a connection to the machine of the program. It shows
    panes and the elements of each step if the run has ``live_port``.

    Args:
        result: The result of ``run()``.
        height: The height of the frame, in pixels.

    Raises:
        RuntimeError: The program is not in a notebook.

    Example: ``notebooks.show(pipeline.run())``.
    """
    publish = _publisher()
    name = f"penstock-{identifier()[:12]}"
    publish({"text/html": result.page_html(height, name)}, name, False)
    if result.snapshot().is_over:
        return
    publish({"text/html": ""}, f"{name}-news", False)
    watch = threading.Thread(
        target=_keep_up, args=(result, height, name, publish), name=f"{name}", daemon=True
    )
    watch.start()


Publish = Callable[[dict[str, str], str, bool], None]


def _publisher() -> Publish:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        what = "there is no notebook in which the page could be shown"
        raise refusal(RuntimeError, what, hint="use --live_port=0, and open result.live_url in a browser")

    def publish(data: dict[str, str], name: str, is_update: bool) -> None:
        data = {"text/plain": "the live page of a run", **data}
        shell.display_pub.publish(data=data, metadata={}, transient={"display_id": name}, update=is_update)

    return publish


def _keep_up(result: LiveResult, height: int, name: str, publish: Publish) -> None:
    """Sends the page each new state of its run, and leaves the last one in the notebook."""
    while True:
        clock.sleep(_SHOW_SECONDS)
        now = result.snapshot()
        if now.is_over:
            publish({"text/html": result.page_html(height, name)}, name, True)
            publish({"text/html": ""}, f"{name}-news", True)
            return
        publish({"text/html": _news(name, now.to_json())}, f"{name}-news", True)


def _news(name: str, snapshot: str) -> str:
    """Returns the script that hands the page in a frame a snapshot.

    >>> "</script>" in _news("penstock-1", '{"label": "</script>"}').removesuffix("</script>")
    False
    """
    safe = snapshot.replace("<", "\\u003c")
    return (
        f"<script>{{const frame = document.getElementById({name!r});"
        f"if (frame) frame.contentWindow.postMessage({safe}, '*');}}</script>"
    )


def shorten_errors(shell: Shell) -> None:
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
