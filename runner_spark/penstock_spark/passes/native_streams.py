"""Lets Spark do a whole stream: columns from the source to the sink, or at least its sums, or its first filters."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import takewhile

from penstock.functions.signature import signature_of
from penstock.graph import Graph, Grouping, Output, ParDo, Read, Step
from penstock.io.sparkio import SparkSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import BoundedDisorder
from penstock.machines.triggers import machine_of
from penstock.windows.triggers import AccumulationMode, ClosingBehavior, DataLossReason
from penstock.windows.window_fn import FixedWindows, GlobalWindows, SlidingWindows
from penstock.windows.windowing import Windowing
from penstock_spark.passes.choose_folds import left_to_readers, loop_of_parts, why_not_native
from penstock_spark.passes.columns import Found, TableOf, check_first, ends_here, follow
from penstock_spark.plan.column_kinds import NotInColumns, kind
from penstock_spark.plan.column_plan import (
    Columns,
    ColumnStream,
    Combined,
    Filter,
    Select,
    Table,
    WithTimestamps,
    event_time_field,
    has_stream_columns,
)
from penstock_spark.plan.hosts import BySpark
from penstock_spark.plan.masked_stream import MaskedStream
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.plan.summed_stream import SummedStream, Sums
from penstock_spark.plan.windowing import windowing_of


def native_streams(graph: Graph, table_of: TableOf, mode: str, without: Set[str] = frozenset()) -> Graph:
    """Lets Spark itself do the steps after the only source of a stream, if nothing behind them has state.

    Before: ``Read = Read(stream of parquet) -> #0``, ``GroupBy/... = #0 ... -> #4``, ``Write = #4 Write``.
    After: ``Read = Read(stream of parquet; GroupBy) -> #4``, ``Write = #4 Write``.

    A grouping moves only if Spark's own aggregate gives its panes: in the mode ``streaming`` one for each window, and
    in ``micro_batch`` one for each window that a round has changed. Its watermark is the one of the micro-batch before,
    so windows fire a micro-batch later, and elements that are late by less are not late.

    If Python has to see the elements before a sum or a count, each task adds its own up, and Spark the parts. That is
    so in ``micro_batch`` alone, where each round reads and writes the state of its keys. Windows that fire once are as
    fast in Python's state, which is read only at their ends.

    In all other streams, Spark does the first filters and selections of each source that it reads: ``Read = Read(stream
    of parquet; Filter) -> #1``, ``GroupByKey = #1 ...``.
    """
    reads = [step for step in graph.steps if isinstance(step.primitive, Read)]
    if len(reads) == 1 and isinstance(stream := reads[0].primitive.source, StreamSource):  # type: ignore[union-attr]
        graph = _native(graph, reads[0], stream, table_of, mode, without)
    for read in reads:
        graph = _masked(graph, read.label, table_of)
    return graph


def _native(
    graph: Graph, read: Step, stream: StreamSource, table_of: TableOf, mode: str, without: Set[str]
) -> Graph:
    """Lets Spark do a whole stream, or its sums in rounds."""
    ends = ""
    if has_stream_columns(stream.source):
        found, table = _found(graph, read, stream, table_of, mode)
        columns = found.columns(table)
        if found.operations or found.is_written:
            return _absorbed(graph, read, ColumnStream.of(stream, columns), columns.steps, found.last)
        ends = columns.ends
        graph = _absorbed(graph, read, ColumnStream.of(stream, columns), (), found.last)
    try:
        sums = replace(_sums(graph, read, stream, mode, without), ends=ends)
    except NotInColumns:
        return graph
    [read] = (step for step in graph.steps if isinstance(step.primitive, Read))
    return _absorbed(graph, read, SummedStream.of(stream, sums), sums.steps, sums.step.outputs[0].edge)


def _masked(graph: Graph, label: str, table_of: TableOf) -> Graph:
    """Lets Spark do the first filters and selections of a source, if Python has to see its elements behind them."""
    [read] = (step for step in graph.steps if step.label == label)
    assert isinstance(read.primitive, Read)
    stream = read.primitive.source
    is_whole = isinstance(stream, ColumnStream) and (stream.columns.operations or stream.columns.is_written)
    if not isinstance(stream, StreamSource) or isinstance(stream, SummedStream) or is_whole:
        return graph
    if not isinstance(stream.source, SparkSource):
        # Tasks of Python read the others themselves, without Java, which is as fast.
        return graph
    try:
        if len(read.outputs) > 1 or stream.partition is not None or event_time_field(stream) is None:
            raise NotInColumns("Python has to see each element")
        check_first(graph, read)
        table = _with_times(table_of(read, stream), stream)
        found = follow(graph, read, table, _check_nothing, True)
    except NotInColumns:
        return graph
    first = tuple(takewhile(lambda operation: isinstance(operation, Filter | Select), found.operations))
    if not first:
        return graph
    ends = stream.columns.ends if isinstance(stream, ColumnStream) else found.ends
    masked = MaskedStream.of(stream, Columns(table, first, False, ends))
    steps = tuple(operation.step for operation in first)
    return _absorbed(graph, read, masked, steps, steps[-1].outputs[0].edge)


def _check_nothing(grouping: Step, before: Table) -> None:
    raise NotInColumns("the watermark of a stream sees each element, in Python")


def _absorbed(graph: Graph, read: Step, source: StreamSource, steps: tuple[Step, ...], last: int) -> Graph:
    """The graph with another source that stands for some steps, too, and makes the edge of the last one."""
    absorbed = {step.label for step in steps}
    moved = replace(read, primitive=Read(source), outputs=(Output(None, last), *read.outputs[1:]))
    kept = (moved if step is read else step for step in graph.steps if step.label not in absorbed)
    return replace(graph, steps=tuple(kept))


def _sums(graph: Graph, read: Step, stream: StreamSource, mode: str, without: Set[str]) -> Sums:
    """The only grouping, with the steps before it; NotInColumns if Spark's own aggregate should not do it."""
    if mode != "micro_batch":
        raise NotInColumns("windows that fire once are as fast in Python's state")
    if len(read.outputs) > 1 or stream.arrival_time is not None:
        raise NotInColumns("the source has several outputs, or recorded times")
    groupings = [step for step in graph.steps if isinstance(step.primitive, Grouping | WaitingParDo)]
    if len(groupings) != 1 or len(groupings[0].outputs) > 1:
        raise NotInColumns("it is not the only grouping, or has an output for late elements")
    [grouping] = groupings
    before = tuple(
        step for step in graph.leading_to(grouping).steps if step is not grouping and not _is_read(step)
    )
    made = {output.edge for step in (read, *before) for output in step.outputs}
    inside = {step.label for step in (read, *before, grouping)}
    if any(made.intersection(step.inputs) for step in graph.steps if step.label not in inside):
        raise NotInColumns("other steps read what it reads")
    if any(step.side_inputs for step in before):
        raise NotInColumns("a step before it has side inputs")
    if not retracting_edges(graph, is_streaming=True).isdisjoint(grouping.inputs):
        raise NotInColumns("its input may take elements back")
    if (reason := why_not_native(graph, grouping)) is not None:
        raise NotInColumns(reason)
    windowing = windowing_of(graph, grouping.inputs[0])
    _check_panes(windowing, mode)
    match windowing.windowfn:
        case FixedWindows() | SlidingWindows():
            _check_policy(stream.watermark)
        case GlobalWindows():
            pass
        case _:
            raise NotInColumns("Spark has no such windows")
    _check_behind(graph, inside, mode)
    host = BySpark(loop_of_parts(without))
    left = left_to_readers(before, graph, {grouping.inputs[0]: (host,)})
    return Sums(read, before, grouping, windowing, host, left)


