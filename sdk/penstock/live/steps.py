"""The steps of a graph as a view shows them: labels and kinds, and nothing else of the user's."""

from __future__ import annotations

from penstock.graph import AssignWindows, CombinePerKey, Graph, GroupByKey, Step
from penstock.live.snapshot import StepNow


def steps_of(graph: Graph) -> tuple[StepNow, ...]:
    """The steps, each after those that it reads."""
    makers = {output.edge: step.label for step in graph.steps for output in step.outputs}
    return tuple(
        StepNow(
            step.label,
            type(step.primitive).__name__,
            tuple(makers[edge] for edge in step.inputs if edge in makers),
            tuple(makers[side.edge] for side in step.side_inputs if side.edge in makers),
            _windowing(step, graph),
        )
        for step in graph.steps
    )


def _windowing(step: Step, graph: Graph) -> str:
    """The class of the windows that a step assigns, or by which it groups."""
    if not isinstance(step.primitive, AssignWindows | GroupByKey | CombinePerKey) or not step.outputs:
        return ""
    windowing = graph.edge(step.outputs[0].edge).windowing
    return "" if windowing is None else type(windowing.windowfn).__name__
