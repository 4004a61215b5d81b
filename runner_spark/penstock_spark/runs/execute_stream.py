"""Starts a streaming plan as a Structured Streaming query, and returns its handle."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import penstock
from penstock.diagrams.steps import steps_of
from penstock.error import refusal
from penstock.graph import Graph, Read
from penstock.io.sparkio import DataFrameSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.checkpoints.contract.compare import Signature
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.custody.folder import Checkpoint, open_checkpoint
from penstock_spark.checkpoints.custody.requests import Request
from penstock_spark.checkpoints.custody.run_records import RunRecord
from penstock_spark.checkpoints.custody.status import command_run
from penstock_spark.files.file_store import disk_path
from penstock_spark.files.listing import setting_of_listing
from penstock_spark.files.place import Place
from penstock_spark.files.whole_files import WholeFiles
from penstock_spark.formats.frames import check_frames_in_run
from penstock_spark.formats.registry import check_sink
from penstock_spark.live.elements import composites_of, edges_into, flows_of, flows_of_sinks
from penstock_spark.live.server import SendCommand
from penstock_spark.live.settings import machine_facts, settings_of
from penstock_spark.live.stream_snapshots import RunFacts, describe_errors, errors_of
from penstock_spark.live.views import NO_VIEWS, Page, SnapshotFile, Views
from penstock_spark.lowering.batch_writer import BatchWriter, is_written
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.query import Query, build_query, heartbeat_of
from penstock_spark.lowering.stream_sink import StreamSink, stream_sinks
from penstock_spark.passes.one_operator import one_operator
from penstock_spark.plan.signals import find_signals
from penstock_spark.plan.stream_plan import Clock, StreamPlan
from penstock_spark.process.interrupts import defer_signals
from penstock_spark.reports.lineage import report_lineage
from penstock_spark.reports.reporting import reports_of
from penstock_spark.reports.spark_errors import raise_translated, translate
from penstock_spark.runs.execute import context_for
from penstock_spark.runs.open_session import OpenSession
from penstock_spark.runs.own_record import OwnRecord
from penstock_spark.runs.result import StreamResult
from penstock_spark.runs.running import StreamRun
from penstock_spark.session.backends import backend_of
from penstock_spark.session.parallelism import PARALLELISM, parallelism_of
from penstock_spark.session.spark_versions import checkpoint_file_manager
from penstock_spark.worker.disk_errors import make_unwritable_error

_ANSWER_SECONDS = 30.0
"""For how long a page waits for the answer of its run to a command."""

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_CHECKSUM = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
_COMMIT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_POLLING = "spark.sql.streaming.pollingDelay"
_WITHOUT_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_READ_FILES_LOGS_GO = "spark.sql.streaming.fileSource.log.cleanupDelay"
_SHUFFLES_GO = "spark.sql.classic.shuffleDependency.fileCleanup.enabled"


def start(
    plan: StreamPlan, settings: SparkOptions, opened: OpenSession, views: Views = NO_VIEWS
) -> StreamResult:
    check_frames_in_run(_frames(plan))
    context = context_for(plan.all_steps, opened, settings)
    context.watched = views.is_watched
    try:
        with reports_of(context.reporting), backend_of(context.spark).watch_for_waiting():
            report_lineage(context.metrics, context.run, plan.all_steps, {})
            return _start_query(plan, context, settings, views)
    except BaseException as error:
        context.tidy_up()
        if isinstance(error, Exception):
            known = replace(context.surroundings(plan.all_steps), checkpoint=settings.checkpoint_location)
            raise_translated(error, known)
        raise


def _frames(plan: StreamPlan) -> Iterator[tuple[DataFrameSource, str]]:
    """The streaming DataFrames that a plan reads, each with its step."""
    for step in plan.all_steps.steps:
        match step.primitive:
            case Read(StreamSource(source=DataFrameSource() as source)):
                yield source, step.where


def _start_query(plan: StreamPlan, context: Context, settings: SparkOptions, views: Views) -> StreamResult:
    # The checkpoint that a stream continues from may have decided on the number of shards.
    plan = one_operator(plan, context.partitions, context.without)
    location = settings.checkpoint_location or _temporary(context)
    heartbeat = heartbeat_of(plan, settings.trigger_interval is not None)
    described = signature_of(plan, context.partitions, heartbeat, parallelism_of(context.spark))
    signature = {"spark": context.spark.version, **described}
    sinks = stream_sinks(plan, context.without)
    for sink in sinks:
        # A run that is refused must not end the run that holds the checkpoint.
        check_sink(sink.sink, sink.step.where)
    writers: list[BatchWriter] = []

    def prepare(opened: Checkpoint) -> None:
        app, location = opened.plan["id"], opened.place.location
        writers.append(BatchWriter(sinks, context, app, opened.check, location, plan.all_steps, opened.claim))
        writers[0].prepare(context.spark, opened.new_sinks)

    def is_in_sinks(latest: Signature, number: int) -> bool:
        if context.spark.conf.get(_COMMIT_VERSION, "1") != "1":
            return False  # Spark notes more of a micro-batch than is known here.
        return is_written(sinks, latest["id"], number, latest["sinks"])

    dropped = tuple(settings.drop_state or ())
    # A temporary folder needs no holder, because no other run knows it.
    run = context.run if settings.checkpoint_location else None
    take_over = bool(settings.take_over)
    record = _record(context)
    with _noting_failed_starts(record, plan, context, location):
        try:
            checkpoint = open_checkpoint(
                context.spark,
                location,
                signature,
                dropped,
                prepare,
                run,
                take_over,
                is_in_sinks,
                record.begin,
            )
        except OSError as error:
            raise make_unwritable_error(error, f"in the checkpoint {location}") from None
        try:
            # Nothing new if the workers were asked before.
            backend_of(context.spark).check_workers()
            backend_of(context.spark).check_workers_see(checkpoint.plan_location, location)
            return _running(plan, context, settings, checkpoint, heartbeat, sinks, writers[0], views, record)
        except BaseException:
            checkpoint.release()
            raise


def _record(context: Context) -> OwnRecord:
    """The record of a run that begins."""
    now_micros = clock.micros()
    versions = (penstock.__version__, context.spark.version)
    state = PipelineState.RUNNING
    return OwnRecord(RunRecord(0, context.run, now_micros, now_micros, state, *versions, rows=0, dropped=0))


@contextmanager
def _noting_failed_starts(
    record: OwnRecord, plan: StreamPlan, context: Context, location: str
) -> Iterator[None]:
    """Notes the end of a run that fails before its query runs, and raises what made it fail."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception):
            steps = plan.all_steps
            told = translate(error, replace(context.surroundings(steps), checkpoint=location))
            errors = errors_of(told, steps_of(steps), _places(steps))
            record.note_failed_start(PipelineState.FAILED, describe_errors(errors))
        else:
            record.note_failed_start(PipelineState.CANCELLED, "")
        raise