def _is_read(step: Step) -> bool:
    return isinstance(step.primitive, Read)


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
        groupings = [operation for operation in found.operations if isinstance(operation, Combined)]
        if not (found.is_written or groupings):
            # Python reads all elements, whatever Spark could do before.
            return replace(found, operations=(), last=read.outputs[0].edge), table
        _check_rest(graph, found, groupings, mode)
    except NotInColumns as reason:
        return Found((), read.outputs[0].edge, False, ends_here(reason)), table
    return found, table


def _with_times(table: Table, stream: StreamSource) -> Table:
    """The columns with the times of elements; NotInColumns if only Python knows these."""
    if stream.arrival_time is not None:
        raise NotInColumns("elements arrive at recorded times")
    if stream.event_time is None:
        return table
    stamp = event_time_field(stream)
    if stamp is None:
        raise NotInColumns("event_time is a function that only Python can call")
    if kind(stamp, table.fields) not in ("int", "instant"):
        raise NotInColumns(f"{stamp} is neither whole seconds nor an instant")
    return replace(table, time="column")


def _check_grouping(graph: Graph, grouping: Step, before: Table, stream: StreamSource, mode: str) -> None:
    """Raises NotInColumns unless Spark's aggregate gives the same panes as the grouping."""
    _check_panes(windowing_of(graph, grouping.inputs[0]), mode)
    if before.windowfn is None:
        _check_global(mode)
        return
    _check_policy(stream.watermark)


