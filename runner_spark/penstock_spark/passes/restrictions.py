"""Divides the work of splittable DoFns: an element becomes a pair for each of its restrictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.functions.splitting import PairWithRestriction, PairWithRestrictionByWindow, asks_for_window
from penstock.graph import Graph, Output, ParDo, Reshuffle, Step
from penstock.typehints import Any as AnyHint
from penstock_spark.plan.splitting import RestrictionParDo, is_splittable


def restrictions(graph: Graph) -> Graph:
    """Puts two steps before each splittable DoFn.

    Before: ``Read = #0 ParDo(ReadPart) -> #1``. After: ``Read/PairWithRestriction = #0 ParDo(restrictions of ReadPart)
    -> #2``, ``Read/Reshuffle = #2 Reshuffle -> #3``, ``Read = #3 RestrictionParDo(ReadPart) -> #1``, which processes
    each restriction to its end.
    """
    steps: list[Step] = []
    edges = list(graph.edges)
    for step in graph.steps:
        if not is_splittable(step.primitive):
            steps.append(step)
            continue
        primitive: Any = step.primitive
        read = step.inputs
        kind = (
            PairWithRestrictionByWindow
            if asks_for_window(primitive.dofn, bool(step.side_inputs))
            else PairWithRestriction
        )
        for name, made in (("PairWithRestriction", ParDo(kind(primitive.dofn))), ("Reshuffle", Reshuffle())):
            edges.append(replace(graph.edge(step.inputs[0]), id=len(edges), element_type=AnyHint))
            output = Output(None, edges[-1].id)
            steps.append(Step(f"{step.label}/{name}", made, read, (), (output,), step.location))
            read = (output.edge,)
        divided = RestrictionParDo(primitive.dofn, primitive.args, primitive.kwargs)
        steps.append(replace(step, primitive=divided, inputs=read))
    return Graph(tuple(steps), tuple(edges))
