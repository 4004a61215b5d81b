"""Lets windows that emit one pane accumulate, where their mode says that later panes retract earlier ones."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import CombinePerKey, Graph, GroupByKey
from penstock.windows.triggers import AccumulationMode


def single_panes(graph: Graph) -> Graph:
    """Changes the mode of groupings whose windows fire once, so that their results are never retracted.

    In the mode ``micro_batch`` no window fires only once, because each round may fire it again; this pass does not
    serve it.

    Before: ``#0 (AfterWatermark(), ACCUMULATING_AND_RETRACTING)``. After: ``#0 (AfterWatermark(), ACCUMULATING)``.
    """
    grouped = {
        edge
        for step in graph.steps
        if isinstance(step.primitive, GroupByKey | CombinePerKey)
        for edge in step.inputs
    }
    edges = list(graph.edges)
    for at, edge in enumerate(edges):
        windowing = edge.windowing
        if (
            edge.id in grouped
            and windowing is not None
            and windowing.fires_once
            and windowing.accumulation_mode == AccumulationMode.ACCUMULATING_AND_RETRACTING
        ):
            accumulating = replace(windowing, accumulation_mode=AccumulationMode.ACCUMULATING)
            edges[at] = replace(edge, windowing=accumulating)
    return replace(graph, edges=tuple(edges))
