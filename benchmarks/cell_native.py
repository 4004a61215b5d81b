"""The twins of the table's cells: queries by hand, in SQL throughout or around the same functions of Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cell_inputs import KEPT_FROM, SIDES, SPARK_SCHEMA, Event, Valued, is_kept, valued
from cells import Cell
from keyed_inputs import JOIN_SECONDS
from keyed_per_key import TOTALS, RowExpire
from stream_inputs import DISORDER_SECONDS
from stream_per_key import PANES, RowCountedPanes, RowPanes
from stream_progress import measured_batches, measured_growth, measured_idleness, started
from workloads import WINDOW_SECONDS

_VALUED = "at timestamp, user string, team string, worth long"
_SINKS = {"parquet": "parquet", "nothing": "noop"}


def replay(
    spark: SparkSession, cell: Cell, sink: str, source: str, target: str, files_per_batch: int
) -> None:
    """Runs a cell's query over all files that are there."""
    rows = _QUERIES[cell.grouping](spark, cell, source, files_per_batch)
    writer = rows.writeStream.format(_SINKS[sink]).option("checkpointLocation", f"{target}-checkpoint")
    writer.trigger(availableNow=True).start(target).awaitTermination()


def measure_growth(
    spark: SparkSession, cell: Cell, folder: str, source: str, filling: int, batches: int
) -> Any:
    """Counts by user that never end, each user's whenever it changes."""
    with started(_written(_counts(spark, source), folder, "update")) as query:
        return measured_growth(query, source, filling, batches)


def count_users(spark: SparkSession, cell: Cell, folder: str, source: str) -> dict[str, int]:
    """The counts of all users in the end, by the same query."""
    found: dict[str, int] = {}

    def note(frame: DataFrame, _: int) -> None:
        found.update((row.user, row["count"]) for row in frame.collect())

    writer = _counts(spark, source).writeStream.outputMode("update").foreachBatch(note)
    query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
    query.awaitTermination()
    return found


def measure_empty_batches(spark: SparkSession, cell: Cell, folder: str, source: str, batches: int) -> Any:
    """Micro-batches of files without events."""
    with started(_written(_windowed(spark, cell, source, 1), folder, "append")) as query:
        return measured_batches(query, batches)


def measure_idleness(spark: SparkSession, cell: Cell, folder: str, source: str, seconds: float) -> Any:
    """A stream to which nothing comes after its first file."""
    with started(_written(_windowed(spark, cell, source, 1), folder, "append")) as query:
        return measured_idleness(query, seconds)


def _written(rows: DataFrame, folder: str, mode: str) -> Any:
    return rows.writeStream.format("noop").outputMode(mode).option("checkpointLocation", folder)


def _counts(spark: SparkSession, source: str) -> DataFrame:
    return _typed(spark, "parquet", source, 1).groupBy("user").count()


def _typed(spark: SparkSession, form: str, source: str, files_per_batch: int) -> DataFrame:
    reader = spark.readStream.format(form).option("maxFilesPerTrigger", files_per_batch)
    return reader.schema("value string" if form == "text" else SPARK_SCHEMA).load(source)


def _kept(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    """The time, user, team and worth of the events that are kept; a watermark follows the time."""
    rows = _typed(spark, cell.source, source, files_per_batch)
    if cell.source == "text":
        return _watched(rows.mapInArrow(_valued_lines, _VALUED))
    if cell.step == "functions":
        return _watched(rows.mapInArrow(_valued_rows, _VALUED))
    worth = (F.col("amount") * 2 + 1).alias("worth")
    return _watched(rows).where(F.col("amount") >= KEPT_FROM).select("at", "user", "team", worth)


def _watched(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", f"{DISORDER_SECONDS} seconds")


def _valued_rows(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Calls the functions of Python for each row, and leaves the times in Arrow."""
    for record in records:
        columns = (record.column(name).to_pylist() for name in Event._fields)
        events = list(map(Event, *columns))
        mask = [is_kept(event) for event in events]
        at = record.column("at").filter(pa.array(mask, pa.bool_()))
        yield _record(at, [valued(event) for event in compress(events, mask)])


def _valued_lines(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parses lines, and calls the functions of Python for each."""
    for record in records:
        seconds, found = [], []
        for line in record.column(0).to_pylist():
            user, team, amount, second = line.split(",")
            event = Event(user, team, int(amount))
            if is_kept(event):
                found.append(valued(event))
                seconds.append(int(second))
        micros = pc.multiply(pa.array(seconds, pa.int64()), 1_000_000)
        yield _record(micros.cast(pa.timestamp("us", "UTC")), found)


def _record(at: pa.Array, found: Iterable[Valued]) -> pa.RecordBatch:
    users, teams, worths = zip(*found, strict=True) if found else ((), (), ())
    arrays = [at, pa.array(users, pa.string()), pa.array(teams, pa.string()), pa.array(worths, pa.int64())]
    return pa.record_batch(arrays, names=["at", *Valued._fields])


def _projected(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    return _kept(spark, cell, source, files_per_batch).select(*Valued._fields)


def _windowed(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    """Sums by key and window, each when the watermark has passed the window's end."""
    key = "user" if cell.grouping == "users" else "team"
    window = F.window("at", f"{WINDOW_SECONDS} seconds").alias("window")
    sums = _kept(spark, cell, source, files_per_batch).groupBy(F.col(key).alias("key"), window)
    return sums.agg(F.sum("worth").alias("total")).select(
        "key", F.col("window.start").alias("start"), "total"
    )


def _panes(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    """Sums by user and window, also early and late."""
    processor = RowCountedPanes if cell.grouping == "panes_by_count" else RowPanes
    kept = _kept(spark, cell, source, files_per_batch)
    events = kept.select(
        F.col("user").alias("key"), F.unix_timestamp("at").alias("second"), F.col("worth").alias("score")
    )
    panes = events.groupBy("key").transformWithState(processor(), PANES, "Append", "EventTime")
    return panes.select("key", F.timestamp_seconds("start").alias("start"), F.col("sum").alias("total"))


def _stateful(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    """The total of each user, once nothing has come for a while."""
    rows = _watched(_typed(spark, cell.source, source, files_per_batch))
    second = F.unix_timestamp("at").alias("second")
    events = rows.select(F.col("user").alias("key"), F.col("amount").alias("score"), second)
    return events.groupBy("key").transformWithState(RowExpire(), TOTALS, "Append", "EventTime")


def _join(spark: SparkSession, cell: Cell, source: str, files_per_batch: int) -> DataFrame:
    """Pairs of orders and payments in a window; the watermark on the window tells what may be forgotten."""
    window = F.window("at", f"{JOIN_SECONDS} seconds").alias("window")
    orders, payments = (
        _watched(_typed(spark, cell.source, f"{source}/{name}", files_per_batch)).select(
            F.col("user").alias("key"), window, F.col("amount").alias(amount)
        )
        for name, amount in zip(SIDES, ("price", "paid"), strict=True)
    )
    pairs = orders.join(payments, ["key", "window"])
    total = (F.col("price") - F.col("paid")).alias("total")
    return pairs.select("key", F.col("window.start").alias("start"), total)


_QUERIES = {
    "none": _projected,
    "teams": _windowed,
    "users": _windowed,
    "panes": _panes,
    "panes_by_count": _panes,
    "stateful": _stateful,
    "join": _join,
}