def _places(graph: Graph) -> dict[str, str]:
    return {step.label: step.where for step in graph.steps}


def _running(
    plan: StreamPlan,
    context: Context,
    settings: SparkOptions,
    checkpoint: Checkpoint,
    heartbeat: str,
    sinks: Sequence[StreamSink],
    batch_writer: BatchWriter,
    views: Views,
    record: OwnRecord,
) -> StreamResult:
    _configure(plan, context, checkpoint)
    context.seed = checkpoint.plan["id"]
    query = build_query(plan, context, checkpoint, settings.events_per_batch, heartbeat, sinks)
    mode = "update" if plan.updates else "append"
    writer = query.frame.writeStream.queryName(_name(settings, context)).outputMode(mode)
    writer = writer.option("checkpointLocation", checkpoint.spark_location)
    interval = settings.trigger_interval
    if interval is not None:
        writer = writer.trigger(processingTime=f"{float(interval)} seconds")
    files = query.files()
    batch_writer.files = WholeFiles(context.spark, files, query.file_checks())
    # Without a sink, Spark needs to call the writer only if another run may take over, or if the query reads files.
    is_called = bool(plan.sinks) or checkpoint.lease is not None or bool(files)
    served = checkpoint.place.inside(f".served-{context.run}")
    surroundings = replace(
        context.surroundings(plan.all_steps), checkpoint=checkpoint.place.location, places=()
    )
    shown = views.shown
    for view in shown:
        if isinstance(view, Page):
            view.take_commands(_sender(checkpoint.place) if checkpoint.lease is not None else None)
    if views.is_watched and settings.checkpoint_location:
        shown = (*shown, SnapshotFile(checkpoint.place.replace))
    about = _about(plan, context, settings, query, views, checkpoint, record)
    running: StreamRun | None = None
    try:
        # Once Spark runs the query, there must be an object that can stop it.
        with defer_signals():
            running = StreamRun(
                context.backend.start(writer, batch_writer if is_called else None, served.location),
                query,
                checkpoint,
                # Spark's own aggregate reports like one shard.
                len(plan.levels) * context.partitions + (plan.native_grouping is not None),
                context,
                partial(translate, surroundings=surroundings),
                batch_writer.close,
                about,
                shown,
                batch_writer.stopping,
                batch_writer.being_written,
                find_signals(plan),
                bool(settings.available_now),
                record if about.record is not None else None,
                settings.progress != "off" and not settings.live,
            )
    except BaseException:
        if running is not None:
            running.cancel()
        raise
    return StreamResult(
        running,
        plan.mode,
        plan.clock is Clock.LIVE,
        settings.checkpoint_location,
        bool(settings.drain_on_signal),
        views.url,
    )


