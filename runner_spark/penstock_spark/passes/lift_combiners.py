"""Turns a GroupByKey that feeds only a CombineValues into a CombinePerKey, which combines before the shuffle."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import CombinePerKey, Graph, GroupByKey, ParDo, Step
from penstock.machines.triggers import looks_at_last_pane
from penstock.transforms.combining.combine import CombineValuesDoFn
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.windowing import windowing_of


def lift_combiners(graph: Graph) -> Graph:
    """Replaces ``GroupByKey | CombineValues(fn)`` by ``CombinePerKey(fn)``.

    It skips groupings whose input may contain retractions: for these, a group and a combine do not give the same panes.

    Before: ``Group = GroupByKey``, ``Sum = ParDo(CombineValuesDoFn)``. After: ``Sum = CombinePerKey``, on the input
    of ``Group``.
    """
    readers: dict[int, list[Step]] = {}
    for step in graph.steps:
        for edge in (*step.inputs, *(side.edge for side in step.side_inputs)):
            readers.setdefault(edge, []).append(step)
    retracting = retracting_edges(graph)
    lifted: dict[str, Step] = {}
    gone: set[str] = set()
    for group in graph.steps:
        combine = _only_combine(group, readers)
        if combine is not None and retracting.isdisjoint(group.inputs):
            if looks_at_last_pane(windowing_of(graph, group.inputs[0]).triggerfn):
                # The trigger looks at the values of a window, and would see the combine's results instead.
                continue
            assert isinstance(combine.primitive, ParDo)
            lifted[combine.label] = replace(
                combine, primitive=CombinePerKey(combine.primitive.dofn.combinefn), inputs=group.inputs
            )
            gone.add(group.label)
    steps = tuple(lifted.get(step.label, step) for step in graph.steps if step.label not in gone)
    return replace(graph, steps=steps)


def _only_combine(group: Step, readers: dict[int, list[Step]]) -> Step | None:
    """Returns the CombineValues that alone reads a GroupByKey without an output for late data.

    The combine must not have side inputs: they match the window of the grouped values, and before the shuffle that
    window may not have been merged yet.
    """
    if not isinstance(group.primitive, GroupByKey) or len(group.outputs) > 1:
        return None
    found = readers.get(group.outputs[0].edge, [])
    if len(found) != 1 or not isinstance(found[0].primitive, ParDo):
        return None
    combine = found[0]
    primitive = combine.primitive
    assert isinstance(primitive, ParDo)
    plain = not primitive.args and not primitive.kwargs and not combine.side_inputs
    return combine if type(primitive.dofn) is CombineValuesDoFn and plain else None
