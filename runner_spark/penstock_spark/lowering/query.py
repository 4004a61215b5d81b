"""Lowers a streaming plan: one chain of operators, one Structured Streaming query."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from penstock.graph import CombinePerKey, InlineValues, Read, Reshuffle, Step
from penstock.testing.test_stream import ElementEvent, ProcessingTimeEvent, RecordedStream, WatermarkEvent
from penstock.utils.timestamp import MAX_TIMESTAMP
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.shard_keys import shard_keys
from penstock_spark.lowering.stage import step_spec
from penstock_spark.operators.program import StepSpec
from penstock_spark.passes.levels import origin_of
from penstock_spark.retractions import retracting_edges
from penstock_spark.shards.operator import ROWS, LevelProcessor, source_function
from penstock_spark.shards.program import (
    GroupingSpec,
    LevelProgram,
    PacketWriterSpec,
    RecordedSource,
    Timeline,
)
from penstock_spark.stream_plan import Level, StreamPlan
from penstock_spark.windowing import windowing_of

_POLL_SECONDS = 0.02
_MAX_MICROS = MAX_TIMESTAMP.micros


def run_query(plan: StreamPlan, context: Context, events_per_batch: int | None) -> None:
    """Runs a streaming plan until its recorded input is over.

    Args:
        plan: The plan.
        context: The run's.
        events_per_batch: How many events make a micro-batch; None makes one of all.

    Raises:
        Exception: What Spark raised.
    """
    timeline, sources = recorded_input(plan, events_per_batch)
    frame, keys = _heartbeat(context), shard_keys(context.partitions)
    for level in plan.levels:
        program = context.dumps(_program(plan, level, timeline, sources, context))
        if level.number == 0:
            function = source_function(program, keys, context.metrics, context.sys_path)
            frame = frame.mapInArrow(function, ROWS)
        else:
            processor = LevelProcessor(program, keys, context.metrics, context.sys_path)
            frame = frame.groupBy("shard").transformWithState(processor, ROWS, "Append", "None")
    with tempfile.TemporaryDirectory(prefix="penstock-checkpoint-") as folder:
        _await(frame, folder, timeline.batches)


def _heartbeat(context: Context) -> DataFrame:
    """A row in each micro-batch: its number."""
    beat = context.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
    return beat.option("numPartitions", 1).load().select("value")


def _await(frame: DataFrame, folder: str, batches: int) -> None:
    query = frame.writeStream.format("noop").option("checkpointLocation", folder).start()
    try:
        while query.isActive:
            progress = query.lastProgress
            if progress is not None and progress["batchId"] >= batches - 1:
                break
            time.sleep(_POLL_SECONDS)
        failure = query.exception()
        if failure is not None:
            raise failure
    finally:
        query.stop()


def _program(
    plan: StreamPlan, level: Level, timeline: Timeline, sources: tuple[RecordedSource, ...], context: Context
) -> LevelProgram:
    return LevelProgram(
        run=context.run,
        number=level.number,
        last=plan.levels[-1].number,
        shards=context.partitions,
        micro_batch=plan.mode == "micro_batch",
        sources=sources if level.number == 0 else (),
        timeline=timeline if level.number == 0 else Timeline((), frozenset(), 1),
        groupings=tuple(_grouping(plan, step, context) for step in level.roots if level.number),
        steps=tuple(_step(step, plan) for step in level.steps),
        writers=tuple(
            PacketWriterSpec(edge, step.label, step.where, plan.level_of[step.label])
            for edge, step in level.writes
        ),
        show_elements=context.show_elements,
    )


def _step(step: Step, plan: StreamPlan) -> StepSpec:
    spec = step_spec(step, plan.graph)
    return replace(spec, primitive=None) if isinstance(step.primitive, Reshuffle) else spec


def _grouping(plan: StreamPlan, step: Step, context: Context) -> GroupingSpec:
    [output] = step.outputs
    return GroupingSpec(
        label=step.label,
        where=step.where,
        edge=output.edge,
        windowing=windowing_of(plan.graph, step.inputs[0]),
        combine=step.primitive.fn if isinstance(step.primitive, CombinePerKey) else None,
        input_retracts=not retracting_edges(plan.graph, is_streaming=True).isdisjoint(step.inputs),
        feeds=tuple((feed.label, context.partitions if feed.level else 1) for feed in plan.feeds[step.label]),
        readers=plan.levels[plan.level_of[step.label]].readers[step.label],
    )


def recorded_input(
    plan: StreamPlan, events_per_batch: int | None
) -> tuple[Timeline, tuple[RecordedSource, ...]]:
    """The timeline of a plan's sources, and what happens at each of them.

    Values of the program come at the first step, and then their watermark goes to infinity. A TestStream has a step for
    each event, and ends after the last one.
    """
    clocks, ends = _clocks(plan)
    sources = []
    for step in plan.levels[0].roots:
        assert isinstance(step.primitive, Read)
        source = step.primitive.source
        for output in step.outputs:
            if isinstance(source, InlineValues):
                happenings: dict[int, Any] = {0: source.values, 1: _MAX_MICROS}
            else:
                assert isinstance(source, RecordedStream)
                happenings = _happenings(source, output.tag, len(clocks) - 1)
            origin = origin_of(step, output)
            sources.append(RecordedSource(origin, output.edge, happenings, plan.levels[0].readers[origin]))
    return Timeline(tuple(clocks), frozenset(ends), events_per_batch or len(clocks)), tuple(sources)


def _clocks(plan: StreamPlan) -> tuple[list[int], set[int]]:
    """Processing time at each step, and the steps at which it moves; one more step ends the input."""
    clocks, ends = [0], set()
    for step in plan.levels[0].roots:
        source = step.primitive.source if isinstance(step.primitive, Read) else None
        for number, event in enumerate(source.events if isinstance(source, RecordedStream) else (), 1):
            advance_micros = event.advance_by.micros if isinstance(event, ProcessingTimeEvent) else 0
            clocks.append(clocks[-1] + advance_micros)
            if advance_micros:
                ends.add(number)
    return [*clocks, clocks[-1]], ends


def _happenings(source: RecordedStream, tag: str | None, last: int) -> dict[int, Any]:
    happenings: dict[int, Any] = {}
    for number, event in enumerate(source.events, 1):
        match event:
            case ElementEvent(values, own) if own == tag:
                happenings[number] = values
            case WatermarkEvent(watermark, own) if own == tag:
                happenings[number] = watermark.micros
    happenings[last] = _MAX_MICROS
    return happenings
