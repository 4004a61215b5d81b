"""A sink of a streaming plan, and how its micro-batches are written."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from penstock.graph import Sink, Step, Write
from penstock_spark.formats.registry import plan_sink
from penstock_spark.sinks.plan import SinkPlan


@dataclass(frozen=True, eq=False)
class StreamSink:
    """A sink of a streaming plan.

    Attributes:
        level: The level of its rows: -1, -2 and so on.
        step: The graph's Write.
    """

    level: int
    step: Step

    @property
    def sink(self) -> Sink:
        """Its description."""
        assert isinstance(self.step.primitive, Write)
        return self.step.primitive.sink

    @functools.cached_property
    def plan(self) -> SinkPlan:
        """How all of its micro-batches are written.

        Raises:
            UnsupportedByRunner: The sink takes no stream, or not all that is asked of it.
            ValueError: The description does not fit together.
        """
        return plan_sink(self.sink, self.step.where, is_stream=True)
