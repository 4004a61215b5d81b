"""Settings for how Spark lists the files of a read, and shares them among tasks.

With its defaults, more than 32 files take a job with a task for each, and no task reads more than 32 files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock_spark.session.backends import backend_of, is_local_session

_LISTED_BY_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_EVERYTHING = str(2**31 - 1)
_OPENING = "spark.sql.files.openCostInBytes"

_OPENING_BYTES = 256 << 10
"""Opening a file on a disk takes Spark's readers as long as reading this many bytes; see `splits.OPENING_BYTES`."""


def setting_of_listing(spark: SparkSession) -> tuple[str, str]:
    """Returns the property, and its value, with which Spark lists many files without many tasks.

    Each task costs milliseconds, and memory outside of the Java heap until that is collected.
    """
    if is_local_session(spark):
        return _LISTED_BY_DRIVER, _EVERYTHING
    return _LISTING_TASKS, str(backend_of(spark).parallelism())


def settings_of_tasks(spark: SparkSession) -> dict[str, str]:
    """Returns the properties with which few tasks read many small files, unless the user has set them.

    On a cluster, files may be on a store, so that Spark's own value is better.
    """
    if not is_local_session(spark) or spark.conf.get(_OPENING, None) is not None:
        return {}
    return {_OPENING: str(_OPENING_BYTES)}


@contextmanager
def list_with_few_tasks(spark: SparkSession) -> Iterator[None]:
    """Lets Spark list many files without many tasks, unless the user has set this property."""
    name, value = setting_of_listing(spark)
    if spark.conf.get(name, None) is not None:
        yield
        return
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
