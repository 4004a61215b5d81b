"""Measures SQL: queries that Spark computes whole beside Spark SQL, windowed sums of a stream beside the Python API,
and the planning of 1,000 queries.

Run it with ``python benchmarks/sql_speed.py``. Both sides of a comparison take turns in one session, and a speed is the
median of the ratios of neighbours: what else the machine does meets both. The rows of both sides are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock as beam
from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io.each_batch import ForEachBatch
from penstock.io.sparkio import ReadFromSpark, WriteToSpark
from penstock.io.watermarks import BoundedDisorder
from penstock.scalars.types import BIGINT, STRING, TIMESTAMP
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan.relations import ColumnDef
from penstock.transforms.sql import SqlTransform
from penstock.transforms.window import FixedWindows
from penstock.typehints import KV
from stream_report import markdown
from stream_session import start_session
from targets import empty_target
from totals import WINDOW_SECONDS

_START_MICROS = 1_767_225_600_000_000
_TEAMS, _CITIES, _POINTS = 100, 7, 20

GOALS = "team STRING, points BIGINT, at TIMESTAMP"
TEAMS = "name STRING, city STRING"
_MINUTES = WINDOW_SECONDS // 60
_WINDOWED = f"TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '{_MINUTES}' MINUTES)"
_SLIDING = f"HOP(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTES, INTERVAL '{_MINUTES}' MINUTES)"
_JOINED = """
    SELECT city, COUNT(*) AS goals, SUM(points) AS points, MAX(at) AS last
    FROM goals JOIN teams ON goals.team = teams.name GROUP BY city
"""
_BEST = """
    SELECT team, points, at FROM goals
    QUALIFY ROW_NUMBER() OVER (PARTITION BY team ORDER BY points DESC, at) <= 3
