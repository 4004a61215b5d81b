"""One contender at work: a process of its own that runs the jobs it reads from its input, and answers each when done.

A process that stays keeps its Spark warm, as a user's does; one for each contender keeps them out of each other's way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from answering import answer_orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., None]
"""Runs a job, by name, from a file ``source`` to a folder ``target``."""

_HERE = Path(__file__).parent


def _penstock(cores: int) -> Run:
    import penstock
    import pipelines
    import shapes

    spark = spark_session(cores)

    def run(job: str, **files: str) -> None:
        pipeline = penstock.Pipeline(spark=spark)
        if job in pipelines.JOBS:
            pipelines.run(penstock, pipeline, job, **files)
        else:
            shapes.run(pipeline, job, **files)

    return run


def _handwritten(cores: int) -> Run:
    import handwritten

    return partial(handwritten.run, spark_session(cores))


def _native_sql(cores: int) -> Run:
    import native_sql

    return partial(native_sql.run, spark_session(cores))


def _columns(cores: int) -> Run:
    """Both sides of the comparison without Python: alone, two Javas compile one query into code of unlike speed."""
    import native_sql
    import penstock
    import typed

    spark = spark_session(cores)

    def run(job: str, **files: str) -> None:
        if job == "by_hand":
            native_sql.typed_sums(spark, **files)
        else:
            typed.run(penstock.Pipeline(spark=spark), **files)

    return run


def _rdd(cores: int) -> Run:
    import rdds

    return partial(rdds.run, spark_session(cores))


def _beam(cores: int) -> Run:
    import apache_beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    import pipelines

    # The runner named DirectRunner may hand the work to a program in Go; this is the one in Python.
    return lambda job, **files: pipelines.run(apache_beam, apache_beam.Pipeline(FnApiRunner()), job, **files)


def _beam_runner(cores: int) -> Run:
    import apache_beam

    import pipelines
    from penstock_spark.beam import BeamRunner

    spark = spark_session(cores)

    def run(job: str, **files: str) -> None:
        pipelines.run(apache_beam, apache_beam.Pipeline(BeamRunner(spark=spark)), job, **files)

    return run


def _plain(cores: int) -> Run:
    import plain

    return plain.run


CONTENDERS = {
    "penstock": _penstock,
    "handwritten": _handwritten,
    "native_sql": _native_sql,
    "columns": _columns,
    "rdd": _rdd,
    "beam": _beam,
    "beam_runner": _beam_runner,
    "plain": _plain,
}


def spark_session(cores: int) -> SparkSession:
    """The session of every contender that uses Spark."""
    from pyspark.sql import SparkSession

    from penstock_spark.session.java import ensure_java

    os.environ["JAVA_HOME"] = ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark's processes have to find the functions by the names of their modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HERE), os.environ.get("PYTHONPATH"))))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    answer_orders(partial(CONTENDERS[sys.argv[1]], int(sys.argv[2])))
