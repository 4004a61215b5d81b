"""Drops steps without user code whose outputs are not read, and turns a Flatten of nothing into an empty Read."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import AssignWindows, Flatten, Graph, GroupByKey, InlineValues, Read, Reshuffle, Step

_WITHOUT_EFFECT = (Read, GroupByKey, Reshuffle, Flatten, AssignWindows)


def prune(graph: Graph) -> Graph:
    """Drops reads, groupings, reshuffles, flattens and window assignments whose outputs are not read.

    Steps with user code stay, because they may have side effects. A Flatten of nothing
    becomes a Read of no values, so that every edge has a source.
    """
    kept: list[Step] = []
    read_edges: set[int] = set()
    for step in reversed(graph.steps):
        wanted = any(output.edge in read_edges for output in step.outputs)
        if not wanted and isinstance(step.primitive, _WITHOUT_EFFECT):
            continue
        if isinstance(step.primitive, Flatten) and not step.inputs:
            step = replace(step, primitive=Read(InlineValues(())))
        kept.append(step)
        read_edges.update(step.inputs)
        read_edges.update(side.edge for side in step.side_inputs)
    return replace(graph, steps=tuple(reversed(kept)))
