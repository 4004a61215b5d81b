"""A format as a value: how the runner opens, reads and writes the descriptions of sources and sinks that are of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.io.files.file_readers import Reader
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.formats.packages import Package
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.plan import SinkPlan
from penstock_spark.sources.scan import Scan, StreamScan


def _not_known(source: object, spark: SparkSession | None, where: str) -> None:
    """Only the open source shows the types of its elements."""


@dataclass(frozen=True)
class Format:
    """The abilities of the runner for a format: a field is None for something that it cannot do."""

    # Opens a source, given the session that reads it, and the step for errors. All elements are in the global
    # window, at the minimum timestamp.
    open: Callable[[Any, SparkSession, str], Scan] | None = None
    # Opens an unbounded source; unless it has rejects, what does not parse is an error of the step.
    open_stream: Callable[[Any, StreamSource, SparkSession, str], StreamScan] | None = None
    # The type of a source's elements, from its files or from a running session; None if unknown. Starts
    # nothing.
    element_type: Callable[[Any, SparkSession | None, str], Any] = _not_known
    # ``"dict"`` or ``"row"``, if elements are the rows of the source's frame.
    records: Callable[[Any], str | None] | None = None
    # The columns of such a source without Spark; None if only the open source shows them.
    schema: Callable[[Any], StructType | None] | None = None
    # Describes how to write a sink of files; `plan`, `prepare` and the files of windows follow from it.
    files: Callable[[Any, str], FileSink] | None = None
    # Plans any other sink, given whether it takes micro-batches, and the step; writes nothing yet.
    plan: Callable[[Any, bool, str], SinkPlan] | None = None
    # Reads an open file, which is not unpacked yet, given its name and the options of a `ReadFiles`, for ReadAll. A
    # function that tasks can import.
    read_file: Reader | None = None
    # The optional packages that a source, a sink or a `ReadFiles` needs.
    packages: Callable[[Any], tuple[Package, ...]] = lambda description: ()
    takes_streams: bool = True  # Whether it may take micro-batches.
    # Looks at what a sink needs, before every run; refuses what would fail later, and writes nothing.
    check: Callable[[Any, str], None] | None = None
    # Looks at what exists already, given a session, the step, and the stream as in `MicroBatch`.
    prepare: Callable[[Any, SparkSession, str, str], None] | None = None
    # Opens a bounded source whose elements have a `penstock.io.rejects.Rejected` instead of each record that
    # cannot be read.
    open_with_rejects: Callable[[Any, SparkSession, str], Scan] | None = None
