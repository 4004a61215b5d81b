"""Sinks that are the program itself: a list of it, lines on its console, and a function that it calls."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.graph import DriverList
from penstock.io.console import ConsoleSink
from penstock.io.each_batch import EachBatchSink
from penstock_spark.formats.format import Format
from penstock_spark.reports.failure import fail_step
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan
from penstock_spark.worker.batch import dumps

_PICKLED = "value binary"


class PickledRows(Encoder):
    """One pickled row for each batch of elements."""

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        return _pickle_row(values)


@dataclass
class FirstRows(Encoder):
    """A pickled row for each of the first elements of a task, so that Spark stops the task when it has enough."""

    room: int  # How many elements may still go to the driver.

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        some = values[: self.room]
        self.room -= len(some)
        return pa.RecordBatch.from_arrays([pa.array(map(dumps, some), pa.binary())], names=["value"])


def _pickle_row(value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([dumps(value)], pa.binary())], names=["value"])


def _read_pickled_rows(frame: DataFrame) -> Iterator[Any]:
    """Returns the objects that rows carried to the driver, in the order of the partitions; one job."""
    return map(pickle.loads, frame.toArrow().column("value").to_pylist())


def _elements_of(frame: DataFrame) -> list[Any]:
    return [element for row in _read_pickled_rows(frame) for element in row]


def _first_of(frame: DataFrame, first: int) -> list[Any]:
    """Returns some elements; Spark runs one task, then more of them until there are enough."""
    return [pickle.loads(row.value) for row in frame.take(first)]


@dataclass
class _Appended:
    """The last micro-batch that was appended to a list of the program."""

    stream: str
    into: list[Any]
    number: int = -1


# A query that starts again in the same program may find its list as it was when it failed. The last lists are enough:
# what comes again is the last micro-batch.
_appended: deque[_Appended] = deque(maxlen=64)


def plan_list(sink: DriverList, is_stream: bool, where: str) -> SinkPlan:
    """Plans a sink in which the driver appends the elements: exactly once for as long as the program runs."""
    first = sink.first

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        elements = _elements_of(frame) if first is None else _first_of(frame, first)
        batch.check()
        last = _last_appended(batch.stream, sink.into) if batch.stream else _Appended("", sink.into)
        if elements and batch.number > last.number:
            sink.into.extend(elements)
            last.number = batch.number
        return []

    def is_committed(batch: MicroBatch) -> bool:
        return batch.number <= _last_appended(batch.stream, sink.into).number

    if first is None:
        return SinkPlan(_PICKLED, PickledRows, None, commit, is_committed=is_committed)
    return SinkPlan(
        _PICKLED, lambda: FirstRows(first), None, commit, is_one_job=False, is_committed=is_committed
    )


def _last_appended(stream: str, into: list[Any]) -> _Appended:
    for known in _appended:
        if known.stream == stream and known.into is into:
            return known
    _appended.append(_Appended(stream, into))
    return _appended[-1]


def plan_console(sink: ConsoleSink, is_stream: bool, where: str) -> SinkPlan:
    """Plans a sink in which the driver prints the lines of a micro-batch, and prints them again after a retry.

    Lines beyond the limit of the sink are only counted.
    """

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        lines, more = [], 0
        for some, left_out in _read_pickled_rows(frame):
            lines += some
            more += left_out
        batch.check()
        shown = lines[: sink.limit]
        more += len(lines) - len(shown)
        if more:
            shown.append(f"... and {more:,} more")
        if shown:
            print("\n".join(shown), flush=True)
        return []

    return SinkPlan(_PICKLED, lambda: LineRows(sink.limit), None, commit)


@dataclass
class LineRows(Encoder):
    """Rows of lines, with the number of further lines."""

    room: int | None  # How many lines may still go to the driver; None for no limit.

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        lines = list(map(str, values[: self.room]))
        if self.room is not None:
            self.room -= len(lines)
        return _pickle_row((lines, len(values) - len(lines)))


def plan_function(sink: EachBatchSink, is_stream: bool, where: str) -> SinkPlan:
    """Plans a sink in which the driver calls the function with the number and the elements of each micro-batch.

    It calls the function again after a retry.
    """

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        elements = _elements_of(frame)
        batch.check()
        if elements:
            try:
                sink.function(elements, batch.number)
            except (Exception, SystemExit, GeneratorExit) as error:
                # KeyboardInterrupt is the user's who stops the program.
                fail_step(error, where)
        return []

    return SinkPlan(_PICKLED, PickledRows, None, commit)


LISTS = Format(plan=plan_list)
CONSOLE = Format(plan=plan_console)
FUNCTIONS = Format(plan=plan_function)
