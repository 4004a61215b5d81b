"""Turns a graph into the plan of a streaming query: the level of each grouping, and the steps after each level."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph import Graph, Grouping, InlineValues, Output, Read, StatefulParDo, Step, Write
from penstock.io.streaming.recorded_stream import RecordedStream
from penstock_spark.plan.stream_plan import (
    Clock,
    Level,
    StreamPlan,
    WaitingParDo,
    WatermarkDependency,
    clock_of,
)


def levels(graph: Graph, mode: str) -> StreamPlan:
    origins = _origins(graph)
    level_of: dict[str, int] = {}
    watermark_inputs: dict[str, tuple[WatermarkDependency, ...]] = {}
    side_watermark_inputs: dict[str, dict[int, WatermarkDependency]] = {}
    reading: dict[str, set[int]] = {}
    for step in graph.steps:
        if _is_grouping(step):
            labels = _all(origins[edge] for edge in step.inputs)
            watermark_inputs[step.label] = tuple(
                WatermarkDependency(label, level_of.get(label, 0)) for label in labels
            )
            sides = _side_watermark_inputs(step, origins, level_of)
            if sides:
                side_watermark_inputs[step.label] = sides
            before = (*watermark_inputs[step.label], *side_watermark_inputs.get(step.label, {}).values())
            level_of[step.label] = 1 + max((watermark_input.level for watermark_input in before), default=0)
            for watermark_input in before:
                reading.setdefault(watermark_input.label, set()).add(level_of[step.label])
    deepest = max(level_of.values(), default=0)
    sinks = [step for step in graph.steps if isinstance(step.primitive, Write)]
    level_of.update({step.label: -number for number, step in enumerate(sinks, 1)})
    sources = [step for step in graph.steps if isinstance(step.primitive, Read)]
    clock = clock_of(graph.steps)
    played = tuple(step for step in sources if clock is Clock.RECORDED and _is_known(step))
    groupings = [
        tuple(step for step in graph.steps if _is_grouping(step) and level_of[step.label] == number)
        for number in range(1, deepest + 1)
    ]

    def part(number: int, roots: tuple[Step, ...]) -> Level:
        return _part(graph, number, roots, level_of, reading)

    return StreamPlan(
        graph,
        mode,
        clock,
        part(0, played) if played else None,
        tuple(part(0, (step,)) for step in sources if step not in played),
        tuple(part(number, roots) for number, roots in enumerate(groupings, 1)),
        watermark_inputs,
        side_watermark_inputs,
        level_of,
    )


def origin_of(step: Step, output: Output) -> str:
    """Returns the name of the watermark of a root's output: the root's label, and the tag of a TestStream's output.

    The rejected elements of a stream, and the late data of a grouping, have the watermark of the main output.
    """
    is_recorded = isinstance(step.primitive, Read) and isinstance(step.primitive.source, RecordedStream)
    return f"{step.label}.{output.tag}" if is_recorded and output.tag is not None else step.label


def _is_known(step: Step) -> bool:
    return isinstance(step.primitive, Read) and isinstance(
        step.primitive.source, InlineValues | RecordedStream
    )


def _is_grouping(step: Step) -> bool:
    """True if a step has state, and so a level."""
    return isinstance(step.primitive, Grouping | WaitingParDo)


def _side_watermark_inputs(
    step: Step, origins: dict[int, tuple[str, ...]], level_of: dict[str, int]
) -> dict[int, WatermarkDependency]:
    """Returns the groupings that make the side inputs that a step waits for; a batch computes the others."""
    made = {place: origins.get(side.edge, ()) for place, side in enumerate(step.side_inputs)}
    return {
        place: WatermarkDependency(label, level_of[label])
        for place, labels in made.items()
        for label in labels
    }


def _all(several: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for labels in several for label in labels))


def _origins(graph: Graph) -> dict[int, tuple[str, ...]]:
    """Returns the sources and groupings from which stateless steps alone lead to each edge."""
    origins: dict[int, tuple[str, ...]] = {}
    for step in graph.steps:
        passed_on = _all(origins[edge] for edge in step.inputs)
        for output in step.outputs:
            is_root = isinstance(step.primitive, Read) or _is_grouping(step)
            origins[output.edge] = (origin_of(step, output),) if is_root else passed_on
    return origins


def _part(
    graph: Graph,
    number: int,
    roots: tuple[Step, ...],
    level_of: dict[str, int],
    reading: dict[str, set[int]],
) -> Level:
    """Roots and everything that runs with them: the stateless steps after them, and the writes of these steps."""
    edges = {output.edge for root in roots for output in root.outputs}
    # The roots that are DoFns also run as steps.
    steps = [root for root in roots if isinstance(root.primitive, StatefulParDo | WaitingParDo)]
    writes, sinks, views = [], [], []
    for step in graph.steps:
        reads = [edge for edge in step.inputs if edge in edges]
        views += [
            (side.edge, step, place) for place, side in enumerate(step.side_inputs) if side.edge in edges
        ]
        match step.primitive:
            case _ if _is_grouping(step):
                writes += [(edge, step) for edge in reads]
            case Write():
                sinks += [(edge, step) for edge in reads]
            case _ if reads:
                steps.append(step)
                edges |= {output.edge for output in step.outputs}
    origins = [origin_of(root, output) for root in roots for output in root.outputs]
    readers = {origin: tuple(sorted(reading.get(origin, ()))) for origin in origins}
    return Level(number, roots, tuple(steps), tuple(writes), tuple(sinks), tuple(views), readers)
