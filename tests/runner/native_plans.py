"""Streams of scores, and the plans that the compiler makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types

import penstock as beam
from penstock.graph import DriverList
from penstock.io import ReadFromParquet
from penstock.io.sink_transforms import SinkTransform
from penstock.io.watermarks import BoundedDisorder, IngressTime
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.compiler import Target, compile_graph
from penstock_spark.formats.registry import table_of_schema
from penstock_spark.plan.stream_plan import StreamPlan
from tests.runner import golden_pipelines

ACCUMULATING, DISCARDING = AccumulationMode.ACCUMULATING, AccumulationMode.DISCARDING
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
SCORES = types.StructType(
    [
        *golden_pipelines.SCORES,
        types.StructField("local", types.TimestampNTZType()),
        types.StructField("day", types.DateType()),
    ]
)
MINUTES = beam.WindowInto(FixedWindows(60))
BY_CLOCK = AfterWatermark(early=AfterProcessingTime(10))
"""In a round, nothing waits for the clock."""

GLOBAL = beam.WindowInto(GlobalWindows(), BY_CLOCK, ACCUMULATING)
TOTAL = beam.GroupBy("team").aggregate_field("points", sum, "total")
AGAIN = beam.GroupBy("total").aggregate_field("total", sum, "all")
OUT = SinkTransform(DriverList([]))


def plan_after(
    pipeline: beam.Pipeline, mode: str, without: Iterable[str] = (), record_events: int | None = None
) -> StreamPlan:
    """The plan of a pipeline whose source has the columns `SCORES`."""
    target = Target(
        mode, frozenset(without), record_events, table_of=lambda step, source: table_of_schema(SCORES, "row")
    )
    plan = compile_graph(pipeline.to_graph(), target).plan
    assert isinstance(plan, StreamPlan)
    return plan


def plan_of(
    *transforms: Any,
    mode: str = "streaming",
    policy: Any = BoundedDisorder(60),
    without: Iterable[str] = (),
    label: str = "Read",
    record_events: int | None = None,
    source: Any = None,
    **more: Any,
) -> StreamPlan:
    """The plan of a stream of scores behind which some transforms stand in a row."""
    timed = {} if isinstance(policy, IngressTime) else {"event_time": "at"}
    reader = source or ReadFromParquet("in", validate=False, as_rows=True)
    read = reader.as_stream(watermark=policy, **timed | more)
    pipeline = beam.Pipeline(options=PipelineOptions(["--allow_unsafe_triggers"]))
    pcoll = pipeline | label >> read
    for transform in transforms:
        pcoll = pcoll | transform
    return plan_after(pipeline, mode, without, record_events)
