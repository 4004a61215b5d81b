"""How many tasks read at the same time: as many as Spark assumes for whatever produces data."""

from __future__ import annotations

from pyspark.sql import SparkSession

PARALLELISM = "spark.sql.leafNodeDefaultParallelism"


def parallelism_of(spark: SparkSession) -> int:
    """The number that the session sets, or else the number of cores."""
    asked = spark.conf.get(PARALLELISM, None)
    return max(1, spark.sparkContext.defaultParallelism if asked is None else int(asked))
