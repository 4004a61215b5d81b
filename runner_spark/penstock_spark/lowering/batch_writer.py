"""The function that Spark calls with the rows for sinks of each micro-batch."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, NoReturn

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.graph import Graph
from penstock_spark.files.whole_files import WholeFiles
from penstock_spark.formats.registry import prepare_sink
from penstock_spark.lowering.context import Context, run_only, unreadable_step
from penstock_spark.lowering.descriptions import of_stream, shorten
from penstock_spark.lowering.stage import sink_rows
from penstock_spark.lowering.stream_sink import StreamSink, pages_in, pages_of, rows_inside
from penstock_spark.reports.failure import fail_step, find_failure
from penstock_spark.reports.reporting import current_reporting, reports_of
from penstock_spark.reports.spark_errors import ErrorContext, translate
from penstock_spark.sinks.plan import CommitStopped, MicroBatch, SinkPlan
from penstock_spark.worker.disk_errors import make_unwritable_error

TASK_BYTES = 4 << 20
"""The minimum number of bytes of elements that are worth a separate task and file."""

_INTERRUPTED = re.compile(
    r"java\.\S*Interrupt\w*Exception|cancelled part of cancelled job group|SPARK_JOB_CANCELLED"
)

# Spark takes an error with this text for the end of a query that was stopped; a stack trace is too long for it.
_SPARKS_WORDS = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling Spark: java.lang.InterruptedException"
)


class QueryStopped(Exception):
    """The query was stopped while it wrote a micro-batch."""


class BatchWriter:
    """Writes a micro-batch to all sinks, as a function for Spark's ``foreachBatch``.

    Spark recomputes the rows for each job, with all levels of the query: it would read their state, and
    run user code, more than once. So there is one job, or the rows are persisted for the next ones.

    Rows have the columns ``level``, ``shard`` and ``payload``. A payload is a page of elements, or a row of the sink
    if the part before the sink makes its rows. `app` names the checkpoint, after a restart too. `check` raises if
    another run holds it, and `claim` is the number by which this run holds it.
    """

    def __init__(
        self,
        sinks: Sequence[StreamSink],
        context: Context,
        app: str,
        check: Callable[[], None],
        location: str | None = None,
        graph: Graph | None = None,
        claim: int = 0,
    ) -> None:
        self._check = check
        self._claim = claim
        self._sinks = _in_order(sinks)
        self._context = context
        self._streams = _streams(self._sinks, app)
        self._location = location
        self._graph = graph
        self._levels = of_stream(graph, (sink.step for sink in self._sinks))
        # Checks whether a micro-batch has read whole files; set once the query has its sources.
        self.files: WholeFiles | None = None
        self.stopping = threading.Event()  # Set when the run is being stopped.
        self._last_begun: int | None = None
        self._now_writing: int | None = None
        self._writing = threading.Lock()
        self._is_closed = False
        self._failure: Exception | None = None  # Of the micro-batch that was written last.
        self._reporting = current_reporting()
        for sink in self._sinks:
            # A sink that cannot be planned is refused now.
            if sink.plan.close is not None:
                context.tidy.append(sink.plan.close)

    def prepare(self, spark: SparkSession, labels: Collection[str] | None = None) -> None:
        """Lets the sinks that start for the first time look at what exists."""
        for sink in self._sinks:
            if labels is None or sink.step.label in labels:
                try:
                    prepare_sink(sink.sink, spark, sink.step.where, self._streams[sink.level])
                except OSError as error:
                    raise make_unwritable_error(error, sink.step.where) from None

    def being_written(self) -> int | None:
        """Returns the number of the micro-batch that is being written; None if none is."""
        return self._now_writing

    def close(self) -> None:
        """Waits until a micro-batch that is being written is whole in all sinks; no other is written afterwards.

        If it fails, some sinks have it and others do not. Then its error is raised, so that the run fails and the next
        one writes the micro-batch again.
        """
        with self._writing:
            self._is_closed = True
            if self.files is not None:
                self.files.close()
            if self._failure is not None:
                raise self._failure

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes a micro-batch; when it returns, Spark notes in the checkpoint that this is done."""
        with self._writing:
            if self._is_closed:
                raise QueryStopped(_SPARKS_WORDS)
            self._now_writing = batch_id
            try:
                self._write_checked(frame, batch_id)
            except QueryStopped:
                raise
            except Exception as error:
                self._failure = error
                raise
            finally:
                self._now_writing = None

    def _write_checked(self, frame: DataFrame, batch_id: int) -> None:
        self._check()
        # After its first micro-batch, this process knows whether it has begun one before.
        may_be_retry = self._last_begun is None or batch_id <= self._last_begun
        self._last_begun = batch_id
        # Spark calls from another thread.
        with reports_of(self._reporting), self._described(batch_id, self._levels):
            try:
                if self.files is not None:
                    self.files.begin(frame)
                self._write(frame, batch_id, may_be_retry)
                # Not every sink has asked.
                self._check_files(frame)
            except Exception as error:
                if _is_stop(error):
                    raise QueryStopped(_SPARKS_WORDS) from None
                self._fail(error, tuple(sink.step.where for sink in self._sinks))

    def _write(self, frame: DataFrame, batch_id: int, may_be_retry: bool) -> None:
        match self._sinks:
            case ():
                run_only(frame)
            case (sink,) if self._is_one_job(sink.plan):
                batch = self._batch(sink, batch_id, may_be_retry, frame)
                if sink.is_inside:
                    self._commit(sink, batch, rows_inside(frame, sink))
                elif sink.plan.partitions is None:
                    self._encode(sink, batch, pages_in(frame))
                else:
                    # With a shuffle: without one, the levels would run in so few tasks too.
                    self._encode(sink, batch, pages_in(frame).repartition(sink.plan.partitions))
            case _:
                kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
                try:
                    self._write_each(kept, batch_id, may_be_retry)
                finally:
                    kept.unpersist()

    def _write_each(self, kept: DataFrame, batch_id: int, may_be_retry: bool) -> None:
        match self._sinks:
            case (sink,) if sink.takes_columns:
                run_only(kept)
                self._check_files(kept)
                self._commit(sink, self._batch(sink, batch_id, may_be_retry), rows_inside(kept, sink))
                return
        sizes = _sizes_by_level(kept)
        # Everything has been read, and nothing is written yet.
        self._check_files(kept)
        for sink in self._sinks:
            size = sizes.get(sink.level, Size(0, 0))
            rows, batch = pages_of(sink, kept), self._batch(sink, batch_id, may_be_retry)
            batch = replace(batch, is_small=size.bytes <= TASK_BYTES)
            with self._described(batch_id, sink.step.label):
                if sink.is_inside:
                    self._commit(sink, batch, rows_inside(kept, sink))
                elif size.tasks:
                    self._encode(sink, batch, rows.coalesce(sink.plan.partitions or size.tasks))
                elif may_be_retry:
                    # An earlier try may have left something that has to go.
                    self._encode(sink, batch, rows.limit(0))

    def _batch(
        self, sink: StreamSink, batch_id: int, may_be_retry: bool, read: DataFrame | None = None
    ) -> MicroBatch:
        """Returns the micro-batch for a sink, which checks the files of `read` before it commits."""

        def check() -> None:
            self._check()
            if read is not None:
                self._check_files(read)

        stream = self._streams[sink.level]
        return MicroBatch(batch_id, stream, self._claim, may_be_retry, check, stopping=self.stopping)

    def _is_one_job(self, plan: SinkPlan) -> bool:
        """True if nothing has to be known between the job that reads and the job that writes."""
        if not plan.is_one_job or plan.commits_small_batches:
            return False
        return not (plan.commits_in_tasks and self.files is not None and self.files.may_be_short)

    def _check_files(self, frame: DataFrame) -> None:
        """Raises if a file was shorter when it was read than when Spark found it.

        Once lines are missing in a table, they would stay away: a later try leaves out what the table has.
        """
        if self.files is not None:
            self.files.check(frame)

    def _encode(self, sink: StreamSink, batch: MicroBatch, pages: DataFrame) -> None:
        self._commit(sink, batch, sink_rows(sink.level, sink.step, sink.plan, pages, self._context))

    def _commit(self, sink: StreamSink, batch: MicroBatch, rows: DataFrame) -> None:
        """Writes the rows of one sink; unless a step made the error, it names the sink's step."""
        try:
            sink.plan.commit(rows, batch)
        except Exception as error:
            if _is_stop(error):
                raise
            self._fail(error, (sink.step.where,))

    def _described(self, batch_id: int, doing: str) -> AbstractContextManager[None]:
        return self._context.backend.described(shorten(f"micro-batch {batch_id}: {doing}"))

    def _fail(self, error: Exception, places: tuple[str, ...]) -> NoReturn:
        """Raises an error in the terms of the pipeline; a step's own error stays unchanged."""
        if find_failure(str(error)) is not None:
            raise error
        where = places[0] if places else "in a stream without a sink"
        if isinstance(error, OSError):
            fail_step(make_unwritable_error(error, where), where)
        known = ErrorContext(
            graph=self._graph,
            places=places or (where,),
            checkpoint=self._location,
            unreadable=partial(unreadable_step, self._graph),
        )
        fail_step(translate(error, known), where)


