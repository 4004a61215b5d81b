"""Level 0 in one micro-batch: recorded sources that are played, and one task of a source that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.machines.records import MIN_MICROS
from penstock.metrics.execution import Snapshot
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.source_watermarks import Estimator, Summary
from penstock_spark.stream.program import LevelProgram, ReadingSpec, RecordedSource
from penstock_spark.stream.transport.stream_stage import StreamStage
from penstock_spark.stream.transport.writer import Outbox, Row
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.inline import inline_batches
from penstock_spark.worker.messages import LogicalTime, WatermarkUpdate

if TYPE_CHECKING:
    from penstock_spark.stream.sources.reading import Arrival

EARLIEST = LogicalTime(MIN_MICROS, MIN_MICROS)
"""The logical time of rows without a tick, if time goes by ticks: they take place as soon as anything does."""

AHEAD = ("penstock", "elements_ahead_of_the_clock")
REJECTED = ("penstock", "elements_rejected")
_ELEMENTS_AT_ONCE = 200_000


def play_sources(program: LevelProgram, batch: int, views: Mapping[int, Any]) -> tuple[list[Row], Snapshot]:
    """Plays the recorded sources in one micro-batch: returns rows for the shards, and metrics."""
    outbox = Outbox((0, 0), program.shards)
    stage = StreamStage(program, 0, outbox, views)
    timeline = program.timeline
    with stage.running() as done:
        for step in timeline.of_batch(batch):
            logical_time = outbox.now = LogicalTime(step, timeline.clocks_micros[step])
            for message in map(outbox.to_all, program.next):
                message.timeline.append(logical_time)
                # The next event is another logical time, even if the clock does not move before it.
                if step not in timeline.within:
                    message.ends.add(logical_time)
            for source in program.sources:
                _happen(source, step, stage, outbox, done)
            done(stage.end_bundle())
    return outbox.take(), stage.snapshot()


def _happen(
    source: RecordedSource, step: int, stage: StreamStage, outbox: Outbox, done: Callable[[Any], None]
) -> None:
    match source.happenings.get(step):
        case tuple(values):
            for elements in inline_batches(values, 0, 1):
                done(stage.sized_for(source.edge).push(elements))
        case dict(watermarks):
            for percentile, micros in watermarks.items():
                update = WatermarkUpdate(outbox.now, source.origin, micros, percentile)
                for message in map(outbox.to_all, source.readers):
                    message.watermark_updates.append(update)
        case str(name):
            for message in map(outbox.to_all, source.readers):
                message.signals.append((outbox.now, name))


class SourceTask:
    """One task of a source that Spark reads; `task` is its number among all tasks of the micro-batch."""

    def __init__(self, program: LevelProgram, task: int, batch: int, views: Mapping[int, Any]) -> None:
        assert program.reading is not None
        self._program = program
        self._spec: ReadingSpec = program.reading
        self._read = self._spec.make_reader()
        self._producer = (0, task + 1)
        self._outbox = Outbox(self._producer, program.shards)
        self._stage = self._make_stage(task, views)
        self._batch = batch
        self._read_in = (batch, task)
        self._summaries_at: dict[LogicalTime, list[Summary]] = {}
        self._waiting = 0
        self.has_ended = False  # Whether it has read the end of the source.

    def run(self, records: Iterator[pa.RecordBatch]) -> Iterator[list[Row]]:
        """Reads everything; yields rows whenever many elements wait, or large ones."""
        with self._stage.running() as done:
            for record in records:
                for count in self._arrivals(record, done):
                    self._waiting += count
                    if self._waiting >= _ELEMENTS_AT_ONCE or self._outbox.is_full:
                        self._waiting = 0
                        yield self._outbox.take()
        self._tell_times()
        yield self._outbox.take()

    def _arrivals(self, record: pa.RecordBatch, done: Callable[[Any], None]) -> Iterator[int]:
        """Takes the rows of one batch; yields whenever some of them are done, and the number of these elements."""
        if not record.num_rows:
            return
        clock_micros = record.column("clock")[0].as_py()
        own = record.select(record.schema.names[:-1])
        for arrival in self._read(own, clock_micros):
            yield from self._arrive(arrival, self._logical_time(arrival, clock_micros), done)

    def _make_stage(self, task: int, views: Mapping[int, Any]) -> StreamStage:
        return StreamStage(self._program, task, self._outbox, views)

    def snapshot(self) -> Snapshot:
        return self._stage.snapshot()

    def _logical_time(self, arrival: Arrival, clock_micros: int) -> LogicalTime:
        match self._program.clock:
            case Clock.RECORDED:
                timeline = self._program.timeline
                step = timeline.beginning(self._batch)
                return LogicalTime(step, timeline.clocks_micros[step])
            case Clock.TICKS:
                tick_micros = arrival.tick_micros
                return EARLIEST if tick_micros is None else LogicalTime(tick_micros, tick_micros)
            case Clock.LIVE:
                return LogicalTime(clock_micros, clock_micros)

    def _arrive(
        self, arrival: Arrival, logical_time: LogicalTime, done: Callable[[Any], None]
    ) -> Iterator[int]:
        """Takes an arrival; yields whenever some of it is done, and the number of these elements."""
        if logical_time != self._outbox.now:
            done(self._stage.end_bundle())
            self._outbox.now = logical_time
        self._outbox.place = (self._spec.origin, *(arrival.place or self._read_in))
        summaries = self._summaries_at.setdefault(logical_time, [])
        if arrival.summary is not None:
            summaries.append(arrival.summary)
            self.has_ended = self.has_ended or arrival.summary.ended
        reader = self._stage.sized_for(self._spec.edge)
        for part in reader.parts(arrival.batch):
            done(reader.consumer.push(part))
            yield len(part.values)
        if arrival.rejected:
            assert self._spec.rejects is not None
            self._count(REJECTED, len(arrival.rejected))
            done(self._stage.sized_for(self._spec.rejects).push(Batch(list(arrival.rejected))))
        if arrival.ahead:
            self._count(AHEAD, arrival.ahead)

    def _count(self, name: tuple[str, str], count: int) -> None:
        self._stage.container(self._spec.origin).inc(name, count)

    def _tell_times(self) -> None:
        """Tells the next level when something was read, and each level what its watermark depends on."""
        for level in self._program.next:
            self._outbox.to_all(level).timeline = sorted(self._summaries_at)
        origin = self._spec.origin
        merge = Estimator(self._program.estimated[origin]).merge
        for level in self._spec.readers:
            self._outbox.to_all(level).summaries = [
                (logical_time, origin, merge(summaries))
                for logical_time, summaries in self._summaries_at.items()
                if summaries
            ]
