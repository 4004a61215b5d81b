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
    """What makes the encoders of sinks whose rows the part before them can make, by the sink's number.

    That is the only sink of a query, if it has one part before it and does not ask for a number of partitions: several
    share rows that are computed once.

    Args:
        plan: The plan.
        sinks: Its sinks.
        without: The optimisations that are switched off.
    """
    if "inline_sinks" in without or len(sinks) != 1:
        return {}
    (sink,) = sinks
    parts = [part for part in plan.parts for _, step in part.sinks if step.label == sink.step.label]
    planned = sink.plan
    fits = planned.is_one_job and planned.partitions is None and planned.schema in _CARRIED
    return {sink.level: planned.make_encoder} if fits and len(parts) == 1 else {}


def rows_inside(frame: DataFrame, plan: SinkPlan) -> DataFrame:
    """The rows of a sink, out of those that a query gives.

    Args:
        frame: The rows of the query, all of them for the sink.
        plan: The sink's plan.
    """
    name, kind = str(plan.schema).split()
    return frame.select(F.col("payload").cast(kind).alias(name))