def _in_order(sinks: Sequence[StreamSink]) -> tuple[StreamSink, ...]:
    """Returns the sinks in the order of writing: last come those in which a retry changes nothing.

    So if one of these has a micro-batch, all others have it too.
    """

    def place(sink: StreamSink) -> int:
        plan = sink.plan
        return 2 if plan.is_committed is not None else int(plan.commits_in_tasks)

    return tuple(sorted(sinks, key=place))


def is_written(sinks: Sequence[StreamSink], app: str, number: int, labels: Collection[str]) -> bool:
    """True if a micro-batch is certainly in all sinks with some labels; `app` names the checkpoint."""
    ordered = _in_order(sinks)
    streams = _streams(ordered, app)
    asked = [sink for sink in ordered if sink.plan.is_committed is not None and sink.step.label in labels]
    return bool(asked) and all(_holds(sink, MicroBatch(number, streams[sink.level])) for sink in asked)


def _holds(sink: StreamSink, batch: MicroBatch) -> bool:
    assert sink.plan.is_committed is not None
    try:
        return sink.plan.is_committed(batch)
    except Exception as error:
        fail_step(error, sink.step.where)


def _is_stop(error: Exception) -> bool:
    if isinstance(error, CommitStopped):
        return True
    return find_failure(str(error)) is None and _INTERRUPTED.search(str(error)) is not None


def _streams(sinks: Sequence[StreamSink], app: str) -> dict[int, str]:
    """Returns a name for each sink's input, by level; it depends on where the sink writes, since labels may change."""
    names: dict[int, str] = {}
    for sink in sinks:
        name = f"{app}/{sink.sink.describe()}"
        while name in names.values():
            name += " again"
        names[sink.level] = name
    return names


class Size(NamedTuple):
    """The size of a sink's rows: the number of tasks that they are worth, and their bytes."""

    tasks: int
    bytes: int


def _sizes_by_level(kept: DataFrame) -> dict[int, Size]:
    """Returns the sizes of the sinks that have rows; one job, which computes all rows."""
    found = kept.select(
        "level", F.spark_partition_id().alias("partition"), F.length("payload").alias("size")
    ).toArrow()
    levels = found.group_by("level").aggregate([("partition", "count_distinct"), ("size", "sum")])
    return {
        row["level"]: Size(
            min(row["partition_count_distinct"], 1 + row["size_sum"] // TASK_BYTES), row["size_sum"]
        )
        for row in levels.to_pylist()
    }
