"""A Spark of one process: it keeps what Structured Streaming promises, and nothing more.

- The offsets of a micro-batch are logged before it runs, and a commit afterwards. One without a commit runs again, with
  the same offsets and the same time, on the state of the version before.
- A source of files logs which files it has chosen before the offsets are logged. If the driver dies in between, these
  files are read together with the next ones.
- Tasks run in any order. Each may run twice, and either attempt may count; the other one may go on for long. Rows that
  were kept may be lost, and are computed again.
- A query that is stopped ends where it is: within a job, or before or after it notes a commit.
- Spark's own aggregate loads the state of the micro-batch before, and follows the watermark of that one, which is in
  the logs. While the watermark moves on, micro-batches without data follow; after a restart, the first one waits for
  data.
"""

from __future__ import annotations

import io
import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from penstock.utils import clock
from penstock_spark.checkpoints.resharding import HEARTBEAT_SLOT
from penstock_spark.lowering.batch_writer import Size
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.shard_keys import shard_keys
from penstock_spark.sources.stream_files import CHANGED, FILE, START
from penstock_spark.stream.transport.control import COMMAND, HEARTBEAT
from tests.runner.native_host import aggregate, runs_without_data
from tests.simulation.simulated_disk import Disk, File, FileUtil, Folder, HadoopPath, plain
from tests.simulation.simulated_world import Process, World

SECOND_MICROS = 1_000_000
_IDLE_SECONDS = 10.0
"""How often a query tells that it has found nothing new."""

_SHUFFLES = "spark.sql.shuffle.partitions"
_WITHOUT_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"

COMPACT_EVERY = 10
"""Spark's log of files has the files of all earlier entries in every tenth entry."""

Row = tuple[int, int, bytes]
"""Level, key of the shard, and payload."""

_CANCELLED = "Job 7 cancelled part of cancelled job group"


class Interrupted(Exception):
    """The thread of a query was interrupted."""


