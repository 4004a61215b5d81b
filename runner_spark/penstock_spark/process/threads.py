"""Calls in threads of their own, for callers that do not wait for an answer for ever."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

_Answer = TypeVar("_Answer")


def in_thread(
    call: Callable[[], _Answer], name: str
) -> SimpleQueue[tuple[_Answer | None, BaseException | None]]:
    """Begins a call in a thread; the queue gets what the call gives, and what it raises."""
    outcomes: SimpleQueue[tuple[_Answer | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcomes.put((call(), None))
        except BaseException as error:
            outcomes.put((None, error))

    Thread(target=run, name=name, daemon=True).start()
    return outcomes
