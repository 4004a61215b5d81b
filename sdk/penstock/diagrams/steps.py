"""The steps of a graph as a view shows them: labels and kinds, but nothing from the user's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.diagrams.ranks import find_circles
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


def fold_composites(
    steps: Sequence[StepView], composites: Mapping[str, str] | None = None
) -> tuple[StepView, ...]:
    """Returns the steps with those of one composite as one.

    Args:
        steps: The steps.
        composites: The composites to fold, by their labels, with the name that becomes the kind of each; by default
            those at the top of the pipeline. One whose elements leave it, and come back, stays unfolded.

    >>> pair, total = StepView("Top/Pair", "ParDo", ("Read",)), StepView("Top/Sum", "CombinePerKey", ("Top/Pair",))
    >>> fold_composites((StepView("Read", "Read"), pair, total))[1]
    StepView(label='Top', kind='2 steps', inputs=('Read',), side_inputs=(), windowing='')
    """
    if composites is None:
        composites = {step.label.partition("/")[0]: "" for step in steps}
    while True:
        inside: dict[str, list[StepView]] = {}
        for step in steps:
            inside.setdefault(place_of(step.label, composites), []).append(step)
        folded = tuple(_folded(label, each, composites) for label, each in inside.items())
        pairs = [(label, step.label) for step in folded for label in (*step.inputs, *step.side_inputs)]
        circles = {label for label in find_circles(pairs) if len(inside.get(label, ())) > 1}
        if not circles:
            return _after_inputs(folded)
        composites = {label: name for label, name in composites.items() if label not in circles}


def place_of(label: str, composites: Mapping[str, str]) -> str:
    """Returns the label of the outermost composite that a step is in; its own label if it is in none of them.

    >>> place_of("Top/Pair/Map", {"Top/Pair": "Map"}), place_of("Read", {"Top/Pair": "Map"})
    ('Top/Pair', 'Read')
    """
    place = label.find("/")
    while place >= 0:
        if label[:place] in composites:
            return label[:place]
        place = label.find("/", place + 1)
    return label


def _folded(label: str, steps: Sequence[StepView], composites: Mapping[str, str]) -> StepView:
    def places(labels: Iterable[str]) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(place for each in labels if (place := place_of(each, composites)) != label)
        )

    kind = composites.get(label, "")
    if len(steps) == 1 and steps[0].label == label:
        # Two outputs of a step may be two inputs of another one.
        inputs = tuple(place_of(each, composites) for each in steps[0].inputs)
        side_inputs = tuple(place_of(each, composites) for each in steps[0].side_inputs)
        return replace(steps[0], kind=kind or steps[0].kind, inputs=inputs, side_inputs=side_inputs)
    inputs = places(each for step in steps for each in step.inputs)
    side_inputs = places(each for step in steps for each in step.side_inputs)
    if len(steps) == 1:
        return replace(
            steps[0], label=label, kind=kind or steps[0].kind, inputs=inputs, side_inputs=side_inputs
        )
    return StepView(label, kind or f"{len(steps)} steps", inputs, side_inputs)


def _after_inputs(steps: Sequence[StepView]) -> tuple[StepView, ...]:
    """The steps in the order in which each comes after those that it reads."""
    waiting = {step.label: step for step in steps}
    ordered: dict[str, StepView] = {}

    def add(label: str) -> None:
        stack = [label]
        while stack:
            step = waiting.get(stack[-1])
            before = (*step.inputs, *step.side_inputs) if step else ()
            missing = [each for each in before if each in waiting and each not in ordered]
            if missing:
                stack += missing
                continue
            found = stack.pop()
            if step is not None:
                ordered.setdefault(found, step)

    for step in steps:
        add(step.label)
    return tuple(ordered.values())


def _windowing(step: Step, graph: Graph) -> str:
    """Returns the class of the windows that a step assigns, or by which it groups."""
    if not isinstance(step.primitive, AssignWindows | GroupByKey | CombinePerKey) or not step.outputs:
        return ""
    windowing = graph.edge(step.outputs[0].edge).windowing
    return "" if windowing is None else type(windowing.windowfn).__name__
