"""One micro-batch of a stream as a sink: written again, it replaces what was there, and touches no other."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import Sink


@dataclass(frozen=True)
class MicroBatch:
    """Which micro-batch of which stream is written.

    Attributes:
        number: Spark's number of it, the same when it is tried again.
        stream: Names the stream and the sink: the same after a restart, and never that of another checkpoint.
        may_be_again: Whether an earlier try may have left something.

    >>> MicroBatch(12).name
    'batch-000012'
    """

    number: int
    stream: str = ""
    may_be_again: bool = True

    @property
    def name(self) -> str:
        """What the names of its files tell; names sort as the numbers do, up to a million of them."""
        return f"batch-{self.number:06d}"


@functools.singledispatch
def of_batch(sink: Sink, batch: MicroBatch, where: str) -> Sink:
    """The description that writes one micro-batch of a sink: `plan_sink` takes it.

    Args:
        sink: A description from `penstock.io`.
        batch: Which micro-batch.
        where: The step, for errors.

    Raises:
        UnsupportedByRunner: The sink takes no stream.
    """
    raise UnsupportedByRunner(
        f"the sink {sink.describe()} takes no stream",
        where=where,
        hint="use a sink of files, WriteToSpark or ForEachBatch, or mode='batch'",
    )


def takes_streams(sink: Sink) -> bool:
    """Whether `of_batch` knows the sink.

    >>> from penstock.graph import DriverList
    >>> takes_streams(Sink()), takes_streams(DriverList([]))
    (False, True)
    """
    return of_batch.dispatch(type(sink)) is not of_batch.dispatch(object)


@functools.singledispatch
def prepare(sink: Sink, spark: SparkSession, where: str, stream: str) -> None:
    """Looks at what is there already; called before a stream starts for the first time, not when it goes on.

    Args:
        sink: A description from `penstock.io`.
        spark: A session.
        where: The step, for errors.
        stream: As in `MicroBatch`.

    Raises:
        FileExistsError: Something is there that the sink must not write over.
        RunnerError: Spark says so.
    """