def _sender(place: Place) -> SendCommand:
    """Returns what sends the run of a checkpoint a command from its page, as ``penstock drain`` does."""
    return lambda name: command_run(place, Request(name, sender="the live page"), _ANSWER_SECONDS)


def _about(
    plan: StreamPlan,
    context: Context,
    settings: SparkOptions,
    query: Query,
    views: Views,
    checkpoint: Checkpoint,
    record: OwnRecord,
) -> RunFacts:
    sinks = flows_of_sinks(plan.all_steps)
    flows = flows_of(plan.all_steps) if views.is_watched else sinks
    edges = [part.made_edges if views.is_watched else part.written_edges for part in plan.parts]
    if plan.sums is not None and views.is_watched:
        edges.append(plan.sums.made_edges)
    written_by_spark = plan.columns is not None and plan.columns.is_written
    if written_by_spark:
        edges.append(edges_into(sinks))
    backend, version = backend_of(context.spark), str(checkpoint.plan.get("spark", ""))
    facts = machine_facts(version, checkpoint.plan["parallelism"], context.partitions)
    return RunFacts(
        str(settings.app_name or backend.app_name),
        context.run,
        plan.mode,
        clock.micros(),
        steps_of(plan.all_steps),
        {step.label: level for step, level in plan.groupings},
        tuple(reading.spec.origin for reading in query.readings),
        query.first_reading,
        plan.clock is Clock.LIVE,
        views.is_watched,
        flows,
        composites_of(flows) if views.is_watched else (),
        frozenset().union(*edges),
        plan.native_grouping.step.label if plan.native_grouping is not None else None,
        bool(plan.levels) or plan.by_spark is not None,
        _places(plan.all_steps),
        None if settings.trigger_interval is None else float(settings.trigger_interval),
        frozenset(reading.spec.origin for reading in query.readings if reading.is_limited),
        {**facts, **settings_of(settings)},
        backend.page if views.is_watched else "",
        record.last if checkpoint.lease is not None else None,
        edges_into(sinks) if written_by_spark else frozenset(),
    )


def _configure(plan: StreamPlan, context: Context, checkpoint: Checkpoint) -> None:
    """Sets what a query takes from its session when it starts."""
    context.backend.set(PARALLELISM, str(checkpoint.plan["parallelism"]))
    if plan.native_grouping is not None:
        # Windows fire when the watermark has moved, and not only when data arrives after that.
        context.backend.set(_WITHOUT_DATA, "true")
    if disk_path(checkpoint.spark_location) is not None:
        # By default, Spark starts more processes for each file that it writes to a local disk, and writes a file of
        # checksums beside each, as Hadoop's local file system already does.
        context.backend.set(_FILE_MANAGER, checkpoint_file_manager())
        context.backend.set(_FILE_CHECKSUM, "false")
        # By default, the files in which Spark has noted what it has read stay for ten minutes after Spark has put them
        # together, for file systems that show a new file late. A local disk shows it at once.
        _set_if_free(context, _READ_FILES_LOGS_GO, "60s")
    # By default, Spark looks for something new 100 times a second, in the folder of commands as well as in the source.
    _set_if_free(context, _POLLING, "20ms")
    # A micro-batch then writes only its changes instead of its whole store.
    _set_if_free(context, _CHANGELOG, "true")
    # By default, the files of a shuffle stay until Java's garbage collector happens to find that they are unused.
    _set_if_free(context, _SHUFFLES_GO, "true")
    # By default, each micro-batch also looks at files that it has read long ago, with a task for each of them.
    _set_if_free(context, *setting_of_listing(context.spark))


def _set_if_free(context: Context, name: str, value: str) -> None:
    """Sets a property, unless the user has."""
    if context.spark.conf.get(name, None) is None:
        context.backend.set(name, value)


def _name(settings: SparkOptions, context: Context) -> str:
    """The query's name in Spark's user interface, which must be unique in a session."""
    return f"{settings.app_name or backend_of(context.spark).app_name} {context.run}"


def _temporary(context: Context) -> str:
    if not context.backend.shares_disk:
        what = "a stream on a cluster needs a folder for its state that all machines can reach"
        example = "hdfs:///a/folder/of/its/own" if context.backend.hadoop() else "/a/shared/folder/of/its/own"
        raise refusal(ValueError, what, hint=f"pass --checkpoint_location={example}")
    folder = tempfile.mkdtemp(prefix="penstock-checkpoint-")
    context.tidy.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder
