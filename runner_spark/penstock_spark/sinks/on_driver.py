"""Sinks that are the program itself: lines on its console, and a function that it calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.graph import Sink
from penstock.io.console import ConsoleSink
from penstock.io.each_batch import EachBatchSink
from penstock_spark.reports.failure import step_failed
from penstock_spark.sinks.driver_list import PickledRows, pickled_row, pickled_rows
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink


@plan_sink.register
def plan_console(sink: ConsoleSink, where: str) -> SinkPlan:
    """The driver prints the lines; beyond the limit of the sink, lines stay where they are, and are counted."""

    def commit(frame: DataFrame) -> list[Any]:
        lines, more = [], 0
        for some, left_out in pickled_rows(frame):
            lines += some
            more += left_out
        shown = lines[: sink.limit]
        more += len(lines) - len(shown)
        if more:
            shown.append(f"... and {more:,} more")
        if shown:
            print("\n".join(shown), flush=True)
        return []

    return SinkPlan("value binary", lambda: LineRows(sink.limit), None, commit)


@of_batch.register
def console_batch(sink: ConsoleSink, batch: MicroBatch, where: str) -> Sink:
    """Any micro-batch is printed in the same way; one that is tried again, again."""
    return sink


@dataclass
class LineRows(Encoder):
    """Rows of lines, with how many more there are.

    Attributes:
        room: How many lines may still go to the driver; None lets all go.
    """

    room: int | None

    def start(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """The first lines, and the number of the others."""
        lines = list(map(str, values[: self.room]))
        if self.room is not None:
            self.room -= len(lines)
        return pickled_row((lines, len(values) - len(lines)))

    def finish(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None


@dataclass(frozen=True, eq=False)
class EachBatch(Sink):
    """One micro-batch for a function of the program.

    Attributes:
        sink: The function.
        number: The micro-batch's number.
    """

    sink: EachBatchSink
    number: int


@of_batch.register
def each_batch(sink: EachBatchSink, batch: MicroBatch, where: str) -> Sink:
    """The function learns the number; what is tried again, it gets again."""
    return EachBatch(sink, batch.number)


@plan_sink.register
def plan_each_batch_sink(sink: EachBatchSink, where: str) -> SinkPlan:
    """In batch mode all elements are one micro-batch, of number 0."""
    return plan_each_batch(EachBatch(sink, 0), where)


@plan_sink.register
def plan_each_batch(sink: EachBatch, where: str) -> SinkPlan:
    """The driver calls the function, if there are any elements."""

    def commit(frame: DataFrame) -> list[Any]:
        elements = [element for row in pickled_rows(frame) for element in row]
        if elements:
            try:
                sink.sink.function(elements, sink.number)
            except (Exception, SystemExit, GeneratorExit) as error:
                # KeyboardInterrupt is the user's who stops the program.
                step_failed(error, where)
        return []

    return SinkPlan("value binary", PickledRows, None, commit)
