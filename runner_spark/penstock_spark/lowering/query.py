"""Lowers a streaming plan to one chain of operators, which is one Structured Streaming query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.functions.splitting import splits_of
from penstock_spark.checkpoints.custody.folder import Checkpoint
from penstock_spark.checkpoints.resharding import HEARTBEAT_SLOT
from penstock_spark.files.whole_files import CheckFiles
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.frames import NOW_MICROS, now, now_micros
from penstock_spark.lowering.jobs import run_plan
from penstock_spark.lowering.level_programs import level_program
from penstock_spark.lowering.readings import OpenReading, ends_soon, open_reading
from penstock_spark.lowering.recorded import record_input
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.plan.clock_waits import clock_waits
from penstock_spark.plan.splitting import keeps_restrictions
from penstock_spark.plan.stream_plan import Clock, Level, StreamPlan
from penstock_spark.reports.metrics import forget_steps
from penstock_spark.session.backend import ReportSink
from penstock_spark.session.shard_keys import shard_keys
from penstock_spark.stream.level_processor import ROWS, LevelProcessor
from penstock_spark.stream.program import ReadingSpec
from penstock_spark.stream.tasks import make_played_function, make_reading_function
from penstock_spark.stream.transport.control import COMMAND, HEARTBEAT


@dataclass(frozen=True, eq=False)
class Query:
    """A query that is ready to start."""

    frame: DataFrame  # Its rows: the rows for sinks have a level below 0.
    batches: int  # How many micro-batches the recorded input takes.
    readings: tuple[
        OpenReading, ...
    ]  # The sources that Spark reads, in the order in which Spark reports them.
    first_reading: int  # The number of Spark sources before them.
    # True if Spark starts micro-batches only for new data: after a pause, sources have ended that end when all is read.
    rests: bool

    def file_checks(self) -> dict[int, CheckFiles]:
        """Returns the functions that look at the files of a source before Spark reads them, by the source's number."""
        numbered = enumerate(self.readings, self.first_reading)
        return {number: each.check_files for number, each in numbered if each.check_files is not None}

    def files(self) -> dict[int, str]:
        """Returns the steps that may read files as they arrive, by the number of their source."""
        numbered = enumerate(self.readings, self.first_reading)
        return {number: reading.spec.where for number, reading in numbered if reading.may_be_files}

    @property
    def is_finite(self) -> bool:
        return all(reading.is_finite for reading in self.readings)

    @property
    def ending_by_pauses(self) -> tuple[OpenReading, ...]:
        """The sources that end with a pause. One that follows the clock also pauses until its next second."""
        return tuple(each for each in self.readings if self.rests and (each.ends_when_read or each.is_staged))


def build_query(
    plan: StreamPlan,
    context: Context,
    checkpoint: Checkpoint | None,
    events_per_batch: int | None,
    heartbeat: str,
    sinks: Sequence[StreamSink],
) -> Query:
    """Builds the query of a streaming plan; the checkpoint receives staged sources and commands.

    A query without one, which the program starts itself, has no staged sources, and takes no commands.
    `events_per_batch` limits the recorded input of a micro-batch; None puts all into one.
    """
    if plan.views is not None:
        compute_views(plan, context)
    timeline, recorded = record_input(plan, events_per_batch)
    keys = shard_keys(context.partitions)
    beats = _beats(plan, context, checkpoint, heartbeat, keys)
    opened = tuple(open_reading(plan, part, context, checkpoint, sinks, beats) for part in plan.readings)
    frames = [*beats, *_commands(plan, context, checkpoint, keys)]

    def program(part: Level, reading: ReadingSpec | None = None) -> bytes:
        return context.dumps(level_program(plan, part, timeline, recorded, reading, context, sinks))

    def function(
        make: Callable[..., Any], programs: bytes | dict[int, bytes], *parts: Level
    ) -> Callable[[ReportSink], Any]:
        edges = {side.edge for part in parts for step in part.steps for side in step.side_inputs}
        views = {edge: pages for edge, pages in context.views.items() if edge in edges}
        return partial(make, programs, keys, views, sys_path=context.sys_path)

    if plan.played is not None:
        played = function(make_played_function, program(plan.played), plan.played)
        frames[0] = context.metrics.map_in_arrow(frames[0], played, ROWS)
    first_reading = len(frames)
    for part, reading in zip(plan.readings, opened, strict=True):
        if reading.is_native:
            frames = [reading.frame]
            continue
        clocked = reading.frame.withColumn("clock", now_micros())
        reader = function(make_reading_function, program(part, reading.spec), part)
        frames.append(context.metrics.map_in_arrow(clocked, reader, ROWS))
    frame = reduce(DataFrame.unionAll, frames)
    for levels in plan.operators:
        programs = {level.number: program(level) for level in levels}
        processor = function(LevelProcessor, programs, *levels)
        frame = context.metrics.transform_with_state(frame, processor, ROWS)
    batches = timeline.batches if plan.played else 0
    return Query(frame, batches, opened, first_reading, heartbeat == "none")


