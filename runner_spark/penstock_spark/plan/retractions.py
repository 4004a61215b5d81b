"""Says which edges may hold retractions."""

from __future__ import annotations

from functools import partial

from penstock.construction.retractions import Retractions, retractions_of
from penstock.graph import Graph, Step
from penstock.windows.windowing import Windowing
from penstock_spark.plan.windowing import why_early, windowing_of


def retracting_edges(graph: Graph, is_streaming: bool = False) -> frozenset[int]:
    """The edges whose elements may retract earlier ones; in a stream, any window may fire more than once."""

    def fires_again(windowing: Windowing) -> bool:
        return is_streaming or why_early(windowing) is not None

    found: set[int] = set()
    for step in graph.steps:
        windowing = partial(_first_windowing, graph, step)
        takes_some = not found.isdisjoint(step.inputs)
        for output in step.outputs:
            held = retractions_of(step.primitive, output.tag, windowing, fires_again)
            if held is Retractions.OWN or (held is Retractions.OF_INPUTS and takes_some):
                found.add(output.edge)
    return frozenset(found)


def _first_windowing(graph: Graph, step: Step) -> Windowing:
    return windowing_of(graph, step.inputs[0])
