"""What an unbounded source is once it is open: a streaming DataFrame, and how its batches become elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import Source
from penstock.io.streams import StreamSource
from penstock_spark.worker.messages import Place

StreamDecoder = Callable[[pa.RecordBatch], list[tuple[Place, list[Any]]]]
"""From an Arrow batch to its elements, in parts: rows of one file, in its order, with their place among all that the
source gives; or everything, with an empty place, if they come as they are read. It may keep state between batches."""


@dataclass(frozen=True)
class StreamScan:
    """An open unbounded source.

    Attributes:
        frame: What Spark reads; its columns, each with a name of its own, are the decoder's business.
        make_decoder: Called once in each task, which reads batches in the order of the partition.
    """

    frame: DataFrame
    make_decoder: Callable[[], StreamDecoder]


@dataclass(frozen=True)
class Rejected:
    """Stands among the elements for something that could not be parsed, if the source has an output for that.

    Attributes:
        raw: What was there: a line as text, or bytes where they are not even text.
        error: Why it is no element.
    """

    raw: Any
    error: Exception


def open_stream(stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens an unbounded source. What does not parse is an error of the step, unless the source has rejects.

    Args:
        stream: The description.
        spark: The session that reads it.
        where: The step, for errors.

    Raises:
        ValueError: The source cannot be read as described: an option, a format, a pattern or a missing schema.
        UnsupportedByRunner: The runner cannot read such a source as a stream.
    """
    return open_stream_of(stream.source, stream, spark, where)


@functools.singledispatch
def open_stream_of(source: Source, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens what a stream reads; `open_stream` with the description that decides as an argument of its own."""
    raise UnsupportedByRunner(
        f"the source {source.describe()} cannot be read as a stream",
        where=where,
        hint="take files of text, CSV, JSON or Parquet, or any streaming source of Spark's with ReadFromSpark",
    )
