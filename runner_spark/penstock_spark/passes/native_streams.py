"""Lets Spark do a whole stream: columns from the source to the sink, or at least its sums."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from penstock.functions.signature import signature_of
from penstock.graph import Graph, Grouping, Output, ParDo, Read, Step
from penstock.io.sparkio import DataFrameSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.combining.ready_combiners import TupleCombineFn
from penstock.windows.triggers import AccumulationMode, ClosingBehavior, DataLossReason
from penstock.windows.window_fn import FixedWindows, GlobalWindows, SlidingWindows
from penstock.windows.windowing import Windowing
from penstock_spark.passes.choose_folds import find_steps_done_by_readers, loop_of_parts, why_not_native
from penstock_spark.passes.columns import (
    ColumnSteps,
    TableOf,
    check_fires_at_end,
    check_first,
    describe_end,
    find_column_steps,
)
from penstock_spark.plan.column_kinds import NotInColumns, name_kind
from penstock_spark.plan.column_plan import (
    ColumnStream,
    Grouped,
    Table,
    WithTimestamps,
    event_time_field,
    has_stream_columns,
)
from penstock_spark.plan.hosts import BySpark
from penstock_spark.plan.query_columns import is_grouping_of_query
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.stream_plan import WaitingParDo
from penstock_spark.plan.summed_stream import SummedStream, Sums
from penstock_spark.plan.windowing import windowing_of


def native_streams(graph: Graph, table_of: TableOf, mode: str, without: Set[str] = frozenset()) -> Graph:
    """Lets Spark itself do the steps after the only source of a stream, if nothing behind them has state.

    Before: ``Read = Read(stream of parquet) -> #0``, ``GroupBy/... = #0 ... -> #4``, ``Write = #4 Write``.
    After: ``Read = Read(stream of parquet; GroupBy) -> #4``, ``Write = #4 Write``.

    A grouping moves only if Spark's own aggregate emits its panes: in the mode ``streaming`` one for each window, and
    in ``micro_batch`` one for each window that a round has changed. Its watermark is the one of the micro-batch before,
    so windows fire a micro-batch later, and elements that are late by less are not late.

    If Python has to see the elements before a sum or a count, each task adds its own up, and Spark the parts. That is
    so in ``micro_batch`` alone, where each round reads and writes the state of its keys. Windows that fire once are as
    fast in Python's state, which is read only at their ends.
    """
    reads = [step for step in graph.steps if isinstance(step.primitive, Read)]
    if len(reads) == 1 and isinstance(stream := reads[0].primitive.source, StreamSource):  # type: ignore[union-attr]
        if isinstance(stream.source, DataFrameSource):
            # It may have a watermark of the program, and Spark's aggregates would wait for both.
            return graph
        return _native(graph, reads[0], stream, table_of, mode, without)
    return graph


def _native(
    graph: Graph, read: Step, stream: StreamSource, table_of: TableOf, mode: str, without: Set[str]
) -> Graph:
    """Lets Spark do a whole stream, or its sums in rounds."""
    ends = ""
    if has_stream_columns(stream.source):
        found, table = _find_operations(graph, read, stream, table_of, mode)
        columns = found.columns(table)
        if found.operations or found.is_written:
            return _absorb(graph, read, ColumnStream.of(stream, columns), columns.steps, found.last)
        ends = columns.ends
        graph = _absorb(graph, read, ColumnStream.of(stream, columns), (), found.last)
    try:
        sums = replace(_sums(graph, read, mode, without), ends=ends)
    except NotInColumns:
        return graph
    [read] = (step for step in graph.steps if isinstance(step.primitive, Read))
    return _absorb(graph, read, SummedStream.of(stream, sums), sums.steps, sums.step.outputs[0].edge)


def _absorb(graph: Graph, read: Step, source: StreamSource, steps: tuple[Step, ...], last: int) -> Graph:
    """Returns the graph with another source, which also replaces some steps and makes the edge of the last one."""
    absorbed = {step.label for step in steps}
    moved = replace(read, primitive=Read(source), outputs=(Output(None, last), *read.outputs[1:]))
    kept = (moved if step is read else step for step in graph.steps if step.label not in absorbed)
    return replace(graph, steps=tuple(kept))


def _sums(graph: Graph, read: Step, mode: str, without: Set[str]) -> Sums:
    """The only grouping, with the steps before it; NotInColumns if Spark's own aggregate should not do it."""
    groupings = [step for step in graph.steps if isinstance(step.primitive, Grouping | WaitingParDo)]
    if len(groupings) != 1:
        raise NotInColumns("it is not the only grouping")
    [grouping] = groupings
    _check_sum(graph, grouping, mode)
    before = _before(graph, grouping)
    host = BySpark(loop_of_parts(without))
    left = find_steps_done_by_readers(before, graph, {grouping.inputs[0]: (host,)})
    return Sums(read, before, grouping, windowing_of(graph, grouping.inputs[0]), host, left)


