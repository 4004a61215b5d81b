"""Describes the work of a level of a streaming query, as values that travel to the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.windows.windowing import Windowing
from penstock_spark.plan.hosts import Loop, State
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.worker.program import SinkWriterSpec, StageProgram


@dataclass(frozen=True, eq=False)
class RecordedSource:
    """One output of a source whose events are known: a TestStream, or values of the program."""

    origin: str  # The name of its watermarks.
    edge: int
    # By step of the timeline: a tuple of elements; watermarks in microseconds, by percentile, with 1 for the
    # watermark itself; or the name of a signal.
    happenings: dict[int, tuple[Any, ...] | dict[float, int] | str]
    readers: tuple[int, ...]  # The levels that depend on its watermark; all levels if it has signals.


@dataclass(frozen=True, eq=False)
class Timeline:
    clocks_micros: tuple[int, ...] = (0,)  # Processing time at each step.
    firsts: tuple[int, ...] = (0,)  # The first step of each micro-batch.
    # The steps after which others of the same time follow, before anything fires that is due at that time.
    within: frozenset[int] = frozenset()

    @property
    def batches(self) -> int:
        return len(self.firsts)

    def of_batch(self, number: int) -> range:
        """The steps of a micro-batch; none when the input is over."""
        if number >= len(self.firsts):
            return range(0)
        following = (*self.firsts, len(self.clocks_micros))[number + 1]
        return range(self.firsts[number], following)

    def beginning(self, number: int) -> int:
        """The step of a micro-batch at which input that is not recorded arrives."""
        return self.firsts[number] if number < len(self.firsts) else len(self.clocks_micros) - 1


@dataclass(frozen=True, eq=False)
class ReadingSpec:
    origin: str  # The name of its watermark.
    where: str
    edge: int
    rejects: int | None  # The edge of elements with unknown times; None if they are errors.
    # Called once in each task: returns the function from an Arrow batch and the clock to `Arrival` values.
    make_reader: Callable[[], Any]
    readers: tuple[int, ...]  # The levels that depend on its watermark.


@dataclass(frozen=True, eq=False)
class GroupingSpec:
    label: str
    where: str
    edge: int  # The edge of its panes.
    late_edge: int | None  # The edge of elements that come too late; None if they are only counted.
    windowing: Windowing  # Its input's windowing.
    combine: CombineFn | None
    input_retracts: bool  # True if elements may retract earlier ones.
    # The sources and groupings whose watermarks its own depends on.
    watermark_inputs: tuple[str, ...]
    readers: tuple[int, ...]  # The levels that depend on its watermark.
    state: State | None  # None for a DoFn with state or timers, which is also one of the steps.


@dataclass(frozen=True, eq=False)
class WaitingSpec:
    """A step of a level whose elements wait for side inputs."""

    label: str
    where: str
    lateness_micros: int  # The allowed lateness of its input.
    # The sources and groupings whose watermarks its own depends on.
    watermark_inputs: tuple[str, ...]
    # The groupings that make the awaited side inputs, by the index of the side input.
    sides: dict[int, str]
    readers: tuple[int, ...]  # The levels that depend on its watermark.
    is_stateful: bool  # Whether it is a DoFn with state or timers, and so also a grouping of the level.


@dataclass(frozen=True, eq=False)
class MessageWriterSpec:
    """Sends pairs to a grouping of a later level, one by one."""

    edge: int
    label: str
    where: str
    level: int


@dataclass(frozen=True, eq=False)
class CombiningWriterSpec(MessageWriterSpec):
    """Combines the pairs that arrive at one logical time, and sends the results."""

    windowing: Windowing
    combine: CombineFn | None
    loop: Loop


@dataclass(frozen=True, eq=False)
class RestrictionWriterSpec:
    """Sends elements with their restrictions to a splittable DoFn of a later level."""

    edge: int
    label: str
    where: str
    level: int


@dataclass(frozen=True, eq=False)
class SpreadWriterSpec:
    """Sends elements to all shards of a step that waits for side inputs."""

    edge: int
    label: str
    where: str
    level: int
    # The index of the side input that every shard gets; None for the elements that wait.
    side: int | None = None


@dataclass(frozen=True, eq=False)
class SinkPagesSpec:
    """Sends elements to a sink, as pages."""

    edge: int
    where: str
    level: int  # The sink's number, from -1 down.


@dataclass(frozen=True, eq=False)
class SinkRowsSpec(SinkWriterSpec):
    """Sends elements to a sink, as the rows that it is written with, which have one column of text or bytes."""

    level: int  # The sink's number, from -1 down.


LevelWriter = MessageWriterSpec | RestrictionWriterSpec | SpreadWriterSpec | SinkPagesSpec | SinkRowsSpec


@dataclass(frozen=True, eq=False)
class PlanInState:
    """The plan of a query that the program starts itself: no folder keeps it, and so each shard does."""

    text: str
    digest: str  # Of the text, for the header, which every micro-batch writes.
    # Returns the text to keep, given the one of an earlier plan and this one; raises if its state does not fit.
    succeed: Callable[[str, str], str]


@dataclass(frozen=True, eq=False)
class LevelProgram:
    """A level, or the sources of level 0 that run together."""

    # Its work without state, from the edges of sources and groupings to later levels and to sinks.
    stage: StageProgram[LevelWriter]
    last: int  # The number of the deepest level.
    shards: int  # The number of shards of each level.
    clock: Clock  # The clock of processing time.
    micro_batch: bool  # Whether each micro-batch is a round with a watermark of its own.
    sources: tuple[RecordedSource, ...]  # The recorded sources.
    reading: ReadingSpec | None  # The source that Spark reads.
    timeline: Timeline
    # The watermark policies of the sources that Spark reads, by origin.
    estimated: dict[str, WatermarkPolicy]
    played: tuple[str, ...]  # The origins of recorded sources.
    groupings: tuple[GroupingSpec, ...]  # Empty at level 0.
    waiting: tuple[WaitingSpec, ...]  # The steps of the level that wait for side inputs.
    kept_plan: PlanInState | None = (
        None  # The plan that its shards keep; None if the checkpoint's folder does.
    )
    recorded: int = 0  # How many elements and panes of each grouping a worker records in a micro-batch.
    watched: bool = False  # Whether panes are counted for the view of the run; the stage knows of elements.

    @property
    def number(self) -> int:
        return self.stage.stage

    @property
    def next(self) -> tuple[int, ...]:
        """The next level, to which a level always reports the time."""
        return (self.number + 1,) if self.number < self.last else ()

    @property
    def reaches(self) -> tuple[int, ...]:
        """The levels that messages may go to."""
        beyond = {writer.level for writer in self.stage.writers if writer.level > 0}
        read = (self.reading,) if self.reading else ()
        roots: tuple[Any, ...] = (*self.sources, *read, *self.groupings, *self.waiting)
        beyond.update(level for root in roots for level in root.readers)
        return tuple(sorted(beyond.union(self.next)))
