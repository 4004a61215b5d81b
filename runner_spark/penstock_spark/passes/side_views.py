"""The side inputs of a streaming query: they are bounded, and so a batch computes them before the query starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.graph import Edge, Graph, InlineValues, Output, ParDo, Read, Step
from penstock.transforms.core import DoFn
from penstock.typehints import typehints
from penstock_spark.passes import leading_to


def side_views(graph: Graph) -> Graph | None:
    """A graph that computes all side inputs and nothing else; None if there are none. Edges keep their numbers."""
    sides = {side.edge: side for step in graph.steps for side in step.side_inputs}
    if not sides:
        return None
    number = len(graph.edges)
    nothing = Step("side inputs/nothing", Read(InlineValues(())), outputs=(Output(None, number),))
    reader = Step(
        "side inputs", ParDo(_Nothing()), (number,), tuple(sides.values()), (Output(None, number + 1),)
    )
    edges = (*graph.edges, Edge(number, typehints.Any), Edge(number + 1, typehints.Any))
    return leading_to(Graph((*graph.steps, nothing), edges), reader)


def without_side_views(graph: Graph) -> Graph:
    """The graph without the steps that lead to side inputs only."""
    kept: list[Step] = []
    main: set[int] = set()
    aside = {side.edge for step in graph.steps for side in step.side_inputs}
    for step in reversed(graph.steps):
        outputs = {output.edge for output in step.outputs}
        if outputs & aside and not outputs & main:
            # Whatever only this step reads leads to side inputs only, too.
            aside |= set(step.inputs)
            continue
        kept.append(step)
        main.update(step.inputs)
    return replace(graph, steps=tuple(reversed(kept)))


class _Nothing(DoFn):
    """Reads side inputs for nobody."""

    def process(self, element: Any) -> None:
        """Never called."""
