"""The workloads written in PySpark by hand: ``mapInArrow`` for the Python part, ``groupBy`` for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from workloads import WINDOW_SECONDS

Records = Iterator[pa.RecordBatch]


def run(spark: SparkSession, workload: str, source: str, target: str) -> None:
    """Runs a workload from a text file to a folder of text files."""
    body = {"word_count": word_count, "team_sums": team_sums}[workload]
    body(spark.read.text(source)).write.text(target)


def word_count(lines: DataFrame) -> DataFrame:
    """Counts every word."""

    def split(records: Records) -> Records:
        for record in records:
            words = [word for line in record.column(0).to_pylist() for word in line.split()]
            yield pa.record_batch({"word": pa.array(words, pa.string())})

    counts = lines.mapInArrow(split, "word string").groupBy("word").count()
    return counts.select(F.concat_ws("\t", "word", "count"))


def team_sums(lines: DataFrame) -> DataFrame:
    """Sums the scores of each team in each two minutes of event time."""

    def parse(records: Records) -> Records:
        for record in records:
            teams, scores, starts = [], [], []
            for line in record.column(0).to_pylist():
                _, team, score, seconds = line.split(",")
                teams.append(team)
                scores.append(int(score))
                starts.append(int(seconds) // WINDOW_SECONDS * WINDOW_SECONDS)
            yield pa.record_batch(
                {
                    "team": pa.array(teams, pa.string()),
                    "start": pa.array(starts, pa.int64()),
                    "score": pa.array(scores, pa.int64()),
                }
            )

    parsed = lines.mapInArrow(parse, "team string, start long, score long")
    sums = parsed.groupBy("team", "start").agg(F.sum("score").alias("sum"))
    return sums.select(F.concat_ws("\t", F.concat_ws(" ", "team", "start"), "sum"))
