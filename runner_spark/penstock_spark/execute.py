"""Runs a batch plan in a Spark session and gives its result; `execute_stream` does the same for a query."""

from __future__ import annotations

import uuid
from typing import Any, NoReturn

import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.error import RunnerError, UnsupportedByRunner
from penstock.graph import Graph
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.jobs import run_plan
from penstock_spark.metrics import accumulator_of, take_snapshots
from penstock_spark.operators.failure import find_failure, to_exception
from penstock_spark.plan import Plan
from penstock_spark.result import SparkResult
from penstock_spark.session import SessionOptions, is_local, runner_session, session_for
from penstock_spark.shipping import driver_sys_path, ship_packages
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


def execute(plan: Plan, settings: SparkOptions, local_only: bool = False) -> SparkResult:
    """Runs a batch plan to its end.

    Raises:
        Exception: What user code raised, or a `RunnerError` around what Spark raised.
    """
    spark = open_session(settings, local_only)
    context = context_for(plan.graph, spark, settings)
    try:
        run_plan(plan, context)
    except Exception as error:
        raise_translated(error)
    finally:
        snapshot = take_snapshots(context.metrics, context.run)
        context.tidy_up()
    return SparkResult(PipelineState.DONE, snapshot)


def lower_only(plan: Plan, settings: SparkOptions, local_only: bool = False) -> SparkSession:
    """Builds the frames of a plan without running more than its side inputs need.

    What the frames depend on is left to Spark to clean up when nobody refers to them any more.

    Returns:
        The session that the pipeline was asked to run in.
    """
    spark = open_session(settings, local_only)
    try:
        run_plan(plan, context_for(plan.graph, spark, settings))
    except Exception as error:
        raise_translated(error)
    return spark


def open_session(settings: SparkOptions, local_only: bool) -> SparkSession:
    """The session that a pipeline's options ask for.

    Raises:
        UnsupportedByRunner: It is a cluster's, and the program must stay on this machine.
    """
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


def context_for(graph: Graph, spark: SparkSession, settings: SparkOptions) -> Context:
    """What the lowering of a graph carries along, with a session of the runner's own."""
    partitions = settings.shuffle_partitions or max(1, spark.sparkContext.defaultParallelism)
    session = runner_session(spark, {**_SQL_CONF, "spark.sql.shuffle.partitions": str(partitions)})
    local = is_local(spark.sparkContext.master)
    if not local:
        ship_packages(spark)
    modules = () if local else pickle_by_value_modules(graph_objects(graph))

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
        # What is recorded comes one by one.
        combine_early=not (settings.no_early_combining or settings.record_events),
        shortcuts=not settings.no_shortcuts,
        recorded=settings.record_events or 0,
        sys_path=driver_sys_path() if local else (),
    )


def raise_translated(error: Exception) -> NoReturn:
    """Raises what went wrong in the terms of the pipeline, where it was user code's doing."""
    other = translated(error)
    if other is error:
        raise error
    raise other from other.__cause__


def translated(error: Exception) -> BaseException:
    """What went wrong in the terms of the pipeline, where it was user code's doing."""
    failure = find_failure(str(error))
    if failure is not None:
        return to_exception(failure)
    if isinstance(error, PySparkException):
        what = RunnerError(
            f"Spark failed: {error}", hint="the cause is above; explain() tells which steps a stage runs"
        )
        what.__cause__ = error
        return what
    return error
