"""The number of tasks that read at the same time: Spark's default number of partitions of a source."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock_spark.session.backends import backend_of

PARALLELISM = "spark.sql.leafNodeDefaultParallelism"


def parallelism_of(spark: SparkSession) -> int:
    """Returns the number that the session sets, or else the number of cores."""
    asked = spark.conf.get(PARALLELISM, None)
    return max(1, backend_of(spark).parallelism() if asked is None else int(asked))
