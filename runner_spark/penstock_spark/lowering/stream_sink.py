"""A sink of a streaming plan, and who makes its rows: the part before it, or a step of Spark's own."""

from __future__ import annotations

import functools
from collections.abc import Set
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.graph import Sink, Step, Write
from penstock_spark.formats.registry import plan_sink
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.sinks.plan import SinkPlan

_CARRIED = frozenset({"value binary", "file string"})
"""The schemas of rows that the payload of a row between levels can hold."""


@dataclass(frozen=True, eq=False)
class StreamSink:
    level: int  # The level of its rows: -1, -2 and so on.
    step: Step
    is_alone: bool = False  # Whether no other sink shares its query, and a single part feeds it.

    @property
    def sink(self) -> Sink:
        assert isinstance(self.step.primitive, Write)
        return self.step.primitive.sink

    @functools.cached_property
    def plan(self) -> SinkPlan:
        return plan_sink(self.sink, self.step.where, is_stream=True)

    @functools.cached_property
    def is_inside(self) -> bool:
        """Whether the part before it makes its rows, so that no step of Spark's own has to.

        Several sinks share rows, which Spark computes once.
        """
        plan = self.plan
        return self.is_alone and plan.is_one_job and plan.partitions is None and plan.schema in _CARRIED


def stream_sinks(plan: StreamPlan, without: Set[str]) -> tuple[StreamSink, ...]:
    """The sinks of a plan; `without` names what is switched off."""
    labels = [step.label for part in plan.parts for _, step in part.sinks]
    is_alone = len(labels) == 1 and "inline_sinks" not in without
    return tuple(StreamSink(plan.level_of[step.label], step, is_alone) for step in plan.sinks)


def rows_inside(frame: DataFrame, plan: SinkPlan) -> DataFrame:
    """The rows of a sink that the part before it has made."""
    name, kind = str(plan.schema).split()
    return frame.select(F.col("payload").cast(kind).alias(name))
