"""Text files as a stream."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes
from penstock.io.formats.text_source import TextSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.files.finding import Namer
from penstock_spark.formats.text import scan
from penstock_spark.reports.failure import fail_step
from penstock_spark.sources.contents import stream_of_contents
from penstock_spark.sources.decoding import ByFile, RejectingDecoder
from penstock_spark.sources.scan import StreamScan
from penstock_spark.sources.stream_files import place_columns, stream_files


def open_text_stream(source: TextSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens files as lines, or as (file name, line) pairs; lines that no coder decodes may be rejected."""
    files = stream_files(stream, source.file_pattern, where)
    if scan.cuts_as_spark(source) and _spark_may_unpack(source, files.pattern):
        frame = files.load(spark.readStream.option("lineSep", scan.line_end(source)), "text")
        lines = frame.select(*scan.line_columns(source), *place_columns(stream))
        naming, has_rejects = files.naming(), stream.has_rejects
        return StreamScan(lines, lambda: ByFile(_Lines(source, naming.namer, has_rejects, where), naming))
    return stream_of_contents(files, stream, spark, scan.ContentReader(source, where))


def _spark_may_unpack(source: TextSource, pattern: str) -> bool:
    """True if Spark undoes the compression of files with this ending, as far as the pattern shows the ending.

    >>> [_spark_may_unpack(TextSource("", compression_type="auto"), name) for name in ("/a/*.gz", "/a/*.xz", "/a/*")]
    [True, False, True]
    """
    if _has_open_ending(pattern) and source.compression_type != CompressionTypes.AUTO:
        return False
    return scan.spark_unpacks(source, pattern)


def _has_open_ending(pattern: str) -> bool:
    return bool(re.search(r"[*?\]][^.]*\Z", pattern)) or "." not in pattern.rpartition("/")[2]


class _Lines:
    def __init__(self, source: TextSource, namer: Namer, has_rejects: bool, where: str) -> None:
        self._source = source
        self._decoder = scan.LineDecoder(source, namer, where)
        self._careful = RejectingDecoder(self._decoder.decode, "value", has_rejects, where)
        self._where = where

    def __call__(self, batch: pa.RecordBatch, file: str) -> list[Any]:
        if not scan.spark_unpacks(self._source, file):
            what = f"{file} is compressed in a format that Spark does not support"
            hint = "read such files with a pattern that has their extension, such as *.xz"
            fail_step(refusal(ValueError, what, where=self._where, hint=hint), self._where)
        return self._careful(self._decoder.without_headers(batch), file)
