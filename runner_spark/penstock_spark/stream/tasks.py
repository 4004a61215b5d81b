"""The parts of a streaming query inside of Spark's Python workers: tasks of sources, and shards of levels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row as SparkRow

from penstock.metrics.execution import ELEMENTS, Snapshot, merge_snapshots
from penstock_spark.reports.metrics import Report, report_end, report_watermarks
from penstock_spark.reports.reporting import report_with
from penstock_spark.session.worker_socket import promptly
from penstock_spark.shipping.import_paths import import_like_driver
from penstock_spark.stages.stage import collect_less_often, seed_random
from penstock_spark.stream.program import LevelProgram
from penstock_spark.stream.resharding.moved_pages import Assembly, Waits
from penstock_spark.stream.shards.levels import Done, play_shard
from penstock_spark.stream.sources import SourceTask, play_sources
from penstock_spark.stream.sources.sums import SummingTask
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_store import PageStore
from penstock_spark.stream.transport.control import Command, decoded, heartbeat
from penstock_spark.stream.transport.writer import BYTES_AT_ONCE, Row
from penstock_spark.worker.batch import dumps, loads
from penstock_spark.worker.messages import Message, TaskCounts

_SCHEMA = pa.schema([("level", pa.int32()), ("shard", pa.int32()), ("payload", pa.binary())])

HEADER_KEY = ("", 0)
"""Where the header is among the pages: no grouping has that label."""

Views = Mapping[int, Any]
"""Broadcasts of the pages of side inputs, by edge."""


def prepared(program: bytes, sys_path: tuple[str, ...]) -> LevelProgram:
    collect_less_often()
    import_like_driver(sys_path)
    loaded: LevelProgram = loads(program)
    report_with(loaded.stage.reporting)
    return loaded


def played_function(
    program: bytes, shard_keys: tuple[int, ...], views: Views, metrics: object, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow`` over the heartbeat; each row is a micro-batch's number."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        loaded = prepared(program, sys_path)
        for record in promptly(iter(records)):
            for batch in record.column(0).to_pylist():
                seed_random(loaded.stage, batch)
                rows, snapshot = play_sources(loaded, batch, views)
                rest, more_rows = _sent_on(loaded, 0, snapshot)
                _count(metrics, loaded, batch, 0, rest)
                yield from _records(rows + more_rows, shard_keys)

    return run


def reading_function(
    program: bytes, shard_keys: tuple[int, ...], views: Views, metrics: object, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow`` over a source's frame, whose last column is ``clock``."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        begun = _begun(program, sys_path, records)
        if begun is None:
            return
        loaded, number, batch, records = begun
        assert loaded.reading is not None
        task = SourceTask(loaded, number, batch, views)
        for rows in task.run(records):
            yield from _records(rows, shard_keys)
        rest, more_rows = _sent_on(loaded, number + 1, task.snapshot())
        yield from _records(more_rows, shard_keys)
        _count(metrics, loaded, batch, number + 1, rest)
        if task.has_ended:
            report_end(metrics, loaded.stage.run, loaded.reading.origin, batch)

    return run


def summing_function(
    program: bytes, views: Views, metrics: object, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The same for a source whose elements are added up in parts; its rows have the schema `sums.SUMS`."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        begun = _begun(program, sys_path, records)
        if begun is None:
            return
        loaded, number, batch, records = begun
        task = SummingTask(loaded, number, batch, views)
        yield from task.parts(records)
        _count(metrics, loaded, batch, number + 1, task.snapshot())

    return run


def _begun(
    program: bytes, sys_path: tuple[str, ...], records: Iterator[Any]
) -> tuple[LevelProgram, int, int, Iterator[Any]] | None:
    """The program of a task, the task's number, its micro-batch, and its records; None without any record."""
    records = promptly(iter(records))
    first = next(records, None)
    if first is None:
        return None
    loaded = prepared(program, sys_path)
    number, batch = _task().partitionId(), batch_number()
    seed_random(loaded.stage, batch, number)
    return loaded, number, batch, chain([first], records)


def batch_number() -> int:
    return int(_task().getLocalProperty("streaming.sql.batchId") or "")


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "only tasks ask for it"
    return task


