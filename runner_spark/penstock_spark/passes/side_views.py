"""The bounded side inputs of a streaming query: a batch computes them before the query starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.functions.dofn import DoFn
from penstock.graph import Edge, Graph, InlineValues, Output, ParDo, Read, SideInput, Step
from penstock.typehints import typehints


def side_views(graph: Graph) -> Graph | None:
    """Returns a graph that computes all bounded side inputs and nothing else; None without any.

    The edge of each side input has a separate number, by which `without_side_views` reads it; all other edges keep
    their numbers.
    """
    numbers = _numbers(graph)
    if not numbers:
        return None
    number = len(graph.edges) + len(numbers)
    nothing = Step("side inputs/nothing", Read(InlineValues(())), outputs=(Output(None, number),))
    sides = tuple({side.edge: side for side in _find_bounded(graph)}.values())
    reader = Step("side inputs", ParDo(_Nothing()), (number,), sides, (Output(None, number + 1),))
    more = (Edge(number, typehints.Any), Edge(number + 1, typehints.Any))
    steps = Graph((*graph.steps, nothing), graph.edges).leading_to(reader).steps
    return Graph(tuple(_renumber(step, numbers) for step in steps), (*_edges(graph, numbers), *more))


def without_side_views(graph: Graph) -> Graph:
    """Drops the steps that lead only to bounded side inputs, and reads these as edges that no step of the query makes.

    ::

        n = Read -> #0                               n = Read -> #0
        Use = #0 +list#0 ParDo(use) -> #1    becomes    Use = #0 +list#2 ParDo(use) -> #1

    So an edge that the query makes is not taken for the side input with the same elements, for which nothing waits.
    """
    numbers = _numbers(graph)
    kept: list[Step] = []
    main = {side.edge for step in graph.steps for side in step.side_inputs} - numbers.keys()
    aside = set(numbers)
    for step in reversed(graph.steps):
        outputs = {output.edge for output in step.outputs}
        if outputs & aside and not outputs & main:
            # An edge that only this step reads also leads only to side inputs.
            aside |= set(step.inputs)
            continue
        kept.append(_with_views(step, numbers))
        main.update(step.inputs)
    return Graph(tuple(reversed(kept)), _edges(graph, numbers))


def unending_edges(graph: Graph) -> frozenset[int]:
    """Returns the edges whose elements depend on an unbounded source, even if only through a side input."""
    found = {edge.id for edge in graph.edges if not edge.is_bounded}
    for step in graph.steps:
        if not found.isdisjoint((*step.inputs, *(side.edge for side in step.side_inputs))):
            found.update(output.edge for output in step.outputs)
    return frozenset(found)


def _find_bounded(graph: Graph) -> Iterator[SideInput]:
    unending = unending_edges(graph)
    for step in graph.steps:
        yield from (side for side in step.side_inputs if side.edge not in unending)


def _numbers(graph: Graph) -> dict[int, int]:
    """Returns the edges of bounded side inputs, and the numbers that these have beside them."""
    edges = dict.fromkeys(side.edge for side in _find_bounded(graph))
    return {edge: number for number, edge in enumerate(edges, len(graph.edges))}


def _edges(graph: Graph, numbers: dict[int, int]) -> tuple[Edge, ...]:
    return (*graph.edges, *(replace(graph.edge(edge), id=number) for edge, number in numbers.items()))


def _with_views(step: Step, numbers: dict[int, int]) -> Step:
    """Returns the step with new numbers for its side inputs."""
    if not any(side.edge in numbers for side in step.side_inputs):
        return step
    sides = (replace(side, edge=numbers.get(side.edge, side.edge)) for side in step.side_inputs)
    return replace(step, side_inputs=tuple(sides))


def _renumber(step: Step, numbers: dict[int, int]) -> Step:
    """Returns the step with new numbers for everything that it reads and makes."""
    return replace(
        _with_views(step, numbers),
        inputs=tuple(numbers.get(edge, edge) for edge in step.inputs),
        outputs=tuple(Output(out.tag, numbers.get(out.edge, out.edge)) for out in step.outputs),
    )


class _Nothing(DoFn):
    """Stands for the readers of the side inputs."""

    def process(self, element: object) -> None:
        pass
