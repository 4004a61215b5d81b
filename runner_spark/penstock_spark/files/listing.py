"""How Spark looks at the files of a read: with its defaults, more than 32 of them take a job with a task for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock_spark.session.session import is_local_session

_LISTED_BY_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_EVERYTHING = str(2**31 - 1)


def setting_of_listing(spark: SparkSession) -> tuple[str, str]:
    """The property, and its value, with which Spark looks at many files without many tasks.

    Each task costs milliseconds, and memory outside of Java's heap until that is collected.
    """
    if is_local_session(spark):
        return _LISTED_BY_DRIVER, _EVERYTHING
    return _LISTING_TASKS, str(spark.sparkContext.defaultParallelism)


@contextmanager
def listing(spark: SparkSession) -> Iterator[None]:
    """Sets that property for a while, unless the user has set it."""
    name, value = setting_of_listing(spark)
    if spark.conf.get(name, None) is not None:
        yield
        return
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
