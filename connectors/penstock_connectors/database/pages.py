"""The answer of a task to the driver: its rows if they are few, and otherwise the table that holds them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

SCHEMA = "value binary"
NOTHING = pa.RecordBatch.from_arrays([pa.array([], pa.binary())], names=["value"])


@dataclass(frozen=True)
class Page:
    rows: int
    data: bytes = b""  # The rows themselves.
    table: str | None = None  # Or the table of the task that has them.


def page_row(page: Page) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(page)], pa.binary())], names=["value"])


def pages_of(frame: DataFrame) -> list[Page]:
    """Runs the job, and returns the pages of the attempts that succeeded, in the order of the partitions."""
    return [pickle.loads(value) for value in frame.toArrow().column("value").to_pylist()]
