"""Level 0 for recorded sources, which are replayed: the events of each at the steps of one micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.metrics.execution import Snapshot
from penstock_spark.stream.program import LevelProgram, RecordedSource
from penstock_spark.stream.transport.outbox import Outbox, Row
from penstock_spark.stream.transport.stream_stage import StreamStage
from penstock_spark.worker.inline import inline_batches
from penstock_spark.worker.messages import LogicalTime, WatermarkUpdate


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
