"""Turns a stream's writes of files by window into a grouping and a step that writes each file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.graph import (
    AssignWindows,
    Edge,
    Graph,
    GroupByKey,
    Output,
    ParDo,
    Primitive,
    Step,
    Write,
)
from penstock.io.files.window_files import windowing_of_files
from penstock.typehints import Tuple
from penstock.windows.windowing import Windowing
from penstock_spark.formats.registry import window_files
from penstock_spark.plan.windowing import windowing_of
from penstock_spark.sinks.window_files import AssignShards, WriteWindow


def windowed_writes(graph: Graph) -> Graph:
    """Replaces writes of files by window; all other writes write micro-batches.

    Before: ``Write = #0 Write(text) -> #1``, and a step that reads #1. After: ``Write/Shards = #0 ParDo(AssignShards)
    -> #2``, ``Write/Group = #2 GroupByKey -> #3``, ``Write = #3 ParDo(WriteWindow) -> #1``. With
    ``triggering_frequency``, an ``AssignWindows`` comes first.
    """
    steps: list[Step] = []
    edges = list(graph.edges)
    for step in graph.steps:
        if isinstance(step.primitive, Write) and writes_by_window(graph, step):
            steps += _in_steps(graph, step, edges)
        else:
            steps.append(step)
    return Graph(tuple(steps), tuple(edges))


def writes_by_window(graph: Graph, step: Step) -> bool:
    """True if a write writes files by window: it asks for them, or a later step reads its results."""
    assert isinstance(step.primitive, Write)
    sink = step.primitive.sink
    if any(True for output in step.outputs for _ in graph.consumers(output.edge)):
        return True
    asks = sink.triggering_frequency is not None or sink.names_windows()
    return asks and not graph.edge(step.inputs[0]).is_bounded


def _in_steps(graph: Graph, step: Step, edges: list[Edge]) -> list[Step]:
    assert isinstance(step.primitive, Write)
    files = window_files(step.primitive.sink, step.where)
    (read,) = step.inputs
    edge, windowing = graph.edge(read), windowing_of(graph, read)
    wanted = windowing_of_files(windowing, edge.is_bounded, step.primitive.sink)

    def add(kind: object, windows: Windowing) -> int:
        edges.append(Edge(len(edges), kind, windows, edge.is_bounded))
        return len(edges) - 1

    def made(name: str, primitive: Primitive, number: int) -> Step:
        return replace(
            step,
            label=f"{step.label}/{name}",
            primitive=primitive,
            inputs=(read,),
            outputs=(Output(None, number),),
        )

    steps: list[Step] = []
    if wanted.windowfn != windowing.windowfn:
        steps.append(made("Windows", AssignWindows(), number := add(edge.element_type, wanted)))
        read = number
    steps.append(
        made(
            "Shards",
            ParDo(AssignShards(files.shards)),
            number := add(Tuple[int, Tuple[Any, ...]], wanted),
        )
    )
    read = number
    grouped = Tuple[int, Any]
    steps.append(made("Group", GroupByKey(), number := add(grouped, wanted.after_grouping())))
    read = number
    return [*steps, replace(step, primitive=ParDo(WriteWindow(files)), inputs=(read,))]
