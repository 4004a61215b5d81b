"""The work that keeps something for each key, as pipelines of penstock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

import penstock as beam
from keyed_inputs import EXPIRY_SECONDS, JOIN_SECONDS, SIDES
from penstock.coders import VarIntCoder
from penstock.io.watermarks import BoundedDisorder
from penstock.relations.joins import JoinRows
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer
from stream_inputs import DISORDER_SECONDS, parsed
from stream_penstock import query_of, running, second_of
from stream_progress import await_micro_batches

Build = Callable[[Any, str, int, bool], Any]
"""A function from a pipeline, the folder of the input, files per micro-batch, and whether the input ends, to lines."""


class Expire(beam.DoFn):
    """The total of each user, once nothing has come for a while."""

    TOTAL = ReadModifyWriteStateSpec("total", VarIntCoder())
    IDLE = TimerSpec("idle", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[str, int],
        timestamp: Any = beam.DoFn.TimestampParam,
        total: Any = beam.DoFn.StateParam(TOTAL),
        idle: Any = beam.DoFn.TimerParam(IDLE),
    ) -> None:
        """Adds to the total, and starts waiting again."""
        total.write((total.read() or 0) + element[1])
        idle.set(timestamp + EXPIRY_SECONDS)

    @on_timer(IDLE)
    def expire(
        self, key: Any = beam.DoFn.KeyParam, total: Any = beam.DoFn.StateParam(TOTAL)
    ) -> Iterable[tuple[str, int]]:
        """Gives the total, and forgets the user."""
        yield key, total.read()
        total.clear()


def expiring(pipeline: Any, source: str, files_per_batch: int, ends: bool) -> Any:
    """The totals of users that have gone."""
    totals = _events(pipeline, source, files_per_batch, ends) | beam.ParDo(Expire())
    return totals | beam.MapTuple(lambda user, total: f"{user}\t{total}")


def joining(pipeline: Any, source: str, files_per_batch: int, ends: bool) -> Any:
    """The amount that is still owed, for each payment of an order in a window."""
    sides = tuple(
        _events(pipeline, f"{source}/{name}", files_per_batch, ends, name)
        | f"Window {name}" >> beam.WindowInto(beam.window.FixedWindows(JOIN_SECONDS))
        for name in SIDES
    )
    return sides | JoinRows("inner") | beam.Map(_owed)


def _owed(joined: tuple[str, tuple[int, int]], window: Any = beam.DoFn.WindowParam) -> str:
    name, (price, paid) = joined
    return f"{name} {int(window.start)}\t{price - paid}"


def _events(pipeline: Any, source: str, files_per_batch: int, ends: bool, name: str = "events") -> Any:
    read = beam.io.ReadFromText(f"{source}/*.txt").as_stream(
        event_time=second_of,
        watermark=BoundedDisorder(DISORDER_SECONDS),
        max_files_per_batch=files_per_batch,
        existing_only=ends,
    )
    return pipeline | f"Read {name}" >> read | f"Parse {name}" >> beam.Map(_key_value)


def _key_value(line: str) -> tuple[str, int]:
    key, value, _ = parsed(line, 0)
    return key, value


def _run(build: Build, spark: SparkSession, source: str, target: str, files_per_batch: int) -> dict[str, Any]:
    pipeline = _pipeline(spark, target)
    _ = build(pipeline, source, files_per_batch, True) | beam.io.WriteToText(f"{target}/part")
    result = pipeline.run()
    result.wait_until_finish()
    return {"micro_batches": query_of(result).lastProgress["batchId"] + 1}


def _fill(build: Build, spark: SparkSession, source: str, target: str) -> dict[str, Any]:
    pipeline = _pipeline(spark, target)
    _ = build(pipeline, source, 1, False) | beam.io.WriteToText(f"{target}/part")
    with running(pipeline) as query:
        await_micro_batches(query, 1, rows=1)
        return {"micro_batches": query.lastProgress["batchId"] + 1}


def _pipeline(spark: SparkSession, target: str) -> Any:
    return beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=f"{target}-checkpoint")


JOBS = {
    "stateful": partial(_run, expiring),
    "stateful_fill": partial(_fill, expiring),
    "join": partial(_run, joining),
    "join_fill": partial(_fill, joining),
}