"""
_SCORED = "SELECT team, points * 2 + 1 AS twice, at FROM goals WHERE points > 5 AND team LIKE '%3'"

WHOLE: Mapping[str, tuple[str, str, str]] = {
    "sums": (
        "sums per team and two minutes",
        f"SELECT window_start, team, SUM(points) AS total FROM {_WINDOWED} GROUP BY window_start, window_end, team",
        f"SELECT window.start AS window_start, team, SUM(points) AS total FROM goals "
        f"GROUP BY window(at, '{_MINUTES} minutes'), team",
    ),
    "sliding": (
        "counts per team and two minutes, every minute",
        f"SELECT window_end, team, COUNT(*) AS goals FROM {_SLIDING} GROUP BY window_start, window_end, team",
        f"SELECT window.end AS window_end, team, COUNT(*) AS goals FROM goals "
        f"GROUP BY window(at, '{_MINUTES} minutes', '1 minute'), team",
    ),
    "filter": ("a filter and arithmetic", _SCORED, _SCORED),
    "join": ("a join and a grouping", _JOINED, _JOINED),
    "best": ("three best rows of each team", _BEST, _BEST),
}
"""Queries that Spark computes whole: a title, penstock's text and Spark's, which differ in their words for windows."""


# Batch


def batch(spark: SparkSession, settings: argparse.Namespace) -> dict[str, Any]:
    """Compares the queries that Spark computes whole with Spark SQL."""
    goals, teams = _tables(spark, settings.folder, settings.rows)
    found = {}
    for name, (title, text, spark_text) in WHOLE.items():

        def native(spark_text: str = spark_text) -> Path:
            spark.read.parquet(str(goals)).createOrReplaceTempView("goals")
            spark.read.parquet(str(teams)).createOrReplaceTempView("teams")
            target = empty_target(settings.folder, "sql-native")
            spark.sql(spark_text).write.parquet(str(target))
            return target

        def ours(text: str = text) -> Path:
            target = empty_target(settings.folder, "sql-penstock")
            with beam.Pipeline(spark=spark) as pipeline:
                tables = {
                    "goals": pipeline | "Goals" >> ReadFromSpark("parquet", str(goals), schema=GOALS),
                    "teams": pipeline | "Teams" >> ReadFromSpark("parquet", str(teams), schema=TEAMS),
                }
                transform = SqlTransform(text)
                _ = tables | transform | WriteToSpark("parquet", str(target))
            assert transform.explained.endswith("computed by: Spark alone"), transform.explained
            return target

        _compare(spark, name, native(), ours())
        found[name] = {"title": title, **paired(native, ours, settings.warming_turns, settings.turns)}
        print(f"{name}: {found[name]['speed_by_wall']} by wall", file=sys.stderr, flush=True)
    return found


def _tables(spark: SparkSession, folder: Path, rows: int) -> tuple[Path, Path]:
    goals, teams = folder / f"sql-goals-{rows}", folder / f"sql-teams-{rows}"
    if not teams.exists():
        at = f"timestamp_micros({_START_MICROS} + id * 1000)"
        columns = f"concat('team', id % {_TEAMS}) AS team, id * 7 % {_POINTS} AS points, {at} AS at"
        _write(spark, f"SELECT {columns} FROM range({rows})", goals)
        cities = f"concat('team', id) AS name, concat('city', id % {_CITIES}) AS city"
        _write(spark, f"SELECT {cities} FROM range({_TEAMS})", teams)
    return goals, teams


def _write(spark: SparkSession, query: str, folder: Path) -> None:
    unfinished = folder.with_suffix(".unfinished")
    spark.sql(query).write.mode("overwrite").parquet(str(unfinished))
    unfinished.rename(folder)


def _compare(spark: SparkSession, name: str, native: Path, ours: Path) -> None:
    """Both have to have written the same rows."""
    wanted, found = (spark.read.parquet(str(path)) for path in (native, ours))
    wrong = wanted.exceptAll(found).count(), found.exceptAll(wanted).count()
    if any(wrong) or not wanted.count():
        raise AssertionError(f"{name}: {wrong[0]} rows are missing and {wrong[1]} are wrong")


# Stream


def stream(spark: SparkSession, settings: argparse.Namespace) -> dict[str, Any]:
    """Compares windowed sums of a stream in SQL with the same sums in the Python API."""
    source = _stream_files(spark, settings.folder, settings.events, settings.files)
    query = f"""
        SELECT STREAM window_start, team, SUM(points) AS total FROM {_WINDOWED}
        GROUP BY window_start, window_end, team
        EMIT AFTER WATERMARK
    """

    def in_sql(rows: Any) -> Any:
        return {"goals": rows} | SqlTransform(query)

    def in_python(rows: Any) -> Any:
        return (
            rows
            | "By team" >> beam.Map(lambda goal: (goal.team, goal.points)).with_output_types(KV[str, int])
            | beam.WindowInto(FixedWindows(WINDOW_SECONDS))
            | beam.CombinePerKey(sum)
            | "Row" >> beam.Map(lambda sums, window=beam.DoFn.WindowParam: (window.start, *sums))
        )

    def run_of(answer: Callable[[Any], Any]) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            found: list[Any] = []
            pipeline = beam.Pipeline(spark=spark, mode="streaming")
            read = ReadFromSpark("parquet", str(source), schema=GOALS).as_stream(
                "at", BoundedDisorder(5), existing_only=True, max_files_per_batch=2
            )
            _ = answer(pipeline | read) | ForEachBatch(lambda rows, _: found.extend(rows))
            pipeline.run().wait_until_finish()
            return found

        return run

    sql, python = run_of(in_sql), run_of(in_python)
    wanted, found = sorted(map(_sum, python())), sorted(map(_sum, sql()))
    if wanted != found or len(found) < 2:
        raise AssertionError(f"{len(wanted)} sums in Python, and others in SQL: {len(found)}")
    numbers = paired(python, sql, settings.warming_turns, settings.turns)
    return {"sums": {"title": "windowed sums of a stream", "events": settings.events, **numbers}}


def _sum(row: Any) -> tuple[int, str, int]:
    """A row of either side, with its time in microseconds."""
    start, team, total = row
    if isinstance(start, datetime):
        return (start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), team, total
    return start.micros, team, total


def _stream_files(spark: SparkSession, folder: Path, events: int, files: int) -> Path:
    target = folder / f"sql-stream-{events}-in-{files}"
    if not target.exists():
        at = f"timestamp_micros({_START_MICROS} + id * {1_200_000_000 // events})"
        columns = f"concat('team', id % {_TEAMS}) AS team, id * 7 % {_POINTS} AS points, {at} AS at"
        _write(spark, f"SELECT {columns} FROM range(0, {events}, 1, {files})", target)
    return target


# Planning


def planning(queries: int) -> dict[str, Any]:
    """The seconds in which generated queries are parsed and planned; and the length of the queries."""
    sys.path.append(str(ROOT))
    from tests.sql.random_queries import TABLES, random_query

    types = {"INTEGER": BIGINT, "STRING": STRING, "TIME": TIMESTAMP}
    columns = {
        name: tuple(ColumnDef(column, types[kind].or_null()) for column, kind in found)
        for name, found in TABLES.items()
    }
    tables = Tables(columns, {}, {})
    queries_as_text = [random_query(seed).text.own for seed in range(queries)]
    bind(queries_as_text[0], tables)
    cpu, wall = time.process_time(), time.perf_counter()
    for text in queries_as_text:
        bind(text, tables)
    return {
        "queries": queries,
        "median_characters": statistics.median(map(len, queries_as_text)),
        "wall_seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
    }


# Numbers and tables


def pairs_table(numbers: Mapping[str, Any]) -> str:
    """A row for each comparison, of the queries that Spark computes whole and of the stream."""
    head = ("work", "beside", "its wall s", "SQL: wall s", "speed by wall", "by CPU")
    rows = [
        (
            found["title"],
            other,
            *(f"{found[side]['wall_seconds']:.2f}" for side in ("native", "penstock")),
            *(f"{found[f'speed_by_{kind}']:.2f}" for kind in ("wall", "cpu")),
        )
        for part, other in (("batch", "Spark SQL"), ("stream", "the Python API"))
        for found in numbers.get(part, {}).values()
    ]
    return markdown(head, rows)


def planning_table(numbers: Mapping[str, Any]) -> str:
    """The table of planning times."""
    found = numbers["planning"]
    row = (
        f"{found['queries']:,} generated queries",
        f"{found['median_characters']:,.0f}",
        *(f"{found[f'{kind}_seconds']:.1f}" for kind in ("wall", "cpu")),
    )
    return markdown(("parsed and planned", "characters", "wall s", "CPU s"), [row])


def main(given: Sequence[str] | None = None) -> None:
    """Prints the tables and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the batch")
    parser.add_argument("--events", type=int, default=400_000, help="events of the stream")
    parser.add_argument("--files", type=int, default=8, help="files of the stream; a micro-batch reads two")
    parser.add_argument("--queries", type=int, default=1_000, help="queries that are planned")
    parser.add_argument("--turns", type=int, default=7, help="turns that count")
    parser.add_argument("--warming-turns", type=int, default=4, help="turns before them that do not")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data")
    parser.add_argument("--results", type=Path, default=FOLDER / "sql_speed.json")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    spark = start_session(settings.cores)
    numbers: dict[str, Any] = {
        **{name: getattr(settings, name) for name in ("rows", "turns", "warming_turns")},
        "planning": planning(settings.queries),
        "batch": batch(spark, settings),
        "stream": stream(spark, settings),
    }
    print(pairs_table(numbers), planning_table(numbers), sep="\n\n")
    write_numbers(settings.results, settings.cores, numbers)


if __name__ == "__main__":
    main()
