"""A source whose elements Python adds up in parts before Spark's own aggregate does the rest, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.graph import Step
from penstock.io.streaming.stream_sources import StreamSource
from penstock.windows.windowing import Windowing
from penstock_spark.plan.batch_plan import edges_of
from penstock_spark.plan.column_plan import arguments_of
from penstock_spark.plan.hosts import BySpark


@dataclass(frozen=True, eq=False)
class Sums:
    """A sum or a count by key and window, and what leads to it."""

    read: Step  # The step that reads the source, as it was.
    before: tuple[Step, ...]  # The stateless steps between the two, in topological order.
    step: Step
    windowing: Windowing  # That of its input.
    host: BySpark
    # The labels of the steps before it whose work it does itself.
    left: frozenset[str]
    ends: str = ""  # Why Spark does not do the steps before it, if the source has columns; a clause.

    @property
    def made_edges(self) -> frozenset[int]:
        """The edges whose elements its tasks make."""
        return edges_of((self.read, *self.before))

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.before, self.step)


@dataclass(frozen=True, eq=False)
class SummedStream(StreamSource):
    """A source that is read continuously, up to the sums of its elements."""

    sums: Sums = field(kw_only=True)

    @staticmethod
    def of(stream: StreamSource, sums: Sums) -> SummedStream:
        return SummedStream(**arguments_of(stream), sums=sums)
