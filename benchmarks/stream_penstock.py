"""The streams as pipelines of penstock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pyspark.sql import SparkSession

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from stream_delays import Delays
from stream_inputs import DISORDER_SECONDS, LATENESS_SECONDS, REPLAYS, parsed
from stream_progress import measured_batches, measured_state
from stream_ticker import TICK_DISORDER_SECONDS, TICK_WINDOW_SECONDS, parsed_tick, tick_source
from workloads import WINDOW_SECONDS

_RARELY = 1_000
_TIMINGS = ("early", "on time", "late", "unknown")


def replay(
    spark: SparkSession,
    workload: str,
    source: str,
    target: str,
    files_per_batch: int,
    live_port: int | None = None,
) -> dict[str, Any]:
    """Sums by key and window, each when the watermark has passed the window's end, or also early and late."""
    pipeline = beam.Pipeline(
        spark=spark, mode="streaming", checkpoint_location=f"{target}-checkpoint", live_port=live_port
    )
    replay_on(pipeline, workload, source, target, files_per_batch)
    result = pipeline.run()
    with looked_at(result):
        result.wait_until_finish()
    return {"micro_batches": query_of(result).lastProgress["batchId"] + 1}


def replay_on(pipeline: Any, workload: str, source: str, target: str, files_per_batch: int) -> None:
    """Adds the steps of a replay to a pipeline."""
    kind = next(replay for replay in REPLAYS if replay.name == workload)
    field = kind.key

    def parse(line: str) -> tuple[str, int]:
        key, score, _ = parsed(line, field)
        return key, score

    windows = FIRING if kind.fires else beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
    lines = pipeline | beam.io.ReadFromText(f"{source}/*.txt").as_stream(
        event_time=second_of,
        watermark=BoundedDisorder(DISORDER_SECONDS),
        max_files_per_batch=files_per_batch,
        existing_only=True,
    )
    _ = (
        lines
        | beam.Map(parse)
        | windows
        | beam.CombinePerKey(sum)
        | beam.Map(_show)
        | beam.io.WriteToText(f"{target}/part")
    )


FIRING = beam.WindowInto(
    beam.window.FixedWindows(WINDOW_SECONDS),
    trigger=AfterWatermark(early=AfterProcessingTime(1), late=AfterCount(1)),
    accumulation_mode=AccumulationMode.DISCARDING,
    allowed_lateness=LATENESS_SECONDS,
)


def second_of(line: str) -> int:
    """The second of the event of a line."""
    return int(line.rpartition(",")[2])


def _show(
    key_sum: tuple[str, int], window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam
) -> str:
    return f"{key_sum[0]} {int(window.start)}\t{key_sum[1]}\t{_TIMINGS[pane.timing]}"


def empty_batches(spark: SparkSession, folder: str, levels: int, batches: int) -> dict[str, Any]:
    """Groupings in a row, to which nothing comes."""
    source = Path(folder, "source")
    source.mkdir()
    pipeline = beam.Pipeline(
        spark=spark, mode="streaming", checkpoint_location=f"{folder}/checkpoint", trigger_interval=0.001
    )
    pairs = (
        pipeline
        | beam.io.ReadFromText(f"{source}/*.txt", validate=False).as_stream()
        | beam.Map(lambda line: (line, 1))
        | beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
    )
    for level in range(levels):
        pairs |= f"Sum{level}" >> beam.CombinePerKey(sum)
    _ = pairs | beam.io.ForEachBatch(lambda elements, number: None)
    with running(pipeline) as query:
        return measured_batches(query, batches)


def state(
    spark: SparkSession, folder: str, source: str, filling: int, batches: int, rows: int
) -> dict[str, Any]:
    """Sums by key that never end."""

    def parse(line: str) -> tuple[str, int]:
        key, score, _ = parsed(line, 0)
        return key, score

    pipeline = beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=folder)
    sums = (
        pipeline
        | beam.io.ReadFromText(f"{source}/*.txt").as_stream(max_files_per_batch=1)
        | beam.Map(parse)
        | beam.WindowInto(
            beam.window.GlobalWindows(),
            trigger=Repeatedly(AfterCount(_RARELY)),
            accumulation_mode=AccumulationMode.ACCUMULATING,
        )
        | beam.CombinePerKey(sum)
    )
    _ = sums | beam.io.ForEachBatch(lambda elements, number: None)
    with running(pipeline) as query:
        return measured_state(query, filling, batches, rows)


def latency(
    spark: SparkSession,
    folder: str,
    source: str,
    rate: int,
    keys: int,
    warming_seconds: float,
    seconds: float,
    live_port: int | None = None,
) -> dict[str, Any]:
    """Sums by key and window, each as soon as it changes."""
    line_of = _line_of_rate if source == "rate" else _line_of_socket
    with tick_source(source, rate) as options:
        pipeline = beam.Pipeline(
            spark=spark, mode="streaming", checkpoint_location=folder, live_port=live_port
        )
        rows = pipeline | beam.io.ReadFromSpark(source, **options).as_stream(
            event_time=lambda row: parsed_tick(line_of(row), 1)[2] / 1e6,
            watermark=BoundedDisorder(TICK_DISORDER_SECONDS),
        )

        def parse(row: Any) -> tuple[int, tuple[int, int]]:
            key, score, born_micros = parsed_tick(line_of(row), keys)
            return key, (score, born_micros)

        sums = (
            rows
            | beam.Map(parse)
            | beam.WindowInto(
                beam.window.FixedWindows(TICK_WINDOW_SECONDS),
                trigger=Repeatedly(AfterCount(1)),
                accumulation_mode=AccumulationMode.ACCUMULATING,
            )
            | beam.CombinePerKey(beam.combiners.TupleCombineFn(sum, max))
        )
        delays = Delays(warming_seconds, seconds)
        # The newest of each key comes last.
        _ = sums | beam.io.ForEachBatch(
            lambda elements, _: delays.add(born for _, born in dict(elements).values())
        )
        with running(pipeline) as query:
            delays.wait(query)
        return delays.numbers()


def _line_of_socket(row: Any) -> str:
    line: str = row.value
    return line


def _line_of_rate(row: Any) -> str:
    return f"{row.value},{round(row.timestamp.timestamp() * 1e6)}"


@contextmanager
def running(pipeline: Any) -> Iterator[Any]:
    """Runs a pipeline for a block, and yields Spark's query."""
    result = pipeline.run()
    try:
        with looked_at(result):
            yield query_of(result)
    finally:
        result.cancel()


@contextmanager
def looked_at(result: Any) -> Iterator[None]:
    """Asks for the snapshot of a run once a second, as a browser does, if the run has a page."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(1):
            # Before the first snapshot, the page has nothing to show.
            with suppress(OSError), urlopen(f"{result.live_url}snapshot.json", timeout=10) as answer:
                answer.read()

    looking = threading.Thread(target=look, daemon=True)
    if result.live_url is not None:
        looking.start()
    try:
        yield
    finally:
        over.set()
        if looking.is_alive():
            looking.join()


def query_of(result: Any) -> Any:
    """Spark's query, which a user does not see."""
    return result._running.started


JOBS = {"replay": replay, "empty_batches": empty_batches, "state": state, "latency": latency}
