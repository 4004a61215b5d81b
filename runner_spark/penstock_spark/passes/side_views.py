"""The bounded side inputs of a streaming query: a batch computes them before the query starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.functions.dofn import DoFn
from penstock.graph import Edge, Graph, InlineValues, Output, ParDo, Read, SideInput, Step
from penstock.typehints import typehints


def side_views(graph: Graph) -> Graph | None:
    """A graph that computes all bounded side inputs and nothing else; None without any. Edges keep their numbers."""
    sides = {side.edge: side for side in _bounded(graph)}
    if not sides:
        return None
    number = len(graph.edges)
    nothing = Step("side inputs/nothing", Read(InlineValues(())), outputs=(Output(None, number),))
    reader = Step(
        "side inputs", ParDo(_Nothing()), (number,), tuple(sides.values()), (Output(None, number + 1),)
    )
    edges = (*graph.edges, Edge(number, typehints.Any), Edge(number + 1, typehints.Any))
    return Graph((*graph.steps, nothing), edges).leading_to(reader)


def without_side_views(graph: Graph) -> Graph:
    """Drops the steps that lead only to bounded side inputs."""
    kept: list[Step] = []
    main = {side.edge for step in graph.steps for side in step.side_inputs}
    aside = {side.edge for side in _bounded(graph)}
    main -= aside
    for step in reversed(graph.steps):
        outputs = {output.edge for output in step.outputs}
        if outputs & aside and not outputs & main:
            # An edge that only this step reads leads only to side inputs, too.
            aside |= set(step.inputs)
            continue
        kept.append(step)
        main.update(step.inputs)
    return replace(graph, steps=tuple(reversed(kept)))


def unending_edges(graph: Graph) -> frozenset[int]:
    """The edges whose elements depend on an unbounded source, even if only through a side input."""
    found = {edge.id for edge in graph.edges if not edge.is_bounded}
    for step in graph.steps:
        if not found.isdisjoint((*step.inputs, *(side.edge for side in step.side_inputs))):
            found.update(output.edge for output in step.outputs)
    return frozenset(found)


def _bounded(graph: Graph) -> Iterator[SideInput]:
    unending = unending_edges(graph)
    for step in graph.steps:
        yield from (side for side in step.side_inputs if side.edge not in unending)


class _Nothing(DoFn):
    """Stands for the readers of the side inputs."""

    def process(self, element: Any) -> None:
        pass
