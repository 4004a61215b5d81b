"""The cells of the table as pipelines of penstock."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

import penstock as beam
from cell_inputs import KEPT_FROM, SIDES, SPARK_SCHEMA, Event, Valued, is_kept, parsed, second_of, valued
from cells import Cell
from keyed_inputs import JOIN_SECONDS
from keyed_penstock import Expire
from penstock import field
from penstock.io.watermarks import BoundedDisorder
from penstock.relations.joins import JoinRows
from penstock.scalars.field_functions import window_start
from penstock.transforms.sql import SqlTransform
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.typehints import KV
from stream_inputs import DISORDER_SECONDS, LATENESS_SECONDS
from stream_penstock import FIRING, running
from stream_progress import measured_batches, measured_growth, measured_idleness
from workloads import WINDOW_SECONDS


class Total(NamedTuple):
    """The written fields of a key in a window."""

    key: str
    start: datetime.datetime
    total: int


class UserTotal(NamedTuple):
    """The written fields of a user."""

    key: str
    total: int


_TOTALS = pa.schema([("key", pa.string()), ("start", pa.timestamp("us", "UTC")), ("total", pa.int64())])
_WINDOWS = beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
_WORTH, _KEPT = "amount * 2 + 1", f"WHERE amount >= {KEPT_FROM}"
_SUMS = f"""
    SELECT {{key}} AS key, window_start AS start, SUM({_WORTH}) AS total
    FROM TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '{WINDOW_SECONDS}' SECONDS) {_KEPT}
    GROUP BY window_start, window_end, {{key}} EMIT AFTER WATERMARK"""
_FIRING_BY_COUNT = beam.WindowInto(
    beam.window.FixedWindows(WINDOW_SECONDS),
    trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    accumulation_mode=AccumulationMode.DISCARDING,
    allowed_lateness=LATENESS_SECONDS,
)
# A trigger of the clock fires once for each changed key at the end of a round.
_COUNTING = {
    "counts": Repeatedly(AfterProcessingTime(0)),
    "counts_early": AfterWatermark(early=AfterCount(1)),
}


def replay(
    spark: SparkSession, cell: Cell, sink: str, source: str, target: str, files_per_batch: int
) -> None:
    """Runs a cell's pipeline over all files that are there."""
    pipeline = _pipeline(spark, f"{target}-checkpoint")
    rows = _PIPELINES[cell.grouping](pipeline, cell, source, files_per_batch, True)
    if sink == "nothing":
        _ = rows | beam.io.WriteToSpark("noop", mode="append")
    else:
        schema = _TOTALS if _has_windows(cell) else None
        _ = rows | beam.io.WriteToParquet(f"{target}/part", schema, file_name_suffix=".parquet")
    pipeline.run().wait_until_finish()


def measure_growth(
    spark: SparkSession, cell: Cell, folder: str, source: str, filling: int, batches: int
) -> Any:
    """Counts by user that never end, each user's whenever it changes."""
    pipeline = _counting(spark, cell, folder)
    _ = _counts(pipeline, cell, source, False) | beam.io.WriteToSpark("noop", mode="append")
    with running(pipeline) as query:
        return measured_growth(query, source, filling, batches)


def count_users(spark: SparkSession, cell: Cell, folder: str, source: str) -> dict[str, int]:
    """The counts of all users in the end, by the same pipeline."""
    found: dict[str, int] = {}
    pipeline = _counting(spark, cell, folder)
    counts = _counts(pipeline, cell, source, True)
    _ = counts | beam.io.ForEachBatch(
        lambda elements, _: found.update((each.key, each.total) for each in elements)
    )
    pipeline.run().wait_until_finish()
    return found


def measure_empty_batches(spark: SparkSession, cell: Cell, folder: str, source: str, batches: int) -> Any:
    """Micro-batches of files without events."""
    with _standing(spark, cell, folder, source) as query:
        return measured_batches(query, batches)


def measure_idleness(spark: SparkSession, cell: Cell, folder: str, source: str, seconds: float) -> Any:
    """A stream to which nothing comes after its first file."""
    with _standing(spark, cell, folder, source) as query:
        return measured_idleness(query, seconds)


def _standing(spark: SparkSession, cell: Cell, folder: str, source: str) -> Any:
    pipeline = _pipeline(spark, folder)
    _ = _windowed(pipeline, cell, source, 1, False) | beam.io.WriteToSpark("noop", mode="append")
    return running(pipeline)


def _pipeline(spark: SparkSession, checkpoint: str, mode: str = "streaming") -> Any:
    return beam.Pipeline(spark=spark, mode=mode, checkpoint_location=checkpoint)


def _has_windows(cell: Cell) -> bool:
    """True if what is written has a window's start."""
    return cell.grouping not in ("none", "stateful")


