"""Measures micro-batches by the number of shards and of groupings in a row, without elements and with them.

Run it with ``python benchmarks/stream_shards.py``; ``--quick`` takes few and small ones.

Native queries have as many partitions as penstock has shards. Each source is read in as many tasks. Micro-batches
follow each other without a pause, and the first half of them does not count: it warms up.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from options import parsed_settings
from outcome import write_numbers
from processes import Worker, running_workers
from stream_progress import measured_batches, started
from stream_report import markdown
from targets import empty_target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TITLES = {
    "penstock": "penstock",
    "rows": "native, `transformWithState` in Python",
    "native_sql": "native, sums by window",
}


class Grid(NamedTuple):
    """The measured grid: micro-batches by their number of rows, which may be 0, and by shards and levels."""

    shards: tuple[int, ...]
    levels: tuple[int, ...]
    rows: tuple[int, ...]
    batches: int


FULL = Grid((2, 8, 32, 128), (1, 3), (0, 20_000), 6)
QUICK = Grid((2, 8), (1, 2), (0, 2_000), 4)

_KEYS = 1_000


def measure(
    worker: Worker, shards: int, levels: int, rows: int, batches: int, folder: Path
) -> dict[str, Any]:
    """The milliseconds of a contender's micro-batches."""
    own = empty_target(folder, f"shards-{worker.name}")
    own.mkdir()
    size = {"shards": shards, "levels": levels, "rows": rows}
    numbers = worker.run("wide_batches", folder=str(own), **size, batches=batches).numbers
    counted = numbers["seconds"]
    return {
        **size,
        "median_millis": round(statistics.median(counted) * 1_000),
        "cpu_millis": round(numbers["cpu_seconds"] / len(counted) * 1_000),
        "seconds": counted,
    }


