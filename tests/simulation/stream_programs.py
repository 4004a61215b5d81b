"""Programs made at random: a pipeline, input that arrives over time, and what becomes of the drivers that run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types

import penstock as beam
from penstock.io import ForEachBatch, ReadFromParquet, ReadFromSource, WriteToParquet
from penstock.io.database import WriteToDatabase
from penstock.io.watermarks import BoundedDisorder, IdleTimeout
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from penstock_spark.formats.registry import table_of_schema
from penstock_spark.runner import SparkRunner
from tests.simulation.simulated_database import URL
from tests.simulation.simulated_log import Records
from tests.simulation.simulated_world import START_MICROS
from tests.simulation.stream_parts import MOVABLE, ORACLES, OTHERWISE, lines_of

START = START_MICROS // 1_000_000
TABLE = "lines"
OUTPUT, CHECKPOINT = "/out", "sim://disk/checkpoint"
READ, READ_MORE, READ_THIRD = "Read", "ReadMore", "ReadThird"
FOLDERS = {READ: "/in", READ_MORE: "/in-more", READ_THIRD: "/in-third"}
"""The folders of the files of each source."""

WINDOWS = {
    "fixed": FixedWindows(10),
    "sliding": SlidingWindows(10, 5),
    "sessions": Sessions(4),
    "global": GlobalWindows(),
}
TRIGGERS = {
    "default": DefaultTrigger(),
    "early and late": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "by the clock": AfterWatermark(early=AfterProcessingTime(2), late=AfterCount(1)),
    "every second": Repeatedly(AfterCount(2)),
}
ROUNDS = AfterWatermark(early=AfterProcessingTime(10))
"""In rounds, no pane waits for the clock."""

SCORES = types.StructType().add("key", "string").add("value", "long").add("at", "long")
"""The columns of files that have columns."""

TOTALS = pa.schema([("key", pa.string()), ("value", pa.int64())])
"""The columns of a sink that takes columns."""

MODES = {"discarding": AccumulationMode.DISCARDING, "accumulating": AccumulationMode.ACCUMULATING}
KEYS = ("a", "b", "c")
NATIVE = 0.25
"""The share of programs whose grouping Spark's own aggregate does."""


