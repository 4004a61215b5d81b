"""Text files: plain ones on disks of the workers are read by the tasks, others by Spark's line reader where it means
the same as Beam's, and as whole files where it does not.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, AnyStr

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.io.files.compression import CompressionTypes, resolve_compression
from penstock.io.files.naming_errors import make_decoding_error
from penstock.io.formats.record_splitter import split_records
from penstock.io.formats.text_source import TextSource, decode_text
from penstock.io.rejects import Position, Rejected, reject
from penstock_spark.files.compressed import decompress, has_ending_of_hadoop
from penstock_spark.files.finding import Files, Namer, find_files, make_unreadable_error
from penstock_spark.files.splits import Split, blocks_of, leaves_files_out, splits_of
from penstock_spark.reports.failure import fail_step
from penstock_spark.session.spark_versions import unpacks_zstandard
from penstock_spark.sources.contents import scan_of_contents
from penstock_spark.sources.decoding import explain
from penstock_spark.sources.headers import Headers, make_head_column
from penstock_spark.sources.parts import PackedParts, PartsReader, make_empty_scan, scan_of_parts
from penstock_spark.sources.scan import Scan

# Hadoop reads these by the ending of the file's name.
_READ_BY_SPARK = frozenset(
    {
        CompressionTypes.UNCOMPRESSED,
        CompressionTypes.GZIP,
        CompressionTypes.BZIP2,
        CompressionTypes.DEFLATE,
        CompressionTypes.ZSTD,
    }
)
_SPLITS_MAX = 1_000_000
"""The maximum number of splits of all tasks, all of which each task receives as bytes; beyond it, Spark reads."""

NOT_UTF8 = (
    "pass a coder whose decode() knows the encoding, e.g. a subclass of coders.Coder; or pass rejects=True, which "
    "keeps such lines apart"
)
_OF_CODER = "correct the coder or the line, or pass rejects=True, which keeps such lines apart"


def open_text(source: TextSource, spark: SparkSession, where: str) -> Scan:
    """Opens files as lines, or as (file name, line) pairs."""
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    read_by_tasks = scan_of_splits(source, files, spark, where, has_rejects=False)
    if read_by_tasks is not None:
        return read_by_tasks
    if (
        not files.is_unsupported_by_spark
        and cuts_as_spark(source)
        and all(spark_unpacks(source, path) for path in files.paths)
    ):
        # A relative pattern is relative to the driver's folder, so the driver works the names out.
        check, namer = files.make_size_check(where), files.namer()
        frame = files.load(spark.read.option("lineSep", line_end(source)), "text")
        return Scan(
            frame.select(*line_columns(source)), lambda: LineDecoder(source, namer, where), check=check
        )
    return scan_of_contents(files, spark, ContentReader(source, where), where)


def scan_of_splits(
    source: TextSource, files: Files, spark: SparkSession, where: str, *, has_rejects: bool
) -> Scan | None:
    """The lines of files that tasks open on their own; None if Spark must read them."""
    if not files.paths:
        return make_empty_scan(spark)
    if not all(task_reads(source, path, files) for path in files.paths) or leaves_files_out(spark):
        return None
    delimiter = source.delimiter or b"\n"
    parts = splits_of(spark, files.paths, delimiter, source.skip_header_lines, files.sizes)
    if sum(map(len, parts)) > _SPLITS_MAX and not files.is_unsupported_by_spark:
        return None
    return scan_of_parts(spark, SplitReader(source, PackedParts.of(parts), where, has_rejects))


def task_reads(source: TextSource, path: str, files: Files) -> bool:
    """True if a task can read splits of a file, without Spark."""
    return (
        files.is_open_to_tasks
        and resolve_compression(path, source.compression_type) == CompressionTypes.UNCOMPRESSED
        and source.strip_trailing_newlines
        and source.escapechar is None
        and len(source.delimiter or b"\n") == 1
    )


@dataclass(frozen=True)
class SplitReader(PartsReader):
    source: TextSource
    parts: Sequence[Sequence[Split]]
    where: str
    has_rejects: bool = False

    def read(self, split: Split) -> Iterator[list[Any]]:
        delimiter = self.source.delimiter or b"\n"
        seen = 0
        for number, block in enumerate(self._blocks(split, delimiter)):
            if split.start == 0 and number == 0:
                block = block.removeprefix(BOM_UTF8)  # As Spark's reader does.
            try:
                lines = self._lines(block, delimiter)
            except Exception:
                lines = self._one_by_one(block, delimiter, split, seen)
            seen += len(lines)
            if self.source.with_filename:
                lines = [line if type(line) is Rejected else (split.name, line) for line in lines]
            yield lines

    def _blocks(self, split: Split, delimiter: bytes) -> Iterator[bytes]:
        try:
            yield from blocks_of(split, delimiter)
        except OSError as error:
            fail_step(make_unreadable_error(error, split.name, self.where), self.where)

    def _lines(self, block: bytes, delimiter: bytes) -> list[Any]:
        decode = custom_decoder_of(self.source)
        if decode is None and delimiter < b"\x80":
            return _stripped(
                block.decode("utf-8").split(delimiter.decode()), "\r", self._strips(b"\r" in block)
            )
        return list(map(decode or decode_text, self._records(block, delimiter)))

    def _records(self, block: bytes, delimiter: bytes) -> list[bytes]:
        return _stripped(block.split(delimiter), b"\r", self._strips(b"\r" in block))

    def _strips(self, has_returns: bool) -> bool:
        return self.source.delimiter is None and has_returns

    def _one_by_one(self, block: bytes, delimiter: bytes, split: Split, seen: int) -> list[Any]:
        """The lines of a block, of which at least one cannot be decoded; `seen` lines of the split precede it."""
        decode = custom_decoder_of(self.source) or decode_text
        found: list[Any] = []
        for place, record in enumerate(self._records(block, delimiter)):
            try:
                found.append(decode(record))
            except Exception as error:
                line = self._lines_before(split, delimiter) + seen + place + 1
                if not self.has_rejects:
                    fail_step(explain_line(error, split.name, line, self.where), self.where)
                found.append(Rejected(reject(split.name, Position(line), record, error)))
        return found

    def _lines_before(self, split: Split, delimiter: bytes) -> int:
        """The number of lines that belong to earlier splits; one that begins with a split belongs to it."""
        if not split.start:
            return 0
        before = split._replace(start=0, end=split.start)
        return sum(block.count(delimiter) for block in self._blocks(before, delimiter))


def _stripped(lines: list[AnyStr], end: AnyStr, strips: bool) -> list[AnyStr]:
    """Lines that a delimiter has cut, without returns before it; nothing follows the last delimiter."""
    rest = lines.pop()
    if strips:
        lines = [line[:-1] if line.endswith(end) else line for line in lines]
    if rest:
        # The file ends without a delimiter: a return at its end does not belong to one, but to the line.
        lines.append(rest)
    return lines


def cuts_as_spark(source: TextSource) -> bool:
    """True if Spark's line reader cuts plain files into exactly Beam's lines."""
    if not source.strip_trailing_newlines or source.escapechar is not None:
        return False
    return _is_text(source.delimiter or b"\n")


def _is_text(delimiter: bytes) -> bool:
    try:
        return bool(delimiter.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def spark_unpacks(source: TextSource, path: str) -> bool:
    by_name = CompressionTypes.detect_compression_type(path)
    # Hadoop has no codec for the longer of the two endings of Zstandard.
    known = (
        by_name in _READ_BY_SPARK and not path.lower().endswith(".zstd") and not has_ending_of_hadoop(path)
    )
    if by_name == CompressionTypes.ZSTD:
        known = known and unpacks_zstandard()
    return known and resolve_compression(path, source.compression_type) == by_name


def line_end(source: TextSource) -> str:
    """Returns the end of a line for Spark's line reader."""
    return (source.delimiter or b"\n").decode("utf-8")


