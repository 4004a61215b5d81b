"""What Ctrl-C and SIGTERM do to a run: once, they end it in good order, and twice, at once.

Handlers are there only while a run is waited for in the main thread, and only in the place of Python's and PySpark's
own: those of the user's stay.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Interrupts:
    """The signals of one block.

    Args:
        first: Called with the first signal; whether the block is to be left, by KeyboardInterrupt or SystemExit(143).

    Attributes:
        came: The first signal that has come; None before.
    """

    def __init__(self, first: Callable[[], bool]) -> None:
        self._first = first
        self.came: signal.Signals | None = None
        self.before: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """What the user calls the signal that has come."""
        return _NAMES.get(self.came, "an interrupt") if self.came is not None else "an interrupt"

    def __call__(self, number: int, frame: Any) -> None:
        """Takes a signal."""
        if self.came is not None:
            _end_at_once(number)
        self.came = signal.Signals(number)
        if self._first():
            leave(number)


def leave(number: int) -> None:
    """Raises what ends a program with the status of a signal, and gives a notebook its prompt."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@contextlib.contextmanager
def interrupts(first: Callable[[], bool] = lambda: True) -> Iterator[Interrupts]:
    """Takes SIGINT and SIGTERM for the time of a block; outside of the main thread, none.

    Args:
        first: As in `Interrupts`.
    """
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
            # Whoever has set another one meanwhile wants that.
            if signal.getsignal(number) is taken:
                signal.signal(number, handler)


@contextlib.contextmanager
def stoppable(what_became: Callable[[], str], first: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """As `interrupts`, and says what became of a run that a signal has ended.

    Args:
        what_became: Gives a sentence, when the block has been left.
        first: As in `Interrupts`.
    """
    with interrupts(first) as taken:
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            if taken.came is not None:
                tell(f"{taken.name}: {what_became()}")
            raise


@contextlib.contextmanager
def put_off_signals() -> Iterator[None]:
    """Has SIGINT and SIGTERM wait until the end of a block; in the main thread, which alone may say what they do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # What was not set by Python cannot be set back.
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
def kept_handlers() -> Iterator[None]:
    """Has the handler of SIGINT stay as it is, although PySpark sets its own when it makes a SparkContext.

    In the place of Python's own handler, PySpark's stays: it stops the jobs of later work of the user's, too.
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


def tell(text: str) -> None:
    """Says something to who sits at the terminal, whatever logging is set to."""
    print(f"penstock: {text}", file=sys.stderr, flush=True)


def same_command() -> str:
    """The command that started this program, as one would type it; in a notebook, words for it."""
    return "run it again" if is_interactive() else shlex.join(sys.orig_argv)


def is_interactive() -> bool:
    """Whether a person goes on in this process when a run has ended: in a notebook or a shell."""
    return bool(sys.flags.interactive) or hasattr(sys, "ps1") or "ipykernel" in sys.modules


def _is_replaceable(handler: Any) -> bool:
    if isinstance(handler, Interrupts) or handler in (signal.default_int_handler, signal.SIG_DFL):
        return True
    return str(getattr(handler, "__module__", "")).startswith("pyspark.")


def _end_at_once(number: int) -> None:
    if is_interactive():
        leave(number)
    tell("ended at once")
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
    os._exit(128 + number)
