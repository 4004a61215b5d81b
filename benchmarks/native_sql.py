"""The workloads written for Spark alone: no line of Python sees the data."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from handwritten import session_sums
from totals import WINDOW_SECONDS


def run(spark: SparkSession, job: str, source: str, target: str) -> None:
    """Runs a workload from a file to a folder of files."""
    JOBS[job](spark.read.text(source)).write.text(target)


def word_count(lines: DataFrame) -> DataFrame:
    """Counts every word."""
    words = lines.select(F.explode(F.split("value", " ")).alias("word"))
    return words.groupBy("word").count().select(F.concat_ws("\t", "word", "count"))


def team_sums(lines: DataFrame) -> DataFrame:
    """Sums the scores of each team for every two minutes of event time."""
    sums = _fields(lines).groupBy("team", _start("second")).agg(F.sum("score").alias("sum"))
    return sums.select(F.concat_ws("\t", F.concat_ws(" ", "team", "start"), "sum"))


def user_sessions(lines: DataFrame) -> DataFrame:
    """Sums the scores of each session of a user."""
    return session_sums(_fields(lines))


def typed_sums(spark: SparkSession, source: str, target: str) -> None:
    """Sums the scores of each team for every two minutes of event time, from Parquet to Parquet."""
    scores = spark.read.parquet(source)
    sums = scores.groupBy("team", _start("at")).agg(F.sum("score").alias("total"))
    sums.select("team", "total").write.parquet(target)


def _fields(lines: DataFrame) -> DataFrame:
    fields = F.split("value", ",")
    return lines.select(
        fields[0].alias("user"),
        fields[1].alias("team"),
        fields[2].cast("long").alias("score"),
        fields[3].cast("long").alias("second"),
    )


def _start(seconds: str) -> F.Column:
    return (F.col(seconds) - F.col(seconds) % WINDOW_SECONDS).alias("start")


JOBS = {"word_count": word_count, "team_sums": team_sums, "user_sessions": user_sessions}