@dataclass(frozen=True)
class Shape:
    """The choices that decide a pipeline."""

    windows: str = "fixed"
    trigger: str = "default"
    accumulation: str = "discarding"
    lateness: int = 0
    grouping: str = "sum"  # ``sum``, ``list``, or ``none``.
    late_output: bool = False  # Whether late elements go to a sink.
    lines_too: bool = False  # Whether the lines also go to a second sink, unchanged.
    calls_too: bool = False  # Whether a function also gets the panes.
    parts: tuple[str, ...] = ()  # The parts of the program: see `stream_parts`.
    delay: int = 3  # Of the watermark, in seconds.
    idle: int | None = None  # After how many seconds without input the watermark follows the clock.
    files_per_batch: int | None = None  # For a log, the records.
    source: str = "files"  # Or ``log``, with partitions that appear one after the other.
    more: str = ""  # A second source: ``files`` or, if the first is none, ``log``.
    more_delay: int = 3  # Of its watermark, in seconds.
    more_first: bool = False  # Whether the sources have the other order.
    third: bool = False  # Whether there is one more with files.
    by_partition: bool = False  # Whether the watermark of a log waits for each partition.
    asks_once: bool = False  # Whether the stream keeps where a log begins before it reads it.
    poll: float = 0.1  # How many seconds pass before a log is asked again that had nothing new.
    table_too: bool = False  # Whether a table of a database gets the panes, or the lines if there are none.
    shards: int = 2
    files_per_write: int | None = None
    ends: bool = True
    mode: str = "streaming"
    interval: float | None = None
    without: tuple[str, ...] = ()  # The optimisations that are switched off.
    # Who does the grouping: our machines, or Spark's own aggregate, of ``columns`` or of ``parts`` of tasks.
    host: str = ""
    is_written: bool = False  # Whether a sink takes the columns of ``columns``, without any Python.

    @property
    def trigger_of_windows(self) -> Any:
        """The trigger; of Spark's own aggregate in global windows, one that rounds fire."""
        return ROUNDS if self.host and self.windows == "global" else TRIGGERS[self.trigger]

    @property
    def waits_for_end(self) -> bool:
        """True if windows of Spark's own aggregate wait for the end of the source."""
        return bool(self.host) and self.windows != "global"

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of its sources, by their labels, in order."""
        found = {READ: self.source}
        if self.more:
            found[READ_MORE] = self.more
        if self.third:
            found[READ_THIRD] = "files"
        return dict(reversed(found.items())) if self.more_first else found

    @property
    def switched_off(self) -> frozenset[str]:
        """Late elements that arrive at one time in one window give one pane or several: the oracle says several."""
        may_differ = self.lateness > 0 or self.windows == "sessions"
        return frozenset({*self.without, *(("early_combining",) if may_differ else ())})


@dataclass(frozen=True)
class Arriving:
    """A file that arrives."""

    seconds: float
    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Life:
    """The life of one driver."""

    # ``finish``: it runs to its end; ``crash``, ``full disk``, ``stall``: at an operation; ``cancel``, ``drain``:
    # after a time.
    fate: str = "finish"
    at: float = 0.0  # The number of the operation, or the time in seconds.
    machine: str = "first"
    shape: int = 0  # The number of the program's shape.
    pause: float = 0.0  # The time before it starts.
    # A second driver: ``""`` for none, ``polite``, or ``takes over``; and when it starts.
    rival: str = ""
    rival_at: float = 0.0
    rival_machine: str = "first"


@dataclass(frozen=True)
class Program:
    shapes: tuple[Shape, ...]  # The pipeline, and what it is changed to.
    files: tuple[Arriving, ...]
    lives: tuple[Life, ...]  # The last one runs to its end.
    clock_step: float = 0.0  # By how many seconds a clock is set at some time.
    is_calm: bool = False  # Whether what is unlikely does not happen.

    def __str__(self) -> str:
        lines = [f"pipeline {shape}" for shape in self.shapes]
        lines += [f"file     {file}" for file in self.files]
        lines += [f"driver   {life}" for life in self.lives]
        return "\n".join([*lines, f"clock set by {self.clock_step}"])

    def label_of(self, name: str) -> str:
        """The source that gets a file with a name."""
        there = {label for shape in self.shapes for label in shape.kinds}
        # Half of the files are for the first source, or three of four if the second one is not there.
        turn = (READ, READ_MORE, READ, READ_THIRD)[int(name[:2]) % 4]
        if turn == READ_THIRD and READ_THIRD not in there:
            turn = READ_MORE
        return turn if turn in there else READ

    def kind_of(self, label: str) -> str:
        """The kind of a source that at least one shape has."""
        return next(shape.kinds[label] for shape in self.shapes if label in shape.kinds)


def partition_of(name: str) -> str:
    """The partition of a log that gets the lines of a file with a name."""
    return f"p{int(name[:2]) % 3}"


def policy_of(shape: Shape, label: str) -> Any:
    """Of the watermark of a source."""
    delay = shape.delay if label == READ else shape.more_delay
    by_partition = shape.by_partition and shape.kinds[label] == "log"
    policy: Any = BoundedDisorder(delay, per_partition=by_partition)
    return policy if shape.idle is None else IdleTimeout(policy, shape.idle)


class Line(NamedTuple):
    """A row of the table."""

    line: str


def event_time(line: str) -> int:
    return START + int(line.split(",")[2])


def parsed(line: str) -> tuple[str, int]:
    key, value, _, _ = line.split(",")
    return key, int(value)


def shown(pair: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> str:
    return line_of(pair[0], pair[1], window, pane)


def line_of(key: str, value: Any, window: Any, pane: Any) -> str:
    """A pane as a line."""
    start = getattr(window, "start", None)
    held = "+".join(map(str, sorted(value))) if isinstance(value, (list, tuple)) else value
    line = f"{key} {held} {None if start is None else start.seconds() - START}"
    return line if pane is None else f"{line} {pane.index} {pane.timing}"


def shown_sum(pair: Any, window: Any = beam.DoFn.WindowParam) -> str:
    """A pane of a round, which has no number."""
    return line_of(pair[0], pair[1], window, None)


def late_line(pair: tuple[str, Any]) -> str:
    return f"{pair[0]} {pair[1]}"


class Calls:
    """A function of the user's that remembers its calls by the number of the micro-batch."""

    def __init__(self) -> None:
        self.by_number: dict[int, list[list[str]]] = {}

    def __call__(self, elements: list[str], number: int) -> None:
        self.by_number.setdefault(number, []).append(sorted(elements))


