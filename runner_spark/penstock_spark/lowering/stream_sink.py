"""A sink of a streaming plan, and how its micro-batches are written."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from penstock.graph import Sink, Step, Write
from penstock_spark.formats.registry import plan_sink
from penstock_spark.sinks.plan import SinkPlan


@dataclass(frozen=True, eq=False)
class StreamSink:
    level: int  # The level of its rows: -1, -2 and so on.
    step: Step

    @property
    def sink(self) -> Sink:
        assert isinstance(self.step.primitive, Write)
        return self.step.primitive.sink

    @functools.cached_property
    def plan(self) -> SinkPlan:
        return plan_sink(self.sink, self.step.where, is_stream=True)
