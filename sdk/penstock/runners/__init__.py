"""Runners, which run pipelines. The only one is the Spark runner, in its own package."""

import sys

from penstock.base.engine import SPARK_RUNNER, create_runner, make_spark_runner
from penstock.error import refusal
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
    """The metaclass of names for the one runner: calling one of them imports Spark's package."""

    def __call__(cls, **arguments: object) -> PipelineRunner:
        runner: PipelineRunner = make_spark_runner(**arguments)
        runner.local_only = cls.local_only  # type: ignore[attr-defined]
        return runner

    def __instancecheck__(cls, instance: object) -> bool:
        module = sys.modules.get(SPARK_RUNNER[0])
        if module is None or not isinstance(instance, getattr(module, SPARK_RUNNER[1])):
            return False
        return bool(instance.local_only) or not cls.local_only  # type: ignore[attr-defined]


class SparkRunner(PipelineRunner, metaclass=_NameOfTheRunner):
    """The Spark runner, `penstock_spark.runner.SparkRunner`; calling it imports Spark.

    Arguments are options by name, such as ``spark=session``; they override the pipeline's.

    >>> isinstance(create_runner("spark"), SparkRunner), isinstance(create_runner("spark"), DirectRunner)
    (True, False)
    """

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            what = f"{cls.__name__} derives from a name for the Spark runner, which is not its class"
            raise refusal(TypeError, what, hint=f"derive it from {'.'.join(SPARK_RUNNER)}")


class DirectRunner(SparkRunner):
    """The Spark runner on this machine, under the name that Beam's programs use for their local runner.

    >>> isinstance(create_runner("direct"), DirectRunner), isinstance(create_runner("direct"), SparkRunner)
    (True, True)
    """

    local_only = True
