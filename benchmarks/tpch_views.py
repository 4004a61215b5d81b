"""Measures TPC-H as views that change: a micro-batch with 1 % of the orders, beside the query computed anew by Spark.

Run it with ``python benchmarks/tpch_views.py``, and ``--queries 1 18`` for a first look.

Orders and their items arrive in parts: the first micro-batch has most of them, and each later one 1 % of all. After the
last part the net of the view has to be DuckDB's answer. Spark computes the query over all rows in the same session. The
times are medians: of the later micro-batches after the first few, and of Spark's last runs.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

import penstock as beam
from options import ROOT
from outcome import FOLDER, write_numbers
from penstock.io import ReadFromParquet
from penstock.io.each_batch import ForEachBatch
from penstock.transforms.sql import SqlTransform
from processes import tree_cpu_seconds
from stream_penstock import query_of
from stream_report import markdown
from stream_session import start_session

sys.path.append(str(ROOT))

from tests.sql.tpc import Benchmark, differences, tpc_h

_KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that grow, and the columns that name orders."""

_POLL_SECONDS = 0.02
_PERCENT = "(hash({key}) % 100)"

_UNCHANGED = frozenset({2, 11, 16})
"""Queries that read no table that grows."""

WITHOUT_STATE = frozenset({6})
"""Queries without a join or a grouping by keys."""


def write_parts(bench: Benchmark, folder: Path, parts: int) -> Path:
    """Writes the tables that grow in parts, of which each but the first has 1 % of the orders; once for a scale."""
    if folder.exists():
        return folder
    made = folder.with_suffix(".unfinished")
    with duckdb.connect() as database:
        for name, key in _KEYS.items():
            (made / name).mkdir(parents=True, exist_ok=True)
            for part in range(parts + 1):
                percent = _PERCENT.format(key=key)
                where = f"{percent} = {part - 1}" if part else f"{percent} >= {parts}"
                path = made / name / f"part-{part:03}.parquet"
                database.execute(
                    f"COPY (SELECT * FROM read_parquet('{bench.paths[name]}') WHERE {where}) "
                    f"TO '{path}' (FORMAT parquet)"
                )
                # Spark reads the oldest file first.
                os.utime(path, (1_700_000_000 + part, 1_700_000_000 + part))
    made.rename(folder)
    return folder


def tables_of(bench: Benchmark, query: str) -> list[str]:
    """The names of the tables that a query reads."""
    return [name for name in bench.paths if re.search(rf"\b{name}\b", query)]


def follow(result: Any) -> list[tuple[float, float]]:
    """Waits for a stream's end; returns the wall and CPU seconds of each micro-batch with rows, but the first."""
    query, moments = query_of(result), {-1: tree_cpu_seconds(os.getpid())}
    while query.isActive:
        progress = query._jsq.lastProgress()
        if progress is not None and progress.batchId() not in moments:
            moments[progress.batchId()] = tree_cpu_seconds(os.getpid())
        time.sleep(_POLL_SECONDS)
    result.wait_until_finish()
    times = []
    for progress in query.recentProgress:
        number = progress["batchId"]
        if progress["numInputRows"] and {number, number - 1} <= moments.keys() and number:
            seconds = progress["durationMs"]["triggerExecution"] / 1_000
            times.append((seconds, moments[number] - moments[number - 1]))
    return times


def keep_view(
    spark: SparkSession, bench: Benchmark, parts: Path, query: str, shards: int | None
) -> tuple[list[tuple[float, float]], list[tuple[Any, ...]]]:
    """Keeps a view over the parts; returns the wall and CPU seconds of each later micro-batch, and the last rows."""
    net: Counter[tuple[Any, ...]] = Counter()

    def take(changes: list[Any], _: int) -> None:
        for kind, row in changes:
            net[tuple(row)] += -1 if kind.is_retraction else 1

    pipeline = beam.Pipeline(spark=spark, mode="streaming", shuffle_partitions=shards)
    tables = {}
    for name in tables_of(bench, query):
        path = str(parts / name / "*.parquet") if name in _KEYS else str(bench.paths[name])
        read = ReadFromParquet(path, as_rows=True)
        streams = name in _KEYS
        tables[name] = pipeline | name >> (
            read.as_stream(max_files_per_batch=1, existing_only=True) if streams else read
        )
    _ = tables | SqlTransform(query) | beam.Changelog() | ForEachBatch(take)
    times = follow(pipeline.run())
    return times, list(net.elements())


