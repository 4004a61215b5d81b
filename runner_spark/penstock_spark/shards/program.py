"""What a level of a streaming query does, as values that travel to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock_spark.operators.program import StepSpec


@dataclass(frozen=True, eq=False)
class RecordedSource:
    """One output of a source whose events are known: a TestStream, or values of the program.

    Attributes:
        origin: What its watermarks are called.
        edge: Its edge.
        happenings: What happens at some steps of the timeline: elements, or the watermark in microseconds.
        readers: The levels that depend on its watermark.
    """

    origin: str
    edge: int
    happenings: dict[int, tuple[Any, ...] | int]
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Timeline:
    """The steps of a recorded input.

    Attributes:
        clocks_micros: Processing time at each step.
        ends: The steps at which the clock has moved, so that what is due just then fires.
        steps_per_batch: The number of steps in each micro-batch.
    """

    clocks_micros: tuple[int, ...]
    ends: frozenset[int]
    steps_per_batch: int

    @property
    def batches(self) -> int:
        """The number of micro-batches that it takes."""
        return -(-len(self.clocks_micros) // self.steps_per_batch)

    def of_batch(self, number: int) -> range:
        """The steps of a micro-batch."""
        first = number * self.steps_per_batch
        return range(first, min(first + self.steps_per_batch, len(self.clocks_micros)))


@dataclass(frozen=True, eq=False)
class GroupingSpec:
    """A grouping of a level.

    Attributes:
        label: Its label.
        where: The step, for errors.
        edge: Where its panes go.
        windowing: Its input's windowing.
        combine: The CombineFn; None for a GroupByKey.
        input_retracts: Whether elements may take back earlier ones.
        feeds: What its watermark depends on, as (label, number of producers).
        readers: The levels that depend on its watermark.
    """

    label: str
    where: str
    edge: int
    windowing: Any
    combine: Any
    input_retracts: bool
    feeds: tuple[tuple[str, int], ...]
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PacketWriterSpec:
    """Pairs go to a grouping of a later level."""

    edge: int
    label: str
    where: str
    level: int


@dataclass(frozen=True, eq=False)
class LevelProgram:
    """A level.

    Attributes:
        run: Names the run, for metrics.
        number: The level.
        last: The number of the deepest level.
        shards: The number of shards of each level.
        micro_batch: Whether each micro-batch is a round with a watermark of its own.
        sources: Of level 0.
        timeline: Of level 0.
        groupings: Of any other level.
        steps: Stateless steps, in topological order.
        writers: To later levels.
        show_elements: Whether errors tell the element that a step worked on.
    """

    run: str
    number: int
    last: int
    shards: int
    micro_batch: bool
    sources: tuple[RecordedSource, ...]
    timeline: Timeline
    groupings: tuple[GroupingSpec, ...]
    steps: tuple[StepSpec, ...]
    writers: tuple[PacketWriterSpec, ...]
    show_elements: bool = False

    @property
    def reaches(self) -> tuple[int, ...]:
        """The levels that packets go to: the next one always, so that time goes on there."""
        beyond = {writer.level for writer in self.writers}
        roots: tuple[Any, ...] = (*self.sources, *self.groupings)
        beyond.update(level for root in roots for level in root.readers)
        if self.number < self.last:
            beyond.add(self.number + 1)
        return tuple(sorted(beyond))
