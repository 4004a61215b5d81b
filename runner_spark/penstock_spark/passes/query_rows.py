"""Makes queries over the rows of other steps roots of the graph, as queries over tables are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.graph import Graph, Read, Step, Write
from penstock.io.query_source import QuerySource, RowsOfStep
from penstock.io.sparkio import FrameSink
from penstock_spark.plan.query_rows import RowsOfGraph
from penstock_spark.reports.lineage import unwrap_source


def query_rows(graph: Graph) -> Graph:
    """Moves the steps that lead to a query into the query.

    Before: ``Create = Read -> #0``, ``Query = #0 Read(sql over the rows of a step) -> #1``, ``Map = #1 ParDo -> #2``.
    After: ``Query = Read(sql over the rows of a graph) -> #1``, ``Map = #1 ParDo -> #2``.

    A step that also leads to something else stays as well, and is computed for each of them.
    """
    queries = {step.label for step in graph.steps if step.inputs and isinstance(step.primitive, Read)}
    kept: list[Step] = []
    needed: set[int] = set()
    moved: set[int] = set()
    for step in reversed(graph.steps):
        outputs = {output.edge for output in step.outputs}
        if outputs & moved and not outputs & needed:
            # Only queries read it, or steps that only queries read.
            moved |= {*step.inputs, *(side.edge for side in step.side_inputs)}
            continue
        if step.label in queries:
            moved |= set(step.inputs)
            kept.append(_as_root(step, graph))
            continue
        kept.append(step)
        needed |= {*step.inputs, *(side.edge for side in step.side_inputs)}
    return Graph(tuple(reversed(kept)), graph.edges) if queries else graph


def _as_root(step: Step, graph: Graph) -> Step:
    assert isinstance(step.primitive, Read)
    source = step.primitive.source
    assert isinstance(source, QuerySource)
    edges = iter(step.inputs)
    tables = []
    for table in source.tables:
        if isinstance(table.rows, RowsOfStep):
            label = f"{step.label}/rows of {table.name}"
            sink = FrameSink([], table.rows.element_type)
            last = Step(label, Write(sink), inputs=(next(edges),), location=step.location)
            table = replace(table, rows=RowsOfGraph(label, graph.leading_to(last)))
        tables.append(table)
    return replace(step, primitive=Read(replace(source, tables=tuple(tables))), inputs=())


def rows_of_queries(graph: Graph) -> Iterator[RowsOfGraph]:
    """Yields the rows of other steps that the queries of a graph read."""
    for step in graph.steps:
        source = unwrap_source(step.primitive.source) if isinstance(step.primitive, Read) else None
        if isinstance(source, QuerySource):
            yield from (table.rows for table in source.tables if isinstance(table.rows, RowsOfGraph))
