"""A list of the program as a sink: what ``[1, 2] | transform`` gives."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.graph import DriverList, Sink
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink
from penstock_spark.worker.batch import dumps


@plan_sink.register
def plan_driver_list(sink: DriverList, where: str) -> SinkPlan:
    """Each batch of elements is one pickled row; the driver appends what it unpickles."""

    def commit(frame: DataFrame) -> list[Any]:
        for row in pickled_rows(frame):
            sink.into.extend(row)
        return []

    return SinkPlan("value binary", PickledRows, None, commit)


class PickledRows(Encoder):
    """One row for each batch of elements."""

    def start(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """The elements as one row."""
        return pickled_row(values)

    def finish(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None


def pickled_row(value: Any) -> pa.RecordBatch:
    """A row that brings something to the driver."""
    return pa.RecordBatch.from_arrays([pa.array([dumps(value)], pa.binary())], names=["value"])


def pickled_rows(frame: DataFrame) -> Iterator[Any]:
    """What was brought to the driver, in the order of the partitions; one job."""
    return map(pickle.loads, frame.toArrow().column("value").to_pylist())


@dataclass(frozen=True, eq=False)
class ListBatch(Sink):
    """One micro-batch for a list: one that the list has already is not appended again.

    Attributes:
        sink: The list.
        batch: Which micro-batch.
    """

    sink: DriverList
    batch: MicroBatch


@of_batch.register
def list_batch(sink: DriverList, batch: MicroBatch, where: str) -> Sink:
    """Exactly once for as long as the program runs."""
    return ListBatch(sink, batch)


@dataclass
class _Appended:
    """The last micro-batch that a list of the program has."""

    stream: str
    into: list[Any]
    number: int = -1


# A query that starts again in the same program may find its list as it was when it failed. The last lists are enough:
# what comes again is the last micro-batch.
_appended: deque[_Appended] = deque(maxlen=64)


@plan_sink.register
def plan_list_batch(sink: ListBatch, where: str) -> SinkPlan:
    """As in batch mode, unless the list has the micro-batch."""

    def commit(frame: DataFrame) -> list[Any]:
        elements = [element for row in pickled_rows(frame) for element in row]
        last = _last_appended(sink)
        if elements and sink.batch.number > last.number:
            sink.sink.into.extend(elements)
            last.number = sink.batch.number
        return []

    return SinkPlan("value binary", PickledRows, None, commit)


def _last_appended(sink: ListBatch) -> _Appended:
    stream, into = sink.batch.stream, sink.sink.into
    for known in _appended:
        if known.stream == stream and known.into is into:
            return known
    _appended.append(_Appended(stream, into))
    return _appended[-1]
