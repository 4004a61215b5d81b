"""A sink of a streaming plan; either the part before it or a step in Spark makes its rows."""

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
    level: int  # The level of its rows: a negative number, from -1 downwards.
    step: Step
    is_alone: bool = False  # Whether no other sink shares its query, and a single part feeds it.
    takes_columns: bool = False  # Whether Spark makes its rows, without any Python.

    @property
    def sink(self) -> Sink:
        assert isinstance(self.step.primitive, Write)
        return self.step.primitive.sink

    @functools.cached_property
    def plan(self) -> SinkPlan:
        planned = plan_sink(self.sink, self.step.where, is_stream=True)
        if not self.takes_columns:
            return planned
        assert planned.columns is not None
        return planned.columns

    @functools.cached_property
    def is_inside(self) -> bool:
        """True if the part before it makes its rows, so that Spark needs no step for that.

        Several sinks share rows, which Spark computes once.
        """
        plan = self.plan
        is_carried = plan.is_one_job and plan.partitions is None and plan.schema in _CARRIED
        return self.takes_columns or (self.is_alone and is_carried)


def stream_sinks(plan: StreamPlan, without: Set[str]) -> tuple[StreamSink, ...]:
    """Returns the sinks of a plan; `without` names optimisations that are switched off."""
    labels = [step.label for part in plan.parts for _, step in part.sinks]
    is_alone = len(labels) == 1 and "inline_sinks" not in without
    takes_columns = plan.columns is not None and plan.columns.is_written
    return tuple(StreamSink(plan.level_of[step.label], step, is_alone, takes_columns) for step in plan.sinks)


def rows_inside(frame: DataFrame, sink: StreamSink) -> DataFrame:
    """Returns the rows of a sink that the part before it has made."""
    if sink.takes_columns:
        partitions = sink.plan.partitions
        return frame if partitions is None else frame.repartition(partitions)
    name, kind = str(sink.plan.schema).split()
    # A text is one question to Java, and this comes with every micro-batch; each part of a column is five or more.
    return frame.selectExpr(f"CAST(payload AS {kind}) AS {name}")


def pages_of(sink: StreamSink, frame: DataFrame) -> DataFrame:
    """Returns the pages of a sink; the rows of other sinks, and of levels, stay away."""
    return pages_in(frame.where(F.col("level") == sink.level))


def pages_in(frame: DataFrame) -> DataFrame:
    """Pages, as a `PageRoot` reads them."""
    return frame.select(F.lit(0).alias("tag"), F.col("payload").alias("value"))