def reasons_for_python(graph: Graph, mode: str) -> dict[str, str]:
    """Why Python does each grouping that this pass leaves, by label; clauses for `explain`."""
    found = {}
    for step in graph.steps:
        if isinstance(step.primitive, Grouping | WaitingParDo):
            try:
                _check_sum(graph, step, mode)
            except NotInColumns as reason:
                found[step.label] = str(reason)
    return found


def _check_sum(graph: Graph, grouping: Step, mode: str) -> None:
    """Raises NotInColumns if Spark's own aggregate should not add up what tasks of Python have added up in parts."""
    if not retracting_edges(graph, is_streaming=True).isdisjoint(grouping.inputs):
        raise NotInColumns("its input may retract elements")
    is_of_columns = type(grouping.combine_fn) is TupleCombineFn or is_grouping_of_query(graph, grouping)
    if is_of_columns and _starts_with_columns(graph, grouping):
        raise NotInColumns("columns end before it")
    if (reason := why_not_native(graph, grouping)) is not None:
        raise NotInColumns(reason)
    windowing = windowing_of(graph, grouping.inputs[0])
    _check_panes(windowing, mode)
    if not isinstance(windowing.windowfn, FixedWindows | SlidingWindows | GlobalWindows):
        raise NotInColumns("Spark has no such windows")
    reads = [step for step in graph.steps if _is_read(step)]
    if len(reads) != 1:
        raise NotInColumns("the query has several sources")
    stream = reads[0].primitive.source  # type: ignore[union-attr]
    if not isinstance(stream, StreamSource):
        raise NotInColumns("its source is not read with as_stream")
    if len(reads[0].outputs) > 1 or stream.arrival_time is not None:
        raise NotInColumns("the source has several outputs, or recorded times")
    if not isinstance(windowing.windowfn, GlobalWindows):
        _check_policy(stream.watermark)
    _check_place(graph, grouping, mode)
    if mode != "micro_batch":
        raise NotInColumns("windows that fire once are as fast in Python's state")


def _starts_with_columns(graph: Graph, grouping: Step) -> bool:
    sources = [
        step.primitive.source for step in graph.leading_to(grouping).steps if isinstance(step.primitive, Read)
    ]
    return all(isinstance(source, StreamSource) and has_stream_columns(source.source) for source in sources)


def _check_place(graph: Graph, grouping: Step, mode: str) -> None:
    """Raises NotInColumns if steps around a grouping need more than its results."""
    if len(grouping.outputs) > 1:
        raise NotInColumns("it has an output for late elements")
    before = _before(graph, grouping)
    if any(isinstance(step.primitive, Grouping | WaitingParDo) for step in before):
        raise NotInColumns("it follows another grouping")
    around = [step for step in graph.steps if _is_read(step) or step in before]
    made = {output.edge for step in around for output in step.outputs}
    inside = {grouping.label, *(step.label for step in around)}
    if any(made.intersection(step.inputs) for step in graph.steps if step.label not in inside):
        raise NotInColumns("other steps read what it reads")
    if any(step.side_inputs for step in before):
        raise NotInColumns("a step before it has side inputs")
    _check_behind(graph, inside, mode)


