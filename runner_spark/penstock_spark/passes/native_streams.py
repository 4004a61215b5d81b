"""Lets Spark do a whole stream of columns: what it reads, its grouping, and what a sink takes."""

from __future__ import annotations

from dataclasses import replace

from penstock.functions.signature import signature_of
from penstock.graph import Graph, Grouping, Output, ParDo, Read, Step
from penstock.io.streams import StreamSource
from penstock.io.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import BoundedDisorder
from penstock.machines.triggers import machine_of
from penstock.windows.triggers import AccumulationMode, ClosingBehavior
from penstock_spark.passes.columns import Found, TableOf, check_first, ends_here, follow
from penstock_spark.plan.column_kinds import NotInColumns, kind
from penstock_spark.plan.column_plan import COLUMNAR, ColumnStream, Combined, Table, WithTimestamps
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.plan.windowing import windowing_of


def native_streams(graph: Graph, table_of: TableOf, mode: str) -> Graph:
    """Lets Spark itself do the steps after the only source of a stream, if nothing behind them has state.

    Before: ``Read = Read(stream of parquet) -> #0``, ``GroupBy/... = #0 ... -> #4``, ``Write = #4 Write``.
    After: ``Read = Read(stream of parquet; GroupBy) -> #4``, ``Write = #4 Write``.

    A grouping moves only if Spark's own aggregate gives its panes: in the mode ``streaming`` one for each window, and
    in ``micro_batch`` one for each window that a round has changed. Its watermark is the one of the micro-batch before,
    so windows fire a micro-batch later, and elements that are late by less are not late.
    """
    reads = [step for step in graph.steps if isinstance(step.primitive, Read)]
    if len(reads) != 1 or not isinstance(stream := reads[0].primitive.source, StreamSource):  # type: ignore[union-attr]
        return graph
    if not isinstance(stream.source, COLUMNAR):
        return graph
    [read] = reads
    found, table = _found(graph, read, stream, table_of, mode)
    source = ColumnStream.of(stream, found.columns(table))
    absorbed = {step.label for step in source.columns.steps}
    moved = replace(read, primitive=Read(source), outputs=(Output(None, found.last), *read.outputs[1:]))
    steps = (moved if step is read else step for step in graph.steps if step.label not in absorbed)
    return replace(graph, steps=tuple(steps))


def _found(
    graph: Graph, read: Step, stream: StreamSource, table_of: TableOf, mode: str
) -> tuple[Found, Table | None]:
    """What Spark does; no operations if Python has to see each element."""
    table = None
    try:
        if len(read.outputs) > 1:
            raise NotInColumns("elements that are wrong have an output of their own")
        check_first(graph, read)
        table = _with_times(table_of(read, stream), stream)
        found = follow(
            graph, read, table, lambda step, before: _check_grouping(graph, step, before, stream, mode), True
        )
        _check_rest(graph, found, mode)
    except NotInColumns as reason:
        return Found((), read.outputs[0].edge, False, ends_here(reason)), table
    return found, table


def _with_times(table: Table, stream: StreamSource) -> Table:
    """The columns with the times of elements; NotInColumns if only Python knows these."""
    if stream.arrival_time is not None:
        raise NotInColumns("elements arrive at recorded times")
    if stream.event_time is None:
        return table
    stamp = ColumnStream.of(stream, Found((), 0, False, "").columns(None)).stamp
    if stamp is None:
        raise NotInColumns("event_time is a function that only Python can call")
    if kind(stamp, table.fields) not in ("int", "instant"):
        raise NotInColumns(f"{stamp} is neither whole seconds nor an instant")
    return replace(table, time="column")


def _check_grouping(graph: Graph, grouping: Step, before: Table, stream: StreamSource, mode: str) -> None:
    """Raises NotInColumns unless Spark's aggregate gives the same panes as the grouping."""
    windowing = windowing_of(graph, grouping.inputs[0])
    if machine_of(windowing.triggerfn).fires_on_elements or not windowing.triggerfn.has_ontime_pane():
        raise NotInColumns(f"the trigger {windowing.triggerfn} may fire before the end")
    if windowing.closing_behavior is ClosingBehavior.FIRE_ALWAYS:
        raise NotInColumns("windows give a last pane in any case")
    if mode == "streaming" and not windowing.fires_once:
        raise NotInColumns("windows may give several panes")
    if mode == "micro_batch" and windowing.accumulation_mode != AccumulationMode.ACCUMULATING:
        raise NotInColumns("a pane of a round has only what the round has added")
    if before.windowfn is None:
        if mode == "streaming":
            raise NotInColumns("the global window ends with the stream")
        return
    _check_policy(stream.watermark)


def _check_policy(policy: WatermarkPolicy) -> None:
    if type(policy) is not BoundedDisorder or policy.per_partition:
        raise NotInColumns(f"Spark has no watermark like {type(policy).__name__}")


def _check_rest(graph: Graph, found: Found, mode: str) -> None:
    """Raises NotInColumns if a step needs what only Python's part of a stream has."""
    absorbed = {step.label for step in found.columns(None).steps}
    groupings = [operation for operation in found.operations if isinstance(operation, Combined)]
    if len(groupings) > 1:
        raise NotInColumns(f"{groupings[1].step.label!r} follows another grouping")
    if groupings and any(isinstance(operation, WithTimestamps) for operation in found.operations):
        raise NotInColumns("elements get other times than those of the watermark")
    if not (found.is_written or groupings):
        raise NotInColumns(found.ends.removeprefix("columns end here: "))
    for step in graph.steps:
        if step.label in absorbed or isinstance(step.primitive, Read):
            continue
        if isinstance(step.primitive, Grouping | WaitingParDo):
            raise NotInColumns(f"{step.label!r} has state of its own")
        if mode == "micro_batch" and isinstance(step.primitive, ParDo) and _reads_panes(step.primitive):
            raise NotInColumns(f"{step.label!r} reads the panes")


def _reads_panes(primitive: ParDo) -> bool:
    """True if a DoFn may look at the pane of an element."""
    return "PaneInfoParam" in signature_of(primitive.dofn).kinds
