"""How the tasks of a run report to its driver: signed with the key of the run, and with elements only where asked."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

_KEY_BYTES = 32


@dataclass(frozen=True)
class Reporting:
    """What a run's driver and its tasks have in common.

    Spark reports what went wrong in a task as text, which may quote the input. The signature tells the driver what its
    own tasks wrote. The key travels with the programs, and stands in no text.

    Attributes:
        key: Known to the driver of one run and to its tasks.
        show_elements: Whether errors tell the element that a step worked on, which Spark's logs then have too.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)
    show_elements: bool = False

    def signature(self, content: str) -> str:
        """What only those who have the key can say of a content."""
        return hmac.new(self.key, content.encode(), hashlib.sha256).hexdigest()

    def has_signed(self, content: str, signature: str) -> bool:
        """Whether a signature belongs to a content; the time that this takes tells nothing.

        >>> mine, other = Reporting(), Reporting()
        >>> mine.has_signed("a", mine.signature("a")), mine.has_signed("a", other.signature("a"))
        (True, False)
        """
        return hmac.compare_digest(self.signature(content), signature)


# A context variable: a driver may have several runs at once, each in threads of its own.
_NO_RUN = Reporting()
_reporting: ContextVar[Reporting] = ContextVar("reporting", default=_NO_RUN)


def reporting_now() -> Reporting:
    """What reports are made with here; programs take it along to the tasks."""
    return _reporting.get()


def is_in_run() -> bool:
    """Whether this is a block of `reports_of`, or a task.

    >>> with reports_of(Reporting()):
    ...     is_in_run()
    True
    """
    return _reporting.get() is not _NO_RUN


def report_with(reporting: Reporting) -> None:
    """Has a task report as its program says."""
    _reporting.set(reporting)


@contextmanager
def reports_of(reporting: Reporting) -> Iterator[None]:
    """A block of the driver for one run: programs made in it report to that run, and errors are read with its key."""
    token = _reporting.set(reporting)
    try:
        yield
    finally:
        _reporting.reset(token)
