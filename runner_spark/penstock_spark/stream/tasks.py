"""Runs the parts of a streaming query in the Python workers: tasks of sources, and shards of levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row as SparkRow

from penstock.metrics.execution import ELEMENTS, Snapshot, merge_snapshots
from penstock.utils import clock
from penstock_spark.reports.metrics import Report, report_end, report_watermarks
from penstock_spark.reports.reporting import report_with
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.shipping.import_paths import import_like_driver
from penstock_spark.stages.stage import collect_less_often, seed_random
from penstock_spark.stream.program import LevelProgram, PlanInState
from penstock_spark.stream.resharding.moved_pages import Assembly, Waits
from penstock_spark.stream.shards.levels import play_shard
from penstock_spark.stream.sources.played_sources import play_sources
from penstock_spark.stream.sources.reading import SourceTask
from penstock_spark.stream.sources.sums import SummingTask
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_store import PageStore, prove_pipeline
from penstock_spark.stream.transport.inbox import Received
from penstock_spark.stream.transport.outbox import Row, records_of, send_to_spark
from penstock_spark.worker.batch import dumps, loads
from penstock_spark.worker.messages import TaskCounts
from penstock_spark.worker.micro_batches import batch_number, current_task

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

    from penstock_spark.session.backend import ReportSink

HEADERS = ""
"""Stands for the label of a grouping in the keys of headers."""


def header_key(position: int) -> tuple[str, int]:
    """Returns the key among the pages of an operator that has the header of a level, by its position from 0."""
    return HEADERS, position


PLAN_KEY = (HEADERS, -1)
"""The key of the plan among the pages, if the shards keep it."""

Views = Mapping[int, Any]
"""Broadcasts of the pages of side inputs, by edge."""


def prepare_program(program: bytes, sys_path: tuple[str, ...]) -> LevelProgram:
    collect_less_often()
    import_like_driver(sys_path)
    loaded: LevelProgram = loads(program)
    report_with(loaded.stage.reporting)
    return loaded


def make_played_function(
    program: bytes,
    shard_keys: tuple[int, ...],
    views: Views,
    metrics: ReportSink,
    sys_path: tuple[str, ...],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow`` over the heartbeat; each row is a micro-batch's number."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        loaded = prepare_program(program, sys_path)
        for record in acknowledge_each(iter(records)):
            for batch in record.column(0).to_pylist():
                seed_random(loaded.stage, batch)
                rows, snapshot = play_sources(loaded, batch, views)
                rest, more_rows = _split_counts(loaded, 0, snapshot)
                _count(metrics, loaded, batch, 0, rest)
                yield from records_of(rows + more_rows, shard_keys)

    return run


def make_reading_function(
    program: bytes,
    shard_keys: tuple[int, ...],
    views: Views,
    metrics: ReportSink,
    sys_path: tuple[str, ...],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow`` over a source's frame, whose last column is ``clock``."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        begun = _begin_task(program, sys_path, records)
        if begun is None:
            return
        loaded, number, batch, records = begun
        assert loaded.reading is not None
        task = SourceTask(loaded, number, batch, views)
        for rows in task.run(records):
            yield from records_of(rows, shard_keys)
        rest, more_rows = _split_counts(loaded, number + 1, task.snapshot())
        yield from records_of(more_rows, shard_keys)
        _count(metrics, loaded, batch, number + 1, rest)
        if task.has_ended:
            report_end(metrics, loaded.stage.run, loaded.reading.origin, batch)

    return run


def make_summing_function(
    program: bytes, views: Views, metrics: ReportSink, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Makes the function for a source whose elements are added up in parts; its rows have the schema `sums.SUMS`."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        begun = _begin_task(program, sys_path, records)
        if begun is None:
            return
        loaded, number, batch, records = begun
        task = SummingTask(loaded, number, batch, views)
        yield from task.parts(records)
        _count(metrics, loaded, batch, number + 1, task.snapshot())

    return run


def _begin_task(
    program: bytes, sys_path: tuple[str, ...], records: Iterator[Any]
) -> tuple[LevelProgram, int, int, Iterator[Any]] | None:
    """The program of a task, the task's number, its micro-batch, and its records; None without any record."""
    records = acknowledge_each(iter(records))
    first = next(records, None)
    if first is None:
        return None
    loaded = prepare_program(program, sys_path)
    number, batch = current_task().partitionId(), batch_number()
    seed_random(loaded.stage, batch, number)
    return loaded, number, batch, chain([first], records)


def _count(metrics: ReportSink, program: LevelProgram, batch: int, producer: int, snapshot: Snapshot) -> None:
    if snapshot:
        metrics.add({(program.stage.run, program.number, (batch, producer)): snapshot})


