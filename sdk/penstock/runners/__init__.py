"""Runners: what takes a pipeline and runs it. There is one, on Spark; it lives in a package of its own."""

from typing import Any

from penstock.runners.runner import PipelineResult, PipelineRunner, PipelineState, create_runner, spark_runner

__all__ = [
    "DirectRunner",
    "PipelineResult",
    "PipelineRunner",
    "PipelineState",
    "SparkRunner",
    "create_runner",
]


def SparkRunner(**arguments: Any) -> PipelineRunner:
    """The Spark runner, as `penstock_spark.runner.SparkRunner` makes it; Spark is imported when it is called.

    Args:
        arguments: Options by name, such as ``spark=session``; they win over the pipeline's.

    Raises:
        ImportError: If the runner's package cannot be imported.
        TypeError: If an option's name is unknown.
    """
    return spark_runner(**arguments)


def DirectRunner() -> PipelineRunner:
    """The Spark runner on this machine, under the name that Beam's programs use for their local runner.

    Raises:
        ImportError: If the runner's package cannot be imported.
    """
    return create_runner("DirectRunner")
