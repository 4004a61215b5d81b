"""Handlers of Ctrl-C and SIGTERM during a run: the first signal ends the run in good order, and the second at once.

The handlers are set only while the main thread waits for a run, and they replace only Python's and PySpark's handlers,
never the user's.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from penstock_spark.process.progress import line_start

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}

_ended_first: list[Callable[[], None]] = []


def end_first(end: Callable[[], None]) -> None:
    """Registers a function that ends another process before the second signal ends this one at once."""
    if end not in _ended_first:
        _ended_first.append(end)


class Interrupts:
    """The signals of one block.

    At the first signal it calls `first`; if that returns True, the block ends with KeyboardInterrupt or
    SystemExit(143).
    """

    def __init__(self, first: Callable[[], bool]) -> None:
        self._first = first
        self.came: signal.Signals | None = None  # The first signal.
        self.before: dict[int, Any] = {}

    @property
    def name(self) -> str:
        return _NAMES.get(self.came, "an interrupt") if self.came is not None else "an interrupt"

    def __call__(self, number: int, frame: types.FrameType | None) -> None:
        if self.came is not None:
            _end_at_once(number)
        self.came = signal.Signals(number)
        if self._first():
            exit_by_signal(number)


def exit_by_signal(number: int) -> None:
    """Raises the exception that ends a program with the status of a signal, and returns a notebook to its prompt."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@contextlib.contextmanager
def interrupts(first: Callable[[], bool] = lambda: True) -> Iterator[Interrupts]:
    """Handles SIGINT and SIGTERM within a block; outside of the main thread, it does nothing."""
    taken = Interrupts(first)
    if threading.current_thread() is not threading.main_thread():
        yield taken
        return
    for name in _NAMES:
        handler = signal.getsignal(name)
        if _is_replaceable(handler):
            taken.before[name] = handler
            signal.signal(name, taken)
    try:
        yield taken
    finally:
        for number, handler in taken.before.items():
            # A handler that the program has set meanwhile stays.
            if signal.getsignal(number) is taken:
                signal.signal(number, handler)


@contextlib.contextmanager
def report_after_signal(
    what_became: Callable[[], str], first: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Handles signals as `interrupts` does; then also says what became of a run that a signal has ended."""
    with interrupts(first) as taken:
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            if taken.came is not None:
                print_line(f"{taken.name}: {what_became()}")
            raise


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Holds SIGINT and SIGTERM back until the end of a block; only the main thread can do that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A handler that Python did not set cannot be restored.
    known = {number: handler for number, handler in before.items() if handler is not None}
    for number in known:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


@contextlib.contextmanager
def keep_handlers() -> Iterator[None]:
    """Keeps the handler of SIGINT, although PySpark sets its own when it makes a SparkContext.

    If Python's default handler was set, PySpark's replaces it: it also stops the user's own later jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        spark_own = signal.getsignal(signal.SIGINT)
        if spark_own is not before and before not in (None, signal.default_int_handler):
            if (
                isinstance(before, Interrupts)
                and before.before.get(signal.SIGINT) is signal.default_int_handler
            ):
                before.before[signal.SIGINT] = spark_own
            signal.signal(signal.SIGINT, before)


def print_line(text: str) -> None:
    """Prints a line on standard error, independently of logging."""
    print(f"{line_start()}penstock: {text}", file=sys.stderr, flush=True)


def continuing_command() -> str:
    """Returns the command that continues a stream of this program, as a user would type it; words in a notebook.

    It is the command that started the program. But this run has stopped, so that no run has to be ended any more.
    """
    if is_interactive():
        return "run it again"
    return shlex.join(word for word in sys.orig_argv if word != "--take_over")


def is_interactive() -> bool:
    """True if a person continues in this process after the run, in a notebook or a shell."""
    return bool(sys.flags.interactive) or hasattr(sys, "ps1") or _is_notebook()


def _is_notebook() -> bool:
    """True if IPython runs this process: PySpark imports it, with its kernel, wherever they are installed."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _is_replaceable(handler: object) -> bool:
    if isinstance(handler, Interrupts) or handler in (signal.default_int_handler, signal.SIG_DFL):
        return True
    return str(getattr(handler, "__module__", "")).startswith("pyspark.")


def _end_at_once(number: int) -> None:
    if is_interactive():
        exit_by_signal(number)
    print_line("ended at once")
    for end in _ended_first:
        end()
    os._exit(128 + number)
