"""The workloads written with Spark's resilient distributed datasets, its oldest interface for Python."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import TYPE_CHECKING

from totals import WINDOW_SECONDS, sessions_of

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession


def run(spark: SparkSession, job: str, source: str, target: str) -> None:
    """Runs a workload from a text file to a folder of text files."""
    context = spark.sparkContext
    JOBS[job](context.textFile(source), context.defaultParallelism).saveAsTextFile(target)


def word_count(lines: RDD[str], partitions: int) -> RDD[str]:
    """Counts every word."""
    ones = lines.flatMap(str.split).map(lambda word: (word, 1))
    return ones.reduceByKey(add, partitions).map(lambda pair: f"{pair[0]}\t{pair[1]}")


def team_sums(lines: RDD[str], partitions: int) -> RDD[str]:
    """Sums the scores of each team for every two minutes of event time."""

    def parse(line: str) -> tuple[tuple[str, int], int]:
        _, team, score, seconds = line.split(",")
        return (team, int(seconds) // WINDOW_SECONDS * WINDOW_SECONDS), int(score)

    sums = lines.map(parse).reduceByKey(add, partitions)
    return sums.map(lambda pair: f"{pair[0][0]} {pair[0][1]}\t{pair[1]}")


def user_sessions(lines: RDD[str], partitions: int) -> RDD[str]:
    """Sums the scores of each session of a user."""

    def parse(line: str) -> tuple[str, tuple[int, int]]:
        user, _, score, seconds = line.split(",")
        return user, (int(seconds), int(score))

    users = lines.map(parse).groupByKey(partitions)
    sums = users.mapValues(lambda events: sessions_of(sorted(events)))
    return sums.flatMap(lambda pair: [f"{pair[0]} {start}\t{total}" for start, total in pair[1].items()])


JOBS: dict[str, Callable[[RDD[str], int], RDD[str]]] = {
    "word_count": word_count,
    "team_sums": team_sums,
    "user_sessions": user_sessions,
}
