"""What the runner can do with a format: one value for the descriptions of `penstock.io` that are of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.io.streams import StreamSource
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.plan import SinkPlan
from penstock_spark.sources.scan import Scan, StreamScan


def _not_known(source: Any, spark: SparkSession | None, where: str) -> None:
    """Only the open source tells the types of its elements."""


@dataclass(frozen=True)
class Format:
    """What the runner can do with a format; what is None, it cannot.

    Attributes:
        open: Opens a source, given the session that reads it, and the step for errors. All elements are in the global
            window, at the minimum timestamp.
        open_stream: Opens what a stream reads; what does not parse is an error of the step, unless the stream has
            rejects.
        element_type: Tells the type of a source's elements while a pipeline is written, as far as its files, or a
            session that is running, tell; None if it is not known. It starts nothing.
        records: Tells what an element is, ``"dict"`` or ``"row"``, if elements are the rows of the source's frame.
        schema: Tells the columns of such a source without Spark; None if they are known only when it is opened.
        files: How a sink of files is written, given the step for errors: `plan`, `prepare` and the files of windows
            follow from it.
        plan: Plans any other sink, given whether it takes micro-batches, and the step; nothing is written yet.
        takes_streams: Whether it may take micro-batches.
        prepare: Looks at what is there already, given a session, the step, and the stream as in `MicroBatch`.
    """

    open: Callable[[Any, SparkSession, str], Scan] | None = None
    open_stream: Callable[[Any, StreamSource, SparkSession, str], StreamScan] | None = None
    element_type: Callable[[Any, SparkSession | None, str], Any] = _not_known
    records: Callable[[Any], str | None] | None = None
    schema: Callable[[Any], StructType | None] | None = None
    files: Callable[[Any, str], FileSink] | None = None
    plan: Callable[[Any, bool, str], SinkPlan] | None = None
    takes_streams: bool = True
    prepare: Callable[[Any, SparkSession, str, str], None] | None = None
