"""Asks the workers of a cluster for penstock, before it is shipped to them and after."""

from __future__ import annotations

from collections.abc import Iterator

import helper_of_jobs
import pyarrow as pa

from penstock_spark.session.session import SessionOptions, session_for
from penstock_spark.shipping.import_paths import ship_packages
from penstock_spark.shipping.user_modules import pickle_by_value, pickle_by_value_modules


def where_penstock_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row a task: the file that penstock comes from, or the error."""
    for _ in batches:
        try:
            import penstock

            found = penstock.__file__
        except ImportError as error:
            found = type(error).__name__
        yield pa.record_batch({"found": [helper_of_jobs.shout(found)]})


def answers() -> list[str]:
    """The master, and what the workers say before the packages are shipped and after."""
    # A task that fails, fails again. By default, Spark tries it four times, each time with a new Python.
    spark = session_for(SessionOptions(conf={"spark.task.maxFailures": "2"}))

    def ask() -> str:
        frame = spark.range(2, numPartitions=2).mapInArrow(where_penstock_is, "found string")
        return " ".join(sorted({row.found.rpartition("/PENSTOCK-")[2] for row in frame.collect()}))

    with pickle_by_value(pickle_by_value_modules([where_penstock_is])):
        before = ask()
        ship_packages(spark)
        ship_packages(spark)
        return [str(spark.sparkContext.master), before, ask()]
