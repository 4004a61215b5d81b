"""Combines hot keys in one round, where every task combines what it has before the shuffle anyway."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import CombinePerKey, Flatten, Graph, Step
from penstock.transforms.combine import PostCombineFn
from penstock_spark.plan.retractions import may_fire_early, retracting_edges


def one_round(graph: Graph) -> Graph:
    """Replaces the two rounds of a fan-out by one, whose values are combined in parts by the tasks that have them.

    A fan-out keeps the values of a hot key from being one machine's work. In batch nothing of the kind can be: what
    goes through the shuffle is one accumulator of each task for each key and window. Not where a window may give
    several panes, since single elements are shuffled then.

    Before: ``Split = #0 ParDo -> #1 #2``, ``PreCombine = #2 CombinePerKey -> #3``, ``StripPart = #3 ParDo -> #4``,
    ``Flatten = #1 #4 -> #5``, ``PostCombine = #5 CombinePerKey``. After: ``PostCombine = #0 CombinePerKey``.

    Args:
        graph: The graph of a batch pipeline.
    """
    makers = {output.edge: step for step in graph.steps for output in step.outputs}
    retracting = retracting_edges(graph)
    changed: dict[str, Step] = {}
    gone: set[str] = set()
    for step in graph.steps:
        if not isinstance(step.primitive, CombinePerKey) or type(step.primitive.fn) is not PostCombineFn:
            continue
        split, *between = _rounds(step, makers)
        if retracting.isdisjoint(split.inputs) and not may_fire_early(graph, step):
            own = CombinePerKey(step.primitive.fn.fn)
            changed[step.label] = replace(step, primitive=own, inputs=split.inputs)
            gone.update(each.label for each in (split, *between))
    steps = tuple(changed.get(step.label, step) for step in graph.steps if step.label not in gone)
    return replace(graph, steps=steps)


def _rounds(last: Step, makers: dict[int, Step]) -> tuple[Step, ...]:
    """The steps of a fan-out before its last one, in order; nothing else reads what is between them."""
    together = makers[last.inputs[0]]
    assert isinstance(together.primitive, Flatten)
    cold, parts = together.inputs
    strip = makers[parts]
    first = makers[strip.inputs[0]]
    return makers[cold], first, strip, together