def line_columns(source: TextSource) -> list[Column]:
    """Returns a row for each line: the line, a number for the file in rows of its first split, and the file."""
    value = F.col("value") if source.coder is None else F.col("value").cast("binary")
    columns = [value.alias("value")]
    if source.skip_header_lines:
        columns.append(make_head_column().alias("head"))
    if source.with_filename:
        columns.append(F.col("_metadata.file_path").alias("file"))
    return columns


class LineDecoder:
    """Decodes batches of the rows of `line_columns`."""

    def __init__(self, source: TextSource, namer: Namer, where: str) -> None:
        self._headers = Headers(source.skip_header_lines)
        self._has_headers = bool(source.skip_header_lines)
        self._namer = namer
        self._decode = custom_decoder_of(source)
        self._strip = source.delimiter is None
        self._where = where

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        rest = self.rest(batch)
        return self.decode(batch if rest is None else batch.filter(rest))

    def rest(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Returns which rows are not header lines, or None for all; called once for each batch."""
        return self._headers.rest(batch.column("head")) if self._has_headers else None

    def decode(self, batch: pa.RecordBatch, file: str | None = None) -> list[Any]:
        """Returns the lines of some rows, which may be of one `file`."""
        lines = self._decoded(batch.column("value"))
        if "file" not in batch.schema.names:
            return lines
        files = batch.column("file").dictionary_encode()
        names = [self._namer(name) for name in files.dictionary.to_pylist()]
        return [(names[at], line) for at, line in zip(files.indices.to_pylist(), lines, strict=True)]

    def _decoded(self, column: pa.Array) -> list[Any]:
        ends = b"\r" if pa.types.is_binary(column.type) else "\r"
        values: list[Any] = column.to_pylist()
        if self._strip and pc.any(pc.ends_with(column, "\r")).as_py():
            values = [value[:-1] if value.endswith(ends) else value for value in values]
        return values if self._decode is None else [self._decode(value) for value in values]


def custom_decoder_of(source: TextSource) -> Callable[[bytes], Any] | None:
    """Decodes the bytes of a record; None if they are UTF-8 text."""
    return None if source.coder is None else source.coder.decode


def explain_line(
    error: Exception, file: str, line: int | None, where: str, hint: str = NOT_UTF8
) -> Exception:
    """Returns the error for a line that cannot be decoded, as Beam's default coder raises it, with file and line."""
    if isinstance(error, UnicodeDecodeError):
        place = file if line is None else f"line {line} of {file}"
        return make_decoding_error(error, place, where, hint)
    return explain(error, file, line, where, _OF_CODER)


@dataclass(frozen=True)
class ContentReader:
    """Cuts the bytes of a file into records."""

    source: TextSource
    where: str
    has_rejects: bool = False

    def __call__(self, content: bytes, name: str) -> Iterator[Any]:
        source = self.source
        plain = decompress(content, resolve_compression(name, source.compression_type), name, self.where)
        decode = custom_decoder_of(source) or decode_text
        records = split_records(
            [plain],
            delimiter=source.delimiter,
            escapechar=source.escapechar,
            strip=source.strip_trailing_newlines,
            skip=source.skip_header_lines,
        )
        for number, record in enumerate(records, source.skip_header_lines + 1):
            try:
                value = decode(record)
            except Exception as error:
                if not self.has_rejects:
                    fail_step(explain_line(error, name, number, self.where), self.where)
                yield Rejected(reject(name, Position(number), record, error))
                continue
            yield (name, value) if source.with_filename else value
