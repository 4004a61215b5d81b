"""A sink of a streaming plan, and the plan of each of its micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import Sink, Step, Write
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch
from penstock_spark.sinks.plan import SinkPlan, plan_sink


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

    def planned(self, batch: MicroBatch) -> SinkPlan:
        """How a micro-batch is written; the encoders are the same for all of them.

        Raises:
            UnsupportedByRunner: The sink takes no stream, or not all that is asked of it.
            ValueError: The description does not fit together.
        """
        where = self.step.where
        return plan_sink(of_batch(self.sink, batch, where), where)
