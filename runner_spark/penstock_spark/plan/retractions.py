"""Says whether a window may fire more than once, and which edges may hold retractions."""

from __future__ import annotations

from collections.abc import Set

from penstock.graph import CombinePerKey, Graph, GroupByKey, ParDo, Step, Write
from penstock.machines.triggers import machine_of
from penstock.windows.triggers import AccumulationMode
from penstock_spark.plan.windowing import windowing_of


def may_fire_early(graph: Graph, grouping: Step) -> bool:
    """Whether windows of a grouping may fire before the end of the input, and so more than once.

    Until then the watermark and the clock stand still, so only elements can make a trigger fire. At the end,
    every window that has not fired fires and closes.
    """
    trigger = windowing_of(graph, grouping.inputs[0]).triggerfn
    return machine_of(trigger).fires_on_elements


def retracting_edges(graph: Graph, is_streaming: bool = False) -> frozenset[int]:
    """The edges whose elements may take back earlier ones; in a stream, any window may fire more than once."""
    found: set[int] = set()
    for step in graph.steps:
        if _may_retract(graph, step, found, is_streaming):
            found.update(output.edge for output in step.outputs)
    return frozenset(found)


def _may_retract(graph: Graph, step: Step, retracting: Set[int], is_streaming: bool) -> bool:
    """Whether a step may give retractions, if these edges may hold some."""
    takes_some = not retracting.isdisjoint(step.inputs)
    match step.primitive:
        case GroupByKey() | CombinePerKey():
            mode = windowing_of(graph, step.inputs[0]).accumulation_mode
            # A discarding window that has fired holds nothing from which it could take a value back.
            passes_on = mode == AccumulationMode.DISCARDING and takes_some
            retracts = mode == AccumulationMode.ACCUMULATING_AND_RETRACTING or passes_on
            return retracts and (is_streaming or may_fire_early(graph, step))
        case ParDo(dofn):
            # For a wrapper, this is the wrapped DoFn.
            gives_some = getattr(dofn.timer_owner(), "gives_retractions", False)
            return gives_some or (takes_some and not getattr(dofn, "gives_insertions_only", False))
        case Write():
            return False
    return takes_some
