"""Combines hot keys in one round, because in a batch every task combines its elements before the shuffle anyway."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import CombinePerKey, Flatten, Graph, Step
from penstock.transforms.combining.combine import PostCombineFn
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.windowing import why_early, windowing_of


def one_round(graph: Graph) -> Graph:
    """Replaces the two rounds of a fan-out by one.

    A fan-out keeps one machine from combining all values of a hot key. A batch does not need it: each task shuffles
    only one accumulator for each key and window. The pass skips windows that may give several panes, because single
    elements are shuffled then.

    Before: ``Split = #0 ParDo -> #1 #2``, ``PreCombine = #2 CombinePerKey -> #3``, ``StripPart = #3 ParDo -> #4``,
    ``Flatten = #1 #4 -> #5``, ``PostCombine = #5 CombinePerKey``. After: ``PostCombine = #0 CombinePerKey``.
    """
    makers = {output.edge: step for step in graph.steps for output in step.outputs}
    retracting = retracting_edges(graph)
    changed: dict[str, Step] = {}
    gone: set[str] = set()
    for step in graph.steps:
        if not isinstance(step.primitive, CombinePerKey) or type(step.primitive.fn) is not PostCombineFn:
            continue
        split, *between = _rounds(step, makers)
        fires_once = why_early(windowing_of(graph, step.inputs[0])) is None
        if retracting.isdisjoint(split.inputs) and fires_once:
            own = CombinePerKey(step.primitive.fn.fn)
            changed[step.label] = replace(step, primitive=own, inputs=split.inputs)
            gone.update(each.label for each in (split, *between))
    steps = tuple(changed.get(step.label, step) for step in graph.steps if step.label not in gone)
    return replace(graph, steps=steps)


def _rounds(last: Step, makers: dict[int, Step]) -> tuple[Step, ...]:
    """Returns the steps of a fan-out before its last one, in order; no other step reads their outputs."""
    together = makers[last.inputs[0]]
    assert isinstance(together.primitive, Flatten)
    cold, parts = together.inputs
    strip = makers[parts]
    first = makers[strip.inputs[0]]
    return makers[cold], first, strip, together
