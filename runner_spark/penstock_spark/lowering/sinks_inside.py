"""The sink of a stream whose rows the part before it makes, so that no step of Spark's own has to."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.sinks.plan import Encoder, SinkPlan

_CARRIED = frozenset({"value binary", "file string"})
"""The schemas of rows that the payload of a row between levels can hold."""


def encoders_inside(
    plan: StreamPlan, sinks: Sequence[StreamSink], without: Set[str]
) -> dict[int, Callable[[], Encoder]]:
    """Makes the encoders of sinks whose rows the part before them can make, by the sink's number.

    That needs a query with a single sink, with one part before it and without a number of partitions: several
    sinks share rows, which Spark computes once.
    """
    if "inline_sinks" in without or len(sinks) != 1:
        return {}
    (sink,) = sinks
    parts = [part for part in plan.parts for _, step in part.sinks if step.label == sink.step.label]
    planned = sink.plan
    fits = planned.is_one_job and planned.partitions is None and planned.schema in _CARRIED
    return {sink.level: planned.make_encoder} if fits and len(parts) == 1 else {}


def rows_inside(frame: DataFrame, plan: SinkPlan) -> DataFrame:
    name, kind = str(plan.schema).split()
    return frame.select(F.col("payload").cast(kind).alias(name))
