"""What runs the pipelines of Beam's tests: Spark in one session, the toy engine of tests/runner, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def engine(name: str, run: Run) -> Run:
    """A `SparkRunner.run_pipeline` for an engine.

    Args:
        name: ``spark``, ``toy`` or ``none``.
        run: The true one.
    """
    if name == "none":
        return lambda *_: pytest.skip("it runs a pipeline")
    if name == "toy":
        return _run_on_toy_engine

    def run_in_the_session(*arguments: Any) -> Any:
        _start_session()
        return run(*arguments)

    return run_in_the_session


def _start_session() -> None:
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        return
    from penstock_spark.session.session import SessionOptions, session_for

    conf = {"spark.driver.memory": "2g", "spark.sql.warehouse.dir": str(Path.cwd() / "warehouse")}
    session_for(SessionOptions(master="local[2]", app_name="Beam's tests", conf=conf, fast_start=True))


def _run_on_toy_engine(runner: Any, pipeline: Any, options: Any) -> Any:
    """Runs a batch pipeline whose elements are the program's own; skips the test if it needs Spark for more."""
    from penstock.coders.deterministic import allow_pickled_keys
    from penstock.graph import DriverList, InlineValues, Read, Write
    from penstock.options.pipeline_options import TypeOptions
    from penstock_spark.live.snapshot import RunSnapshot
    from penstock_spark.lowering.context import INLINE_VALUES
    from penstock_spark.plan.batch_plan import Plan
    from penstock_spark.reports.spark_errors import raise_translated
    from penstock_spark.runs.result import SparkResult
    from tests.runner.plain_runner import Settings, run_plain

    allow_pickled_keys(options.view_as(TypeOptions).allow_non_deterministic_key_coders)
    graph = pipeline.to_graph()
    plan = runner.compiled(graph, runner._settings(options)).plan
    for step in graph.steps:
        reads_outside = isinstance(step.primitive, Read) and not isinstance(
            step.primitive.source, InlineValues
        )
        writes_outside = isinstance(step.primitive, Write) and not isinstance(step.primitive.sink, DriverList)
        if reads_outside or writes_outside or not isinstance(plan, Plan):
            pytest.skip("it needs Spark")
    try:
        snapshot = run_plain(plan, Settings(inline_values=INLINE_VALUES))
    except Exception as error:
        raise_translated(error)
    return SparkResult("DONE", snapshot, RunSnapshot("", "", "batch", "DONE", 0, 0))
