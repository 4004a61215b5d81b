"""The clock of this process: the only module that asks the operating system for the time, and that waits.

Everything else calls these functions by their module, so that a test can replace the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


class Clock:
    """The operating system's clock; a test derives its own from it."""

    def seconds(self) -> float:
        """Returns the seconds since 1970 in UTC."""
        return time.time()

    def micros(self) -> int:
        """Returns whole microseconds since 1970 in UTC."""
        return time.time_ns() // 1_000

    def monotonic_seconds(self) -> float:
        """Returns seconds since an arbitrary instant, on a clock that is never set back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)


_clock = Clock()


@contextmanager
def replace_clock(clock: Clock) -> Iterator[None]:
    """Lets every function of this module ask another clock while the block runs.

    >>> class Stopped(Clock):
    ...     def seconds(self):
    ...         return 90.0
    >>> with replace_clock(Stopped()):
    ...     print(seconds(), format_utc())
    90.0 1970-01-01 00:01:30 UTC
    """
    global _clock
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before


def seconds() -> float:
    """Returns the seconds since 1970 in UTC."""
    return _clock.seconds()


def micros() -> int:
    """Returns whole microseconds since 1970 in UTC."""
    return _clock.micros()


def monotonic_seconds() -> float:
    """Returns seconds since an arbitrary instant, on a clock that is never set back."""
    return _clock.monotonic_seconds()


def sleep(seconds: float) -> None:
    """Waits."""
    _clock.sleep(seconds)


def format_utc() -> str:
    """Returns the time as a string, to the second."""
    return datetime.fromtimestamp(seconds(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
