"""A tiny batch with the progress that a terminal shows, and without it, in turns in one session."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import penstock as beam
from tiny import pipeline_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WARMING_PAIRS = 10


class _Terminal(io.StringIO):
    """An output that passes for a terminal."""

    def isatty(self) -> bool:
        return True


def progress(spark: SparkSession, pairs: int) -> dict[str, Any]:
    """The milliseconds without progress and with it, pair by pair; the first of a pair is each of them in turn.

    The processor time counts this process alone, where progress is made: it tells more on a busy machine.
    """
    found: dict[str, list[list[float]]] = {"wall_millis": [], "cpu_millis": []}
    for number in range(_WARMING_PAIRS + pairs):
        order = (("off", "auto"), ("auto", "off"))[number % 2]
        times = {kind: _millis(spark, kind) for kind in order}
        if number >= _WARMING_PAIRS:
            for place, pairs_of in enumerate(found.values()):
                pairs_of.append([times["off"][place], times["auto"][place]])
    return found


def _millis(spark: SparkSession, kind: str) -> tuple[float, float]:
    """The wall and the processor time of one run."""
    with _on_terminal():
        wall, cpu = time.perf_counter(), time.process_time()
        pipeline_on(beam.Pipeline(spark=spark, progress=kind))
        return (time.perf_counter() - wall) * 1_000, (time.process_time() - cpu) * 1_000


@contextmanager
def _on_terminal() -> Iterator[None]:
    before, sys.stderr = sys.stderr, _Terminal()
    try:
        yield
    finally:
        sys.stderr = before


JOBS = {"progress": progress}