class Accumulator:
    """What tasks add counts when Spark takes the task for done."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.value: dict[Any, Any] = {}

    def add(self, more: dict[Any, Any]) -> None:
        self._world.current.task.added.append(more)


class Session:
    """A SparkSession of one driver."""

    version = pyspark.__version__

    def __init__(self, world: World, disk: Disk, process: Process) -> None:
        self.world, self.disk, self.process = world, disk, process
        self.executors = Process(f"executors of {process.name}", process.machine, process.number + 1)
        self.metrics = Accumulator(world)
        self.on_begin: Callable[[int], None] = lambda number: None  # Called with each try of a micro-batch,
        self.on_added: Callable[[dict[Any, Any]], None] = lambda added: None  # and with what its tasks tell.
        self.readStream: Any = None
        self.range: Any = None
        # Somebody has switched off what a grouping with a watermark needs.
        settings: dict[str, Any] = {_WITHOUT_DATA: "false"}
        self.conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
        cores = 1 + process.number // 10 % 4
        self.sparkContext = SimpleNamespace(
            master="spark://sim",
            appName="sim",
            defaultParallelism=cores,
            getLocalProperty=lambda name: None,
            setLocalProperty=lambda name, value: None,
        )
        self._jsc = SimpleNamespace(hadoopConfiguration=lambda: None)
        path = type("Path", (HadoopPath,), {"disk": disk})
        own = SimpleNamespace(current=lambda: SimpleNamespace(pid=lambda: process.number))
        self._jvm = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path, FileUtil=FileUtil(disk)))
                )
            ),
            java=SimpleNamespace(lang=SimpleNamespace(ProcessHandle=own)),
        )


# Sources.


@dataclass(eq=False)
class Source:
    """One source of a query, and the function that its tasks run."""

    function: Callable[[Iterator[Any]], Iterator[Any]] | None = None

    description = "RateStreamV2"

    def begin(self, query: Query, number: int) -> None:
        """The query starts, or starts again."""

    def latest(self, before: Any, query: Query) -> Any:
        """The offset to read up to now."""
        raise NotImplementedError

    def has_news(self, before: Any, query: Query) -> bool:
        """True if there may be something to read; cheap."""
        raise NotImplementedError

    def wakes_in(self, before: Any, query: Query) -> float | None:
        """In how many seconds something is to be read; None if that is not known."""
        return None

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[Any]:
        """What each task gets: rows for shards, or records for the function."""
        raise NotImplementedError

    def newest(self) -> Any:
        """The offset of all that there is, for reports; None if it is unknown."""

    def committed(self, end: Any) -> None:
        """The query will not read again what is before an offset."""

    def shown(self, offset: Any) -> str:
        """An offset in a report: a text of JSON, as PySpark gives it, and ``null`` if there is none."""
        return json.dumps(offset)


@dataclass(eq=False)
class Numbers(Source):
    """A row for each micro-batch, which is its number."""

    to_rows: Callable[[int], list[Row]] = lambda clock_micros: []

    def latest(self, before: Any, query: Query) -> Any:
        return (before or 0) + 1

    def has_news(self, before: Any, query: Query) -> bool:
        return True

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[Any]:
        if self.function is None:
            return [self.to_rows(clock_micros)]
        return [[pa.RecordBatch.from_pydict({"value": [end - 1]})]]


_YEARS_OF_PYTHON_MICROS = 9_000 * 365 * 86_400 * SECOND_MICROS


def told_time(micros: int) -> str:
    """A watermark as Spark tells it."""
    if micros > _YEARS_OF_PYTHON_MICROS:
        return "+294247-01-09T04:00:44.775Z"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def last_commit(disk: Disk, location: str) -> int:
    """The number of the last finished micro-batch; -1 without one."""
    return max((int(name) for name in disk.names(f"{location}/commits") if name.isdecimal()), default=-1)


def logged_offsets(content: str) -> tuple[int, tuple[Any, ...]]:
    """The time of a micro-batch in an entry of the log of offsets, and how far it reads each source."""
    _, about, *told = content.split("\n")
    return json.loads(about)["clock"], tuple(None if end == "-" else json.loads(end) for end in told)


def watermark_of(disk: Disk, location: str, number: int) -> int:
    """The watermark of a micro-batch."""
    return _noted_of(disk, f"{location}/offsets/{number}").get("watermark", 0) * 1_000


def watermark_after(disk: Disk, location: str, number: int) -> int:
    """The watermark for the one after it."""
    return _noted_of(disk, f"{location}/commits/{number}")["nextBatchWatermarkMs"] * 1_000


def _noted_of(disk: Disk, path: str) -> Any:
    found = disk.find(path)
    assert isinstance(found, File), path
    return json.loads(found.content.split(b"\n")[1])


def files_noted(disk: Disk, location: str, source: int, start: Any, end: Any) -> Iterator[tuple[str, int]]:
    """The files between two offsets, and when they changed, as the log of their source tells."""
    first, last = (-1 if each is None else each["logOffset"] for each in (start, end))
    log = f"{location}/sources/{source}"
    names = disk.names(log)
    for number in range(first + 1, last + 1):
        name = str(number) if str(number) in names else f"{number}.compact"
        found = disk.find(f"{log}/{name}")
        assert isinstance(found, File), f"{log}/{name}"
        for line in found.content.decode().splitlines()[1:]:
            entry = json.loads(line)
            if entry["batchId"] == number:
                yield entry["path"], entry["timestamp"]


@dataclass(frozen=True)
class Noted:
    """What the checkpoint says of a micro-batch in the moment in which it is done."""

    number: int
    location: str
    clock_micros: int
    starts: tuple[Any, ...]
    ends: tuple[Any, ...]
    files: tuple[tuple[tuple[str, int], ...], ...]  # Of each source; none if it has no files.


def noted(disk: Disk, location: str, number: int) -> Noted:
    entries = [disk.find(f"{location}/offsets/{each}") for each in (number - 1, number)]
    clock_micros, starts, ends = 0, (), ()
    for entry in entries:
        if isinstance(entry, File):
            clock_micros, ends = logged_offsets(entry.content.decode())
            starts = starts if entry is entries[1] else ends
    starts = starts or (None,) * len(ends)
    files = tuple(
        tuple(files_noted(disk, location, source, start, end))
        if isinstance(end, dict) and "logOffset" in end
        else ()
        for source, (start, end) in enumerate(zip(starts, ends, strict=True))
    )
    return Noted(number, location, clock_micros, starts, ends, files)


@dataclass(eq=False)
class Seconds(Source):
    """A row for each second since the query first began, by the clock of its machine."""

    to_rows: Callable[[int], list[Row]] = lambda clock_micros: []
    began_micros: int = 0
    last_micros: int = 0  # The latest time that the clock has shown since the runner last looked at it.

    def begin(self, query: Query, number: int) -> None:
        log = f"{query.location}/sources/{number}"
        found = query.disk.find(f"{log}/0")
        if isinstance(found, File):
            self.began_micros = int(found.content.split(b"\n")[1]) * 1_000
        else:
            self.began_micros = query.now_micros()
            query.log(log, "0", b"v1\n%d" % (self.began_micros // 1_000))
        self.last_micros = max(self.began_micros, self.last_micros)

    def latest(self, before: Any, query: Query) -> Any:
        self.last_micros = max(self.last_micros, query.now_micros())
        return (self.last_micros - self.began_micros) // SECOND_MICROS

    def has_news(self, before: Any, query: Query) -> bool:
        return bool(self.latest(before, query) != (before or 0))

    def wakes_in(self, before: Any, query: Query) -> float | None:
        due = self.began_micros + ((before or 0) + 1) * SECOND_MICROS
        return max(0.0, (due - query.now_micros()) / 1e6)

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[Any]:
        if (start or 0) > end:
            raise RuntimeError(f"assertion failed: startSeconds({start}) > endSeconds({end})")
        numbers = list(range(start or 0, end))
        times = [self.began_micros + number * SECOND_MICROS for number in numbers]
        if self.function is None:
            return [self.to_rows(clock_micros) * min(10, len(numbers))] if numbers else []
        columns = {"value": numbers, "timestamp_micros": times, "clock": [clock_micros] * len(numbers)}
        return [[pa.RecordBatch.from_pydict(columns)]] if numbers else []


@dataclass(eq=False)
class Files(Source):
    """The files of a folder, in the order in which they have changed; each is read once."""

    folder: str = ""
    limit: int | None = None  # How many a micro-batch reads.
    to_rows: Callable[[int, str], list[Row]] | None = None  # For lines that become rows without a function.
    has_changes: bool = True  # Whether its rows tell when a file has changed.

    columns = ["value", FILE, START, CHANGED]

    def __post_init__(self) -> None:
        self.description = f"FileStreamSource[file:{self.folder}]"

    def begin(self, query: Query, number: int) -> None:
        self._log = f"{query.location}/sources/{number}"
        self._disk, self._place = query.disk, (query.location, number)
        query.world.change(f"make {self._log}", lambda: query.disk.make(self._log))
        self._entries: list[list[tuple[str, int]]] = []
        self._unread: list[tuple[str, int]] = []
        while (entry := self._entry(query, len(self._entries))) is not None:
            self._entries.append(entry)
        self._seen = {name for entry in self._entries for name, _ in entry}
        self._looked: tuple[int, ...] = ()
        self._version = -1  # Of the disk, when somebody last asked for news.

    def _entry(self, query: Query, number: int) -> list[tuple[str, int]] | None:
        for name in (str(number), f"{number}.compact"):
            found = query.disk.find(f"{self._log}/{name}")
            if isinstance(found, File):
                lines = map(json.loads, found.content.decode().splitlines()[1:])
                return [(each["path"], each["timestamp"]) for each in lines if each["batchId"] == number]
        return None

    def latest(self, before: Any, query: Query) -> Any:
        chosen, self._unread = self._unread, []
        if not chosen:
            self._looked, self._version = self._state(query), -1
            query.world.look(f"list {self.folder}")
            folder = query.disk.find(self.folder)
            found = sorted(folder.children.items()) if isinstance(folder, Folder) else []
            visible = [
                (name, node.changed_millis)
                for name, node in found
                if isinstance(node, File) and not name.startswith((".", "_"))
            ]
            new = [(name, millis) for name, millis in visible if name not in self._seen]
            chosen = sorted(new, key=lambda file: file[1])
        if self.limit is not None:
            chosen, self._unread = chosen[: self.limit], chosen[self.limit :]
            if len(self._unread) < 0.2 * self.limit:
                self._unread = []
        if chosen:
            self._note(query, chosen)
        return {"logOffset": len(self._entries) - 1} if self._entries else None

    def _note(self, query: Query, chosen: list[tuple[str, int]]) -> None:
        number = len(self._entries)
        is_compact = (number + 1) % COMPACT_EVERY == 0
        entries = [*enumerate(self._entries), (number, chosen)] if is_compact else [(number, chosen)]
        lines = [
            json.dumps({"path": name, "timestamp": millis, "batchId": at})
            for at, files in entries
            for name, millis in files
        ]
        query.log(
            self._log, f"{number}.compact" if is_compact else str(number), "\n".join(["v1", *lines]).encode()
        )
        self._entries.append(chosen)
        self._seen.update(name for name, _ in chosen)

    def has_news(self, before: Any, query: Query) -> bool:
        if self._version != query.disk.version:
            self._version = query.disk.version
            self._is_changed = self._state(query) != self._looked
        return bool(self._unread) or self._is_changed

    def _state(self, query: Query) -> tuple[int, ...]:
        folder = query.disk.find(self.folder)
        return (folder.changed_millis, len(folder.children)) if isinstance(folder, Folder) else ()

    def files_of(self, start: Any, end: Any) -> list[tuple[str, int]]:
        first, last = (-1 if each is None else each["logOffset"] for each in (start, end))
        if last >= len(self._entries):
            # A query that was taken for dead has noted them since.
            return list(files_noted(self._disk, *self._place, start, end))
        return [file for entry in self._entries[first + 1 : last + 1] for file in entry]

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[Any]:
        random = Random(f"{query.cuts} {start} {end}")
        parts: list[Any] = []
        for name, millis in self.files_of(start, end):
            found = query.disk.find(f"{self.folder}/{name}")
            assert isinstance(found, File)
            lines = found.content.decode().splitlines()
            if self.to_rows is not None:
                parts.append([row for line in lines for row in self.to_rows(clock_micros, line)])
                continue
            cut = random.randrange(1, len(lines)) if len(lines) > 1 and random.random() < 0.3 else len(lines)
            for at, some in ((0, lines[:cut]), (cut, lines[cut:])):
                if some:
                    record = self._record(some, f"file://{self.folder}/{name}", at, millis, clock_micros)
                    # Spark packs small files into one task, as many as it likes.
                    if parts and random.random() < 0.3:
                        parts[-1].append(record)
                    else:
                        parts.append([record])
        return parts

    def _record(self, lines: list[str], file: str, at: int, millis: int, clock_micros: int) -> pa.RecordBatch:
        count = len(lines)
        columns = [pa.array(lines, pa.string()), pa.array([file] * count, pa.string())]
        columns.append(pa.array([at] * count, pa.int64()))
        names = ["value", FILE, START]
        if self.has_changes:
            columns.append(pa.array([millis * 1_000] * count, pa.int64()))
            names.append(CHANGED)
        columns.append(pa.array([clock_micros] * count, pa.int64()))
        return pa.RecordBatch.from_arrays(columns, names=[*names, "clock"])


# Frames.


@dataclass(frozen=True, eq=False)
class Stream:
    """A frame without an end, and the query that it becomes."""

    session: Session
    sources: tuple[Source, ...]
    levels: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    aggregate: Any = None  # Spark's own aggregate, if there is one (see `simulated_native`),
    behind: Any = None  # and the function that its tasks run on what it emits.
    watermark: Any = None  # The watermark that rows move before it is there.
    null: str = ""  # The column that has no value in rows that are grouped.
    columns_of_rows: tuple[str, ...] = ("level", "shard", "payload")

    @property
    def columns(self) -> list[str]:
        return list(getattr(self.sources[0], "columns", []))

    def withColumn(self, name: str, column: Any) -> Stream:
        return self

    def where(self, condition: Any) -> Stream:
        return condition.where(self)  # type: ignore[no-any-return]

    def observe(self, name: str, *columns: Any) -> Stream:
        return self

    def mapInArrow(self, function: Any, schema: Any) -> Stream:
        if self.aggregate is not None:
            return replace(self, behind=function)
        (source,) = self.sources
        source.function = function
        return self

    def unionAll(self, other: Stream) -> Stream:
        native = other if other.aggregate is not None else self
        return replace(native, sources=self.sources + other.sources)

    def groupBy(self, name: str) -> Stream:
        return self

    @property
    def writeStream(self) -> Stream:
        return replace(self, options={})

    def queryName(self, name: str) -> Stream:
        return self

    def outputMode(self, mode: str) -> Stream:
        return self.option("mode", mode)

    def option(self, name: str, value: Any) -> Stream:
        self.options[name] = value
        return self

    def trigger(self, processingTime: str = "", availableNow: bool = False) -> Stream:
        if availableNow:
            return self.option("availableNow", True)
        return self.option("interval", float(processingTime.split()[0]))

    def foreachBatch(self, function: Any) -> Stream:
        return self.option("function", function)

    def format(self, name: str) -> Stream:
        return self.option("function", lambda frame, number: frame.write.format(name).mode("append").save())

    def start(self) -> Query:
        return Query(self)


class Rows:
    """A frame of one micro-batch. Each action computes it anew, unless it is kept."""

    def __init__(
        self, query: Query, compute: Callable[[], list[list[Any]]], columns: tuple[str, ...]
    ) -> None:
        self.query, self.columns = query, columns
        self._compute = compute
        self._is_kept = False
        self._kept: list[list[Any]] | None = None

    def partitions(self) -> list[list[Any]]:
        world = self.query.world
        if self._kept is None or world.random.random() < world.chances.lost:
            found = self._compute()
            self._kept = found if self._is_kept else None
            return found
        return self._kept

    def then(self, change: Callable[[list[list[Any]]], list[list[Any]]], *columns: str) -> Rows:
        return Rows(self.query, lambda: change(self.partitions()), columns or self.columns)

    def persist(self, level: Any) -> Rows:
        self._is_kept = True
        return self

    def unpersist(self) -> None:
        self._kept, self._is_kept = None, False

    def coalesce(self, count: int) -> Rows:
        def joined(parts: list[list[Any]]) -> list[list[Any]]:
            counts = range(min(count, len(parts)))
            return [[row for part in parts[number::count] for row in part] for number in counts]

        return self.then(joined)

    repartition = coalesce

    def limit(self, count: int) -> Rows:
        assert count == 0
        return self.then(lambda parts: [[]])

    def mapInArrow(self, function: Any, schema: Any) -> Rows:
        names = tuple(column.split()[0] for column in schema.split(","))

        def task(rows: list[Any]) -> Iterator[Any]:
            values = list(zip(*rows, strict=True)) or [() for _ in self.columns]
            types = {"tag": pa.int32(), "value": pa.binary()}
            arrays = [pa.array(each, types[name]) for name, each in zip(self.columns, values, strict=True)]
            records = [pa.RecordBatch.from_arrays(arrays, names=list(self.columns))] if rows else []
            for record in function(iter(records)):
                yield from zip(*(column.to_pylist() for column in record.columns), strict=True)

        return self.then(lambda parts: self.query.stage([partial(task, rows) for rows in parts]), *names)

    def collect(self) -> list[Any]:
        rows = [row for part in self.partitions() for row in part]
        return [SimpleNamespace(**dict(zip(self.columns, row, strict=True))) for row in rows]

    def toArrow(self) -> pa.Table:
        rows = [row for part in self.partitions() for row in part]
        values = list(zip(*rows, strict=True)) or [() for _ in self.columns]
        return pa.table([pa.array(each, pa.binary()) for each in values], names=list(self.columns))

    @property
    def sparkSession(self) -> Session:
        return self.query.session

    @property
    def write(self) -> Any:
        def save(target: str) -> None:
            self._save(plain(target))

        columns = SimpleNamespace(partitionBy=lambda *names: SimpleNamespace(save=save))
        return SimpleNamespace(
            format=lambda name: SimpleNamespace(
                mode=lambda mode: SimpleNamespace(save=self.partitions), options=lambda **options: columns
            )
        )

    def _save(self, target: str) -> None:
        """Files of Parquet: one for each partition with rows, and an empty one for the first if none has any."""
        world, disk = self.query.world, self.query.disk
        parts = self.partitions()
        for number, rows in enumerate(parts):
            if rows or (number == 0 and not any(parts)):
                columns = list(zip(*rows, strict=True)) or [() for _ in self.columns]
                content = io.BytesIO()
                pq.write_table(pa.table(dict(zip(self.columns, columns, strict=True))), content)
                path = f"{target}/part-{number:05d}-{world.names.getrandbits(32):08x}.parquet"
                put = partial(disk.put, path, content.getvalue())
                world.change(f"write {path}", put)
        world.change(f"write {target}/_SUCCESS", lambda: disk.put(f"{target}/_SUCCESS", b""))


# What stands in for the few functions of the runner that make Spark's columns.


def pages_of(sink: Any, frame: Rows) -> Rows:
    return pages_in(
        frame.then(lambda parts: [[row for row in part if row[0] == sink.level] for part in parts])
    )


def pages_in(frame: Rows) -> Rows:
    return frame.then(
        lambda parts: [[(0, payload) for _, _, payload in part] for part in parts], "tag", "value"
    )


def sizes_by_level(kept: Rows) -> dict[int, Size]:
    found: dict[int, set[int]] = {}
    for number, part in enumerate(kept.partitions()):
        for level, _, _ in part:
            found.setdefault(level, set()).add(number)
    return {
        level: Size(1 if kept.query.world.random.random() < 0.3 else len(tasks), 0)
        for level, tasks in found.items()
    }


def rows_inside(frame: Rows, sink: Any) -> Rows:
    if sink.takes_columns:
        partitions = sink.plan.partitions
        return frame if partitions is None else frame.repartition(partitions)
    name, kind = str(sink.plan.schema).split()

    def cast(payload: bytes) -> Any:
        return payload.decode() if kind == "string" else payload

    return frame.then(lambda parts: [[(cast(row[2]),) for row in part] for part in parts], name)


def beats(
    plan: Any, context: Any, checkpoint: Any, heartbeat: str, keys: tuple[int, ...], is_live: bool
) -> list[Stream]:
    levels = [level.number for level in plan.levels[:1]]

    def rows(clock_micros: int) -> list[Row]:
        return [(level, key, f"{HEARTBEAT}{clock_micros}".encode()) for level in levels for key in keys]

    match heartbeat:
        case "none":
            return []
        case "numbers":
            return [Stream(context.spark, (Numbers(to_rows=rows if is_live else lambda clock_micros: []),))]
        case _:
            checkpoint.seconds_of(HEARTBEAT_SLOT)
            # A clock that is set back between this look and Spark's first one is not simulated: see docs/trust.md.
            return [Stream(context.spark, (Seconds(to_rows=rows, last_micros=clock.micros()),))]


def commands(plan: Any, context: Any, checkpoint: Any, keys: tuple[int, ...]) -> list[Stream]:
    if not plan.levels:
        return []

    def rows(clock_micros: int, line: str) -> list[Row]:
        text = f"{COMMAND}{clock_micros} {line}".encode()
        return [(level.number, key, text) for level in plan.levels for key in keys]

    return [Stream(context.spark, (Files(folder=plain(checkpoint.control_location), to_rows=rows),))]


# Queries.


@dataclass(eq=False)
class Task:
    """What a task knows of itself, and what it has told."""

    number: int
    batch: int
    added: list[dict[Any, Any]] = field(default_factory=list)
    states: list[tuple[Any, dict[Any, Any]]] = field(default_factory=list)
    groups: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # How many a partition keeps, and has dropped.

    def partitionId(self) -> int:
        return self.number

    def getLocalProperty(self, name: str) -> str:
        return str(self.batch)


class Pages:
    """The state of one shard in one micro-batch: Spark's ``MapState``."""

    def __init__(self, pages: dict[Any, Any]) -> None:
        self.pages = dict(pages)

    def getMapState(self, name: str, keys: Any, values: Any) -> Pages:
        return self

    def getValue(self, key: Any) -> Any:
        return self.pages.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.pages[key] = value

    def removeKey(self, key: Any) -> None:
        self.pages.pop(key, None)


