"""What a sink is once it is planned: how a task encodes elements, and how the driver commits what was
written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.error import UnsupportedByRunner
from penstock.graph import Sink


class Encoder(Protocol):
    """Encodes the elements of one task, in order."""

    def start(self) -> pa.RecordBatch | None:
        """Called first; may give rows."""

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """The rows of some elements, or none."""

    def finish(self) -> pa.RecordBatch | None:
        """Called last, if nothing failed; may give rows."""


@dataclass(frozen=True)
class SinkPlan:
    """How a sink is written.

    Attributes:
        schema: The Spark schema of the encoder's rows.
        make_encoder: Called once in each task.
        partitions: How many partitions the elements are to be spread over first; None leaves them as they
            are.
        commit: Called on the driver with the DataFrame of the encoders' rows. Runs the one Spark job that
            writes, and gives the elements of the write step's output. Nothing is left behind if the job
            fails.
        is_one_job: Whether it is certain that the commit computes the rows once only.
        columns: How a frame is written whose columns are the fields of the elements, without an encoder; None if it
            cannot be.
    """

    schema: str | StructType
    make_encoder: Callable[[], Encoder]
    partitions: int | None
    commit: Callable[[DataFrame], list[Any]]
    is_one_job: bool = True
    columns: SinkPlan | None = None


@functools.singledispatch
def plan_sink(sink: Sink, where: str) -> SinkPlan:
    """Plans a sink; nothing is written or looked at yet.

    Args:
        sink: A description from `penstock.io`.
        where: The step, for errors.

    Raises:
        UnsupportedByRunner: The runner knows no such sink, or not all that is asked of it.
        ValueError: The description does not fit together.
    """
    raise UnsupportedByRunner(
        f"the sink {sink.describe()} has no writer", where=where, hint="use a sink from penstock.io"
    )
