"""Text files as a stream."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes
from penstock.io.formats.text_source import TextSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.files.finding import Namer, find_files
from penstock_spark.formats.text import scan
from penstock_spark.reports.failure import fail_step
from penstock_spark.sources.contents import stream_of_contents
from penstock_spark.sources.decoding import ByFile, Decoded, RejectingDecoder
from penstock_spark.sources.line_numbers import Lines
from penstock_spark.sources.scan import Scan, StreamScan
from penstock_spark.sources.stream_files import Naming, place_columns, stream_files
from penstock_spark.sources.whole_read import scan_with_rejects


def open_text_stream(source: TextSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens files as lines, or as (file name, line) pairs; lines that no coder decodes may be rejected."""
    files = stream_files(stream, source.file_pattern, where)
    may_unpack = _spark_may_unpack(source, files.pattern)
    if stream.is_bounded:
        may_unpack = all(scan.spark_unpacks(source, path) for path in files.present(spark).paths)
    if scan.cuts_as_spark(source) and may_unpack:
        end = scan.line_end(source)
        frame = files.load(files.reader(spark).option("lineSep", end), "text")
        lines = frame.select(*scan.line_columns(source), *place_columns(stream))
        naming, has_rejects = files.naming(), stream.has_rejects
        return StreamScan(lines, lambda: make_decoder(source, naming, has_rejects, where))
    return stream_of_contents(files, stream, spark, scan.ContentReader(source, where, stream.has_rejects))


def make_decoder(source: TextSource, naming: Naming, has_rejects: bool, where: str) -> ByFile:
    """Returns the decoder of lines that Spark reads, in the order of their splits."""
    delimiter = scan.line_end(source).encode()
    return ByFile(_Lines(source, naming.namer, has_rejects, where), naming, delimiter=delimiter)


def open_text_with_rejects(source: TextSource, spark: SparkSession, where: str) -> Scan:
    """Opens files as lines, with a `penstock.io.rejects.Rejected` for each line that no coder decodes."""
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    read_by_tasks = scan.scan_of_splits(source, files, spark, where, has_rejects=True)
    return read_by_tasks or scan_with_rejects(open_text_stream, source, spark, where)


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
        self._careful = RejectingDecoder(
            self._decoder.decode,
            "value",
            has_rejects,
            where,
            scan.NOT_UTF8,
            scan.explain_line,
            source.delimiter is None,
        )
        self._where = where

    def __call__(self, batch: pa.RecordBatch, file: str, lines: Lines) -> list[Any] | Decoded:
        if not scan.spark_unpacks(self._source, file):
            what = f"{file} is compressed in a format that Spark does not support"
            hint = "read such files with a pattern that has their extension, such as *.xz"
            fail_step(refusal(ValueError, what, where=self._where, hint=hint), self._where)
        rest = self._decoder.rest(batch)
        if rest is None:
            return self._careful(batch, file, lines)
        rows = pc.indices_nonzero(rest)
        return self._careful.of_rows(batch.filter(rest), file, lambda row: lines.number(rows[row].as_py()))
