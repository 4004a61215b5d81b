"""Runs the jobs of a plan: side inputs, writes, and the stages whose outputs are not read."""

from __future__ import annotations

import itertools
from collections.abc import Set
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.graph import Read, Write
from penstock.io.query_source import QuerySource
from penstock.io.sparkio import DataFrameSource, FrameSink
from penstock_spark.formats.registry import check_sink, open_source
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.descriptions import describe_node, shorten
from penstock_spark.lowering.once_more import rerun_if_given_up
from penstock_spark.lowering.stage import lower_stage, sink_rows
from penstock_spark.plan.batch_plan import (
    Aggregate,
    Node,
    Plan,
    Query,
    Scan,
    Stage,
    ViewNode,
    WriteNode,
    root_steps,
)
from penstock_spark.plan.column_plan import ColumnsSource
from penstock_spark.plan.query_rows import RowsOfGraph
from penstock_spark.sinks.plan import MicroBatch
from penstock_spark.worker.disk_errors import make_unwritable_error


def run_plan(plan: Plan, context: Context, counted: Set[int] = frozenset()) -> None:
    """Builds and runs every node in order; at the end, one job runs all stages that nothing else has run.

    Workers count the elements of the edges in `counted`, as far as they make them.
    """
    open_sources(plan, context)
    for node in plan.nodes:
        if isinstance(node, WriteNode):
            assert isinstance(node.step.primitive, Write)
            check_sink(node.step.primitive.sink, node.step.where)
    computed, parts = _find_computed_steps(plan), _parts(plan)
    for node in plan.nodes:
        context.places = _places(node, plan)
        # The types of a sink that takes columns may be narrower.
        takes_columns = isinstance(node, WriteNode) and node.in_columns
        context.computed = (*computed, *context.places) if takes_columns else computed
        if node in parts:
            context.at_work = (parts.index(node) + 1, len(parts), describe_node(node, plan))
        with context.backend.described(describe_node(node, plan)):
            match node:
                case Stage():
                    lower_stage(node, plan, context, counted)
                case ViewNode():
                    _ship_view(node, context)
                case WriteNode():
                    _write(node, context)
    last = [stage for stage in plan.stages if not stage.outputs]
    if last:
        context.places = tuple(step.where for stage in last for step in stage.steps)
        context.computed = computed
        doing = shorten(", ".join(describe_node(stage, plan) for stage in last))
        context.at_work = (len(parts), len(parts), doing)
        with context.backend.described(doing):
            # These frames have no rows, so collecting them is the cheapest job.
            rerun_if_given_up(
                reduce(DataFrame.unionAll, [context.frames[stage.number] for stage in last]),
                DataFrame.collect,
            )
    for scan in context.scans.values():
        scan.check()


def _first_stages(plan: Plan) -> dict[str, int]:
    """The numbers of the first stages of the plans of tables, after the stages of the plan itself."""
    counts = [each.count_stages() for each in plan.tables.values()]
    return dict(zip(plan.tables, itertools.accumulate(counts, initial=len(plan.stages)), strict=False))


def _parts(plan: Plan) -> list[Node | None]:
    """Returns the nodes that run separate jobs, and None for the job at the end."""
    found: list[Node | None] = [
        node for node in plan.nodes if not isinstance(node, Stage) or len(node.outputs) > 1
    ]
    return [*found, *([None] if any(not stage.outputs for stage in plan.stages) else [])]


def open_sources(plan: Plan, context: Context) -> None:
    """Opens every source that is not open yet, so that missing files are found before anything is written."""
    for stage in plan.stages:
        if isinstance(stage.root, Scan | Query) and stage.root.read.label not in context.scans:
            step = stage.root.read
            assert isinstance(step.primitive, Read)
            source = step.primitive.source
            if isinstance(source, ColumnsSource):
                source = source.source
            if isinstance(source, QuerySource):
                source = _with_frames(source, plan, context)
            context.places = (step.where,)
            context.scans[step.label] = open_source(source, context.spark, step.where)


def _with_frames(source: QuerySource, plan: Plan, context: Context) -> QuerySource:
    """Returns a query that reads frames instead of the rows of other steps; nothing computes these yet."""
    tables = []
    for table in source.tables:
        if isinstance(table.rows, RowsOfGraph):
            last = table.rows.graph.steps[-1].primitive
            assert isinstance(last, Write)
            assert isinstance(last.sink, FrameSink)
            first = context.first_stage + _first_stages(plan)[table.rows.table]
            run_plan(plan.tables[table.rows.table], context.for_another_plan(first))
            table = replace(table, rows=DataFrameSource(last.sink.into.pop()))
        tables.append(table)
    return replace(source, tables=tuple(tables))


def _places(node: Node, plan: Plan) -> tuple[str, ...]:
    """Returns the steps for which Spark runs a job, if it runs for one thing."""
    match node:
        case Stage():
            return tuple(step.where for step in node.steps)
        case ViewNode():
            return (plan.graph.producer(node.edge.id).where,)
        case WriteNode():
            return (node.step.where,)


def _find_computed_steps(plan: Plan) -> tuple[str, ...]:
    """Returns the steps whose values Spark computes."""
    roots = (stage.root for stage in plan.stages if isinstance(stage.root, Scan | Query | Aggregate))
    return tuple(dict.fromkeys(step.where for root in roots for step in root_steps(root)))


def _ship_view(node: ViewNode, context: Context) -> None:
    """Collects the pages of a side input on the driver, and sends them to the workers, still pickled."""
    rows = rerun_if_given_up(context.read_all(node.sources, ("value",)), DataFrame.toArrow)
    pages = rows.column("value").to_pylist()
    name = f"penstock-{context.run}-{context.first_stage}-{node.edge.id}"
    context.views[node.edge.id], free = context.backend.ship_pages(name, pages)
    context.tidy.append(free)


def _write(node: WriteNode, context: Context) -> None:
    """Runs the sink's own job; it encodes rows that earlier stages kept as pages."""
    step = node.step
    sink = context.sink(step)
    if node.kept:
        frame = sink_rows(-1, step, sink, context.read_all(node.sources, ("tag", "value")), context)
    else:
        if node.in_columns:
            assert sink.columns is not None
            sink = sink.columns
        frame = reduce(DataFrame.unionAll, [context.frames[reference.stage] for reference in node.sources])
    rows: Observation | None = None
    if node.in_columns and context.counts_columns and sink.is_one_job:
        rows = Observation()
        frame = frame.observe(rows, F.count(F.lit(1)).alias("count"))
    try:
        if sink.commits_in_tasks:
            written = sink.commit(frame, MicroBatch())
        else:
            written = rerun_if_given_up(frame, lambda rows: sink.commit(rows, MicroBatch()))
        context.written[step.label] = tuple(written)
        if rows is not None:
            context.counted_columns[step.label] = rows.get["count"]
    except OSError as error:
        raise make_unwritable_error(error, step.where) from None
