"""Queries that call a function of the test with each micro-batch, in either kind of session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from penstock_spark.session.backends import backend_of


def start(
    frame: DataFrame, function: Callable[[DataFrame, int], Any], checkpoint: str | Path, **trigger: Any
) -> Any:
    """Starts a query, which the test has to stop."""
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
    if trigger:
        writer = writer.trigger(**trigger)
    return backend_of(frame.sparkSession).start(writer, function, f"{checkpoint}-called")


def read_all(frame: DataFrame, function: Callable[[DataFrame, int], Any], checkpoint: str | Path) -> None:
    """Calls a function with the micro-batches of what is there, and raises the error of the query."""
    query = start(frame, function, checkpoint, availableNow=True)
    try:
        query.awaitTermination()
    finally:
        query.stop()