def pipeline_of(shape: Shape, calls: Calls) -> beam.Pipeline:
    pipeline = beam.Pipeline()
    if shape.host:
        _add_native(pipeline, shape, calls)
        return pipeline
    read = [pipeline | label >> _read_of(shape, label) for label in shape.kinds]
    lines = read[0] if len(read) == 1 else tuple(read) | "All" >> beam.Flatten()
    write_lines = beam.io.WriteToText(f"{OUTPUT}/lines", num_shards=shape.files_per_write or 0)
    if shape.lines_too or shape.grouping == "none":
        _ = lines | "WriteLines" >> write_lines
    write_table = "WriteTable" >> WriteToDatabase(URL, TABLE, create=True)
    if shape.grouping == "none":
        if shape.table_too:
            _ = lines | "Row" >> beam.Map(Line).with_output_types(Line) | write_table
        return pipeline
    window = _windows(shape)
    parsed_lines = lines | "Parse" >> beam.Map(parsed)
    pairs = parsed_lines | "Windows" >> window
    group: Any = beam.CombinePerKey(sum) if shape.grouping == "sum" else beam.GroupByKey()
    if shape.late_output:
        panes, late = pairs | "Group" >> group.with_late_data()
        _ = late | "ShowLate" >> beam.Map(late_line) | "WriteLate" >> beam.io.WriteToText(f"{OUTPUT}/late")
    else:
        panes = pairs | "Group" >> group
    shown_panes = panes | "Show" >> beam.Map(shown)
    write = beam.io.WriteToText(f"{OUTPUT}/panes", num_shards=shape.files_per_write or 0)
    _ = shown_panes | "WritePanes" >> write
    for part in shape.parts:
        write = beam.io.WriteToText(f"{OUTPUT}/{part}", num_shards=shape.files_per_write or 0)
        _ = lines_of(part, parsed_lines, panes) | f"Write {part}" >> write
    if shape.table_too:
        _ = shown_panes | "Row" >> beam.Map(Line).with_output_types(Line) | write_table
    if shape.calls_too:
        _ = shown_panes | "Call" >> ForEachBatch(calls)
    return pipeline


def _windows(shape: Shape) -> Any:
    return beam.WindowInto(
        WINDOWS[shape.windows],
        trigger=shape.trigger_of_windows,
        accumulation_mode=MODES[shape.accumulation],
        allowed_lateness=shape.lateness,
    )


def _add_native(pipeline: beam.Pipeline, shape: Shape, calls: Calls) -> None:
    """Adds steps whose grouping Spark's own aggregate does."""
    if shape.host == "columns":
        read = ReadFromParquet(f"{FOLDERS[READ]}/*.txt", validate=False, as_rows=True)
        limit = shape.files_per_batch
        stream = read.as_stream(
            "at", policy_of(shape, READ), existing_only=shape.ends, max_files_per_batch=limit
        )
        grouped = beam.GroupBy("key").aggregate_field("value", sum, "value")
        panes = pipeline | READ >> stream | "Windows" >> _windows(shape) | "Group" >> grouped
    else:
        pairs = pipeline | READ >> _read_of(shape, READ) | "Parse" >> beam.Map(parsed)
        panes = pairs | "Windows" >> _windows(shape) | "Group" >> beam.CombinePerKey(sum)
    if shape.is_written:
        _ = panes | "WritePanes" >> WriteToParquet(
            f"{OUTPUT}/panes", TOTALS, num_shards=shape.files_per_write or 0
        )
        return
    shown_panes = panes | "Show" >> beam.Map(shown_sum if shape.mode == "micro_batch" else shown)
    write = beam.io.WriteToText(f"{OUTPUT}/panes", num_shards=shape.files_per_write or 0)
    _ = shown_panes | "WritePanes" >> write
    if shape.table_too:
        write_table = "WriteTable" >> WriteToDatabase(URL, TABLE, create=True)
        _ = shown_panes | "Row" >> beam.Map(Line).with_output_types(Line) | write_table
    if shape.calls_too:
        _ = shown_panes | "Call" >> ForEachBatch(calls)