def compute_anew(
    spark: SparkSession, bench: Benchmark, parts: Path, query: str, turns: int
) -> tuple[list[tuple[float, float]], list[tuple[Any, ...]]]:
    """Computes a query by Spark over all rows; returns the wall and CPU seconds of each run, and the rows."""
    times, rows = [], []
    for _ in range(turns):
        cpu, wall = tree_cpu_seconds(os.getpid()), time.perf_counter()
        for name in tables_of(bench, query):
            path = parts / name if name in _KEYS else bench.paths[name]
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
        rows = [tuple(row) for row in spark.sql(query).collect()]
        times.append((time.perf_counter() - wall, tree_cpu_seconds(os.getpid()) - cpu))
    return times, rows


def measure(
    spark: SparkSession, bench: Benchmark, number: int, settings: argparse.Namespace
) -> dict[str, Any]:
    """Compares the answers of a query, and then the times."""
    folder = settings.folder / f"tpch-views-{settings.scale}-in-{settings.parts}"
    parts = write_parts(bench, folder, settings.parts)
    query = bench.for_spark[number]
    anew, rows = compute_anew(spark, bench, parts, query, settings.warming_turns + settings.turns)
    kept, net = keep_view(spark, bench, parts, query, settings.shards)
    for found in (rows, net):
        if wrong := differences(bench.answer(number), found):
            raise AssertionError(f"query {number}: {wrong[0]}")
    numbers: dict[str, Any] = {}
    for side, times in (("native", anew), ("penstock", kept)):
        of_interest = times[settings.warming_turns :]
        for at, kind in enumerate(("wall", "cpu")):
            seconds = [round(each[at], 3) for each in of_interest]
            numbers.setdefault(side, {})[f"{kind}_seconds"] = statistics.median(seconds)
            numbers[side][f"{kind}_seconds_of_runs"] = seconds
    for kind in ("wall", "cpu"):
        native, own = (numbers[side][f"{kind}_seconds"] for side in ("native", "penstock"))
        numbers[f"speed_by_{kind}"] = round(native / max(own, 0.001), 3)
    print(
        f"{number}: {numbers['speed_by_cpu']} by CPU, {numbers['speed_by_wall']} by wall; "
        f"{numbers['native']['wall_seconds']} s anew, {numbers['penstock']['wall_seconds']} s kept",
        file=sys.stderr,
        flush=True,
    )
    return numbers


def table(found: Mapping[int, Mapping[str, Any]]) -> str:
    """A row for each query, and the geometric means of those with a join or a grouping."""
    head = (
        "query",
        "Spark anew: wall s",
        "CPU s",
        "a part of 1 %: wall s",
        "CPU s",
        "speed by wall",
        "by CPU",
    )
    rows = [
        (
            str(number),
            *(
                f"{each[side][f'{kind}_seconds']:.2f}"
                for side in ("native", "penstock")
                for kind in ("wall", "cpu")
            ),
            *(f"{each[f'speed_by_{kind}']:.2f}" for kind in ("wall", "cpu")),
        )
        for number, each in found.items()
    ]
    means = (f"{mean:.2f}" for mean in geometric_means(found).values())
    return markdown(head, [*rows, ("geometric mean", "", "", "", "", *means)])


def geometric_means(found: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """The geometric means of the speeds of the queries with a join or a grouping by keys."""
    counted = [each for number, each in found.items() if number not in WITHOUT_STATE] or list(found.values())
    return {
        kind: round(statistics.geometric_mean(each[f"speed_by_{kind}"] for each in counted), 3)
        for kind in ("wall", "cpu")
    }


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="1 has 6,000,000 items")
    queries = [number for number in range(1, 23) if number not in _UNCHANGED]
    parser.add_argument("--queries", nargs="+", type=int, choices=queries, default=queries)
    parser.add_argument("--parts", type=int, default=8, help="micro-batches with 1 %% of the orders")
    parser.add_argument("--turns", type=int, default=5, help="runs of Spark that count")
    parser.add_argument(
        "--warming-turns", type=int, default=3, help="micro-batches and runs that do not count"
    )
    parser.add_argument("--shards", type=int, help="shards of the view; default: the number of cores")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data")
    parser.add_argument("--results", type=Path, default=FOLDER / "tpch_views.json", help="the file to write")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    bench = tpc_h(settings.scale)
    spark = start_session(settings.cores)
    found = {number: measure(spark, bench, number, settings) for number in settings.queries}
    print(table(found))
    write_numbers(
        settings.results,
        settings.cores,
        {"scale": settings.scale, "geometric_means": geometric_means(found), "queries": found},
    )
    spark.stop()


if __name__ == "__main__":
    main()