def _split_counts(program: LevelProgram, producer: int, snapshot: Snapshot) -> tuple[Snapshot, list[Row]]:
    """The part that a task of a source reports itself, and the row with which a shard gets to report the rest."""
    elements = {key: count for key, count in snapshot.items() if key[0] == ELEMENTS}
    if not elements or program.number == program.last:
        return snapshot, []
    rest = {key: value for key, value in snapshot.items() if key not in elements}
    return rest, [(program.number + 1, producer % program.shards, dumps(TaskCounts(elements)))]


def take_seeds(
    levels: Sequence[int], shards: int, rows: Iterable[Any], pages: MapState
) -> Iterator[SparkRow]:
    """Takes one new shard of some levels, whose rows are headers and pieces of pages; passes other rows on."""
    taken = {level: _Seeds(Assembly(partial(PageStore, pages), shards)) for level in levels}
    for to, shard_key, payload in rows:
        if to in taken:
            taken[to].add(bytes(payload))
        else:
            yield SparkRow(level=to, shard=shard_key, payload=bytes(payload))
    for position, seeds in enumerate(taken.values()):
        seeds.assembly.finish(seeds.waits, seeds.header.notes if seeds.header is not None else {})
        if seeds.header is not None:
            seeds.header.notes = seeds.assembly.notes
            pages.updateValue(header_key(position), (seeds.header.encoded(),))


@dataclass(eq=False)
class _Seeds:
    """The state that has come so far of a new shard of a level."""

    assembly: Assembly
    header: Header | None = None
    waits: Mapping[str, Waits] = field(default_factory=dict)

    def add(self, payload: bytes) -> None:
        is_piece, content = loads(payload)
        if is_piece:
            self.assembly.add(content)
        else:
            self.header, self.waits = Header.decoded(content[0]), content[1]


def _keep_plan(plan: PlanInState, header: Header, pages: MapState) -> None:
    """Keeps the plan in the state of a shard; raises if the state belongs to a plan that this one cannot succeed."""
    if header.plan == plan.digest:
        return
    # Levels of one operator share it.
    kept = pages.getValue(PLAN_KEY)
    text = plan.text if kept is None else plan.succeed(bytes(kept[0]).decode(), plan.text)
    pages.updateValue(PLAN_KEY, (text.encode(),))
    header.plan = plan.digest


def run_shard(
    programs: Mapping[int, bytes],
    sys_path: tuple[str, ...],
    shard_keys: tuple[int, ...],
    shard_key: int,
    rows: Iterable[Any],
    pages: MapState,
    views: Views,
    metrics: ReportSink,
) -> Iterator[SparkRow]:
    """One shard of an operator in one micro-batch, on Spark's state: its levels, one after the other.

    `programs` has the programs of the operator's levels, by number. `rows` has the shard's input, and rows for later
    operators and for sinks, which it passes on.
    """
    levels = _Levels(programs, sys_path)
    for level, to, payload in rows:
        if level in programs:
            levels.take(level, bytes(payload))
        else:
            yield SparkRow(level=level, shard=to, payload=bytes(payload))
    number, batch = shard_keys.index(shard_key), batch_number()
    for position, level in enumerate(programs):
        if level not in levels.inboxes:
            continue
        program, received = levels.programs[level], levels.inboxes[level]
        if received.is_empty:
            _count(metrics, program, batch, number, received.counted)
            continue
        seed_random(program.stage, batch, number)
        began_seconds = clock.monotonic_seconds()
        stored = pages.getValue(header_key(position))
        prove_pipeline(pages, header_key(position), stored)
        header = Header.decoded(None if stored is None else bytes(stored[0]))
        if program.kept_plan is not None:
            _keep_plan(program.kept_plan, header, pages)
        playing = play_shard(program, number, received, header, partial(PageStore, pages), views)
        here = {later: partial(levels.take, later) for later in programs if later > level}
        done = yield from send_to_spark(playing, shard_keys, here)
        pages.updateValue(header_key(position), (header.encoded(),))
        _count(metrics, program, batch, number, merge_snapshots(done.snapshot, received.counted))
        busy_micros = round((clock.monotonic_seconds() - began_seconds) * 1_000_000)
        report = Report(batch, done.clock_micros, done.watermarks, busy_micros)
        report_watermarks(metrics, program.stage.run, (level, number), report)


@dataclass(eq=False)
class _Levels:
    """The levels of an operator in one micro-batch; what is not needed is not even read.

    Attributes:
        shipped: The programs of the levels, by number.
        sys_path: Where they import from.
        programs: The programs that are read.
        inboxes: What has come for them.
    """

    shipped: Mapping[int, bytes]
    sys_path: tuple[str, ...]
    programs: dict[int, LevelProgram] = field(default_factory=dict)
    inboxes: dict[int, Received] = field(default_factory=dict)

    def take(self, level: int, payload: bytes) -> None:
        """Takes the content of a row for a level."""
        if level not in self.inboxes:
            # The program also registers the coders that the content is written with.
            self.programs[level] = prepare_program(self.shipped[level], self.sys_path)
            self.inboxes[level] = Received()
        self.inboxes[level].take(payload)
