"""Moves steps that Spark can do with a source's columns into the Read, so that Python sees fewer rows, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.functions.dofn import FilterDoFn, MapDoFn
from penstock.functions.folds import Fold, fold_of
from penstock.graph import (
    AssignWindows,
    Graph,
    Output,
    ParDo,
    Read,
    Reshuffle,
    Source,
    Step,
    Write,
    describe,
)
from penstock.scalars.expressions import Expression
from penstock.scalars.field_functions import KeyAndValues, ResultOf, RowInWindow, RowOf, StampedBy
from penstock.transforms.combining.ready_combiners import TupleCombineFn
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.windowing import Windowing
from penstock_spark.formats.registry import plan_sink
from penstock_spark.plan.column_kinds import NotInColumns, is_flat, name_kind
from penstock_spark.plan.column_plan import (
    COLUMN_AGGREGATES,
    Columns,
    ColumnsSource,
    Combined,
    Filter,
    Grouped,
    Operation,
    Select,
    Spread,
    Table,
    WithTimestamps,
    apply_to_table,
    type_of,
)
from penstock_spark.plan.query_columns import find_query_operations, is_of_query
from penstock_spark.plan.steps_behind import find_only_reader, translate_windowing
from penstock_spark.plan.windowing import why_early, windowing_of
from penstock_spark.sinks.column_sinks import check_fit

TableOf = Callable[[Step, Source], Table]
"""Returns the columns of a Read's source; raises `NotInColumns` if they are unknown or are not Python's elements."""

_KEY_KINDS = ("int", "str", "bool", "bytes")


Check = Callable[[Step, Table], None]
"""Raises `NotInColumns` if Spark cannot do a grouping of the columns before it."""


@dataclass(frozen=True)
class ColumnSteps:
    """The steps after a Read that Spark can do."""

    operations: tuple[Operation, ...]  # What Spark does.
    last: int  # The edge with the result.
    is_written: bool  # Whether a sink takes the columns.
    ends: str  # Where the columns end, and why; a clause.

    def columns(self, table: Table | None) -> Columns:
        return Columns(table, self.operations, self.is_written, self.ends)


def columns(graph: Graph, table_of: TableOf) -> Graph:
    """Lets Spark itself do the steps after a Read of columns, as far as their functions are expressions.

    Before: ``Read = Read(parquet) -> #0``, ``Filter(a > 1) = #0 ParDo -> #1``, ``Map = #1 ParDo -> #2``.
    After: ``Read = Read(parquet; Filter(a > 1)) -> #1``, ``Map = #1 ParDo -> #2``.

    It calls `table_of` only if Spark may be able to do the first step after the Read.
    """
    reads: dict[str, Step] = {}
    absorbed: set[str] = set()
    for step in graph.steps:
        if isinstance(step.primitive, Read) and step.primitive.source.is_table:
            found, source = _behind(graph, step, step.primitive.source, table_of)
            reads[step.label] = replace(step, primitive=Read(source), outputs=(Output(None, found.last),))
            absorbed.update(gone.label for gone in source.columns.steps)
    return replace(
        graph, steps=tuple(reads.get(step.label, step) for step in graph.steps if step.label not in absorbed)
    )


def _behind(graph: Graph, read: Step, source: Source, table_of: TableOf) -> tuple[ColumnSteps, ColumnsSource]:
    table = None
    try:
        check_first(graph, read)
        table = table_of(read, source)
        found = find_column_steps(
            graph, read, table, lambda step, table: check_fires_at_end(windowing_of(graph, step.inputs[0]))
        )
    except NotInColumns as reason:
        found = ColumnSteps((), read.outputs[0].edge, False, describe_end(reason))
    return found, ColumnsSource(source, found.columns(table))


def describe_end(reason: NotInColumns) -> str:
    return f"columns end here: {reason}"


def check_fires_at_end(windowing: Windowing) -> None:
    """Raises NotInColumns if windows may fire before the end."""
    if (reason := why_early(windowing)) is not None:
        raise NotInColumns(reason)


def check_first(graph: Graph, read: Step) -> None:
    """Raises NotInColumns if Spark cannot do the step after a Read, whatever the columns are."""
    step = find_only_reader(graph, read.outputs[0].edge)
    if not (isinstance(step.primitive, AssignWindows | Write | Reshuffle) or is_of_query(step)):
        _readable_function(step)


def find_column_steps(
    graph: Graph, read: Step, table: Table, check: Check, is_stream: bool = False
) -> ColumnSteps:
    """Moves step after step into the columns, up to the first that does not fit.

    `check` looks at each grouping, with the columns before it. Sliding windows need a grouping behind them: only there
    is an element in several windows the same as several elements.
    """
    operations: tuple[Operation, ...] = ()
    edge = read.outputs[0].edge
    before_sliding = ColumnSteps((), edge, False, "")
    while True:
        try:
            step = find_only_reader(graph, edge)
            if table.is_in_several and not isinstance(step.primitive, ParDo):
                raise NotInColumns(f"{step.label!r} takes elements that are in several windows")
            written = _find_write(graph, step, table, is_stream)
            if written is not None:
                spread, write = written
                ends = f"{write.label!r} takes the columns unchanged"
                return ColumnSteps((*operations, *spread), write.inputs[0], True, ends)
            found = _find_operations(graph, step, table, check, is_stream)
            was_in_several = table.is_in_several
            for operation in found:
                table = apply_to_table(operation, table)
        except NotInColumns as reason:
            if table.is_in_several:
                return replace(before_sliding, ends=describe_end(reason))
            return ColumnSteps(operations, edge, False, describe_end(reason))
        if table.is_in_several and not was_in_several:
            before_sliding = ColumnSteps(operations, edge, False, "")
        operations = (*operations, *found)
        last = found[-1]
        edge = (last.around[1] if isinstance(last, Grouped) else step).outputs[0].edge


def _find_write(
    graph: Graph, step: Step, table: Table, is_stream: bool
) -> tuple[tuple[Spread, ...], Step] | None:
    """The write that a step is or spreads elements for; None for any other step."""
    spread: tuple[Spread, ...] = ()
    if isinstance(step.primitive, Reshuffle):
        if step.primitive.partitions is None or step.primitive.by_key:
            raise NotInColumns(f"{step.label!r} spreads elements")
        spread = (Spread(step, step.primitive.partitions),)
        step = find_only_reader(graph, step.outputs[0].edge)
        if not isinstance(step.primitive, Write):
            raise NotInColumns(f"{spread[0].step.label!r} spreads elements")
    if not isinstance(step.primitive, Write):
        return None
    sink = plan_sink(step.primitive.sink, step.where, is_stream=is_stream)
    check_fit(sink.columns, step, table.fields)
    return spread, step


def _find_operations(
    graph: Graph, step: Step, table: Table, check: Check, is_stream: bool
) -> tuple[Operation, ...]:
    """The operations that a step is, or with a grouping the steps around it."""
    if is_stream and is_of_query(step):
        return find_query_operations(graph, step, table, check)
    return (_operation(graph, step, table, check, is_stream),)


def _operation(graph: Graph, step: Step, table: Table, check: Check, is_stream: bool) -> Operation:
    if isinstance(step.primitive, AssignWindows):
        return translate_windowing(graph, step, table, is_stream)
    function = _readable_function(step)
    try:
        match function:
            case Expression():
                if name_kind(function, table.fields) != "bool":
                    raise NotInColumns(f"{function} is not a boolean")
                return Filter(step, function)
            case RowOf(fields=fields) | RowInWindow(fields=fields):
                return Select(step, _pass_on(fields, table))
            case StampedBy(moment):
                assert isinstance(moment, Expression)
                if name_kind(moment, table.fields) not in ("int", "instant"):
                    raise NotInColumns(f"{moment} is neither whole seconds nor an instant")
                return WithTimestamps(step, moment)
            case KeyAndValues():
                return _translate_combine(graph, step, function, table, check)
    except NotInColumns as reason:
        raise NotInColumns(f"{step.label!r}: {reason}") from None
    raise AssertionError(f"{function} is not a function of a schema transform")


def _readable_function(step: Step) -> object:
    """The function of a step, if all of its parts are expressions."""
    primitive = step.primitive
    if not isinstance(primitive, ParDo) or type(primitive.dofn) not in (FilterDoFn, MapDoFn):
        raise NotInColumns(f"{step.label!r} is a {describe(primitive)}")
    if primitive.args or primitive.kwargs or step.side_inputs or len(step.outputs) != 1:
        raise NotInColumns(f"{step.label!r} has further arguments or outputs")
    is_filter, function = type(primitive.dofn) is FilterDoFn, primitive.dofn.fn
    match function:
        case Expression() if is_filter:
            parts: tuple[object, ...] = ()
        case RowOf(fields=fields) | RowInWindow(fields=fields) if not is_filter:
            parts = tuple(each for _, each in fields)
        case StampedBy(moment) if not is_filter:
            parts = (moment,)
        case KeyAndValues(key, values) if not is_filter:
            parts = (*(each for _, each in key.fields), *values)
        case _:
            raise NotInColumns(f"{step.label!r} is a function that only Python can call")
    if not all(isinstance(each, Expression) for each in parts):
        raise NotInColumns(f"{step.label!r} contains a function that only Python can call")
    return function


def _pass_on(fields: tuple[tuple[str, object], ...], table: Table) -> tuple[tuple[str, Expression], ...]:
    names = [name for name, _ in fields]
    if len(set(names)) != len(names):
        raise NotInColumns("two fields have the same name")
    own = tuple((name, each) for name, each in fields if isinstance(each, Expression))
    for _, each in own:
        column = None if each.field_name is None else dict(table.fields).get(each.field_name)
        # Nested values of a source of dicts stay dicts, and nested values of a source of Rows are Rows.
        if column is None or not is_flat(column):
            name_kind(each, table.readable)
    return own


def _translate_combine(
    graph: Graph, step: Step, function: KeyAndValues, table: Table, check: Check
) -> Combined:
    combine = find_only_reader(graph, step.outputs[0].edge)
    fn = combine.combine_fn
    if type(fn) is not TupleCombineFn or len(combine.outputs) != 1:
        raise NotInColumns("the next step does not aggregate fields")
    last = find_only_reader(graph, combine.outputs[0].edge)
    result = last.primitive.dofn.fn if isinstance(last.primitive, ParDo) and _is_map(last) else None
    if not isinstance(result, ResultOf) or len(last.outputs) != 1:
        raise NotInColumns("the next step does not aggregate fields")
    check(combine, table)
    windowing = windowing_of(graph, combine.inputs[0])
    if windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW:
        raise NotInColumns("its output time is not the end of the window")
    keys = tuple((name, each) for name, each in function.key.fields if isinstance(each, Expression))
    for name, each in keys:
        if name_kind(each, table.fields) not in _KEY_KINDS:
            # Floats include -0.0 and NaN, which Python and Spark compare differently.
            raise NotInColumns(f"the key {name} has the type {type_of(each, table).simpleString()}")
    if not keys:
        raise NotInColumns("it has no key")
    names = result.names
    dests = names[len(keys) :]
    folds = [fold_of(each) for each in fn.combiners]
    values = tuple(each for each in function.values if isinstance(each, Expression))
    combines = tuple(
        (dest, _check_combiner(fold, dest, each, table), each)
        for dest, fold, each in zip(dests, folds, values, strict=True)
    )
    return Combined(combine, windowing, (step, last), keys, combines)


def _is_map(step: Step) -> bool:
    return isinstance(step.primitive, ParDo) and type(step.primitive.dofn) is MapDoFn


def _check_combiner(fold: Fold, dest: str, each: Expression, table: Table) -> str:
    """The name of a combiner that Spark has exactly as Python has it."""
    own = COLUMN_AGGREGATES.get(fold.name)
    if own is None:
        raise NotInColumns(f"{dest} is combined by a function that only Python can call")
    found = name_kind(each, table.fields)
    if own.kinds is not None and found not in own.kinds:
        raise NotInColumns(own.otherwise.format(dest, found))
    return fold.name