def _read_of(shape: Shape, label: str) -> Any:
    limit = shape.files_per_batch
    if shape.kinds[label] == "log":
        return ReadFromSource(Records(shape.asks_once, shape.poll)).as_stream(
            event_time, policy_of(shape, label), existing_only=shape.ends, max_records_per_batch=limit
        )
    return beam.io.ReadFromText(f"{FOLDERS[label]}/*.txt", validate=False).as_stream(
        event_time, policy_of(shape, label), existing_only=shape.ends, max_files_per_batch=limit
    )


def plan_of(shape: Shape, calls: Calls) -> Any:
    settings = PipelineOptions([f"--mode={shape.mode}"], without=[*shape.switched_off]).view_as(SparkOptions)
    graph = pipeline_of(shape, calls).to_graph()
    plan: Any = (
        SparkRunner().compiled(graph, settings, lambda step, source: table_of_schema(SCORES, "row")).plan
    )
    assert (plan.by_spark is not None) == bool(shape.host), shape
    assert (plan.columns is not None and plan.columns.is_written) == shape.is_written, shape
    return plan


# Generators.


def random_shape(at: Random) -> Shape:
    grouping = at.choice(("sum", "sum", "list", "none"))
    windows = at.choice(tuple(WINDOWS))
    mode = at.choice(("streaming", "streaming", "streaming", "micro_batch"))
    # Another part, or another end, changes no other choice of a seed.
    seed = at.random()
    of_parts, of_ends, of_more = Random(seed), Random(f"ends {seed}"), Random(f"more {seed}")
    source = of_ends.choice(("files", "files", "log"))
    more = random_more(of_more, source) if of_more.random() < 0.3 else ""
    has_log = "log" in (source, more)
    parts = random_parts(of_parts, grouping, windows) if mode == "streaming" else ()
    return Shape(
        source=source,
        more=more,
        more_delay=of_more.choice((0, 3, 8)),
        more_first=of_more.random() < 0.5,
        third=of_more.random() < 0.15,
        by_partition=has_log and of_ends.random() < 0.5,
        asks_once=has_log and of_ends.random() < 0.5,
        poll=of_ends.choice((0.1, 0.1, 3.0)) if has_log else 0.1,
        table_too=of_ends.random() < 0.3,
        windows=windows,
        # Global windows without an end of the input need a trigger.
        trigger=at.choice(tuple(TRIGGERS)[windows == "global" :]),
        accumulation=at.choice(tuple(MODES)),
        lateness=at.choice((0, 0, 7)),
        grouping=grouping,
        late_output=at.random() < 0.2,
        lines_too=at.random() < 0.4,
        calls_too=at.random() < 0.2,
        delay=at.choice((0, 3, 8)),
        idle=at.choice((None, None, 5)),
        files_per_batch=at.choice((None, 1, 1, 2)),
        shards=at.choice((1, 2, 3)),
        files_per_write=at.choice((None, None, 1, 2)),
        ends=at.random() < 0.6,
        mode=mode,
        interval=at.choice((None, None, None, 0.5)),
        without=tuple(
            name for name in ("early_combining", "window_columns", "inline_sinks") if at.random() < 0.2
        ),
        parts=parts,
    )


def random_parts(at: Random, grouping: str, windows: str) -> tuple[str, ...]:
    parts = [
        part
        for part in ORACLES
        if part not in OTHERWISE.values()
        and at.random() < 0.15
        and grouping != "none"
        # The panes of the global window have no time of their own.
        and (part != "totals" or windows != "global")
    ]
    return tuple(OTHERWISE[part] if part in OTHERWISE and at.random() < 0.5 else part for part in parts)


