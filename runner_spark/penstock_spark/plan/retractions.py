"""Says which edges may hold retractions."""

from __future__ import annotations

from penstock.graph import CombinePerKey, Graph, GroupByKey, Output, ParDo, Step, Write
from penstock.windows.triggers import AccumulationMode
from penstock_spark.plan.windowing import why_early, windowing_of


def retracting_edges(graph: Graph, is_streaming: bool = False) -> frozenset[int]:
    """The edges whose elements may retract earlier ones; in a stream, any window may fire more than once."""
    found: set[int] = set()
    for step in graph.steps:
        takes_some = not found.isdisjoint(step.inputs)
        for output in step.outputs:
            if _may_retract(graph, step, output, takes_some, is_streaming):
                found.add(output.edge)
    return frozenset(found)


def _may_retract(graph: Graph, step: Step, output: Output, takes_some: bool, is_streaming: bool) -> bool:
    """True if an output of a step may hold retractions; `takes_some` says that an input of the step may hold some."""
    match step.primitive:
        # Its other output has the elements that come too late, as they come.
        case GroupByKey() | CombinePerKey() if output.tag is None:
            windowing = windowing_of(graph, step.inputs[0])
            mode = windowing.accumulation_mode
            # A discarding window that has fired holds nothing from which it could take a value back.
            passes_on = mode == AccumulationMode.DISCARDING and takes_some
            retracts = mode == AccumulationMode.ACCUMULATING_AND_RETRACTING or passes_on
            return retracts and (is_streaming or why_early(windowing) is not None)
        case ParDo(dofn):
            return dofn.gives_retractions or (takes_some and not dofn.gives_insertions_only)
        case Write():
            return False
    return takes_some
