"""Lowers a stream of columns: Spark reads them, keeps their watermark, groups them, and may write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.graph import Read
from penstock.io.watermarks import BoundedDisorder
from penstock_spark.checkpoints.folder import Checkpoint
from penstock_spark.lowering.columns import columns_for, lower_columns
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.frames import now_micros
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.lowering.stream_times import StreamTimes, Watermark
from penstock_spark.plan.column_plan import ColumnStream
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.sinks.as_columns import schema_of
from penstock_spark.sources.scan import StreamScan
from penstock_spark.stream.reading import column_reader


def columns_of(
    plan: StreamPlan,
    scan: StreamScan,
    context: Context,
    checkpoint: Checkpoint,
    sinks: Sequence[StreamSink],
    beats: Sequence[DataFrame],
) -> tuple[DataFrame, Callable[[], Any]]:
    """The columns of the only source after all of Spark's operations, in the sink's schema if it takes them.

    These also have the heartbeats, by which Spark starts micro-batches. Also returns what makes the function by which a
    task reads the other columns.
    """
    [part] = plan.readings
    [read] = part.roots
    assert isinstance(read.primitive, Read)
    stream = read.primitive.source
    assert isinstance(stream, ColumnStream)
    assert scan.columns is not None
    watermark = _watermark(plan, stream, context, checkpoint)
    times = StreamTimes(read.where, stream.stamp, watermark)
    columns = stream.columns
    if columns.is_written:
        [sink] = sinks
        rows = reduce(DataFrame.unionAll, [*(_no_rows(each, scan.columns) for each in beats), scan.columns])
        return columns_for(columns, rows, schema_of(sink.plan.schema), sink.step.where, times), _nothing
    frame, reader = lower_columns(columns, scan.columns, in_order=False, times=times)
    return frame, partial(column_reader, reader)


def _no_rows(frame: DataFrame, like: DataFrame) -> DataFrame:
    """No row of a frame, in the schema of another one."""
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in like.schema]
    return frame.where(F.lit(False)).select(nulls)


def _nothing() -> None:
    """No task of Python reads what Spark writes."""


def _watermark(
    plan: StreamPlan, stream: ColumnStream, context: Context, checkpoint: Checkpoint
) -> Watermark | None:
    grouping = plan.native_grouping
    if grouping is None:
        return None
    assert isinstance(stream.watermark, BoundedDisorder)
    return Watermark(
        stream.watermark.delay_micros,
        grouping.windowing.windowfn.size_micros,
        grouping.windowing.allowed_lateness.micros,
        stream.max_ahead_micros,
        now_micros(),
        _ends(context, checkpoint),
    )


def _ends(context: Context, checkpoint: Checkpoint) -> DataFrame:
    """The driver's commands that end the source."""
    lines = context.spark.readStream.format("text").load(checkpoint.control_location)
    return lines.where(F.get_json_object("value", "$.command").isin("drain", "end"))
