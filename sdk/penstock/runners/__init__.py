"""Runners: what takes a pipeline and runs it. There is one, on Spark; it lives in a package of its own."""

import sys
from typing import Any

from penstock.base.engine import SPARK_RUNNER, create_runner, spark_runner
from penstock.error import three_parts
from penstock.runners.runner import PipelineResult, PipelineRunner, PipelineState

__all__ = [
    "DirectRunner",
    "PipelineResult",
    "PipelineRunner",
    "PipelineState",
    "SparkRunner",
    "create_runner",
]


class _NameOfTheRunner(type):
    """The type of names that stand for the one runner: Spark's package is imported when one of them is called."""

    def __call__(cls, **arguments: Any) -> PipelineRunner:
        runner: PipelineRunner = spark_runner(**arguments)
        runner.local_only = cls.local_only  # type: ignore[attr-defined]
        return runner

    def __instancecheck__(cls, instance: object) -> bool:
        module = sys.modules.get(SPARK_RUNNER[0])
        if module is None or not isinstance(instance, getattr(module, SPARK_RUNNER[1])):
            return False
        return bool(instance.local_only) or not cls.local_only  # type: ignore[attr-defined]


class SparkRunner(PipelineRunner, metaclass=_NameOfTheRunner):
    """The Spark runner, as `penstock_spark.runner.SparkRunner` makes it; Spark is imported when it is called.

    Args:
        arguments: Options by name, such as ``spark=session``; they win over the pipeline's.

    Raises:
        ImportError: If the runner's package cannot be imported.
        TypeError: If an option's name is unknown, or a class derives from this name.

    >>> isinstance(create_runner("spark"), SparkRunner), isinstance(create_runner("spark"), DirectRunner)
    (True, False)
    """

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            what = f"{cls.__name__} derives from a name of the Spark runner, which is not its class"
            raise TypeError(three_parts(what, hint=f"derive it from {'.'.join(SPARK_RUNNER)}"))


class DirectRunner(SparkRunner):
    """The Spark runner on this machine, under the name that Beam's programs use for their local runner.

    Args:
        arguments: As of `SparkRunner`.

    Raises:
        ImportError: If the runner's package cannot be imported.
        TypeError: As of `SparkRunner`.

    >>> isinstance(create_runner("direct"), DirectRunner), isinstance(create_runner("direct"), SparkRunner)
    (True, True)
    """

    local_only = True
