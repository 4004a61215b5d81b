"""Runs a batch plan in a Spark session, and returns its result; `execute_stream` does the same for a query."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.coders.deterministic import allow_pickled_keys
from penstock.graph import Graph
from penstock.metrics.execution import ELEMENTS, take_out
from penstock.options.pipeline_options import TypeOptions
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock.utils.identifiers import identifier
from penstock_spark.formats.registry import formats_of
from penstock_spark.live.batch_snapshots import BatchSnapshots
from penstock_spark.live.views import NO_VIEWS, Views, Watch
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.jobs import run_plan
from penstock_spark.plan.batch_plan import Plan
from penstock_spark.reports.lineage import report_lineage
from penstock_spark.reports.metrics import take_snapshots
from penstock_spark.reports.reporting import reports_of
from penstock_spark.reports.spark_errors import keep_pyspark_quiet, raise_translated, translate
from penstock_spark.runs.open_session import OpenSession
from penstock_spark.runs.result import SparkResult
from penstock_spark.session.backends import backend_of, is_local_session
from penstock_spark.session.job_tags import cancel_on_signals, tag_of
from penstock_spark.shipping.import_paths import driver_folder, work_in, worker_sys_path
from penstock_spark.shipping.registrations import (
    WithRegistrations,
    list_registered_objects,
    pickle_registrations,
    preparations,
)
from penstock_spark.shipping.user_modules import graph_objects, pickle_by_value, pickle_by_value_modules
from penstock_spark.worker.batch import dumps_with_code


def execute(plan: Plan, settings: SparkOptions, opened: OpenSession, views: Views = NO_VIEWS) -> SparkResult:
    """Runs a batch plan to its end; sources that were opened to make the plan are not opened again."""
    context = context_for(plan.graph, opened, settings)
    context.counts_columns = settings.progress == "always"
    looking = BatchSnapshots(context, plan, settings, tag_of(context.run), views.is_watched)
    watch = Watch(looking.look, views.shown, context.run, views.first_seconds)
    try:
        is_told = context.backend.watch_for_waiting()
        with reports_of(context.reporting), cancel_on_signals(context.spark, context.run), is_told:
            run_plan(plan, context, looking.counted)
        report_lineage(context.metrics, context.run, plan.graph, context.written)
        looking.end(PipelineState.DONE)
    except Exception as error:
        shown = translate(error, context.surroundings(plan.graph))
        looking.end(PipelineState.FAILED, shown)
        if shown is error:
            raise
        raise shown from shown.__cause__
    except BaseException:
        looking.end(PipelineState.CANCELLED)
        raise
    finally:
        watch.end()
        snapshot, _ = take_out(take_snapshots(context.metrics, context.run), ELEMENTS)
        context.tidy_up()
    return SparkResult(PipelineState.DONE, snapshot, looking.look(), views.url)


def lower_only(plan: Plan, settings: SparkOptions, opened: OpenSession) -> SparkSession:
    """Builds the frames of a plan, runs only the jobs that they depend on, and returns the pipeline's session.

    Spark cleans up the data that the frames depend on when the frames are no longer referenced.
    """
    context = context_for(plan.graph, opened, settings)
    try:
        with reports_of(context.reporting):
            run_plan(plan, context)
    except Exception as error:
        raise_translated(error, context.surroundings(plan.graph))
    return opened.spark


def context_for(graph: Graph, opened: OpenSession, settings: SparkOptions) -> Context:
    """The context for lowering a graph, with the runner's own session."""
    spark = opened.spark
    keep_pyspark_quiet()
    local = is_local_session(spark)
    needed = [] if local else [*graph_objects(graph), *formats_of(graph), *list_registered_objects()]
    modules = pickle_by_value_modules(needed)

    def pickled(value: object) -> bytes:
        with pickle_by_value(modules):
            return dumps_with_code(value)

    registrations = pickle_registrations(pickled)
    pickles_keys = settings.view_as(TypeOptions).allow_non_deterministic_key_coders
    allow_pickled_keys(pickles_keys)
    prepare = preparations()
    if backend_of(spark).shares_disk and (folder := driver_folder()) is not None:
        prepare = ((work_in, folder), *prepare)

    def dumps(value: object) -> bytes:
        # A worker may have run a program with another setting before.
        return pickled(WithRegistrations(registrations, value, pickles_keys, prepare))

    run = identifier()[:12]
    return Context(
        spark=opened.session,
        run=run,
        seed=run,
        metrics=backend_of(spark).reports(),
        partitions=opened.partitions,
        dumps=dumps,
        reporting=opened.reporting,
        # A recording shows elements one by one.
        without=settings.switched_off() | ({"early_combining"} if settings.record_events else set()),
        recorded=settings.record_events or 0,
        sys_path=worker_sys_path(spark),
        scans=dict(opened.scans),
        streams=dict(opened.streams),
    )
