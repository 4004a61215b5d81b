"""What a level of a streaming query does, as values that travel to the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.io.watermark_policy import WatermarkPolicy
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.worker.program import StageProgram


@dataclass(frozen=True, eq=False)
class RecordedSource:
    """One output of a source whose events are known: a TestStream, or values of the program.

    Attributes:
        origin: What its watermarks are called.
        edge: Its edge.
        happenings: What happens at some steps of the timeline: a tuple of elements; watermarks in microseconds, by
            percentile, with 1 for the watermark itself; or the name of a signal.
        readers: The levels that depend on its watermark; all of them, if it has signals.
    """

    origin: str
    edge: int
    happenings: dict[int, tuple[Any, ...] | dict[float, int] | str]
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Timeline:
    """The steps of a recorded input.

    Attributes:
        clocks_micros: Processing time at each step.
        firsts: The first step of each micro-batch.
    """

    clocks_micros: tuple[int, ...] = (0,)
    firsts: tuple[int, ...] = (0,)

    @property
    def batches(self) -> int:
        """The number of micro-batches that it takes."""
        return len(self.firsts)

    def of_batch(self, number: int) -> range:
        """The steps of a micro-batch; none when the input is over."""
        if number >= len(self.firsts):
            return range(0)
        following = (*self.firsts, len(self.clocks_micros))[number + 1]
        return range(self.firsts[number], following)

    def beginning(self, number: int) -> int:
        """The step at which what comes besides the recorded input arrives in a micro-batch."""
        return self.firsts[number] if number < len(self.firsts) else len(self.clocks_micros) - 1


@dataclass(frozen=True, eq=False)
class ReadingSpec:
    """A source that Spark reads.

    Attributes:
        origin: What its watermark is called.
        where: The step, for errors.
        edge: Its edge.
        rejects: The edge of elements whose time cannot be told; None if they are errors.
        make_reader: Called once in each task: gives the function from an Arrow batch and the clock to `Arrival` values.
        readers: The levels that depend on its watermark.
    """

    origin: str
    where: str
    edge: int
    rejects: int | None
    make_reader: Callable[[], Any]
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GroupingSpec:
    """A grouping of a level.

    Attributes:
        label: Its label.
        where: The step, for errors.
        edge: Where its panes go.
        late_edge: Where elements go that come too late; None if they are only counted.
        windowing: Its input's windowing.
        combine: The CombineFn; None for a GroupByKey.
        input_retracts: Whether elements may take back earlier ones.
        watermark_inputs: What its watermark depends on, as (label, number of producers).
        readers: The levels that depend on its watermark.
        is_stateful: Whether it is a DoFn with state or timers, which is one of the steps as well.
        may_use_columns: Whether its windows may be kept in columns, where they are simple enough.
    """

    label: str
    where: str
    edge: int
    late_edge: int | None
    windowing: Any
    combine: Any
    input_retracts: bool
    watermark_inputs: tuple[tuple[str, int], ...]
    readers: tuple[int, ...]
    is_stateful: bool = False
    may_use_columns: bool = True


@dataclass(frozen=True, eq=False)
class WaitingSpec:
    """A step of a level whose elements wait for side inputs.

    Attributes:
        label: Its label.
        where: The step, for errors.
        lateness_micros: The allowed lateness of its input.
        watermark_inputs: What its watermark depends on, as (label, number of producers).
        sides: The groupings that make the side inputs that it waits for, likewise, by their place among all.
        readers: The levels that depend on its watermark.
        is_stateful: Whether it is a DoFn with state or timers, and so a grouping of the level as well.
    """

    label: str
    where: str
    lateness_micros: int
    watermark_inputs: tuple[tuple[str, int], ...]
    sides: dict[int, tuple[str, int]]
    readers: tuple[int, ...]
    is_stateful: bool


@dataclass(frozen=True, eq=False)
class MessageWriterSpec:
    """Pairs go to a grouping of a later level.

    Attributes:
        edge: The edge.
        label: The grouping.
        where: The step, for errors.
        level: Its level.
        windowing: The windowing of the edge.
        combine: The CombineFn; None for a GroupByKey.
        combines_early: Whether those that arrive at one moment are combined on the way.
    """

    edge: int
    label: str
    where: str
    level: int
    windowing: Any = None
    combine: Any = None
    combines_early: bool = False


@dataclass(frozen=True, eq=False)
class SpreadWriterSpec:
    """Elements go to a step that waits for side inputs, dealt out to all shards.

    Attributes:
        edge: The edge.
        label: The step.
        where: The step, for errors.
        level: Its level.
        side: The place of the side input that the elements are for, all of them in each shard; None if they are those
            that wait.
    """

    edge: int
    label: str
    where: str
    level: int
    side: int | None = None


@dataclass(frozen=True, eq=False)
class SinkPagesSpec:
    """Elements go to a sink, as pages.

    Attributes:
        edge: The edge.
        where: The step, for errors.
        level: The sink's number, from -1 down.
    """

    edge: int
    where: str
    level: int


@dataclass(frozen=True, eq=False)
class SinkRowsSpec:
    """Elements go to a sink, as the rows that it is written with.

    Attributes:
        edge: The edge.
        where: The step, for errors.
        level: The sink's number, from -1 down.
        make_encoder: Makes the encoder, once in each task or shard; its rows have one column, of text or bytes.
    """

    edge: int
    where: str
    level: int
    make_encoder: Callable[[], Any]


LevelWriter = MessageWriterSpec | SpreadWriterSpec | SinkPagesSpec | SinkRowsSpec


@dataclass(frozen=True, eq=False)
class LevelProgram:
    """A level, or the sources of level 0 that run together.

    Attributes:
        stage: What it does without state, from the edges of sources and groupings to later levels and to sinks.
        last: The number of the deepest level.
        shards: The number of shards of each level.
        clock: Whose processing time it is.
        micro_batch: Whether each micro-batch is a round with a watermark of its own.
        sources: Those that are played.
        reading: The one that Spark reads.
        timeline: The steps of recorded input.
        estimated: The watermark policies of the sources that Spark reads, by origin.
        played: The origins of those that are played.
        groupings: Of any other level than 0.
        waiting: The steps of the level that wait for side inputs.
        recorded: How many elements and panes of each grouping a worker writes down in a micro-batch.
    """

    stage: StageProgram[LevelWriter]
    last: int
    shards: int
    clock: Clock
    micro_batch: bool
    sources: tuple[RecordedSource, ...]
    reading: ReadingSpec | None
    timeline: Timeline
    estimated: dict[str, WatermarkPolicy]
    played: tuple[str, ...]
    groupings: tuple[GroupingSpec, ...]
    waiting: tuple[WaitingSpec, ...]
    recorded: int = 0

    @property
    def number(self) -> int:
        """The level."""
        return self.stage.stage

    @property
    def reaches(self) -> tuple[int, ...]:
        """The levels that messages go to: the next one always, so that time goes on there."""
        beyond = {writer.level for writer in self.stage.writers if writer.level > 0}
        read = (self.reading,) if self.reading else ()
        roots: tuple[Any, ...] = (*self.sources, *read, *self.groupings, *self.waiting)
        beyond.update(level for root in roots for level in root.readers)
        if self.number < self.last:
            beyond.add(self.number + 1)
        return tuple(sorted(beyond))
