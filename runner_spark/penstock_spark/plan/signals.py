"""The names of the signals that a stream waits for."""

from __future__ import annotations

from penstock.windows.triggers import AfterSignal, walk_parts
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.plan.windowing import windowing_of


def find_signals(plan: StreamPlan) -> frozenset[str]:
    """Returns the names of all signals that triggers of a plan wait for."""
    inputs = [step.inputs[0] for level in plan.levels for step in level.roots if step.inputs]
    triggers = [windowing_of(plan.graph, edge).triggerfn for edge in inputs]
    parts = [part for trigger in triggers for part in walk_parts(trigger)]
    return frozenset(part.name for part in parts if isinstance(part, AfterSignal))