def random_more(at: Random, source: str) -> str:
    """The kind of a second source."""
    return at.choice(("files", "log")) if source == "files" else "files"


def by_spark(at: Random, shape: Shape) -> Shape:
    """The shape with a grouping that Spark's own aggregate does."""
    host = at.choice(("columns", "columns", "parts"))
    mode = "micro_batch" if host == "parts" else at.choice(("streaming", "streaming", "micro_batch"))
    is_round = mode == "micro_batch"
    windows = ("fixed", "fixed", "sliding", "global") if host == "parts" else ("fixed", "fixed", "global")
    is_written = host == "columns" and at.random() < 0.4
    windows_of = at.choice(windows) if is_round else "fixed"
    return replace(
        shape,
        host=host,
        is_written=is_written,
        table_too=shape.table_too and not is_written,
        calls_too=shape.calls_too and not is_written,
        mode=mode,
        source=at.choice(("files", "log")) if host == "parts" else "files",
        more="",
        third=False,
        by_partition=False,
        idle=None,
        windows=windows_of,
        trigger="default",
        accumulation="accumulating",
        lateness=at.choice((0, 0, 7)) if is_round and windows_of != "global" else 0,
        grouping="sum",
        late_output=False,
        lines_too=False,
        parts=(),
    )


def changed_by_spark(at: Random, shape: Shape) -> Shape:
    """A change that continues from a checkpoint with Spark's own aggregate."""
    part = at.choice(("call", "delay", "files", "limit"))
    return with_change(at, shape, "limit" if part == "call" and shape.is_written else part)


def by_spark_program(at: Random, program: Program) -> Program:
    """The program with a grouping that Spark's own aggregate does, and perhaps a file that Spark does not read."""
    shapes = [by_spark(at, program.shapes[0])]
    if at.random() < 0.3:
        shapes.append(changed_by_spark(at, shapes[0]))
    lives = [replace(life, shape=at.randrange(len(shapes))) for life in program.lives]
    files = list(program.files)
    if shapes[0].host == "columns" and at.random() < 0.3:
        number = at.randrange(len(files))
        key, value = files[number].lines[0].split(",", 1)
        files[number] = replace(files[number], lines=(f"{key},+{value}", *files[number].lines[1:]))
        # The run that finds it fails, and the next one reads it.
        lives.append(replace(lives[-1], pause=0.0))
    return replace(program, shapes=tuple(shapes), files=tuple(files), lives=tuple(lives))


def changed(at: Random, shape: Shape) -> Shape:
    """A change that continues from a checkpoint."""
    return with_change(at, shape, at.choice(("sink", "sink", "call", "delay", "files", "limit")))


def with_change(at: Random, shape: Shape, part: str) -> Shape:
    """The shape with another value of a part."""
    match part:
        case "sink":
            return replace(shape, lines_too=not shape.lines_too)
        case "call":
            return replace(shape, calls_too=not shape.calls_too)
        case "delay":
            return replace(shape, delay=shape.delay + 2)
        case "files":
            return replace(shape, files_per_write=at.choice((None, 1, 2, 3)))
        case _:
            return replace(shape, files_per_batch=at.choice((None, 1, 2)))


def one_after_the_other(lives: list[Life]) -> list[Life]:
    """No driver goes back to an earlier shape."""
    numbers = sorted(life.shape for life in lives)
    return [replace(life, shape=number) for life, number in zip(lives, numbers, strict=True)]


def with_another_plan(at: Random, shapes: list[Shape], lives: list[Life]) -> tuple[list[Shape], list[Life]]:
    """One more shape, for which Spark's part of the checkpoint is rewritten or the state is given up."""
    shape = shapes[-1]
    change = at.choice(("shards", "source", "order", "source", "part", "part"))
    after = written_anew(at, shape, change)
    if after == shape:
        return shapes, lives
    if len(lives) == 1:
        lives = [random_life(at, 1), *lives]
    lives = [life if at.random() < 0.4 else replace(life, shape=len(shapes)) for life in lives]
    shapes = [*shapes, after]
    if change in ("source", "part") or shapes[0].lines_too != shapes[-1].lines_too:
        lives = one_after_the_other(lives)
    return shapes, lives


