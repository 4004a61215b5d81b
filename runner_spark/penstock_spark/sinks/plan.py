"""The plan of a sink: how a task encodes elements, and how the driver commits what was written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


class Encoder:
    """Encodes the elements of one task, in order."""

    def start(self) -> pa.RecordBatch | None:
        """Called first; may return rows."""

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """Returns the rows of some elements, or none."""
        raise NotImplementedError

    def finish(self) -> pa.RecordBatch | None:
        """Called last, if nothing failed; may return rows."""


class CommitStopped(Exception):
    """The run is stopped, and does not wait for the end of the commit; the next run finds out what is in the target."""


def _nobody_else() -> None:
    """Checks nothing: a batch has no other runs."""


@dataclass(frozen=True)
class MicroBatch:
    """The content of one commit: a micro-batch of a stream, or a whole run in batch mode.

    >>> MicroBatch(12, "numbers").name, MicroBatch().name
    ('batch-000012', '')
    """

    number: int = 0  # Spark's number, which stays the same after a retry.
    # Names the stream and the sink: the same name after a restart, and another one for another checkpoint; ""
    # in batch mode.
    stream: str = ""
    claim: int = 0  # The number of the run's claim to the checkpoint; a later run has a higher one.
    may_be_retry: bool = True  # Whether an earlier try may have left something.
    # Raises if another run may write the stream by now, or if what the tasks have read is not whole. The driver asks
    # when all rows are there, and only quick work is left.
    check: Callable[[], None] = field(default=_nobody_else, compare=False, repr=False)
    is_small: bool = False  # Whether it is known not to be worth more than one task.
    # Set when the run is being stopped. Then a commit on the driver that may take long raises `CommitStopped`.
    stopping: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def check_or(self, undo: Callable[[], None]) -> None:
        """Checks as `check` does; if that raises, `undo` first removes the files of the tasks."""
        try:
            self.check()
        except BaseException:
            undo()
            raise

    @property
    def name(self) -> str:
        """The part of its files' names; sorted by name, up to a million of them are in order."""
        return f"batch-{self.number:06d}" if self.stream else ""


@dataclass(frozen=True)
class SinkPlan:
    schema: str | StructType
    make_encoder: Callable[[], Encoder]  # Called once in each task.
    # The number of partitions over which to spread the elements first; None leaves them unchanged.
    partitions: int | None
    # Called on the driver with the DataFrame of the encoders' rows. Runs the one Spark job that writes, and
    # returns the elements of the write step's output. A retry replaces the micro-batch's earlier files, and
    # touches no others. If the job fails, nothing is left behind.
    commit: Callable[[DataFrame, MicroBatch], list[Any]]
    is_one_job: bool = True  # Whether the commit certainly computes the rows only once.
    commits_in_tasks: bool = False  # Whether the tasks commit, so that nothing can be checked in between.
    # True if the driver commits small micro-batches, and tasks the others, so that the size has to be known before.
    commits_small_batches: bool = False
    # True if a micro-batch is in the target as a whole, so that a later try changes nothing. None for a sink whose
    # later tries replace what an earlier one has left, or add to it.
    is_committed: Callable[[MicroBatch], bool] | None = None
    # The plan that writes, without an encoder, a frame whose columns are the elements' fields; None if impossible.
    columns: SinkPlan | None = None
    # Closes the connections of the commits, when the run is over.
    close: Callable[[], None] | None = None