def _check_panes(windowing: Windowing, mode: str) -> None:
    """Raises NotInColumns if windows may give other panes than those of Spark's aggregate."""
    trigger = windowing.triggerfn
    if machine_of(trigger).fires_on_elements:
        raise NotInColumns(f"the trigger {trigger} may fire before the end")
    if windowing.closing_behavior is ClosingBehavior.FIRE_ALWAYS:
        raise NotInColumns("windows give a last pane in any case")
    if mode == "streaming" and not windowing.fires_once:
        raise NotInColumns("windows may give several panes")
    if mode == "micro_batch" and windowing.accumulation_mode != AccumulationMode.ACCUMULATING:
        raise NotInColumns("a pane of a round has only what the round has added")
    if mode == "micro_batch" and trigger.may_lose_data(windowing) != DataLossReason.NO_POTENTIAL_LOSS:
        raise NotInColumns(f"the trigger {trigger} may finish before the window does")


def _check_global(mode: str) -> None:
    if mode == "streaming":
        raise NotInColumns("the global window ends with the stream")


def _check_policy(policy: WatermarkPolicy) -> None:
    if type(policy) is not BoundedDisorder or policy.per_partition:
        raise NotInColumns(f"Spark has no watermark like {type(policy).__name__}")


def _check_rest(graph: Graph, found: Found, groupings: Sequence[Combined], mode: str) -> None:
    """Raises NotInColumns if a step needs what only Python's part of a stream has."""
    absorbed = {step.label for step in found.columns(None).steps}
    if len(groupings) > 1 and mode != "streaming":
        # Spark updates no results of results.
        raise NotInColumns(f"{groupings[1].step.label!r} follows another grouping")
    if groupings and any(isinstance(operation, WithTimestamps) for operation in found.operations):
        raise NotInColumns("elements get other times than those of the watermark")
    _check_behind(graph, absorbed, mode)


def _check_behind(graph: Graph, absorbed: Set[str], mode: str) -> None:
    """Raises NotInColumns if a step behind what Spark does has state, or needs panes that Spark does not number."""
    for step in graph.steps:
        if step.label in absorbed or _is_read(step):
            continue
        if isinstance(step.primitive, Grouping | WaitingParDo):
            raise NotInColumns(f"{step.label!r} has state of its own")
        if mode == "micro_batch" and isinstance(step.primitive, ParDo) and _reads_panes(step.primitive):
            raise NotInColumns(f"{step.label!r} reads the panes")


def _reads_panes(primitive: ParDo) -> bool:
    """True if a DoFn may look at the pane of an element."""
    return "PaneInfoParam" in signature_of(primitive.dofn).kinds
