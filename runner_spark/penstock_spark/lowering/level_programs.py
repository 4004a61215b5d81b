"""Makes the program of each part of a streaming plan, which travels to its workers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from penstock.graph import Graph, Read, Reshuffle, StatefulParDo, Step
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.watermark_policy import Recorded, WatermarkPolicy
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.stage import step_spec
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.splitting import keeps_restrictions
from penstock_spark.plan.stream_plan import Level, StreamPlan, WaitingParDo
from penstock_spark.plan.windowing import windowing_of
from penstock_spark.stream import program
from penstock_spark.worker.program import GroupWriterSpec, StageProgram, StepSpec


def level_program(
    plan: StreamPlan,
    part: Level,
    timeline: program.Timeline,
    recorded: tuple[program.RecordedSource, ...],
    reading: program.ReadingSpec | None,
    context: Context,
    sinks: Sequence[StreamSink],
) -> program.LevelProgram:
    """The program of one part; `sinks` are all sinks of the plan."""
    sink_of = {sink.step.label: sink for sink in sinks}
    writers = (
        *(_messages(plan, edge, step) for edge, step in part.writes),
        *(
            program.SpreadWriterSpec(edge, step.label, step.where, plan.level_of[step.label], side)
            for edge, step, side in part.views
        ),
        *(_sink_writer(edge, sink_of[step.label]) for edge, step in part.sinks),
    )
    steps = tuple(_step(step, plan.graph, context.without, part.left) for step in part.steps)
    return program.LevelProgram(
        stage=StageProgram(
            context.run,
            part.number,
            (),
            steps,
            writers,
            counted=part.made_edges if context.watched else part.written_edges,
            seed=context.seed,
        ),
        last=len(plan.levels),
        shards=context.partitions,
        clock=plan.clock,
        micro_batch=plan.mode == "micro_batch",
        sources=recorded if part is plan.played else (),
        reading=reading,
        timeline=timeline if part.number == 0 else program.Timeline(),
        estimated={
            step.label: _policy(step)
            for one in plan.readings
            for step in one.roots
            if one is part or part.number in one.readers[step.label]
        },
        played=tuple(source.origin for source in recorded if part.number in source.readers),
        groupings=tuple(
            _grouping(plan, step, context)
            for step in part.roots
            if part.number and not isinstance(step.primitive, WaitingParDo)
        ),
        waiting=tuple(
            _waiting(plan, step) for step in part.roots if step.label in plan.side_watermark_inputs
        ),
        kept_plan=context.kept_plan if part.number else None,
        recorded=context.recorded,
        watched=context.watched,
    )


SUMMING_STAGE = 1
"""The number under which the tasks that make parts of sums count; what is behind the sums has 0, as a source."""


def summing_program(
    plan: StreamPlan, reading: program.ReadingSpec, writer: GroupWriterSpec, context: Context
) -> program.LevelProgram:
    """The program of the tasks that read the only source, up to the parts of its sums."""
    assert plan.sums is not None
    sums = plan.sums
    steps = tuple(_step(step, plan.graph, context.without, sums.left) for step in sums.before)
    stage: StageProgram[Any] = StageProgram(
        context.run,
        SUMMING_STAGE,
        (),
        steps,
        (writer,),
        counted=sums.made_edges if context.watched else frozenset(),
        seed=context.seed,
    )
    nothing: tuple[Any, ...] = ()
    return program.LevelProgram(
        stage=stage,
        last=SUMMING_STAGE,
        shards=context.partitions,
        clock=plan.clock,
        micro_batch=plan.mode == "micro_batch",
        sources=nothing,
        reading=reading,
        timeline=program.Timeline(),
        estimated={},
        played=nothing,
        groupings=nothing,
        waiting=nothing,
        watched=context.watched,
    )


def _sink_writer(edge: int, sink: StreamSink) -> program.SinkPagesSpec | program.SinkRowsSpec:
    where = sink.step.where
    if sink.is_inside:
        return program.SinkRowsSpec(edge, sink.plan.make_encoder, where, sink.level)
    return program.SinkPagesSpec(edge, where, sink.level)


def _policy(step: Step) -> WatermarkPolicy:
    source = step.primitive.source if isinstance(step.primitive, Read) else None
    return source.watermark if isinstance(source, StreamSource) else Recorded()


def _step(step: Step, graph: Graph, without: Set[str], left: Set[str]) -> StepSpec:
    spec = step_spec(step, graph, without, left)
    return replace(spec, primitive=None) if isinstance(step.primitive, Reshuffle) else spec


def _messages(plan: StreamPlan, edge: int, step: Step) -> program.LevelWriter:
    """The writer of elements for a grouping."""
    if keeps_restrictions(step.primitive):
        return program.RestrictionWriterSpec(edge, step.label, step.where, plan.level_of[step.label])
    if isinstance(step.primitive, WaitingParDo):
        return program.SpreadWriterSpec(edge, step.label, step.where, plan.level_of[step.label])
    address = (edge, step.label, step.where, plan.level_of[step.label])
    host = plan.hosts.get(step.label)
    if host is None or host.arriving is None:
        return program.MessageWriterSpec(*address)
    return program.CombiningWriterSpec(
        *address, windowing_of(plan.graph, edge), step.combine_fn, host.arriving
    )


def _input_retracts(plan: StreamPlan, step: Step) -> bool:
    return not retracting_edges(plan.graph, is_streaming=True).isdisjoint(step.inputs)


def _grouping(plan: StreamPlan, step: Step, context: Context) -> program.GroupingSpec:
    main, *others = step.outputs
    is_stateful = isinstance(step.primitive, StatefulParDo)
    return program.GroupingSpec(
        label=step.label,
        where=step.where,
        edge=main.edge,
        late_edge=others[0].edge if others and not is_stateful else None,
        windowing=windowing_of(plan.graph, step.inputs[0]),
        combine=step.combine_fn,
        input_retracts=_input_retracts(plan, step),
        watermark_inputs=_feeds(plan, step),
        readers=plan.levels[plan.level_of[step.label] - 1].readers[step.label],
        state=None if is_stateful else plan.hosts[step.label].state,
    )


def _waiting(plan: StreamPlan, step: Step) -> program.WaitingSpec:
    sides = plan.side_watermark_inputs[step.label]
    return program.WaitingSpec(
        label=step.label,
        where=step.where,
        lateness_micros=windowing_of(plan.graph, step.inputs[0]).allowed_lateness.micros,
        watermark_inputs=_feeds(plan, step),
        sides={place: dependency.label for place, dependency in sides.items()},
        readers=plan.levels[plan.level_of[step.label] - 1].readers[step.label],
        is_stateful=isinstance(step.primitive, StatefulParDo),
    )


def _feeds(plan: StreamPlan, step: Step) -> tuple[str, ...]:
    """The origins of the watermarks that a step's watermark depends on."""
    return tuple(dependency.label for dependency in plan.watermark_inputs[step.label])