def _before(graph: Graph, grouping: Step) -> tuple[Step, ...]:
    """The steps between the sources of a grouping and the grouping."""
    leading = graph.leading_to(grouping).steps
    return tuple(step for step in leading if step is not grouping and not _is_read(step))


def _is_read(step: Step) -> bool:
    return isinstance(step.primitive, Read)


def _find_operations(
    graph: Graph, read: Step, stream: StreamSource, table_of: TableOf, mode: str
) -> tuple[ColumnSteps, Table | None]:
    """The operations for Spark; none if Python has to see each element."""
    table = None
    try:
        if len(read.outputs) > 1:
            raise NotInColumns("elements that are wrong have a separate output")
        check_first(graph, read)
        table = _with_times(table_of(read, stream), stream)
        found = find_column_steps(
            graph, read, table, lambda step, before: _check_grouping(graph, step, before, stream, mode), True
        )
        groupings = [operation for operation in found.operations if isinstance(operation, Grouped)]
        if not (found.is_written or groupings):
            # Python reads all elements, whatever Spark could do before.
            return replace(found, operations=(), last=read.outputs[0].edge), table
        _check_rest(graph, found, groupings, mode)
    except NotInColumns as reason:
        return ColumnSteps((), read.outputs[0].edge, False, describe_end(reason)), table
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
    if name_kind(stamp, table.fields) not in ("int", "instant"):
        raise NotInColumns(f"{stamp} is neither whole seconds nor an instant")
    return replace(table, time="column")


def _check_grouping(graph: Graph, grouping: Step, before: Table, stream: StreamSource, mode: str) -> None:
    """Raises NotInColumns unless Spark's aggregate emits the same panes as the grouping."""
    _check_panes(windowing_of(graph, grouping.inputs[0]), mode)
    if before.windowfn is None:
        _check_global(mode)
        return
    _check_policy(stream.watermark)


def _check_panes(windowing: Windowing, mode: str) -> None:
    """Raises NotInColumns if windows may emit different panes than Spark's aggregate does."""
    check_fires_at_end(windowing)
    trigger = windowing.triggerfn
    if windowing.closing_behavior is ClosingBehavior.FIRE_ALWAYS:
        raise NotInColumns("windows always emit a last pane")
    if mode == "streaming" and not windowing.fires_once:
        raise NotInColumns("windows may emit several panes")
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


def _check_rest(graph: Graph, found: ColumnSteps, groupings: Sequence[Grouped], mode: str) -> None:
    """Raises NotInColumns if a step needs what only Python's part of a stream has."""
    absorbed = {step.label for step in found.columns(None).steps}
    if len(groupings) > 1 and mode != "streaming":
        # Spark updates no results of results.
        raise NotInColumns(f"{groupings[1].step.label!r} follows another grouping")
    if groupings and any(isinstance(operation, WithTimestamps) for operation in found.operations):
        raise NotInColumns("elements get different times than the watermark has")
    _check_behind(graph, absorbed, mode)


def _check_behind(graph: Graph, absorbed: Set[str], mode: str) -> None:
    """Raises NotInColumns if a step behind what Spark does has state, or needs panes that Spark does not number."""
    for step in graph.steps:
        if step.label in absorbed or _is_read(step):
            continue
        if isinstance(step.primitive, Grouping | WaitingParDo):
            raise NotInColumns(f"{step.label!r} keeps its own state")
        if mode == "micro_batch" and isinstance(step.primitive, ParDo) and _reads_panes(step.primitive):
            raise NotInColumns(f"{step.label!r} reads the panes")


def _reads_panes(primitive: ParDo) -> bool:
    """True if a DoFn may look at the pane of an element."""
    return "PaneInfoParam" in signature_of(primitive.dofn).kinds