def written_anew(at: Random, shape: Shape, change: str) -> Shape:
    """A shape with other shards, sources or levels."""
    match change:
        case "order" if len(shape.kinds) > 1:
            return replace(shape, more_first=not shape.more_first)
        case "source" if at.random() < 0.4:
            return replace(shape, third=not shape.third)
        case "source":
            more = "" if shape.more else random_more(at, shape.source)
            return replace(shape, more=more)
        case "part" if shape.grouping != "none" and shape.mode == "streaming":
            part = at.choice(MOVABLE)
            if part in shape.parts:
                return replace(shape, parts=tuple(each for each in shape.parts if each != part))
            if part == "totals" and shape.windows == "global":
                return shape
            return replace(shape, parts=(*shape.parts, part))
        case _:
            return replace(shape, shards=at.choice([each for each in (1, 2, 3, 4) if each != shape.shards]))


def random_files(at: Random, at_once: bool) -> Iterator[Arriving]:
    seconds, number = 0.0, 0
    for file in range(at.choice((1, 2, 3, 3, 4, 6))):
        seconds += 0.0 if at_once else at.choice((0.0, 0.0005, 0.3, 1.0, 3.0))
        lines = []
        for _ in range(at.choice((1, 1, 2, 3, 5))):
            second = max(0, round(file * 6 + at.gauss(0, 5)))
            lines.append(f"{at.choice(KEYS)},{at.randrange(1, 9)},{second},{number}")
            number += 1
        yield Arriving(seconds, f"{file:02d}.txt", tuple(lines))


def random_life(at: Random, shapes: int) -> Life:
    fate = at.choice(("crash", "crash", "crash", "cancel", "full disk", "drain", "stall"))
    if fate in ("crash", "full disk", "stall"):
        when = float(at.choice((at.randrange(1, 40), at.randrange(1, 120))))
    else:
        when = at.choice((0.0, 0.0, at.random() * 2, at.random() * 8))
    rival = at.choice(("", "", "", "", "polite", "takes over"))
    if fate == "stall":
        rival = at.choice(("polite", "takes over"))
    return Life(
        fate,
        when,
        at.choice(("first", "first", "first", "second")),
        at.randrange(shapes),
        at.choice((0.0, 0.0, 0.5, 3.0)),
        rival,
        at.random() * 4,
        "second" if fate == "stall" else at.choice(("first", "first", "second")),
    )


def random_program(seed: int, native: float = NATIVE) -> Program:
    """The program of a seed; `native` is how often Spark's own aggregate does its grouping, if there is one."""
    at = Random(seed)
    shapes = [random_shape(at)]
    if shapes[0].grouping != "none" and at.random() < 0.4:
        shapes.append(changed(at, shapes[0]))
    lives = [random_life(at, len(shapes)) for _ in range(at.choice((0, 1, 1, 2, 2, 3)))]
    machine = at.choice(("first", "first", "first", "second"))
    lives.append(Life("finish", 0.0, machine, at.randrange(len(shapes)), at.choice((0.0, 3.0))))
    if shapes[0].lines_too != shapes[-1].lines_too:
        # A sink that was given up does not come back: its files would be in the way.
        lives = one_after_the_other(lives)
    of_rewriting = Random(f"rewriting {seed}")
    if of_rewriting.random() < 0.25:
        shapes, lives = with_another_plan(of_rewriting, shapes, lives)
    program = Program(
        tuple(shapes),
        tuple(random_files(at, shapes[0].ends and at.random() < 0.6)),
        tuple(lives),
        at.choice((0.0, 0.0, 5.0, -5.0, -5.0)),
        is_calm=at.random() < 0.1,
    )
    of_native = Random(f"native {seed}")
    return by_spark_program(of_native, program) if of_native.random() < native else program
