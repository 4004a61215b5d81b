"""Graph to streaming query: which level each grouping is in, and which steps run at the levels before it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph import CombinePerKey, Graph, GroupByKey, Output, Read, Step
from penstock_spark.stream_plan import Feed, Level, StreamPlan


def levels(graph: Graph, mode: str) -> StreamPlan:
    """The plan of a streaming query.

    Args:
        graph: The optimised graph.
        mode: ``streaming`` or ``micro_batch``.
    """
    origins = _origins(graph)
    level_of: dict[str, int] = {}
    for step in graph.steps:
        if _is_grouping(step):
            before = [level_of.get(label, 0) for label in _all(origins[edge] for edge in step.inputs)]
            level_of[step.label] = 1 + max(before, default=0)
    groupings = [step for step in graph.steps if _is_grouping(step)]
    feeds = {
        step.label: tuple(
            Feed(label, level_of.get(label, 0)) for label in _all(origins[edge] for edge in step.inputs)
        )
        for step in groupings
    }
    deepest = max(level_of.values(), default=0)
    made = tuple(_level(graph, number, level_of, feeds) for number in range(deepest + 1))
    return StreamPlan(graph, mode, made, feeds, level_of)


def origin_of(step: Step, output: Output) -> str:
    """What the watermark of a root's output is called: its label, and the tag if it has one."""
    return step.label if output.tag is None else f"{step.label}.{output.tag}"


def _is_grouping(step: Step) -> bool:
    return isinstance(step.primitive, GroupByKey | CombinePerKey)


def _is_root(step: Step) -> bool:
    return isinstance(step.primitive, Read) or _is_grouping(step)


def _all(several: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for labels in several for label in labels))


def _origins(graph: Graph) -> dict[int, tuple[str, ...]]:
    """The sources and groupings that each edge's elements come from, with stateless steps only in between."""
    origins: dict[int, tuple[str, ...]] = {}
    for step in graph.steps:
        passed_on = _all(origins[edge] for edge in step.inputs)
        for output in step.outputs:
            origins[output.edge] = (origin_of(step, output),) if _is_root(step) else passed_on
    return origins


def _level(graph: Graph, number: int, level_of: dict[str, int], feeds: dict[str, tuple[Feed, ...]]) -> Level:
    roots = tuple(step for step in graph.steps if _is_root(step) and (level_of.get(step.label, 0) == number))
    edges = {output.edge for root in roots for output in root.outputs}
    steps, writes = [], []
    for step in graph.steps:
        reads = [edge for edge in step.inputs if edge in edges]
        if _is_grouping(step):
            writes += [(edge, step) for edge in reads]
        elif reads and not _is_root(step):
            steps.append(step)
            edges |= {output.edge for output in step.outputs}
    origins = [origin_of(root, output) for root in roots for output in root.outputs]
    readers = {origin: _readers(origin, level_of, feeds) for origin in origins}
    return Level(number, roots, tuple(steps), tuple(writes), readers)


def _readers(origin: str, level_of: dict[str, int], feeds: dict[str, tuple[Feed, ...]]) -> tuple[int, ...]:
    reading = {level_of[label] for label, own in feeds.items() if origin in {feed.label for feed in own}}
    return tuple(sorted(reading))