def keys_of(level: Any) -> tuple[int, ...]:
    """The keys of the shards of a level, or of what takes the state of a level in."""
    own: tuple[int, ...] | None = getattr(level, "_shard_keys", None)
    return own or shard_keys(level._shards)


@dataclass(frozen=True)
class Planned:
    """What a micro-batch reads: an entry of the log of offsets."""

    number: int
    clock_micros: int
    starts: tuple[Any, ...]
    ends: tuple[Any, ...]
    watermark_micros: int = 0  # The watermark that ends groups in it,
    late_micros: int = 0  # and that of the micro-batch before, for which rows are late.


class Jobs:
    """Runs tasks on the executors of a driver."""

    def __init__(self, session: Session) -> None:
        self.session, self.world, self.disk = session, session.world, session.disk

    @property
    def stops(self) -> bool:
        """True if somebody wants its jobs to end."""
        return False

    @property
    def batch(self) -> int:
        """The number of the micro-batch."""
        return 0

    def stage(self, bodies: list[Callable[[], Iterable[Any]]]) -> list[list[Any]]:
        """Runs tasks in any order; each may be tried twice."""
        results: list[list[Any]] = [[] for _ in bodies]
        order = list(range(len(bodies)))
        self.world.random.shuffle(order)
        for number in order:
            results[number] = self._task(number, bodies[number])
        return results

    def take_groups(self, groups: dict[int, tuple[int, int]]) -> None:
        """Notes what a task tells of its groups."""

    def _task(self, number: int, body: Callable[[], Iterable[Any]]) -> list[Any]:
        world, chances = self.world, self.world.chances
        batch = self.batch
        if self.stops and world.random.random() < 0.5:
            raise RuntimeError(_CANCELLED)
        if world.random.random() < chances.straggler:
            world.start("straggler", self.session.executors, lambda: self._straggle(number, batch, body))
        if world.random.random() < chances.twice:
            self._attempt(number, batch, body)
        rows = self._attempt(number, batch, body)
        world.now_micros += world.random.randrange(100_000)
        return rows

    def _attempt(self, number: int, batch: int, body: Callable[[], Iterable[Any]]) -> list[Any]:
        """One attempt of a task that is done: its state is stored, and what it counted counts."""
        task = Task(number, batch)
        actor = self.world.current
        actor.task = task
        try:
            rows = list(body())
        finally:
            actor.task = None
        for path, pages in task.states:
            # A driver that has stood still may have lost the checkpoint, and its tasks do not know.
            self.world.change(f"store the state {path}", partial(self.disk.put, path, pages))
        self.take_groups(task.groups)
        for added in task.added:
            self.session.metrics.value.update(added)
            self.session.on_added(added)
        return rows

    def _straggle(self, number: int, batch: int, body: Callable[[], Iterable[Any]]) -> None:
        """An attempt that Spark has given up, and that goes on nevertheless; nobody hears of its end."""
        self.world.current.task = Task(number, batch)
        self.world.wait(self.world.random.random() * 3)
        try:
            for _ in body():
                self.world.wait(self.world.random.random())
        except Exception as error:
            self.world.note(f"a straggler fails: {type(error).__name__}")


