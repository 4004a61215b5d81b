"""The workloads written in PySpark by hand: ``mapInArrow`` for the Python part, Spark's own operators for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from totals import WINDOW_SECONDS

SESSION_GAP = "59.999999 seconds"
"""Spark has events exactly one gap apart in one session, and Beam has them in two: a microsecond makes them agree."""

Records = Iterator[pa.RecordBatch]


def run(spark: SparkSession, job: str, source: str, target: str) -> None:
    """Runs a workload from a text file to a folder of text files."""
    JOBS[job](spark.read.text(source)).write.text(target)


def word_count(lines: DataFrame) -> DataFrame:
    """Counts every word."""

    def split(records: Records) -> Records:
        for record in records:
            words = [word for line in record.column(0).to_pylist() for word in line.split()]
            yield pa.record_batch({"word": pa.array(words, pa.string())})

    counts = lines.mapInArrow(split, "word string").groupBy("word").count()
    return counts.select(F.concat_ws("\t", "word", "count"))


def team_sums(lines: DataFrame) -> DataFrame:
    """Sums the scores of each team for every two minutes of event time."""

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


def user_sessions(lines: DataFrame) -> DataFrame:
    """Sums the scores of each session of a user."""

    def parse(records: Records) -> Records:
        for record in records:
            users, scores, seconds = [], [], []
            for line in record.column(0).to_pylist():
                user, _, score, second = line.split(",")
                users.append(user)
                scores.append(int(score))
                seconds.append(int(second))
            yield pa.record_batch(
                {
                    "user": pa.array(users, pa.string()),
                    "second": pa.array(seconds, pa.int64()),
                    "score": pa.array(scores, pa.int64()),
                }
            )

    parsed = lines.mapInArrow(parse, "user string, second long, score long")
    return session_sums(parsed)


def session_sums(events: DataFrame) -> DataFrame:
    """The lines of the sums of sessions, from the columns ``user``, ``second`` and ``score``."""
    at = F.timestamp_seconds("second").alias("at")
    session = F.session_window("at", SESSION_GAP).alias("session")
    sums = events.select("user", "score", at).groupBy("user", session).agg(F.sum("score").alias("sum"))
    start = F.col("session.start").cast("long")
    return sums.select(F.concat_ws("\t", F.concat_ws(" ", "user", start), "sum"))


JOBS = {"word_count": word_count, "team_sums": team_sums, "user_sessions": user_sessions}
