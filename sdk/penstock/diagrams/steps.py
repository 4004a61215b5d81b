"""The steps of a graph as a view shows them: labels and kinds, but nothing from the user's code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.graph import AssignWindows, CombinePerKey, Graph, GroupByKey, Step


@dataclass(frozen=True)
class StepView:
    """A step of the pipeline.

    Attributes:
        label: The full label: the labels of its composites, joined with ``/``.
        kind: What it does, in a word: ``Read``, ``ParDo``, ``GroupByKey``.
        inputs: The labels of the steps whose elements it reads.
        side_inputs: The labels of the steps whose elements it sees as side inputs.
        windowing: How its output is windowed, if it is a grouping or assigns windows.
    """

    label: str
    kind: str
    inputs: tuple[str, ...] = ()
    side_inputs: tuple[str, ...] = ()
    windowing: str = ""


def steps_of(graph: Graph) -> tuple[StepView, ...]:
    """Returns the steps, each after those that it reads."""
    makers = {output.edge: step.label for step in graph.steps for output in step.outputs}
    return tuple(
        StepView(
            step.label,
            type(step.primitive).__name__,
            tuple(makers[edge] for edge in step.inputs if edge in makers),
            tuple(makers[side.edge] for side in step.side_inputs if side.edge in makers),
            _windowing(step, graph),
        )
        for step in graph.steps
    )


def fold_composite(steps: Sequence[StepView]) -> tuple[StepView, ...]:
    """Returns the steps with those of one composite, at the top of the pipeline, as one.

    >>> pair, total = StepView("Top/Pair", "ParDo", ("Read",)), StepView("Top/Sum", "CombinePerKey", ("Top/Pair",))
    >>> fold_composite((StepView("Read", "Read"), pair, total))[1]
    StepView(label='Top', kind='2 steps', inputs=('Read',), side_inputs=(), windowing='')
    """
    inside: dict[str, list[StepView]] = {}
    for step in steps:
        inside.setdefault(_top(step.label), []).append(step)
    return tuple(_folded(label, each) for label, each in inside.items())


def _folded(label: str, steps: Sequence[StepView]) -> StepView:
    def tops(labels: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(top for each in labels if (top := _top(each)) != label))

    inputs = tops(each for step in steps for each in step.inputs)
    side_inputs = tops(each for step in steps for each in step.side_inputs)
    if len(steps) == 1:
        return replace(steps[0], label=label, inputs=inputs, side_inputs=side_inputs)
    return StepView(label, f"{len(steps)} steps", inputs, side_inputs)


def _top(label: str) -> str:
    return label.partition("/")[0]


def _windowing(step: Step, graph: Graph) -> str:
    """Returns the class of the windows that a step assigns, or by which it groups."""
    if not isinstance(step.primitive, AssignWindows | GroupByKey | CombinePerKey) or not step.outputs:
        return ""
    windowing = graph.edge(step.outputs[0].edge).windowing
    return "" if windowing is None else type(windowing.windowfn).__name__
