"""The plan of a streaming query as values: sources, levels of groupings, and the stateless steps between them.

A grouping's level is its position in the longest chain of groupings that leads to it. All groupings of one level are
in one stateful operator, so a query is a chain: sources, level 1, level 2 and further levels, sinks. With one shard,
one operator has all levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from penstock.graph import Graph, InlineValues, ParDo, Read, Source, Step, describe
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.streaming.periodic_sequence import PeriodicSource
from penstock.io.streaming.recorded_stream import RecordedStream
from penstock.io.streaming.stream_sources import StreamSource
from penstock.utils.timestamp import MAX_TIMESTAMP
from penstock.windows.window_fn import GlobalWindows
from penstock_spark.plan.batch_plan import Plan, edges_of, show_plan
from penstock_spark.plan.column_plan import (
    Columns,
    ColumnStream,
    Grouped,
    has_stream_columns,
)
from penstock_spark.plan.hosts import InShards
from penstock_spark.plan.splitting import asks_for_restriction
from penstock_spark.plan.summed_stream import SummedStream, Sums


class Clock(Enum):
    """The clock from which a query takes its processing time."""

    RECORDED = "recorded events"
    TICKS = "recorded arrival times"
    LIVE = "the machine's"


def clock_of(steps: Iterable[Step]) -> Clock:
    """The clock of a query with these steps.

    Values of the program need no clock, but a splittable DoFn continues as time does, after they have been read.
    """
    steps = tuple(steps)
    read = [step.primitive.source for step in steps if isinstance(step.primitive, Read)]
    if any(isinstance(source, StreamSource) and source.arrival_time is not None for source in read):
        return Clock.TICKS
    if any(isinstance(source, RecordedStream) for source in read):
        return Clock.RECORDED
    if any(isinstance(step.primitive, ParDo) and asks_for_restriction(step.primitive.dofn) for step in steps):
        return Clock.LIVE
    return Clock.RECORDED if all(isinstance(source, InlineValues) for source in read) else Clock.LIVE


def ends_on_its_own(source: Source) -> bool:
    """True if a source of a stream ends without a drain."""
    match source:
        case StreamSource():
            return source.existing_only
        case PeriodicSource():
            return source.stop_micros < MAX_TIMESTAMP.micros
        case SequenceSource():
            return source.is_bounded
    return True


@dataclass(frozen=True, eq=False)
class WaitingParDo(ParDo):
    """A ParDo with unbounded side inputs: its elements wait for them, in the state of a level."""


@dataclass(frozen=True)
class WatermarkDependency:
    """A source or an earlier grouping, by label, on which a grouping's watermark depends."""

    label: str
    level: int


@dataclass(frozen=True, eq=False)
class Level:
    """Sources or groupings that run together, with the stateless steps after them."""

    number: int  # 0 for sources; the number of the level for groupings.
    roots: tuple[Step, ...]  # The sources, or the groupings.
    steps: tuple[Step, ...]  # The stateless steps after them, in topological order.
    # The groupings of later levels that receive elements, each with the edge that it reads.
    writes: tuple[tuple[int, Step], ...]
    sinks: tuple[tuple[int, Step], ...]  # The sinks that receive elements, likewise.
    # The steps that see elements as a side input, likewise, with the side input's number.
    views: tuple[tuple[int, Step, int], ...]
    # For each output of a root, the levels whose groupings depend on its watermark.
    readers: dict[str, tuple[int, ...]]
    # The labels of the steps whose work the groupings behind them do themselves.
    left: frozenset[str] = frozenset()

    @property
    def made_edges(self) -> frozenset[int]:
        """The edges whose elements its workers make, and no other level; of a Flatten, a part of them."""
        return edges_of((*self.roots, *self.steps))

    @property
    def written_edges(self) -> frozenset[int]:
        """The edges among these that sinks read."""
        return self.made_edges & {edge for edge, _ in self.sinks}


