"""Runs of streams that Spark computes: their pipelines, and what is asked of their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

INSTANT = pa.timestamp("us", "UTC")
WAIT_SECONDS_MAX = 120


def instants(seconds: Iterable[float | None]) -> pa.Array:
    """A column of times, in seconds since 1970."""
    micros = [None if each is None else round(each * 1_000_000) for each in seconds]
    return pa.array(micros, pa.int64()).cast(INSTANT)


def pipeline_of(mode: str, *flags: str) -> beam.Pipeline:
    return beam.Pipeline(options=PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2", *flags]))


def ended(pipeline: beam.Pipeline) -> Any:
    """The result of a run that has ended."""
    result = pipeline.run()
    assert result.wait_until_finish(duration=WAIT_SECONDS_MAX * 1_000) is not None, "it does not end"
    return result


def counted(result: Any) -> dict[str, int]:
    """The counters by name."""
    return {each.key.metric.name: each.committed for each in result.metrics().query()["counters"]}


def until(condition: Callable[[], bool], result: Any) -> None:
    """Waits until something is so."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert result.state == "RUNNING"
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.02)
