"""A source whose elements Python adds up in parts, by key and window, before Spark's own aggregate does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from penstock.windows.window_fn import GlobalWindows
from penstock_spark.plan.spark_watermark import (
    FIRST_MICROS,
    LAST_MICROS,
    SHIFT_MICROS,
    make_unsupported_by_spark_error,
)
from penstock_spark.reports.failure import fail_step
from penstock_spark.stages.stage import Stage
from penstock_spark.stream.program import LevelProgram
from penstock_spark.stream.sources.reading import SourceTask
from penstock_spark.stream.transport.stream_stage import StreamStage
from penstock_spark.worker.program import GroupWriterSpec
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.rows import EXCHANGE

MOVES = "e"
"""The column with the time that moves Spark's watermark, on Spark's scale; null in rows of parts of sums."""

SUMS = EXCHANGE.append(pa.field(MOVES, pa.int64()))
"""Rows of parts of sums, and a row of a task with the latest event time of its elements and no key."""


class SummingStage(StreamStage):
    """Stateless steps that end in the rows of a grouping, as in a batch."""

    def __init__(self, level: LevelProgram, partition: int, outbox: Any, views: Mapping[int, Any]) -> None:
        assert level.reading is not None
        self._where = level.reading.where
        self._made: list[pa.RecordBatch] = []
        super().__init__(level, partition, outbox, views)

    def take(self) -> Iterator[pa.RecordBatch]:
        """The rows that were made since the last call."""
        made, self._made = self._made, []
        for rows in made:
            ends = pc.min_max(rows.column("first")).as_py()
            if not FIRST_MICROS < ends["min"] <= ends["max"] <= LAST_MICROS:
                fail_step(make_unsupported_by_spark_error(), self._where)
            yield pa.RecordBatch.from_arrays(
                [*rows.columns, pa.nulls(rows.num_rows, pa.int64())], schema=SUMS
            )

    def _writer(self, spec: Any) -> Node:
        return Stage._writer(self, spec)

    def _exhaust(self, records: Records) -> None:
        with self._named():
            self._made += records


class SummingTask(SourceTask):
    """One task of a source, in one micro-batch."""

    def parts(self, records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Reads everything; yields the parts of sums, and at last how far event time has come, if windows need it."""
        assert isinstance(self._stage, SummingStage)
        with self._stage.running() as done:
            for record in records:
                for _ in self._arrivals(record, done):
                    yield from self._stage.take()
        yield from self._stage.take()
        [writer] = cast(tuple[GroupWriterSpec, ...], self._program.stage.writers)
        if isinstance(writer.windowing.windowfn, GlobalWindows):
            # Nothing there waits for the watermark, which any policy may estimate.
            return
        summaries = (summary for at_once in self._summaries_at.values() for summary in at_once)
        latest = [micros for summary in summaries for micros in (summary.seen or {}).values()]
        if latest:
            row: dict[str, Any] = dict.fromkeys(SUMS.names)
            row[MOVES] = min(max(FIRST_MICROS, *latest), LAST_MICROS) + SHIFT_MICROS
            yield pa.RecordBatch.from_pylist([row], schema=SUMS)

    def _make_stage(self, task: int, views: Mapping[int, Any]) -> StreamStage:
        return SummingStage(self._program, task, self._outbox, views)
