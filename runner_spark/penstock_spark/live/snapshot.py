"""A snapshot of a run: labels, counts and times, as a value and as JSON, and never an element."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.diagrams.steps import StepView
from penstock.error import refusal
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.runners.runner import PipelineState
from penstock_spark.checkpoints.custody.run_records import RunRecord
from penstock_spark.live.elements import StepElements
from penstock_spark.live.history import Firing, History, Line
from penstock_spark.live.pace import Pace
from penstock_spark.live.throughput import Span, Throughput

FORMAT = 4
"""The version of the JSON."""

END = "end"
"""The end of time, in JSON; its beginning, which is also an unknown time, is null."""

_MARK = "penstock_snapshot"


@dataclass(frozen=True)
class SourceNow:
    """A source of a stream, as Spark reports it; None where the source reports nothing.

    Attributes:
        label: The label of its step.
        rows: The rows that it has emitted so far. A row may hold more than one element.
        rows_per_second: The rows that it emitted per second in the last micro-batch.
        backlog: How many offsets of its partitions exist that are not read yet.
        partitions: The number of its partitions.
        skew: How many offsets lie between the partition that is furthest behind and the one that is least behind.
        watermark_micros: Its watermark.
        rejected: How many elements were rejected because their time could not be read.
        waits: What it waits for, or what waits for it, as a clause; empty if it is read as fast as it comes.
    """

    label: str
    rows: int = 0
    rows_per_second: float | None = None
    backlog: int | None = None
    partitions: int | None = None
    skew: int | None = None
    watermark_micros: int | None = None
    rejected: int = 0
    waits: str = ""


@dataclass(frozen=True)
class Spread:
    """The spread of a number over the shards of a grouping: keys are in shards by their hash.

    Attributes:
        shards: The number of shards.
        total: The sum over all shards.
        most: The largest number of a shard.
        most_shard: The number of that shard.
        median: The number of a shard in the middle.
    """

    shards: int
    total: int
    most: int
    most_shard: int
    median: int

    @property
    def skew(self) -> float | None:
        """The largest number of a shard, in times the average; 1 is even, None without anything to spread.

        >>> Spread(4, 100, 70, 2, 10).skew
        2.8
        """
        return self.most * self.shards / self.total if self.total else None


@dataclass(frozen=True)
class SinkNow:
    """A step that writes.

    Attributes:
        label: The label of the step.
        elements_in: The elements that it has taken; None if they are not counted.
        per_second: The elements that it took per second recently; on average, if the run is over.
    """

    label: str
    elements_in: int | None = None
    per_second: float | None = None


@dataclass(frozen=True)
class GroupingNow:
    """A grouping of a stream.

    Attributes:
        label: The label of its step.
        level: Its position in the longest chain of groupings.
        input_micros: The watermark of its input; None before the first.
        output_micros: The watermark of its output: the same, or earlier if something holds it.
        event_lag_micros: How far the output's watermark is behind processing time; None where one of both is unknown.
        held_by: What holds the watermark, as a clause.
        waiting: How many elements wait for each side input, by the label of the grouping that makes it.
        open_keys: The number of keys with state; simple windows count each of their keys.
        open_windows: The number of windows with state, counted for each key; None if unknown, because an earlier
            version or another number of shards has left the state.
        state_bytes: The size of that state.
        early, on_time, late: The panes so far, by timing; None if the run does not count them.
        retracted: The retractions so far; None likewise.
        dropped: The elements that came too late for their window, or after its last pane.
        keys_by_shard: How the keys with state are spread over its shards; None with a single shard.
        bytes_by_shard: How the state is spread; None likewise.
        micros_by_shard: How the work of the last micro-batch is spread, in microseconds, with that of other groupings
            of the same level; None likewise.
    """

    label: str
    level: int
    input_micros: int | None = None
    output_micros: int | None = None
    event_lag_micros: int | None = None
    held_by: str = ""
    waiting: Mapping[str, int] = field(default_factory=dict)
    open_keys: int = 0
    open_windows: int | None = None
    state_bytes: int = 0
    early: int | None = None
    on_time: int | None = None
    late: int | None = None
    retracted: int | None = None
    dropped: int = 0
    keys_by_shard: Spread | None = None
    bytes_by_shard: Spread | None = None
    micros_by_shard: Spread | None = None

    @property
    def panes(self) -> int | None:
        """All panes so far; None if the run does not count them."""
        known = [count for count in (self.early, self.on_time, self.late) if count is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class MicroBatch:
    """A finished micro-batch of a stream.

    Attributes:
        number: Its number.
        began_micros: When it began.
        rows: The rows that it read.
        millis: Where its time went, in milliseconds, by Spark's names; ``triggerExecution`` is the whole.
    """

    number: int
    began_micros: int
    rows: int
    millis: Mapping[str, int]


@dataclass(frozen=True)
class Stages:
    """The progress of a batch.

    Attributes:
        doing: The labels of the steps that run.
        part: Which of the run's parts that is, from 1 up: each write, each side input, and the rest.
        parts: How many parts there are.
        done: Spark's stages that are done.
        known: Spark's stages that are known so far; those of later parts are not.
        tasks_done: The finished tasks of the stages that run.
        tasks: All tasks of these stages.
        seconds_left: About how long these stages still take; None if that is unknown.
    """

    doing: str = ""
    part: int = 0
    parts: int = 0
    done: int = 0
    known: int = 0
    tasks_done: int = 0
    tasks: int = 0
    seconds_left: float | None = None

    @property
    def share(self) -> float:
        """The finished share of the run, between 0 and 1, if all parts and stages take the same time."""
        if not self.parts:
            return 0.0
        within = (self.done + (self.tasks_done / self.tasks if self.tasks else 0.0)) / max(self.known, 1)
        return min(1.0, (max(self.part - 1, 0) + min(within, 1.0)) / self.parts)


@dataclass(frozen=True)
class StepError:
    """The error that ended a run: the type of the exception, and where; not its text, which may quote an element.

    Attributes:
        kind: The name of the exception's class.
        where: The step, and the line of the program that makes it; empty if no step is known.
        step: The label of the step; empty likewise.
    """

    kind: str
    where: str = ""
    step: str = ""


@dataclass(frozen=True)
class CheckpointNow:
    """The folder of a checkpoint, measured now and then.

    Attributes:
        location: The folder.
        bytes: The size of all its files; None if it is not measured.
        state_bytes: The size of the files with state among them.
        files: The number of its files.
        at_micros: When it was measured.
    """

    location: str
    bytes: int | None = None
    state_bytes: int | None = None
    files: int | None = None
    at_micros: int | None = None


@dataclass(frozen=True)
class RunSnapshot:
    """The state of a run at one time.

    Attributes:
        name: The name of the application.
        run: The name of the run.
        mode: ``batch``, ``micro_batch`` or ``streaming``.
        state: A `penstock.runners.runner.PipelineState`.
        began_micros: When the run began, by the machine's clock.
        at_micros: The time of the snapshot.
        clock_micros: The processing time of a stream: what arrived earlier has been processed. None before the first
            micro-batch.
        processing_lag_micros: How far that is behind the machine's clock; None for recorded input.
        rows_in: The rows that the sources have given so far; None if that is unknown.
        rows_out: The rows that tasks have written so far; None if that is unknown.
        rows_per_second: The rows read per second recently.
        steps: The steps, each after those that it reads.
        elements: The elements of the steps, where workers count them; empty if the run has no view.
        composites: The elements of the composites, by the labels of these: what enters each and what leaves it.
        sources: The sources of a stream.
        groupings: The groupings of a stream.
        micro_batches: The last micro-batches, in order.
        stages: How far a batch has come; None in a stream.
        errors: What made it fail.
        history: Watermarks and firings so far, thinned out.
        pace: Whether a stream keeps up; None for a batch, and for a run that is over.
        throughput: The rows, the busy time and the backlog over time.
        event_speed: How many seconds of event time the slowest watermark moved in a second, over the last minute; None
            without watermarks.
        sinks: The steps that write.
        checkpoint: The checkpoint of a stream; None without one.
        runs: The runs of the checkpoint, the last ones, in order; this one is the last.
        settings: The options that the program has set, and facts about the machine, without secrets; empty for a batch
            without a view.
        spark_page: The address of the page that Spark itself has; empty if there is none.

    >>> then = RunSnapshot("scores", "a1", "batch", "RUNNING", 0, 2_500_000)
    >>> then.seconds, RunSnapshot.from_json(then.to_json()) == then
    (2.5, True)
    """

    name: str
    run: str
    mode: str
    state: str
    began_micros: int
    at_micros: int
    clock_micros: int | None = None
    processing_lag_micros: int | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    rows_per_second: float | None = None
    steps: tuple[StepView, ...] = ()
    elements: tuple[StepElements, ...] = ()
    composites: tuple[StepElements, ...] = ()
    sources: tuple[SourceNow, ...] = ()
    groupings: tuple[GroupingNow, ...] = ()
    micro_batches: tuple[MicroBatch, ...] = ()
    stages: Stages | None = None
    errors: tuple[StepError, ...] = ()
    history: History = field(default_factory=History)
    pace: Pace | None = None
    throughput: Throughput = field(default_factory=Throughput)
    event_speed: float | None = None
    sinks: tuple[SinkNow, ...] = ()
    checkpoint: CheckpointNow | None = None
    runs: tuple[RunRecord, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    spark_page: str = ""

    @property
    def seconds(self) -> float:
        """The seconds since the run began."""
        return (self.at_micros - self.began_micros) / 1_000_000

    @property
    def is_over(self) -> bool:
        """True if the run had ended."""
        return PipelineState.is_terminal(self.state)

    def to_json(self) -> str:
        """Returns the snapshot as JSON, in one line."""
        return json.dumps({_MARK: FORMAT, **_plain(self)}, ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> RunSnapshot:
        """Returns a snapshot of its JSON.

        Raises:
            ValueError: It is not a snapshot, or has another version.
        """
        try:
            found = json.loads(text)
            version = found.pop(_MARK)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise refusal(
                ValueError, "the text is not the snapshot of a run", hint="name the file live.json of a run"
            ) from None
        if version != FORMAT:
            what = f"the snapshot has the format {version!r}, and this version of penstock reads the format {FORMAT}"
            raise refusal(ValueError, what, hint="use the version of penstock that runs the pipeline")
        try:
            made: RunSnapshot = _make_dataclass(RunSnapshot, found)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            what = f"the snapshot of a run is damaged: {type(error).__name__}"
            raise refusal(
                ValueError, what, hint="wait for the next one, which replaces the whole file"
            ) from None
        return made


_INSIDE: Mapping[str, type] = {
    "steps": StepView,
    "elements": StepElements,
    "composites": StepElements,
    "sources": SourceNow,
    "groupings": GroupingNow,
    "micro_batches": MicroBatch,
    "errors": StepError,
    "firings": Firing,
    "lines": Line,
    "spans": Span,
    "recent_spans": Span,
    "sinks": SinkNow,
    "runs": RunRecord,
}
"""The class of the items of each field that is a tuple of dataclasses."""

_ALONE: Mapping[str, type] = {
    "stages": Stages,
    "history": History,
    "pace": Pace,
    "throughput": Throughput,
    "checkpoint": CheckpointNow,
    "keys_by_shard": Spread,
    "bytes_by_shard": Spread,
    "micros_by_shard": Spread,
}
"""The class of each field that is a dataclass, or None."""


def _plain(value: object) -> Any:
    """Returns a value as JSON has it."""
    if dataclasses.is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return END if value >= MAX_MICROS else None if value <= MIN_MICROS else value
    return value


def _make_dataclass(kind: type, found: Mapping[str, Any]) -> Any:
    """Returns a dataclass of its plain form; fields that it does not know are an error."""
    return kind(**{name: _restore(name, value) for name, value in found.items()})


def _restore(name: str, value: Any) -> object:
    if name in _INSIDE:
        return tuple(_make_dataclass(_INSIDE[name], each) for each in value)
    if name in _ALONE:
        return None if value is None else _make_dataclass(_ALONE[name], value)
    if isinstance(value, list):
        return tuple(_restore(name, each) for each in value)
    # Labels may be any text.
    is_time = name == "points" or name.endswith("_micros")
    return MAX_MICROS if is_time and value == END else value
