"""The rows of a frame as elements: Rows with a field for each column."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.error import refusal
from penstock_spark.columns.values import to_rows
from penstock_spark.sources.scan import Scan


def rows_of(frame: DataFrame, where: str) -> Scan:
    """The rows of a frame; ValueError if they cannot be Rows, or never end."""
    if frame.isStreaming:
        raise refusal(
            ValueError,
            "the DataFrame is a stream",
            where=where,
            hint="read it with spark.read, not readStream",
        )
    check_names(frame, where)
    return Scan(frame, lambda: to_rows)


def check_names(frame: DataFrame, where: str) -> None:
    """Raises ValueError if two columns have one name: a Row cannot have both."""
    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise refusal(
            ValueError,
            f"the columns {', '.join(twice)} occur twice",
            where=where,
            hint="rename them, e.g. with toDF()",
        )
