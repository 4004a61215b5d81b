"""Measures TPC-H in a batch: each query as it is written, by penstock beside Spark SQL over the same Parquet files.

Run it with ``python benchmarks/tpch.py``, and ``--scale=0.1 --queries 1 18`` for a first look.

Both sides write their rows to Parquet, take turns in one session, and have to have DuckDB's answer. A speed is the
median of the ratios of neighbours: 0.5 means half as fast. penstock's time has the construction of its pipeline in it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock as beam
from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io import ReadFromParquet
from penstock.io.sparkio import WriteToSpark
from penstock.transforms.sql import SqlTransform
from stream_report import markdown
from stream_session import start_session
from targets import empty_target

sys.path.append(str(ROOT))

from tests.sql.tpc import Benchmark, differences, tpc_h


def measure(
    spark: SparkSession, bench: Benchmark, number: int, settings: argparse.Namespace
) -> dict[str, Any]:
    """Compares the answers of a query, and then the times."""
    query = bench.for_spark[number]
    paths = {name: path for name, path in bench.paths.items() if name in query.lower()}
    by: list[str] = []

    def native() -> Path:
        target = empty_target(settings.folder, f"tpch-native-{number}")
        for name, path in paths.items():
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
        spark.sql(query).write.parquet(str(target))
        return target

    def ours() -> Path:
        target = empty_target(settings.folder, f"tpch-penstock-{number}")
        transform = SqlTransform(query)
        with beam.Pipeline(spark=spark) as pipeline:
            tables = {
                name: pipeline | name >> ReadFromParquet(str(path), as_rows=True)
                for name, path in paths.items()
            }
            _ = tables | transform | WriteToSpark("parquet", str(target))
        by[:] = [transform.explained.rpartition("computed by: ")[2]]
        return target

    expected = bench.answer(number)
    for run in (native, ours):
        rows = [tuple(row.values()) for row in pq.read_table(run()).to_pylist()]
        if wrong := differences(expected, rows):
            raise AssertionError(f"query {number}, {run.__name__}: {wrong[0]}")
    found = {"computed_by": by[0], **paired(native, ours, settings.warming_turns, settings.turns)}
    print(
        f"{number}: {found['speed_by_cpu']} by CPU, {found['speed_by_wall']} by wall",
        file=sys.stderr,
        flush=True,
    )
    return found


def table(found: Mapping[int, Mapping[str, Any]]) -> str:
    """A row for each query, and the geometric means."""
    head = ("query", "computed by", "Spark SQL: CPU s", "penstock: CPU s", "speed by CPU", "by wall")
    rows = [
        (
            str(number),
            each["computed_by"].partition(";")[0],
            *(f"{each[side]['cpu_seconds']:.2f}" for side in ("native", "penstock")),
            *(f"{each[f'speed_by_{kind}']:.2f}" for kind in ("cpu", "wall")),
        )
        for number, each in found.items()
    ]
    means = (f"{geometric_means(found)[kind]:.2f}" for kind in ("cpu", "wall"))
    return markdown(head, [*rows, ("geometric mean", "", "", "", *means)])


def geometric_means(found: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """The geometric mean of the speeds of all queries."""
    return {
        kind: round(statistics.geometric_mean(each[f"speed_by_{kind}"] for each in found.values()), 3)
        for kind in ("cpu", "wall")
    }


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="1 has 6,000,000 items")
    parser.add_argument("--queries", nargs="+", type=int, choices=range(1, 23), default=list(range(1, 23)))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warming-turns", type=int, default=1)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data")
    parser.add_argument("--results", type=Path, default=FOLDER / "tpch.json", help="the file to write")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    bench = tpc_h(settings.scale)
    spark = start_session(settings.cores)
    found = {number: measure(spark, bench, number, settings) for number in settings.queries}
    print(table(found))
    means = geometric_means(found)
    write_numbers(
        settings.results,
        settings.cores,
        {"scale": settings.scale, "geometric_means": means, "queries": found},
    )
    spark.stop()


if __name__ == "__main__":
    main()
