"""Lets a stream keep the restrictions of splittable DoFns in the state of a level."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import Graph, StatefulParDo, Step
from penstock_spark.plan.splitting import RestrictionParDo
from penstock_spark.plan.stream_plan import Clock, clock_of


def kept_restrictions(graph: Graph) -> Graph:
    """Turns splittable DoFns into steps with state, which call ``process`` repeatedly as time passes.

    Before: ``Read = #3 RestrictionParDo(ReadPart) -> #1``. After: ``Read = #3 StatefulParDo(ReadPart) -> #1``. If
    processing time is recorded, it does not advance on its own. Then each restriction is processed to its end at once.
    """
    if clock_of(graph.steps) is not Clock.LIVE:
        return graph
    return replace(graph, steps=tuple(map(_keep_restrictions, graph.steps)))


def _keep_restrictions(step: Step) -> Step:
    match step.primitive:
        case RestrictionParDo(dofn, args, kwargs):
            return replace(step, primitive=StatefulParDo(dofn, args, kwargs))
    return step
