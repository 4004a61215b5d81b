"""A source that is read once with the code of a stream, which separates records that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import Source
from penstock.io.formats.file_formats import FileSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock_spark.files.finding import find_files
from penstock_spark.sources.parts import make_empty_scan
from penstock_spark.sources.scan import Scan, StreamDecoder, StreamScan, nothing_to_check, with_plain_names

OpenStream = Callable[[Any, StreamSource, SparkSession, str], StreamScan]


@dataclass(frozen=True, eq=False)
class WholeRead(StreamSource):
    """A source as `StreamSource`, but of what is there now."""

    is_bounded = True


def scan_with_rejects(open_stream: OpenStream, source: Source, spark: SparkSession, where: str) -> Scan:
    """Returns the scan of a source with a `penstock.io.rejects.Rejected` for each record that cannot be read."""
    check = nothing_to_check
    if isinstance(source, FileSource):
        files = find_files(spark, source.file_pattern, where, validate=source.validate)
        if not files.paths:
            return make_empty_scan(spark)
        if files.is_unsupported_by_spark:
            what = f"{source.describe()} cannot be read with rejects=True: Spark does not reach its store"
            hint = "add Hadoop's package for it with --spark_conf=spark.jars.packages=..., or use a path on a disk"
            raise UnsupportedByRunner(what, where=where, hint=hint)
        check = files.make_size_check(where)
    opened = open_stream(source, WholeRead(source, IngressTime(), has_rejects=True), spark, where)
    frame, make_decoder = with_plain_names(opened.frame, opened.make_decoder)
    return Scan(frame, partial(_make_reader, make_decoder), in_parts=True, check=check, has_columns=False)


def _make_reader(
    make_decoder: Callable[[], StreamDecoder],
) -> Callable[[pa.RecordBatch], Iterator[list[Any]]]:
    decode = make_decoder()
    return lambda batch: (part.values for part in decode(batch))
