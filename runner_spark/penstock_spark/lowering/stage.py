"""Lowers a stage: the frame that it reads, and the Python pass over it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.error import refusal, split_hint
from penstock.functions.batches import BatchTypes, batch_types_of
from penstock.graph import (
    Flatten,
    Graph,
    ParDo,
    Reshuffle,
    StatefulParDo,
    Step,
    Write,
)
from penstock.metrics.execution import set_current
from penstock_spark.lowering.columns import lower_columns, lower_to_schema
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.frames import add_up, exchange, frame_of_rows, select, sort_rows
from penstock_spark.plan.batch_plan import (
    Aggregate,
    Deferred,
    Exchange,
    Inline,
    Output,
    Plan,
    Query,
    Scan,
    Spread,
    Stage,
    Writing,
    Written,
)
from penstock_spark.plan.hosts import ByMachine, Host, InPython
from penstock_spark.plan.windowing import windowing_of
from penstock_spark.session.spark_versions import from_arrow_schema, repartition_by_number
from penstock_spark.sinks.column_sinks import parse_spark_schema
from penstock_spark.sinks.plan import SinkPlan
from penstock_spark.sources.scan import with_plain_names
from penstock_spark.stages.stage import Stage as StageAtWork
from penstock_spark.stages.stage import stage_function
from penstock_spark.worker.program import (
    ColumnsRoot,
    DirectStepSpec,
    ElementWriterSpec,
    GroupRoot,
    GroupWriterSpec,
    InlineRoot,
    MachineRoot,
    PageRoot,
    PageWriterSpec,
    Root,
    ScanRoot,
    SinkWriterSpec,
    StageProgram,
    StatefulRoot,
    StepSpec,
    TotalsRoot,
    ViewSpec,
    WriterSpec,
)
from penstock_spark.worker.rows import (
    EXCHANGE,
    GROUP_COLUMNS,
    NUMBER_COLUMNS,
    SORT_COLUMNS,
)

_PAGES = ("tag", "value")
_EXCHANGE_TYPE = from_arrow_schema(EXCHANGE)


def lower_stage(stage: Stage, plan: Plan, context: Context, counted: Set[int] = frozenset()) -> None:
    if isinstance(stage.root, Query) and stage.root.columns.is_written:
        context.keep(stage.number, _columns_written(stage, stage.root, context), len(stage.outputs))
        return
    frame, roots, partitions = _read(stage, plan, context)
    writers = tuple(
        _writer(output, writing, plan, context) for output in stage.outputs for writing in output.writings
    )
    steps = tuple(step_spec(step, plan.graph, context.without, stage.left) for step in stage.steps)
    program = StageProgram(
        run=context.run,
        stage=context.first_stage + stage.number,
        roots=roots,
        steps=steps,
        writers=writers,
        partitions=partitions,
        counted=stage.made_edges & counted,
        seed=context.seed,
    )
    if isinstance(stage.root, Inline) and stage.root.by_driver:
        made = make_rows_on_driver(program, len(stage.outputs), context)
        if made is not None:
            context.keep(stage.number, made, len(stage.outputs), is_made=True)
            return
    schema = _schema(stage, context)
    views = {side.edge: context.views[side.edge] for step in stage.steps for side in step.side_inputs}
    function = partial(stage_function, _pickle(program, stage, context), views, sys_path=context.sys_path)
    context.keep(stage.number, context.metrics.map_in_arrow(frame, function, schema), len(stage.outputs))


def _columns_written(stage: Stage, query: Query, context: Context) -> DataFrame:
    """The frame of a query whose columns a sink takes unchanged."""
    step = stage.outputs[0].writings[0].step
    assert step is not None
    sink = context.sink(step).columns
    assert sink is not None
    scan = context.scans[query.read.label]
    return lower_to_schema(query.columns, scan.frame, parse_spark_schema(sink.schema), step.where)


def _pickle(program: StageProgram[WriterSpec], stage: Stage, context: Context) -> bytes:
    """The program as bytes; RuntimeError, as in Beam, names the step that has something unpicklable."""
    try:
        return context.dumps(program)
    except Exception as error:
        reads = stage.root.reads if isinstance(stage.root, Inline) else ()
        parts: list[tuple[Any, Any]] = [*zip(program.roots, reads, strict=False)]
        parts += [(spec, spec) for spec in (*program.steps, *program.writers)]
        where = next((step.where for part, step in parts if not _can_pickle(part, context)), None)
        said, hint = split_hint(str(error))
        raise refusal(
            RuntimeError,
            f"Unable to pickle what this step sends to the workers: {said}",
            where=where,
            hint=hint or "open files, locks and connections in DoFn.setup, and nowhere else",
        ) from error


def _can_pickle(part: object, context: Context) -> bool:
    try:
        context.dumps(part)
    except Exception:
        return False
    return True


def _read(stage: Stage, plan: Plan, context: Context) -> tuple[DataFrame, tuple[Root, ...], int]:
    """The frame that a stage reads, how the worker reads it, and the number of partitions of in-memory values."""
    match stage.root:
        case Inline(reads):
            edges = (_edge(step) for step in reads)
            return _inline(tuple(zip(edges, stage.root.values, strict=True)), context)
        case Written(step):
            return _inline(((_edge(step), context.written[step.label]),), context)
        case Scan(step):
            scan = context.scans[step.label]
            frame, make_reader = with_plain_names(scan.decoded_frame, scan.make_reader)
            return frame, (ScanRoot(_edge(step), make_reader, step.where),), 1
        case Query(step):
            frame = context.scans[step.label].frame
            computed, reader = lower_columns(stage.root.columns, frame, _rows_are_shared_out(stage))
            return computed, (ColumnsRoot(_edge(step), reader.read),), 1
        case Deferred(edge, sources):
            return context.read_all(sources, _PAGES), (PageRoot(edge),), 1
        case Spread(step, sources):
            assert isinstance(step.primitive, Reshuffle)
            count = step.primitive.partitions or context.partitions
            frame = context.read_all(sources, ("first", "sequence", *_PAGES))
            spread = repartition_by_number(frame, count, frame["first"].cast("int"))
            return select(sort_rows(spread), _PAGES), (PageRoot(_edge(step)),), 1
        case Aggregate(groupings, sources):
            rows = context.read_all(sources, (*GROUP_COLUMNS, *NUMBER_COLUMNS))
            totals = add_up(rows, in_order=_rows_are_shared_out(stage))
            return totals, tuple(_totals_root(tag, step, plan) for tag, step in enumerate(groupings)), 1
        case Exchange(groupings, sources, hosts):
            columns = tuple(dict.fromkeys((*GROUP_COLUMNS, *SORT_COLUMNS, "value")))
            frame = exchange(context.read_all(sources, columns), context.partitions)
            roots = tuple(
                _group_root(tag, step, host, plan)
                for tag, (step, host) in enumerate(zip(groupings, hosts, strict=True))
            )
            return frame, roots, 1


def _rows_are_shared_out(stage: Stage) -> bool:
    """True if other tasks read the stage's rows, and not only sinks.

    Spark may compute a part of them again while tasks that have read another part continue. So the stage must emit
    them in the same order again, and the order of Spark's groupings is not deterministic.
    """
    writings = (writing for output in stage.outputs for writing in output.writings)
    return any(writing.step is None or not isinstance(writing.step.primitive, Write) for writing in writings)


def _inline(
    reads: tuple[tuple[int, tuple[Any, ...]], ...], context: Context
) -> tuple[DataFrame, tuple[Root, ...], int]:
    most = max(len(values) for _, values in reads)
    count = max(1, min(ceil(most / context.inline_values), context.partitions))
    roots = tuple(InlineRoot(edge, values) for edge, values in reads)
    return context.spark.range(0, count, 1, count), roots, count


def _edge(step: Step) -> int:
    return step.outputs[0].edge


def _totals_root(tag: int, step: Step, plan: Plan) -> TotalsRoot:
    return TotalsRoot(_edge(step), tag, windowing_of(plan.graph, step.inputs[0]))


def _group_root(tag: int, step: Step, host: Host, plan: Plan) -> Root:
    windowing = windowing_of(plan.graph, step.inputs[0])
    if isinstance(step.primitive, StatefulParDo):
        return StatefulRoot(step.label, tag, windowing.allowed_lateness.micros)
    combine = step.combine_fn
    rows = (_edge(step), tag, windowing, combine, step.where, step.label)
    if isinstance(host, ByMachine):
        late_edge = step.outputs[1].edge if len(step.outputs) > 1 else None
        return MachineRoot(*rows, host.input_retracts, late_edge)
    assert isinstance(host, InPython)
    return GroupRoot(*rows, host)


def step_spec(step: Step, graph: Graph, without: Set[str], left: Set[str] = frozenset()) -> StepSpec:
    """A step for the workers; `left` has the labels of those whose work their readers do."""
    primitive: Any = step.primitive
    is_pardo = isinstance(primitive, ParDo)
    own = None if isinstance(primitive, Flatten) else primitive
    windowing = windowing_of(graph, step.inputs[0] if is_pardo else _edge(step))
    make = DirectStepSpec if step.label in left else StepSpec
    return make(
        label=step.label,
        where=step.where,
        primitive=own,
        inputs=step.inputs,
        outputs=tuple((output.tag, output.edge) for output in step.outputs),
        views=tuple(
            ViewSpec(
                edge=side.edge,
                kind=side.view,
                default=side.default,
                windowfn=windowing_of(graph, side.edge).windowfn,
                window_mapping_fn=side.window_mapping_fn,
                make=side.make,
                where=step.where,
            )
            for side in step.side_inputs
        ),
        windowing=windowing,
        batches=_batches(step, graph),
        whole_batches="whole_batches" not in without,
        shortcuts="shortcuts" not in without,
    )


def _batches(step: Step, graph: Graph) -> BatchTypes | None:
    if not isinstance(step.primitive, ParDo) or isinstance(step.primitive, StatefulParDo):
        return None
    types = (graph.edge(edge).element_type for edge in (step.inputs[0], _edge(step)))
    return batch_types_of(step.primitive.dofn, *types)


def _writer(output: Output, writing: Writing, plan: Plan, context: Context) -> WriterSpec:
    step = writing.step
    if step is None:
        maker = plan.graph.producer(writing.edge)
        return PageWriterSpec(writing.edge, output.number, writing.tag, maker.where, maker.label)
    match step.primitive:
        case Write():
            return SinkWriterSpec(writing.edge, context.sink(step).make_encoder, step.where)
        case Reshuffle(partitions, by_key):
            shards = partitions or context.partitions
            return PageWriterSpec(
                writing.edge, output.number, writing.tag, step.where, step.label, shards, by_key
            )
        case _:
            return _grouping_writer(output, writing, step, plan)


def _grouping_writer(output: Output, writing: Writing, step: Step, plan: Plan) -> WriterSpec:
    rows, host = (writing.edge, output.number, writing.tag, step.where, step.label), writing.host
    assert host is not None
    if isinstance(host, ByMachine):
        return ElementWriterSpec(*rows, host.input_retracts)
    return GroupWriterSpec(*rows, windowing_of(plan.graph, writing.edge), step.combine_fn, host)


def sink_rows(number: int, step: Step, sink: SinkPlan, pages: DataFrame, context: Context) -> DataFrame:
    """The rows of a sink, from pages of elements, by a stage of its own."""
    (edge,) = step.inputs
    writer = SinkWriterSpec(edge, sink.make_encoder, step.where)
    program = StageProgram(context.run, number, (PageRoot(edge),), (), (writer,))
    function = partial(stage_function, context.dumps(program), {}, sys_path=context.sys_path)
    return context.metrics.map_in_arrow(pages, function, sink.schema)


def _schema(stage: Stage, context: Context) -> StructType | str:
    """The stage's output schema: a sink's own, or the common schema of all other rows."""
    step = stage.outputs[0].writings[0].step if stage.outputs else None
    if step is not None and isinstance(step.primitive, Write):
        return context.sink(step).schema
    return _EXCHANGE_TYPE


_ONLY_SLICE = pa.record_batch({"id": [0]})


def make_rows_on_driver(
    program: StageProgram[WriterSpec], outputs: int, context: Context
) -> DataFrame | None:
    """The frame of a stage's rows, which the driver makes; None if the stage fails, or an output has no row.

    Tasks then run the stage: users know the errors of tasks, and a frame without rows would give its reader
    no task.
    """
    stage = StageAtWork(replace(program, partitions=1), 0, {})
    try:
        records = list(stage.run(iter([_ONLY_SLICE])))
    except Exception:
        return None
    finally:
        set_current(None)
    if {output for record in records for output in record.column("output").to_pylist()} != set(
        range(outputs)
    ):
        return None
    if snapshot := stage.snapshot():
        context.metrics.value[context.run, program.stage, 0] = snapshot
    return frame_of_rows(pa.Table.from_batches(records), context.spark)
