"""Runs a plan in a Spark session and gives its result."""

from __future__ import annotations

import uuid
from typing import Any, NoReturn

import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.error import RunnerError, UnsupportedByRunner
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.jobs import run_plan
from penstock_spark.lowering.query import run_query
from penstock_spark.metrics import accumulator_of, take_snapshots
from penstock_spark.operators.failure import find_failure, to_exception
from penstock_spark.plan import Plan
from penstock_spark.result import SparkResult
from penstock_spark.session import SessionOptions, is_local, runner_session, session_for
from penstock_spark.shipping import driver_sys_path, ship_packages
from penstock_spark.stream_plan import StreamPlan
from penstock_spark.user_modules import by_value, graph_objects, pickle_by_value_modules

_SQL_CONF = {
    # Plans here have a fixed number of partitions; adaptive planning would only add a job for each exchange.
    "spark.sql.adaptive.enabled": "false",
    # Native sums rely on it: without, a sum beyond 64 bits wraps around, whatever the user's session says.
    "spark.sql.ansi.enabled": "true",
    # A row of a large group is megabytes; by default a worker gets and copies 64 of them at a time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 << 20),
    # State of many keys is kept in pages, which only this store can hold.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def execute(plan: Plan | StreamPlan, settings: SparkOptions, local_only: bool = False) -> SparkResult:
    """Runs a plan to its end.

    Raises:
        Exception: What user code raised, or a `RunnerError` around what Spark raised.
    """
    spark = _session(settings, local_only)
    context = _context(plan, spark, settings)
    try:
        if isinstance(plan, StreamPlan):
            run_query(plan, context, settings.events_per_batch)
        else:
            run_plan(plan, context)
    except Exception as error:
        _raise(error)
    finally:
        snapshot = take_snapshots(context.metrics, context.run)
        for tidy in reversed(context.tidy):
            tidy()
    return SparkResult(PipelineState.DONE, snapshot)


def lower_only(plan: Plan, settings: SparkOptions, local_only: bool = False) -> SparkSession:
    """Builds the frames of a plan without running more than its side inputs need.

    What the frames depend on is left to Spark to clean up when nobody refers to them any more.

    Returns:
        The session that the pipeline was asked to run in.
    """
    spark = _session(settings, local_only)
    try:
        run_plan(plan, _context(plan, spark, settings))
    except Exception as error:
        _raise(error)
    return spark


def _session(settings: SparkOptions, local_only: bool) -> SparkSession:
    master = settings.master_url() or ("local[*]" if local_only else None)
    spark = session_for(
        SessionOptions(
            spark=getattr(settings, "spark", None),
            master=master,
            app_name=settings.app_name,
            conf=settings.properties(),
            fast_start=bool(settings.fast_start),
        )
    )
    if local_only and not is_local(spark.sparkContext.master):
        raise UnsupportedByRunner(
            "the program names one of Beam's local runners, and the Spark session is a cluster's",
            hint="name the SparkRunner, or no runner",
        )
    return spark


def _context(plan: Plan | StreamPlan, spark: SparkSession, settings: SparkOptions) -> Context:
    partitions = settings.shuffle_partitions or max(1, spark.sparkContext.defaultParallelism)
    session = runner_session(spark, {**_SQL_CONF, "spark.sql.shuffle.partitions": str(partitions)})
    local = is_local(spark.sparkContext.master)
    if not local:
        ship_packages(spark)
    modules = () if local else pickle_by_value_modules(graph_objects(plan.graph))

    def dumps(value: Any) -> bytes:
        with by_value(modules):
            return bytes(cloudpickle.dumps(value))

    return Context(
        spark=session,
        run=uuid.uuid4().hex[:12],
        metrics=accumulator_of(spark.sparkContext),
        partitions=partitions,
        dumps=dumps,
        show_elements=bool(settings.show_elements_in_errors),
        sys_path=driver_sys_path() if local else (),
    )


def _raise(error: Exception) -> NoReturn:
    """Raises what went wrong in the terms of the pipeline, where it was user code's doing."""
    failure = find_failure(str(error))
    if failure is not None:
        raise to_exception(failure) from None
    if isinstance(error, PySparkException):
        raise RunnerError(
            f"Spark failed: {error}", hint="the cause is above; explain() tells which steps a stage runs"
        ) from error
    raise error
