"""What a sink is once it is planned: how a task encodes elements, and how the driver commits what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


class Encoder:
    """Encodes the elements of one task, in order."""

    def start(self) -> pa.RecordBatch | None:
        """Called first; may give rows."""

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """The rows of some elements, or none."""
        raise NotImplementedError

    def finish(self) -> pa.RecordBatch | None:
        """Called last, if nothing failed; may give rows."""


@dataclass(frozen=True)
class MicroBatch:
    """What is committed at once: a micro-batch of a stream. A run in batch mode is one, of no stream.

    Attributes:
        number: Spark's number of it, the same when it is tried again.
        stream: Names the stream and the sink: the same after a restart, and never that of another checkpoint; "" in
            batch mode.
        may_be_again: Whether an earlier try may have left something.

    >>> MicroBatch(12, "numbers").name, MicroBatch().name
    ('batch-000012', '')
    """

    number: int = 0
    stream: str = ""
    may_be_again: bool = True

    @property
    def name(self) -> str:
        """What the names of its files tell; names sort as the numbers do, up to a million of them."""
        return f"batch-{self.number:06d}" if self.stream else ""


@dataclass(frozen=True)
class SinkPlan:
    """How a sink is written.

    Attributes:
        schema: The Spark schema of the encoder's rows.
        make_encoder: Called once in each task.
        partitions: How many partitions the elements are to be spread over first; None leaves them as they
            are.
        commit: Called on the driver with the DataFrame of the encoders' rows, and with what they are. Runs the one
            Spark job that writes, and gives the elements of the write step's output. A micro-batch that is written
            again replaces what was there, and touches no other. Nothing is left behind if the job fails.
        is_one_job: Whether it is certain that the commit computes the rows once only.
        columns: How a frame is written whose columns are the fields of the elements, without an encoder; None if it
            cannot be.
    """

    schema: str | StructType
    make_encoder: Callable[[], Encoder]
    partitions: int | None
    commit: Callable[[DataFrame, MicroBatch], list[Any]]
    is_one_job: bool = True
    columns: SinkPlan | None = None
