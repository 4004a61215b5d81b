"""One contender at work: a process of its own that runs the jobs it reads from its input, and answers each when done.

A process that stays keeps its Spark warm, as a user's does; one for each contender keeps them out of each other's way.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[str, str, str], None]
"""Runs a workload, by name, from a file to a folder."""


def _penstock(cores: int) -> Run:
    import penstock
    import pipelines

    spark = _spark(cores)
    return lambda *job: pipelines.run(penstock, penstock.Pipeline(spark=spark), *job)


def _handwritten(cores: int) -> Run:
    import handwritten

    return partial(handwritten.run, _spark(cores))


def _beam(cores: int) -> Run:
    import apache_beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    import pipelines

    # The runner named DirectRunner may hand the work to a program in Go; this is the one in Python.
    return lambda *job: pipelines.run(apache_beam, apache_beam.Pipeline(FnApiRunner()), *job)


CONTENDERS = {"penstock": _penstock, "handwritten": _handwritten, "beam": _beam}


def _spark(cores: int) -> SparkSession:
    """The same session for every contender that uses Spark."""
    from pyspark.sql import SparkSession

    from penstock_spark.java import ensure_java

    os.environ["JAVA_HOME"] = ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
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


def main(name: str, cores: str) -> None:
    """Says when it is ready, and when each job is done."""
    answers, sys.stdout = sys.stdout, sys.stderr
    run = CONTENDERS[name](int(cores))
    print("ready", file=answers, flush=True)
    for job in sys.stdin:
        run(*json.loads(job))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
