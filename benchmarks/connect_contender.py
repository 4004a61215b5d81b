"""One driver at work, with a session of its own or on a server of Spark Connect: it answers each order with numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pipelines
import tiny
import typed
from answering import CarryOut, answer_orders
from stream_session import SETTINGS, share_modules, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TINY_RUNS = 10


def _tiny(spark: SparkSession, source: str, target: str) -> None:
    import penstock as beam

    for _ in range(_TINY_RUNS):
        tiny.pipeline_on(beam.Pipeline(spark=spark))


def _lines(job: str) -> Callable[[SparkSession, str, str], None]:
    def run(spark: SparkSession, source: str, target: str) -> None:
        import penstock as beam

        pipelines.run(beam, beam.Pipeline(spark=spark), job, source, target)

    return run


def _columns(spark: SparkSession, source: str, target: str) -> None:
    import penstock as beam

    typed.run(beam.Pipeline(spark=spark), source, target)


def _stream(spark: SparkSession, source: str, target: str) -> None:
    import penstock as beam
    from stream_penstock import replay_on

    pipeline = beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=f"{target}-checkpoint")
    replay_on(pipeline, "sums", source, target, files_per_batch=1)
    pipeline.run().wait_until_finish()


JOBS: Mapping[str, Callable[[SparkSession, str, str], None]] = {
    "tiny": _tiny,
    "team_sums": _lines("team_sums"),
    "user_sessions": _lines("user_sessions"),
    "typed_sums": _columns,
    "stream": _stream,
}


def start(name: str, cores: int) -> CarryOut:
    """A driver with its session; the server that PySpark starts for a session of Connect is a process below it."""
    spark = _session(name, cores)

    def carry_out(job: str, source: str, target: str) -> None:
        JOBS[job](spark, source, target)

    return carry_out


def _session(name: str, cores: int) -> Any:
    if name == "classic":
        return start_session(cores)
    from pyspark.sql import SparkSession

    from penstock_spark.process.environment import environment
    from penstock_spark.session.java import find_java, wrap_java

    share_modules()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        **SETTINGS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
    }
    with environment({"JAVA_HOME": wrap_java(find_java())}):
        return SparkSession.builder.remote(f"local[{cores}]").config(map=settings).getOrCreate()


if __name__ == "__main__":
    answer_orders(lambda: start(sys.argv[1], int(sys.argv[2])))
