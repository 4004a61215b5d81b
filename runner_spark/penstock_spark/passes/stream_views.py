"""Side inputs from unbounded collections: a grouping makes their views, and elements wait for the views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from penstock.functions.dofn import DoFn
from penstock.graph import (
    Edge,
    Graph,
    GroupByKey,
    Output,
    ParDo,
    SideInput,
    StatefulParDo,
    Step,
)
from penstock.windows.triggers import AccumulationMode, DefaultTrigger
from penstock_spark.passes.side_views import unending_edges
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.plan.windowing import windowing_of

KEY = ""
"""The only key of the grouping that makes a view."""


def stream_views(graph: Graph) -> Graph:
    """Adds a grouping for each unbounded side input, whose readers see pane after pane.

    Each pane is the complete side input from then on. With the default trigger, late data is added to the
    earlier elements; in a singleton, it replaces the one element, as in Beam. A batch has computed the other
    side inputs.
    """
    rewriter = _Rewriter(graph)
    steps: list[Step] = []
    for step in graph.steps:
        if any(side.edge in rewriter.unending for side in step.side_inputs):
            sides = tuple(rewriter.grouped(side, step, steps) for side in step.side_inputs)
            primitive: Any = step.primitive
            if not isinstance(primitive, StatefulParDo):
                primitive = WaitingParDo(primitive.dofn, primitive.args, primitive.kwargs)
            step = replace(step, primitive=primitive, side_inputs=sides)
        steps.append(step)
    return Graph(tuple(steps), tuple(rewriter.edges))


class _Rewriter:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.unending = unending_edges(graph)
        self.edges: list[Edge] = list(graph.edges)
        self._labels = {step.label for step in graph.steps}
        self._grouped: dict[tuple[int, bool], int] = {}

    def grouped(self, side: SideInput, reader: Step, steps: list[Step]) -> SideInput:
        """Returns a side input as its readers see it; adds the grouping that makes its view to the steps, once."""
        if side.edge not in self.unending:
            return side
        is_single = side.view == "singleton"
        if (side.edge, is_single) not in self._grouped:
            edge = self.graph.edge(side.edge)
            self._grouped[side.edge, is_single] = self._group(edge, is_single, reader, steps)
        return replace(side, edge=self._grouped[side.edge, is_single])

    def _group(self, edge: Edge, is_single: bool, reader: Step, steps: list[Step]) -> int:
        windowing = windowing_of(self.graph, edge.id)
        is_in_parts = windowing.accumulation_mode == AccumulationMode.DISCARDING
        if isinstance(windowing.triggerfn, DefaultTrigger) and is_in_parts and not is_single:
            # The user did not choose parts: a pane for late data, or of the next micro-batch, has the whole window.
            windowing = replace(windowing, accumulation_mode=AccumulationMode.ACCUMULATING)
        keyed = self._edge(replace(edge, windowing=windowing))
        given = self._edge(replace(edge, windowing=windowing.after_grouping()))
        label = self._label(self.graph.producer(edge.id), "singleton" if is_single else "view")
        pairing = Step(
            f"{label}/pair", ParDo(_Pair()), (edge.id,), (), (Output(None, keyed),), reader.location
        )
        grouping = Step(label, GroupByKey(), (keyed,), (), (Output(None, given),), reader.location)
        steps += [pairing, grouping]
        return given

    def _edge(self, like: Edge) -> int:
        self.edges.append(replace(like, id=len(self.edges)))
        return len(self.edges) - 1

    def _label(self, producer: Step, kind: str) -> str:
        """Returns a unique label, which stays the same as long as the producer's label does."""
        names = (f"{producer.label}/{kind}{number if number > 1 else ''}" for number in count(1))
        label = next(name for name in names if name not in self._labels)
        self._labels.add(label)
        return label


class _Pair(DoFn):
    def process(self, element: object) -> Sequence[Any]:
        return ((KEY, element),)
