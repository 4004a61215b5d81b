"""The workload on columns as a pipeline that needs no Python of its own: fields by name, from Parquet to Parquet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import penstock as beam
from totals import WINDOW_SECONDS

_SCHEMA = pa.schema({"team": pa.string(), "total": pa.int64()})


def run(pipeline: Any, source: str, target: str) -> None:
    """Sums the scores of each team for every two minutes of event time."""
    with pipeline:
        scores = pipeline | beam.io.ReadFromParquet(source, as_rows=True) | beam.WithTimestamps("at")
        windowed = scores | beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
        sums = windowed | beam.GroupBy("team").aggregate_field("score", sum, "total")
        _ = sums | beam.io.WriteToParquet(f"{target}/part", _SCHEMA, file_name_suffix=".parquet")
