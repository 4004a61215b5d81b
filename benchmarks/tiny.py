"""A tiny pipeline and the same work in PySpark, in a session that is there, or as a program of its own.

Three pairs, a function of Python for each, groups by key, a function of Python for each group, and a look at what
comes out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PAIRS = [("blue", 1), ("red", 2), ("blue", 3)]
GROUPS = [("blue", [2, 4]), ("red", [3])]


def pipeline_on(pipeline: Any) -> None:
    """With penstock."""
    import penstock as beam
    from penstock.testing.util import assert_that, equal_to

    with pipeline:
        grouped = (
            pipeline
            | beam.Create(PAIRS)
            | beam.MapTuple(lambda team, score: (team, score + 1))
            | beam.GroupByKey()
            | beam.MapTuple(lambda team, scores: (team, sorted(scores)))
        )
        assert_that(grouped, equal_to(GROUPS))


def frames_on(spark: SparkSession) -> None:
    """With data frames, and ``mapInArrow`` for what is Python."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    def increased(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            teams, scores = (column.to_pylist() for column in record.columns)
            yield pa.record_batch({"team": teams, "score": [score + 1 for score in scores]})

    def in_order(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            teams, groups = (column.to_pylist() for column in record.columns)
            yield pa.record_batch({"team": teams, "scores": [sorted(scores) for scores in groups]})

    pairs = spark.createDataFrame(PAIRS, "team string, score long").mapInArrow(
        increased, "team string, score long"
    )
    groups = pairs.groupBy("team").agg(F.collect_list("score").alias("scores"))
    _look_at([tuple(row) for row in groups.mapInArrow(in_order, "team string, scores array<long>").collect()])


def columns_on(spark: SparkSession) -> None:
    """With data frames, and no function of Python."""
    from pyspark.sql import functions as F

    pairs = spark.createDataFrame(PAIRS, "team string, score long").withColumn("score", F.col("score") + 1)
    groups = pairs.groupBy("team").agg(F.sort_array(F.collect_list("score")))
    _look_at([tuple(row) for row in groups.collect()])


def datasets_on(spark: SparkSession) -> None:
    """With resilient distributed datasets."""
    pairs = spark.sparkContext.parallelize(PAIRS).mapValues(lambda score: score + 1)
    _look_at(pairs.groupByKey().mapValues(sorted).collect())


def _look_at(groups: list[Any]) -> None:
    assert sorted(groups) == GROUPS


def _as_program(name: str, *flags: str) -> None:
    """Starts whatever is needed, does the work once, and ends."""
    master = f"local[{len(os.sched_getaffinity(0))}]"
    if name == "penstock":
        import penstock as beam

        pipeline_on(beam.Pipeline(argv=[f"--master={master}", *flags]))
        return
    from pyspark.sql import SparkSession

    cores = str(len(os.sched_getaffinity(0)))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": cores,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    frames_on(SparkSession.builder.master(master).config(map=settings).getOrCreate())


if __name__ == "__main__":
    _as_program(*sys.argv[1:])