def _count(metrics: Any, program: LevelProgram, batch: int, producer: int, snapshot: Snapshot) -> None:
    if snapshot:
        metrics.add({(program.stage.run, program.number, (batch, producer)): snapshot})


def _sent_on(program: LevelProgram, producer: int, snapshot: Snapshot) -> tuple[Snapshot, list[Row]]:
    """What a task of a source reports itself, and the row with which a shard gets to report the rest."""
    elements = {key: count for key, count in snapshot.items() if key[0] == ELEMENTS}
    if not elements or program.number == program.last:
        return snapshot, []
    rest = {key: value for key, value in snapshot.items() if key not in elements}
    return rest, [(program.number + 1, producer % program.shards, dumps(TaskCounts(elements)))]


def _records(rows: list[Row], shard_keys: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are not much larger than their largest row: many shards may share one payload."""
    start, held_bytes = 0, 0
    for stop, row in enumerate(rows, 1):
        held_bytes += len(row[2])
        if held_bytes >= BYTES_AT_ONCE or stop == len(rows):
            levels, shards, payloads = zip(*rows[start:stop], strict=True)
            keys = [shard_keys[shard] for shard in shards]
            columns = [
                pa.array(levels, pa.int32()),
                pa.array(keys, pa.int32()),
                pa.array(payloads, pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
            start, held_bytes = stop, 0


def take_seeds(level: int, shards: int, rows: Iterable[Any], pages: Any) -> Iterator[SparkRow]:
    """One new shard of a level, whose rows are its header and pieces of its pages; other rows go on."""
    assembly = Assembly(partial(PageStore, pages), shards)
    header: Header | None = None
    waits: Mapping[str, Waits] = {}
    for to, shard_key, payload in rows:
        if to != level:
            yield SparkRow(level=to, shard=shard_key, payload=bytes(payload))
            continue
        is_piece, content = loads(bytes(payload))
        if is_piece:
            assembly.add(content)
        else:
            header, waits = Header.decoded(content[0]), content[1]
    assembly.finish(waits, header.notes if header is not None else {})
    if header is not None:
        header.notes = assembly.notes
        pages.updateValue(HEADER_KEY, (header.encoded(),))


def run_shard(
    program: LevelProgram,
    shard_keys: tuple[int, ...],
    shard_key: int,
    rows: Iterable[Any],
    pages: Any,
    views: Views,
    metrics: object,
) -> Iterator[SparkRow]:
    """One shard of a level in one micro-batch, on Spark's state.

    `rows` has the shard's input, and rows that go on to later levels and to sinks.
    """
    number, batch = shard_keys.index(shard_key), batch_number()
    messages, commands, heartbeats = [], [], set()
    counted: Snapshot = {}
    for level, other_key, payload in rows:
        if level != program.number:
            yield SparkRow(level=level, shard=other_key, payload=bytes(payload))
            continue
        match decoded(bytes(payload)):
            case Message() as message:
                messages.append(message)
            case TaskCounts(elements):
                counted = merge_snapshots(counted, elements)
            case Command() as command:
                commands.append(command)
            case int(clock_micros):
                heartbeats.add(clock_micros)
    messages += [heartbeat(clock_micros) for clock_micros in heartbeats]
    if not (messages or commands):
        _count(metrics, program, batch, number, counted)
        return
    seed_random(program.stage, batch, number)
    stored = pages.getValue(HEADER_KEY)
    header = Header.decoded(None if stored is None else bytes(stored[0]))
    playing = play_shard(program, number, messages, commands, header, partial(PageStore, pages), views)
    done = yield from _sent(playing, shard_keys)
    pages.updateValue(HEADER_KEY, (header.encoded(),))
    _count(metrics, program, batch, number, merge_snapshots(done.snapshot, counted))
    report = Report(batch, done.clock_micros, done.watermarks)
    report_watermarks(metrics, program.stage.run, (program.number, number), report)


def _sent(
    playing: Generator[list[Row], None, Done], shard_keys: tuple[int, ...]
) -> Generator[SparkRow, None, Done]:
    """The rows of a shard as Spark takes them, as soon as they are there."""
    while True:
        try:
            rows = next(playing)
        except StopIteration as end:
            return cast(Done, end.value)
        for level, shard, payload in rows:
            yield SparkRow(level=level, shard=shard_keys[shard], payload=payload)