class Query(Jobs):
    """A running query."""

    def __init__(self, stream: Stream) -> None:
        session = stream.session
        super().__init__(session)
        self.sources, self.levels = stream.sources, stream.levels
        self.location = plain(stream.options["checkpointLocation"])
        self._function = stream.options["function"]
        self._interval: float | None = stream.options.get("interval")
        self._reads_what_is_there = bool(stream.options.get("availableNow"))
        self._failure: Exception | None = None
        self._stops = False
        self.isActive = True
        self._progress: deque[dict[str, Any]] = deque(maxlen=100)
        self.status = {"message": "Initializing sources", "isDataAvailable": False, "isTriggerActive": False}
        self._jsq = SimpleNamespace(lastProgress=self._java_progress)
        self.planned: Planned | None = None
        self._aggregate, self._behind = stream.aggregate, stream.behind
        self._columns = stream.columns_of_rows
        self._updates = stream.options.get("mode") == "update"
        self._watermark_micros = 0  # For the next micro-batch.
        self._evicted_micros: int | None = None  # That of the last one of this run.
        self._operator: dict[int, tuple[int, int]] = {}  # What partitions tell of their groups.
        self._runs_without_data = session.conf.get(_WITHOUT_DATA) == "true"
        self._told_micros = 0
        shards = str(len(keys_of(self.levels[0]))) if self.levels else session.conf.get(_SHUFFLES, "1")
        self._conf = {_SHUFFLES: shards}
        # Decides how micro-batches are cut into tasks: in the same way wherever as many may read at the same time.
        kind = (self.location, parallelism_of(session))
        self.cuts = self.disk.cuts.setdefault(kind, self.world.names.getrandbits(32))
        self._actor = self.world.start("query", session.process, self._run)

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return list(self._progress)

    def _java_progress(self) -> Any:
        progress = self.lastProgress
        if progress is None:
            return None
        return SimpleNamespace(batchId=lambda: progress["batchId"], timestamp=lambda: progress["timestamp"])

    def exception(self) -> Exception | None:
        return self._failure

    def stop(self) -> None:
        self._stops = True
        if self.isActive:
            self.world.wait(None, lambda: not self.isActive)

    def now_micros(self) -> int:
        return (self.world.now_micros + self.world.set_by_micros) // 1_000 * 1_000

    def awaitTermination(self) -> None:
        """Waits until a query ends that reads only what there is."""
        self.world.wait(None, lambda: not self.isActive)
        if self._failure is not None:
            raise self._failure

    @property
    def stops(self) -> bool:
        return self._stops

    @property
    def batch(self) -> int:
        return self.planned.number if self.planned is not None else 0

    def take_groups(self, groups: dict[int, tuple[int, int]]) -> None:
        self._operator.update(groups)

    # Its thread.

    def _run(self) -> None:
        try:
            self._follow()
            message = "Stopped"
        except Exception as error:
            self.status.update(isDataAvailable=False, isTriggerActive=False)
            message = "Stopped"
            if not self._stops:
                # For a moment, a query that has failed looks like one that has nothing to do.
                self._failure = error
                self.world.wait(self.world.random.choice((0.001, 0.2, 1.0)))
                message = "Terminated with exception"
        self.status["message"] = message
        self.isActive = False

    def _follow(self) -> None:
        if self.disk.find(f"{self.location}/metadata") is None:
            self.disk.put(f"{self.location}/metadata", b"{}")
        for number, source in enumerate(self.sources):
            source.begin(self, number)
        self._offsets: tuple[Any, ...] = (None,) * len(self.sources)
        self._number = 0
        self._newest: tuple[Any, ...] = (None,) * len(self.sources)
        again = self._recovered()
        while not self._stops:
            began_micros = self.world.now_micros + self.world.set_by_micros
            self.status["isTriggerActive"] = True
            self.planned = again or self._next()
            again = None
            if self.planned is None and self._reads_what_is_there:
                return
            if self.planned is None:
                self.status.update(message="Waiting for data to arrive", isDataAvailable=False)
                self.status["isTriggerActive"] = False
                self._tell_of_nothing()
                self._rest()
                continue
            has_data = self.planned.starts != self.planned.ends
            message = "Processing new data" if has_data else "No new data but cleaning up state"
            self.status.update(message=message, isDataAvailable=has_data)
            self._process(self.planned)
            self._tell(self.planned, began_micros)
            self.status.update(isTriggerActive=False, isDataAvailable=False)
            if self._interval is not None:
                self.world.wait(self._interval, lambda: self._stops)

    def _recovered(self) -> Planned | None:
        """The micro-batch that has to run again, if there is one."""
        offsets, commits = (self._numbers(name) for name in ("offsets", "commits"))
        if not offsets:
            return None
        last = max(offsets)
        earlier = self._logged(last - 1) if last else None
        before = self._offsets if earlier is None else earlier.ends
        planned = replace(
            self._logged(last),
            starts=before,
            late_micros=earlier.watermark_micros if earlier is not None else 0,
        )
        if last in commits:
            self._offsets, self._number = planned.ends, last + 1
            self._watermark_micros = watermark_after(self.disk, self.location, last)
            return None
        self._offsets, self._number = before, last
        self._watermark_micros = planned.watermark_micros
        return planned

    def _numbers(self, name: str) -> set[int]:
        self.world.look(f"list {self.location}/{name}")
        return {int(each) for each in self.disk.names(f"{self.location}/{name}") if each.isdecimal()}

    def _logged(self, number: int) -> Planned:
        found = self.disk.find(f"{self.location}/offsets/{number}")
        assert isinstance(found, File)
        clock_micros, ends = logged_offsets(found.content.decode())
        assert len(ends) == len(self.sources), "the checkpoint has other sources"
        noted = json.loads(found.content.split(b"\n")[1])["conf"]
        # Spark goes on with the number that its offsets have, whatever the session has.
        assert not self.levels or noted == self._conf, f"the checkpoint has {noted} and not {self._conf}"
        self._conf = noted if self._aggregate is not None else self._conf
        return Planned(number, clock_micros, (), ends, watermark_of(self.disk, self.location, number))

    def _next(self) -> Planned | None:
        ends = tuple(
            source.latest(before, self) for source, before in zip(self.sources, self._offsets, strict=True)
        )
        is_due = self._runs_without_data and runs_without_data(self._evicted_micros, self._watermark_micros)
        if ends == self._offsets and not is_due:
            return None
        clock_micros = self.now_micros()
        told = ["-" if end is None else json.dumps(end) for end in ends]
        about = {"clock": clock_micros, "conf": self._conf, "watermark": self._watermark_micros // 1_000}
        entry = "\n".join(["v1", json.dumps(about), *told])
        self.log(f"{self.location}/offsets", str(self._number), entry.encode())
        self._newest = tuple(source.newest() for source in self.sources)
        for source, before in zip(self.sources, self._offsets, strict=True):
            source.committed(before)
        late_micros = watermark_of(self.disk, self.location, self._number - 1) if self._number else 0
        return Planned(self._number, clock_micros, self._offsets, ends, self._watermark_micros, late_micros)

    def _rest(self) -> None:
        pairs = list(zip(self.sources, self._offsets, strict=True))
        soon = [each for source, before in pairs if (each := source.wakes_in(before, self)) is not None]

        def is_over() -> bool:
            return self._stops or any(source.has_news(before, self) for source, before in pairs)

        if self._aggregate is not None:
            soon.append(_IDLE_SECONDS)
        self.world.wait(min(soon, default=None), is_over)
        if not self._stops:
            self.world.wait(0.01 * self.world.random.random())

    def _process(self, planned: Planned) -> None:
        self.world.note(f"micro-batch {planned.number} begins, up to {planned.ends}")
        self.session.on_begin(planned.number)
        rows = Rows(self, lambda: self._computed(planned), self._columns)
        self._function(rows, planned.number)
        self._interruptible()
        if self._aggregate is not None:
            self._evicted_micros = planned.watermark_micros
        commit = b'v1\n{"nextBatchWatermarkMs":%d}' % (self._watermark_micros // 1_000)
        self.log(f"{self.location}/commits", str(planned.number), commit)
        self._offsets, self._number = planned.ends, planned.number + 1

    def _tell_of_nothing(self) -> None:
        """Tells that there was nothing new for long, with the number and the watermark of the next micro-batch."""
        now_micros = self.world.now_micros
        if self._aggregate is not None and now_micros >= self._told_micros + _IDLE_SECONDS * SECOND_MICROS:
            watermark_micros, ends = self._watermark_micros, self._offsets
            nothing = Planned(self._number, self.now_micros(), ends, ends, watermark_micros)
            self._tell(nothing, self.now_micros(), is_nothing=True)

    def _tell(self, planned: Planned, began_micros: int, is_nothing: bool = False) -> None:
        stamp = datetime.fromtimestamp(began_micros / 1e6, UTC).isoformat(timespec="milliseconds")
        self._told_micros = self.world.now_micros
        progress = {
            "batchId": planned.number,
            "timestamp": stamp.replace("+00:00", "Z"),
            "durationMs": {"latestOffset": 1} if is_nothing else {"addBatch": 1},
            **self._told_of_groups(planned),
            "sources": [
                {
                    "description": source.description,
                    "startOffset": source.shown(start),
                    "endOffset": source.shown(end),
                    "latestOffset": source.shown(newest),
                }
                for source, start, end, newest in zip(
                    self.sources, planned.starts, planned.ends, self._newest, strict=True
                )
            ],
        }
        self._progress.append(progress)

    def _told_of_groups(self, planned: Planned) -> dict[str, Any]:
        if self._aggregate is None:
            return {}
        told = {"watermark": told_time(planned.watermark_micros)} if self._aggregate.watermark else {}
        operators = []
        if self._operator:
            groups, dropped = map(sum, zip(*self._operator.values(), strict=True))
            told_of_groups = {"numRowsTotal": groups, "numRowsDroppedByWatermark": dropped}
            operators.append({**told_of_groups, "memoryUsedBytes": 100})
        return {"eventTime": told, "stateOperators": operators, "observedMetrics": {}}

    def log(self, folder: str, name: str, content: bytes) -> None:
        """Writes a file of Spark's own: whole, and only if there is none."""
        self._interruptible()
        hidden = f"{folder}/.{name}.{self.world.names.getrandbits(32):08x}.tmp"
        self.world.change(f"fill {hidden}", lambda: self.disk.put(hidden, content))

        def rename() -> None:
            if not self.disk.move(hidden, f"{folder}/{name}", replaces=False):
                self.disk.drop(hidden)
                raise RuntimeError(f"Concurrent update to the log. {name} exists already in {folder}")

        self.world.change(f"rename to {folder}/{name}", rename)

    def _interruptible(self) -> None:
        if self._stops and self.world.random.random() < 0.5:
            raise Interrupted("java.lang.InterruptedException")

    # Its tasks.

    def _computed(self, planned: Planned) -> list[list[Any]]:
        """The rows for sinks: one job over the sources and all levels."""
        bodies: list[Callable[[], Iterable[Any]]] = []
        for source, start, end in zip(self.sources, planned.starts, planned.ends, strict=True):
            if start != end:
                for part in source.parts(start, end, planned.clock_micros, self):
                    bodies.append(partial(self._read, source, part))
        parts = self.stage(bodies)
        if self._aggregate is not None:
            return self._aggregated(planned, [row for part in parts for row in part])
        for number, level in enumerate(self.levels, 1):
            # Spark counts operators from the end of the query.
            operator = len(self.levels) - number
            rows = [row for part in parts for row in part]
            # A shuffle brings rows in any order.
            self.world.random.shuffle(rows)
            parts = self.stage(
                [partial(self._shard, level, (operator, key), planned.number, rows) for key in keys_of(level)]
            )
        return parts

    def _read(self, source: Source, part: Any) -> Iterable[Any]:
        if source.function is None:
            return part
        return (
            row
            for record in source.function(iter(part))
            for row in zip(*(column.to_pylist() for column in record.columns), strict=True)
        )

    def _aggregated(self, planned: Planned, rows: list[Any]) -> list[list[Any]]:
        """The rows for sinks of Spark's own aggregate, and of what its tasks do with what it emits."""
        values = [self._aggregate.values_of(row) for row in rows]
        self.world.random.shuffle(values)
        self._watermark_micros = self._aggregate.moved(self._watermark_micros, values)
        partitions = int(self._conf[_SHUFFLES])
        own: list[list[Any]] = [[] for _ in range(partitions)]
        for value in values:
            if self._aggregate.is_grouped(value):
                group, numbers = self._aggregate.group_of(value)
                own[zlib.crc32(repr(group).encode()) % partitions].append((group, numbers))
        return self.stage(
            [partial(self._partition, planned, number, each) for number, each in enumerate(own)]
        )

    def _partition(self, planned: Planned, number: int, rows: list[Any]) -> Iterator[Any]:
        folder, batch = f"{self.location}/state/0/{number}", planned.number
        stored = self.disk.find(f"{folder}/{batch}.zip") if batch else File({}, 0)
        assert isinstance(stored, File), f"no state of version {batch} in {folder}"
        made = aggregate(stored.content, rows, planned.late_micros, planned.watermark_micros, self._updates)
        self.world.current.task.groups[number] = len(made.state), len(set(made.dropped))
        if made.emitted:
            emitted = self._aggregate.record(made.emitted, planned.clock_micros)
            if self._behind is None:
                # A sink takes the columns.
                records = iter([emitted.select(self._aggregate.names)])
            else:
                records = self._behind(iter([emitted]))
            for record in records:
                yield from zip(*(column.to_pylist() for column in record.columns), strict=True)
        self.world.current.task.states.append((f"{folder}/{batch + 1}.zip", dict(made.state)))

    def _shard(self, level: Any, place: tuple[int, int], batch: int, rows: list[Any]) -> Iterator[Any]:
        operator, key = place
        keys = keys_of(level)
        folder = f"{self.location}/state/{operator}/{keys.index(key)}"
        stored = self.disk.find(f"{folder}/{batch}.zip") if batch else File({}, 0)
        assert isinstance(stored, File), f"no state of version {batch} in {folder}"
        pages = Pages(stored.content)
        own = [row for row in rows if row[1] == key]
        processor = object.__new__(type(level))
        processor.__dict__.update(level.__dict__)
        processor.init(pages)
        if own:
            for row in processor.handleInputRows((key,), iter(own), None):
                yield tuple(row)
        self.world.current.task.states.append((f"{folder}/{batch + 1}.zip", pages.pages))