def compute_views(plan: StreamPlan, context: Context) -> None:
    """Runs the batch that computes the bounded side inputs; the query itself counts what runs in both."""
    assert plan.views is not None
    run_plan(plan.views, context)
    forget_steps(context.metrics, context.run, {step.label for step in plan.all_steps.steps})


def heartbeat_of(plan: StreamPlan, has_interval: bool) -> str:
    """Returns the source that makes Spark run micro-batches when no data has arrived: ``numbers``, ``seconds`` or
    ``none``.

    ``numbers`` always has new data: micro-batches follow each other without a pause, or at the interval of
    Spark's trigger. ``seconds`` has new data once a second, so that arriving data starts a micro-batch at
    once. With ``none``, micro-batches run only while there is data to read. That is enough if nothing waits for the
    clock, or if all sources end soon and their end also ends the waiting. Work that may never end continues by
    ``seconds``: it would keep the processors busy with micro-batches in which nothing happens.
    """
    if plan.clock is Clock.RECORDED or has_interval:
        return "numbers"
    waits = clock_waits(plan)
    if all(map(ends_soon, plan.readings)) and not _works_without_end(plan):
        return "numbers" if any(wait.outlasts_input for wait in waits) else "none"
    return "seconds" if waits else "none"


def _works_without_end(plan: StreamPlan) -> bool:
    """True if a splittable DoFn may never be done with an element."""
    kept = [
        step.primitive for level in plan.levels for step in level.roots if keeps_restrictions(step.primitive)
    ]
    return any(splits_of(primitive.dofn).is_unbounded for primitive in kept)  # type: ignore[union-attr]


def _beats(
    plan: StreamPlan, context: Context, checkpoint: Checkpoint | None, heartbeat: str, keys: tuple[int, ...]
) -> list[DataFrame]:
    """Returns the heartbeat: the number of each micro-batch for recorded input, else the clock for each shard."""
    stream = context.spark.readStream
    match heartbeat:
        case "none":
            return []
        case "numbers":
            heartbeats = stream.format("rate-micro-batch").options(rowsPerBatch=1, numPartitions=1).load()
            if plan.played is not None:
                return [heartbeats.select("value")]
            heartbeats = heartbeats if plan.clock is Clock.LIVE else heartbeats.where("value < 0")
        case _:
            seconds = stream.format("rate").options(rowsPerSecond=1, numPartitions=1).load()
            planned = -1 if checkpoint is None else checkpoint.seconds_of(HEARTBEAT_SLOT).planned
            # After a pause, all missed seconds come at once; the last ones are enough. A micro-batch that runs again
            # after the clock was set back keeps its last second.
            is_recent = F.col("timestamp") > now() - F.expr("INTERVAL 10 SECONDS")
            heartbeats = seconds.where(is_recent | (F.col("value") == planned - 1))
    text = f"concat('{HEARTBEAT}', CAST({NOW_MICROS} AS string))"
    return [_to_shards(heartbeats, text, [level.number for level in plan.levels[:1]], keys)]


def _commands(
    plan: StreamPlan, context: Context, checkpoint: Checkpoint | None, keys: tuple[int, ...]
) -> list[DataFrame]:
    """Returns the driver's commands: every line of a file in the control folder goes to every shard."""
    if not plan.levels or checkpoint is None:
        return []
    lines = context.spark.readStream.format("text").load(checkpoint.control_location)
    text = f"concat('{COMMAND}', CAST({NOW_MICROS} AS string), ' ', value)"
    return [_to_shards(lines, text, [level.number for level in plan.levels], keys)]


def _to_shards(frame: DataFrame, text: str, levels: list[int], keys: tuple[int, ...]) -> DataFrame:
    """Returns a row with a text for each shard of some levels; the text is an expression of SQL."""
    # Texts are one question to Java each, and every part of a column would be several.
    payload = f"CAST({text} AS binary) AS payload"
    if not levels:
        return frame.where("false").selectExpr("0 AS level", "0 AS shard", payload)
    # One string, and not a node of the plan for each shard: Spark plans every micro-batch again.
    by_level = frame.selectExpr(f"explode({_numbers(levels)}) AS level", payload)
    return by_level.selectExpr("level", f"explode({_numbers(keys)}) AS shard", "payload")


def _numbers(numbers: Sequence[int]) -> str:
    """Returns an array of numbers, as an expression of SQL."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS array<int>)"
