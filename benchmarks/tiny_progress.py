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
    """What takes progress for a terminal."""

    def isatty(self) -> bool:
        return True


def progress(spark: SparkSession, pairs: int) -> dict[str, Any]:
    """The milliseconds without progress and with it, pair by pair; the first of a pair is each of them in turn."""
    found: list[list[float]] = []
    for number in range(_WARMING_PAIRS + pairs):
        order = (("off", "auto"), ("auto", "off"))[number % 2]
        millis = {kind: _millis(spark, kind) for kind in order}
        if number >= _WARMING_PAIRS:
            found.append([millis["off"], millis["auto"]])
    return {"pairs_millis": found}


def _millis(spark: SparkSession, kind: str) -> float:
    with _on_terminal():
        began = time.perf_counter()
        pipeline_on(beam.Pipeline(spark=spark, progress=kind))
        return (time.perf_counter() - began) * 1_000


@contextmanager
def _on_terminal() -> Iterator[None]:
    before, sys.stderr = sys.stderr, _Terminal()
    try:
        yield
    finally:
        sys.stderr = before


JOBS = {"progress": progress}
