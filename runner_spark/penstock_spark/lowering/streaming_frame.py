"""Lowers a streaming plan to the DataFrame of its only sink: the query that a run would start, without the sink."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock_spark.lowering.context import Context
from penstock_spark.lowering.query import build_query
from penstock_spark.lowering.stage import sink_rows
from penstock_spark.lowering.stream_sink import pages_of, rows_inside, stream_sinks
from penstock_spark.plan.stream_plan import StreamPlan


def lower_frame(plan: StreamPlan, context: Context, heartbeat: str) -> DataFrame:
    """Returns the rows of the only sink of a plan, whose side inputs are computed."""
    sinks = stream_sinks(plan, context.without)
    [sink] = sinks
    query = build_query(plan, context, None, None, heartbeat, sinks)
    if sink.is_inside:
        return rows_inside(query.frame, sink)
    return sink_rows(sink.level, sink.step, sink.plan, pages_of(sink, query.frame), context)