@dataclass(frozen=True, eq=False)
class StreamPlan:
    graph: Graph
    mode: str  # ``streaming`` or ``micro_batch``.
    clock: Clock
    # All sources whose events the program itself lists (TestStreams), together; None without any.
    played: Level | None
    readings: tuple[Level, ...]  # Every other source on its own.
    levels: tuple[Level, ...]  # The levels of groupings, from number 1 up.
    # The inputs of each grouping's watermark, by the grouping's label.
    watermark_inputs: dict[str, tuple[WatermarkDependency, ...]]
    # For each step that waits for side inputs, by label, the groupings that make them, by the side input's
    # number.
    side_watermark_inputs: dict[str, dict[int, WatermarkDependency]]
    # The level of each grouping and of each sink, by label; sinks count down from -1.
    level_of: dict[str, int]
    # The host of each grouping, by label; steps that are DoFns have none.
    hosts: Mapping[str, InShards] = field(default_factory=dict)
    # The batch plan that computes bounded side inputs before the query starts; None without any.
    views: Plan | None = None
    is_one_operator: bool = False  # Whether all levels are in one stateful operator.
    # The graph with the steps that Spark takes over, for people and for errors; None if that is `graph`.
    whole: Graph | None = None

    @property
    def all_steps(self) -> Graph:
        return self.whole or self.graph

    @property
    def parts(self) -> tuple[Level, ...]:
        return (*((self.played,) if self.played else ()), *self.readings, *self.levels)

    @property
    def operators(self) -> tuple[tuple[Level, ...], ...]:
        """The levels of each stateful operator, in the order of the operators."""
        if self.is_one_operator and self.levels:
            return (self.levels,)
        return tuple((level,) for level in self.levels)

    @property
    def columns(self) -> Columns | None:
        """Spark's operations on the columns of the only source; None if Python sees each element."""
        for part in self.readings:
            [root] = part.roots
            match root.primitive:
                case Read(ColumnStream(columns=columns)) if columns.operations or columns.is_written:
                    return columns
        return None

    @property
    def sums(self) -> Sums | None:
        """The sums that Spark's aggregate computes of the only source, of parts that Python has made; None if none."""
        for part in self.readings:
            [root] = part.roots
            match root.primitive:
                case Read(SummedStream(sums=sums)):
                    return sums
        return None

    @property
    def by_spark(self) -> Grouped | Sums | None:
        """Returns the grouping that Spark aggregates, if the plan has one."""
        return self.sums if self.columns is None else self.columns.grouping

    @property
    def native_grouping(self) -> Grouped | Sums | None:
        """Returns the grouping that Spark aggregates, if windows of event time wait for the watermark there."""
        grouping = self.by_spark
        if grouping is None or isinstance(grouping.windowing.windowfn, GlobalWindows):
            return None
        return grouping

    @property
    def updates(self) -> bool:
        """True if Spark's own aggregate emits each window that a micro-batch has changed, and not each window once."""
        return self.mode == "micro_batch" and self.by_spark is not None

    @property
    def groupings(self) -> tuple[tuple[Step, int], ...]:
        """The groupings and other steps with state, each with its level, which is 1 for Spark's own aggregate."""
        native = self.native_grouping
        own = tuple((step, level.number) for level in self.levels for step in level.roots)
        return own if native is None else ((native.step, 1), *own)

    @property
    def sinks(self) -> tuple[Step, ...]:
        """The sinks, from level -1 down."""
        found = {step.label: step for part in self.parts for _, step in part.sinks}
        return tuple(sorted(found.values(), key=lambda step: -self.level_of[step.label]))


def show_stream_plan(plan: StreamPlan) -> str:
    """The plan as text, with a paragraph for each level."""
    lines = [f"one query, mode {plan.mode}, processing time: {plan.clock.value}"]
    for part in plan.parts:
        lines.append(f"level {part.number}: {_kind_of(plan, part)}")
        for root in part.roots:
            notes = "; ".join(_notes(plan, root))
            lines.append(f"  {root.label} = {describe(root.primitive)}" + (f"  # {notes}" if notes else ""))
        lines += [f"    {line}" for line in _lines_by_spark(plan, part)]
        lines += [f"    {step.label} = {describe(step.primitive)}" for step in part.steps]
        lines += [f"  -> level {plan.level_of[step.label]}: {step.label}" for _, step in part.writes]
        lines += [
            f"  -> level {plan.level_of[step.label]}: {step.label}, side input {place}"
            for _, step, place in part.views
        ]
        lines += [f"  -> sink {step.label} = {describe(step.primitive)}" for _, step in part.sinks]
    if plan.views is not None:
        lines += ["side inputs, before the query starts", show_plan(plan.views)]
    return "\n".join(lines)


def _kind_of(plan: StreamPlan, part: Level) -> str:
    if part.number:
        is_alone = not plan.is_one_operator or len(plan.levels) == 1
        return "one stateful operator" if is_alone else "in the one stateful operator of all levels"
    return "played" if part is plan.played else "one source"


def _lines_by_spark(plan: StreamPlan, part: Level) -> Iterator[str]:
    """The steps of a part that its source stands for."""
    if part.number:
        return
    for step in plan.columns.steps if plan.columns is not None else ():
        yield f"{step.label} = {describe(step.primitive)}  # by Spark"
    if plan.sums is not None:
        for step in plan.sums.before:
            yield f"{step.label} = {describe(step.primitive)}"
        yield f"{plan.sums.step.label} = {describe(plan.sums.step.primitive)}  # in parts, then by Spark"


def _notes(plan: StreamPlan, root: Step) -> Iterator[str]:
    match root.primitive:
        case Read(ColumnStream(columns=columns)):
            yield columns.ends
        case Read(SummedStream(sums=sums)) if sums.ends:
            yield sums.ends
        case Read(source=StreamSource(source=source)) if has_stream_columns(source):
            yield "columns end here: the watermark of a stream sees each element, in Python"
    if (host := plan.hosts.get(root.label)) is not None:
        yield str(host)
    if waits := plan.watermark_inputs.get(root.label):
        yield f"watermark of {', '.join(feed.label for feed in waits)}"
    if sides := plan.side_watermark_inputs.get(root.label):
        yield f"waits for {', '.join(feed.label for feed in sides.values())}"
