"""The settings by which a run's tasks report to its driver: the signing key, and whether errors show elements."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.tracebacks import show_all_lines
from penstock_spark.session.worker_socket import acknowledge_each

_KEY_BYTES = 32


@dataclass(frozen=True)
class Reporting:
    """The values that a run's driver shares with its tasks.

    Spark reports the failure of a task as text, which may quote the input. The signature shows the driver which part
    its own tasks wrote. The key travels with the programs, and never appears in a text.
    """

    # A secret of one run's driver and its tasks.
    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)
    # True if errors show the element that a step worked on, which Spark's logs then also contain.
    show_elements: bool = False
    # True if errors show all lines of a worker's traceback.
    all_lines: bool = False

    def signature(self, content: str) -> str:
        return hmac.new(self.key, content.encode(), hashlib.sha256).hexdigest()

    def has_signed(self, content: str, signature: str) -> bool:
        """Checks a signature in constant time.

        >>> mine, other = Reporting(), Reporting()
        >>> mine.has_signed("a", mine.signature("a")), mine.has_signed("a", other.signature("a"))
        (True, False)
        """
        return hmac.compare_digest(self.signature(content), signature)


# A context variable, because a driver may have several runs at once, each in its own threads.
_NO_RUN = Reporting()
_reporting: ContextVar[Reporting] = ContextVar("reporting", default=_NO_RUN)


def current_reporting() -> Reporting:
    """Returns the Reporting of this context; programs carry it to the tasks."""
    return _reporting.get()


def is_in_run() -> bool:
    return _reporting.get() is not _NO_RUN


def report_with(reporting: Reporting) -> None:
    _reporting.set(reporting)
    show_all_lines(reporting.all_lines)


@contextmanager
def reports_of(reporting: Reporting) -> Iterator[None]:
    """Within the block, programs report to this run, and its key reads their errors."""
    token = _reporting.set(reporting)
    try:
        yield
    finally:
        _reporting.reset(token)


@dataclass(frozen=True)
class TaskRows(ABC):
    """The function for Spark's ``mapInArrow`` over the findings of a source, such as the names of files."""

    reporting: Reporting = field(default_factory=current_reporting, kw_only=True)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(self.reporting)
        for batch in acknowledge_each(batches):
            yield from self.rows_of(batch)

    @abstractmethod
    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Reads what a batch refers to, and yields its rows."""