def _read(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    reads: dict[str, Callable[[], Any]] = {
        "parquet": lambda: beam.io.ReadFromParquet(f"{source}/*.parquet", as_rows=True),
        "json": lambda: beam.io.ReadFromSpark("json", f"{source}/*.json", SPARK_SCHEMA),
        "text": lambda: beam.io.ReadFromText(f"{source}/*.text"),
    }
    stream = reads[cell.source]().as_stream(
        event_time=second_of if cell.source == "text" else "at",
        watermark=BoundedDisorder(DISORDER_SECONDS),
        max_files_per_batch=files_per_batch,
        existing_only=ends,
    )
    rows = pipeline | f"Read {source.rpartition('/')[2]}" >> stream
    return rows | beam.Map(parsed).with_output_types(Event) if cell.source == "text" else rows


def _kept(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    """The user, team and worth of the events that are kept."""
    rows = _read(pipeline, cell, source, files_per_batch, ends)
    if cell.step == "sql":
        return {"events": rows} | SqlTransform(f"SELECT user, team, {_WORTH} AS worth FROM events {_KEPT}")
    if cell.step == "functions":
        return rows | beam.Filter(is_kept) | beam.Map(valued).with_output_types(Valued)
    kept = rows | beam.Filter(field("amount") >= KEPT_FROM)
    return kept | beam.Select("user", "team", worth=field("amount") * 2 + 1)


def _windowed(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    """Sums by key and window, each when the watermark has passed the window's end."""
    if cell.step == "sql":
        rows = _read(pipeline, cell, source, files_per_batch, ends)
        return {"events": rows} | SqlTransform(
            _SUMS.format(key="user" if cell.grouping == "users" else "team")
        )
    windowed = _kept(pipeline, cell, source, files_per_batch, ends) | _WINDOWS
    key = "user" if cell.grouping == "users" else "team"
    if cell.step == "expressions":
        sums = windowed | beam.GroupBy(key).aggregate_field("worth", sum, "total")
        return sums | beam.Select(key=key, start=window_start(), total="total")
    pair = _user_worth if key == "user" else _team_worth
    pairs = windowed | beam.Map(pair).with_output_types(KV[str, int])
    return pairs | beam.CombinePerKey(sum) | beam.Map(_in_window).with_output_types(Total)


def _panes(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    """Sums by user and window, also early and late."""
    firing = _FIRING_BY_COUNT if cell.grouping == "panes_by_count" else FIRING
    kept = _kept(pipeline, cell, source, files_per_batch, ends)
    pairs = kept | beam.Map(_user_worth).with_output_types(KV[str, int]) | firing
    return pairs | beam.CombinePerKey(sum) | beam.Map(_in_window).with_output_types(Total)


def _stateful(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    """The total of each user, once nothing has come for a while."""
    rows = _read(pipeline, cell, source, files_per_batch, ends)
    totals = rows | beam.Map(_user_amount).with_output_types(KV[str, int]) | beam.ParDo(Expire())
    return totals | "Total" >> beam.MapTuple(UserTotal).with_output_types(UserTotal)


def _join(pipeline: Any, cell: Cell, source: str, files_per_batch: int, ends: bool) -> Any:
    """Pairs of orders and payments in a window."""
    sides = tuple(
        _read(pipeline, cell, f"{source}/{name}", files_per_batch, ends)
        | f"Pair {name}" >> beam.Map(_user_amount).with_output_types(KV[str, int])
        | f"Window {name}" >> beam.WindowInto(beam.window.FixedWindows(JOIN_SECONDS))
        for name in SIDES
    )
    return sides | JoinRows("inner") | beam.Map(_owed).with_output_types(Total)


def _counting(spark: SparkSession, cell: Cell, folder: str) -> Any:
    mode = "streaming" if cell.grouping == "counts_early" else "micro_batch"
    return _pipeline(spark, folder, mode)


def _counts(pipeline: Any, cell: Cell, source: str, ends: bool) -> Any:
    read = beam.io.ReadFromParquet(f"{source}/*.parquet", as_rows=True)
    rows = pipeline | read.as_stream(max_files_per_batch=1, existing_only=ends)
    rows |= beam.WindowInto(
        beam.window.GlobalWindows(),
        trigger=_COUNTING[cell.grouping],
        accumulation_mode=AccumulationMode.ACCUMULATING,
    )
    if cell.step == "expressions":
        counts = rows | beam.GroupBy("user").aggregate_field(
            "amount", beam.combiners.CountCombineFn(), "total"
        )
        return counts | beam.Select(key="user", total="total")
    counts = rows | beam.Map(_user_one).with_output_types(KV[str, int]) | beam.CombinePerKey(sum)
    return counts | beam.MapTuple(UserTotal).with_output_types(UserTotal)


def _team_worth(row: Valued) -> tuple[str, int]:
    return row.team, row.worth


def _user_worth(row: Valued) -> tuple[str, int]:
    return row.user, row.worth


def _user_amount(row: Any) -> tuple[str, int]:
    return row.user, row.amount


def _user_one(row: Any) -> tuple[str, int]:
    return row.user, 1


def _in_window(pair: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> Total:
    return Total(pair[0], window.start.to_utc_datetime(has_tz=True), pair[1])


def _owed(joined: tuple[str, tuple[int, int]], window: Any = beam.DoFn.WindowParam) -> Total:
    name, (price, paid) = joined
    return Total(name, window.start.to_utc_datetime(has_tz=True), price - paid)


_PIPELINES = {
    "none": _kept,
    "teams": _windowed,
    "users": _windowed,
    "panes": _panes,
    "panes_by_count": _panes,
    "stateful": _stateful,
    "join": _join,
}
