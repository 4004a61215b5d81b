"""Lowers a stream that Spark computes: columns, or sums of which Python makes the parts.

Spark keeps the watermark, does the grouping, and may write the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.graph import Read
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import BoundedDisorder
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.custody.folder import Checkpoint
from penstock_spark.lowering.columns import find_read_fields, lower_columns, lower_to_schema
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.frames import add_up, now_micros, select
from penstock_spark.lowering.level_programs import summing_program
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.lowering.stream_times import StreamTimes, Watermark
from penstock_spark.plan.column_plan import ColumnStream, event_time_field
from penstock_spark.plan.spark_watermark import LATENESS_MICROS_MAX, ROWS_METRIC, WRITTEN_METRIC
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.sinks.column_sinks import parse_spark_schema
from penstock_spark.sources.scan import StreamScan, with_plain_names
from penstock_spark.stream.program import ReadingSpec
from penstock_spark.stream.sources.reading import StreamReader, column_reader, totals_reader
from penstock_spark.stream.sources.sums import MOVES, SUMS
from penstock_spark.stream.tasks import make_summing_function
from penstock_spark.worker.program import GroupWriterSpec, TotalsRoot
from penstock_spark.worker.rows import GROUP_COLUMNS, NUMBER_COLUMNS


def columns_of(
    plan: StreamPlan,
    scan: StreamScan,
    context: Context,
    checkpoint: Checkpoint | None,
    sinks: Sequence[StreamSink],
    beats: Sequence[DataFrame],
) -> tuple[DataFrame, Callable[[], Any]]:
    """The columns of the only source after all Spark operations, in the sink's schema if it takes them.

    These also have the heartbeats, by which Spark starts micro-batches. Also returns what makes the function by which a
    task reads the other columns.
    """
    [part] = plan.readings
    [read] = part.roots
    assert isinstance(read.primitive, Read)
    stream = read.primitive.source
    assert isinstance(stream, ColumnStream)
    assert scan.make_columns is not None
    watermark = _watermark(plan, stream, context, checkpoint)
    times = StreamTimes(read.where, event_time_field(stream), watermark)
    columns = stream.columns
    source = scan.make_columns(find_read_fields(columns, times))
    if scan.reads_more and checkpoint is not None:
        source = _counted(source, ROWS_METRIC)
    if columns.is_written:
        [sink] = sinks
        rows = reduce(DataFrame.unionAll, [*(_no_rows(each, source) for each in beats), source])
        written = lower_to_schema(columns, rows, parse_spark_schema(sink.plan.schema), sink.step.where, times)
        return (written if checkpoint is None else _counted(written, WRITTEN_METRIC)), _nothing
    frame, reader = lower_columns(columns, source, in_order=False, times=times)
    return frame, partial(column_reader, reader)


def sums_of(
    plan: StreamPlan, scan: StreamScan, context: Context, checkpoint: Checkpoint | None
) -> tuple[DataFrame, Callable[[], Any]]:
    """The sums of the only source, which Python has added up in parts, and what makes the function that reads them."""
    sums = plan.sums
    assert sums is not None
    [edge] = sums.step.inputs
    frame, make_decoder = with_plain_names(scan.frame, scan.make_decoder)
    assert isinstance(sums.read.primitive, Read)
    stream = sums.read.primitive.source
    assert isinstance(stream, StreamSource)
    reader = partial(StreamReader, stream, make_decoder, sums.read.where)
    spec = ReadingSpec(sums.read.label, sums.read.where, sums.read.outputs[0].edge, None, reader, ())
    writer = GroupWriterSpec(
        edge, 0, 0, sums.step.where, sums.step.label, sums.windowing, sums.step.combine_fn, sums.host
    )
    program = summing_program(plan, spec, writer, context)
    function = partial(make_summing_function, context.dumps(program), {}, sys_path=context.sys_path)
    clocked = frame.withColumn("clock", now_micros())
    rows = context.metrics.map_in_arrow(clocked, function, from_arrow_schema(SUMS))
    keys: tuple[str, ...] = GROUP_COLUMNS
    watermark = _watermark(plan, stream, context, checkpoint)
    if watermark is not None:
        rows, keys = watermark.kept_over_parts(rows), (*keys, "x")
    added = add_up(rows.where(F.col(MOVES).isNull()), keys)
    root = TotalsRoot(sums.step.outputs[0].edge, 0, sums.windowing)
    return select(added, (*GROUP_COLUMNS, *NUMBER_COLUMNS)), partial(totals_reader, root)


def _counted(frame: DataFrame, name: str) -> DataFrame:
    """A frame whose rows Spark counts, for its report of a micro-batch."""
    return frame.observe(name, F.count(F.lit(1)).alias(name))


def _no_rows(frame: DataFrame, like: DataFrame) -> DataFrame:
    """No row of a frame, in the schema of another one."""
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in like.schema]
    return frame.where(F.lit(False)).select(nulls)


def _nothing() -> None:
    """No task of Python reads what Spark writes."""


def _watermark(
    plan: StreamPlan, stream: StreamSource, context: Context, checkpoint: Checkpoint | None
) -> Watermark | None:
    grouping = plan.native_grouping
    if grouping is None:
        return None
    assert isinstance(stream.watermark, BoundedDisorder)
    assert checkpoint is not None, "the driver sends the ends of sources through it"
    groupings = plan.columns.groupings if plan.columns is not None else (grouping,)
    windowings = [each.windowing for each in groupings]
    return Watermark(
        stream.watermark.delay_micros,
        grouping.windowing.windowfn.size_micros,
        grouping.windowing.allowed_lateness.micros,
        stream.max_ahead_micros,
        now_micros(),
        _ends(context, checkpoint),
        sum(map(_reach_micros, windowings)),
    )


def _reach_micros(windowing: Windowing) -> int:
    """The time from an element until its last window takes no more elements, as far as Spark's scale knows."""
    lateness_micros = min(windowing.allowed_lateness.micros, LATENESS_MICROS_MAX)
    return int(windowing.windowfn.size_micros + lateness_micros)


def _ends(context: Context, checkpoint: Checkpoint) -> DataFrame:
    """The driver's commands that end the source."""
    lines = context.spark.readStream.format("text").load(checkpoint.control_location)
    return lines.where(F.get_json_object("value", "$.command").isin("drain", "end"))