def growth(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The milliseconds of processor time of micro-batches: ``fixed + levels * (level + shard * shards)``.

    The least squares of the relative errors.

    >>> costs = [(2, 1), (8, 1), (32, 1), (8, 3), (32, 3)]
    >>> exact = [{"shards": s, "levels": l, "cpu_millis": 5 + l * (40 + 3 * s)} for s, l in costs]
    >>> {name: round(value, 3) for name, value in growth(exact).items()}
    {'fixed': 5.0, 'level': 40.0, 'shard': 3.0}
    """
    import numpy as np

    terms = np.array([(1, each["levels"], each["levels"] * each["shards"]) for each in found], float)
    costs = np.array([each["cpu_millis"] for each in found], float)
    solved, *_ = np.linalg.lstsq(terms / costs[:, None], np.ones(len(costs)), rcond=None)
    return dict(zip(("fixed", "level", "shard"), map(float, solved), strict=True))


def table(contenders: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A row for each contender, number of groupings and kind of micro-batch; a column for each number of shards."""
    first = next(iter(contenders.values()))
    shards = sorted({each["shards"] for each in first})
    head = ["CPU ms of a micro-batch", "levels", "rows", *(f"{count} shards" for count in shards)]
    rows = []
    for levels, count in sorted({(each["levels"], each["rows"]) for each in first}):
        for name, found in contenders.items():
            own = {
                each["shards"]: each["cpu_millis"]
                for each in found
                if (each["levels"], each["rows"]) == (levels, count)
            }
            cells = [f"{own[number]:,}" if number in own else "" for number in shards]
            rows.append([TITLES[name], str(levels), f"{count:,}", *cells])
    return markdown(head, rows)


# The jobs of the contenders, which run in processes of their own.


def _source_of(shards: int, rows: int) -> tuple[str, dict[str, Any]]:
    return "rate-micro-batch", {"rowsPerBatch": max(rows, 1), "numPartitions": shards}


def by_penstock(
    spark: SparkSession, folder: str, shards: int, levels: int, rows: int, batches: int
) -> dict[str, Any]:
    """Sums by key and window, one behind the other, in penstock's own operators."""
    import penstock as beam
    from penstock.io.watermarks import BoundedDisorder
    from penstock.options.pipeline_options import PipelineOptions
    from stream_penstock import running

    flags = ["--mode=streaming", f"--shuffle_partitions={shards}", "--without=native_streams"]
    pipeline = beam.Pipeline(
        options=PipelineOptions(flags),
        spark=spark,
        checkpoint_location=f"{folder}/checkpoint",
        trigger_interval=0.001,
    )
    if rows:
        name, options = _source_of(shards, rows)
        read = beam.io.ReadFromSpark(name, **options).as_stream(
            event_time=lambda row: row.timestamp.timestamp(), watermark=BoundedDisorder(0)
        )
        pairs = pipeline | read | beam.Map(lambda row: (row.value % _KEYS, 1))
    else:
        Path(folder, "source").mkdir()
        lines = beam.io.ReadFromText(f"{folder}/source/*.txt", validate=False).as_stream()
        pairs = pipeline | lines | beam.Map(lambda line: (line, 1))
    pairs |= beam.WindowInto(beam.window.FixedWindows(1))
    for level in range(levels):
        pairs |= f"Sum{level}" >> beam.CombinePerKey(sum)
    _ = pairs | beam.io.ForEachBatch(lambda elements, number: None)
    with running(pipeline) as query:
        return measured_batches(query, batches)


Chain = Callable[["DataFrame", int], "DataFrame"]
"""Puts a number of stateful operators behind a frame with a key, a time and a number."""


def natively(
    chain: Chain, spark: SparkSession, folder: str, shards: int, levels: int, rows: int, batches: int
) -> dict[str, Any]:
    """Spark's own stateful operators in a row, each in as many partitions as penstock has shards."""
    name, options = _source_of(shards, rows)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(shards))
    try:
        frame = spark.readStream.format(name).options(**options).load()
        if not rows:
            frame = frame.where("value < 0")
        numbers = frame.selectExpr(f"value % {_KEYS} AS key", "timestamp AS time", "1L AS number")
        writer = chain(numbers, levels).writeStream.foreachBatch(lambda done, _: done.collect())
        with started(writer.option("checkpointLocation", folder)) as query:
            return measured_batches(query, batches)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))


def sums_by_window(frame: DataFrame, levels: int) -> DataFrame:
    """Spark's own sums by key and window, one behind the other."""
    from pyspark.sql import functions as F

    frame = frame.withWatermark("time", "0 seconds")
    for level in range(levels):
        time = F.window_time("window") if level else F.col("time")
        grouped = frame.groupBy("key", F.window(time, "1 second").alias("window"))
        frame = grouped.agg(F.sum("number").alias("number"))
    return frame


def main(given: Sequence[str] | None = None) -> None:
    """Prints the processor time and its growth, and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shards", type=int, nargs="+")
    parser.add_argument("--levels", type=int, nargs="+")
    settings = parsed_settings(parser, given, TITLES, "stream_shards.json")
    grid = QUICK if settings.quick else FULL
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in settings.contenders}
    with running_workers(settings.contenders, settings.cores, settings.folder) as workers:
        for shards in settings.shards or grid.shards:
            for levels, rows in product(settings.levels or grid.levels, grid.rows):
                for name, worker in workers.items():
                    cost = measure(worker, shards, levels, rows, grid.batches, settings.folder)
                    print(name, {key: value for key, value in cost.items() if key != "seconds"}, flush=True)
                    found[name].append(cost)
    print(table(found), end="\n\n")
    grown = (
        {name: growth([cost for cost in costs if not cost["rows"]]) for name, costs in found.items()}
        if len(grid.shards) > 1
        else {}
    )
    write_numbers(
        settings.results, settings.cores, {"batches": grid.batches, "growth": grown, "contenders": found}
    )


if __name__ == "__main__":
    main()
