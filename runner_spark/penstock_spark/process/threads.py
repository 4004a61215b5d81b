"""Calls in threads of their own, for callers that do not wait forever for an answer."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar, cast

_Answer = TypeVar("_Answer")


class CallTimeout(TimeoutError):
    """A call takes longer than it may. It continues in its thread, and may still take effect."""


def start_in_thread(
    call: Callable[[], _Answer], name: str
) -> SimpleQueue[tuple[_Answer | None, BaseException | None]]:
    """Starts a call in a thread; the queue gets the result of the call, or the exception that it raises."""
    outcomes: SimpleQueue[tuple[_Answer | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcomes.put((call(), None))
        except BaseException as error:
            outcomes.put((None, error))

    Thread(target=run, name=name, daemon=True).start()
    return outcomes


def call_with_timeout(call: Callable[[], _Answer], name: str, seconds: float) -> _Answer:
    """Returns the result of a call, or raises its exception; CallTimeout if it takes longer.

    >>> call_with_timeout(lambda: 7, "counts", seconds=60.0)
    7
    """
    try:
        found, error = start_in_thread(call, name).get(timeout=seconds)
    except Empty:
        raise CallTimeout from None
    if error is not None:
        raise error
    return cast(_Answer, found)
