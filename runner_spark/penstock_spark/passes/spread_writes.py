"""Spreads elements over as many partitions as a sink wants files."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import Graph, Output, Reshuffle, Step, Write
from penstock_spark.formats.registry import plan_sink


def spread_writes(graph: Graph) -> Graph:
    """Puts a Reshuffle before each Write whose sink wants a fixed number of partitions.

    Before: ``Out = #0 Write(text)``. After: ``Out/Spread = #0 Reshuffle -> #1``, ``Out = #1 Write(text)``. A Write
    after a Reshuffle with that number of partitions stays unchanged.
    """
    steps: list[Step] = []
    edges = list(graph.edges)
    spread_already = {
        (output.edge, step.primitive.partitions)
        for step in graph.steps
        if isinstance(step.primitive, Reshuffle)
        for output in step.outputs
    }
    for step in graph.steps:
        partitions = _find_wanted_shards(step)
        if partitions is not None and (step.inputs[0], partitions) not in spread_already:
            spread = replace(graph.edge(step.inputs[0]), id=len(edges))
            edges.append(spread)
            steps.append(
                Step(
                    f"{step.label}/Spread",
                    Reshuffle(partitions),
                    inputs=step.inputs,
                    outputs=(Output(None, spread.id),),
                    location=step.location,
                )
            )
            step = replace(step, inputs=(spread.id,))
        steps.append(step)
    return Graph(tuple(steps), tuple(edges))


def _find_wanted_shards(step: Step) -> int | None:
    if not isinstance(step.primitive, Write):
        return None
    return plan_sink(step.primitive.sink, step.where).partitions
