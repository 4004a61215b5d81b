"""TFRecord files: tasks read whole files, and open those themselves that are on their disks or on stores."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

from pyspark.sql import SparkSession

from penstock.coders.base import Coder
from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes, resolve_compression
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.tfrecordio import TFRecordSource
from penstock_connectors.tfrecord.checksums import load_masked_crc32c
from penstock_connectors.tfrecord.records import DamagedRecord, read_records
from penstock_spark.connecting.files import (
    SHORTENED_FILE,
    Split,
    file_store,
    find_files,
    leaves_files_out,
    make_unreadable_error,
    open_for_reading,
    scan_of_contents,
    size_of,
    stream_files,
    stream_of_contents,
    translate_decompression_errors,
    whole_files,
)
from penstock_spark.connecting.reading import (
    PartsReader,
    Scan,
    StreamScan,
    distribute_parts,
    make_empty_scan,
    parallelism_of,
    scan_of_parts,
    scan_with_rejects,
)
from penstock_spark.connecting.running import fail_step

_BATCH_RECORDS = 2_000
_BATCH_BYTES = 8 << 20


def records_of_file(
    file: BinaryIO, name: str, compression_type: str, coder: Coder | None = None
) -> Iterator[Any]:
    """Yields the records of an open file, which may be compressed, for ``ReadAllFromTFRecord``."""
    records = _records(file, name, resolve_compression(name, compression_type), "")
    return records if coder is None else map(coder.decode, records)


def open_tfrecord(source: TFRecordSource, spark: SparkSession, where: str) -> Scan:
    """Opens files as bytes, or as the values that the coder decodes from them."""
    load_masked_crc32c(where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    if not files.paths:
        return make_empty_scan(spark)
    if files.is_open_to_tasks and not leaves_files_out(spark):
        parallelism = parallelism_of(spark)
        tasks = distribute_parts(whole_files(files.paths, files.sizes), lambda split: split.end, parallelism)
        return scan_of_parts(spark, FileReader(source, tasks, where), files.make_size_check(where))
    return scan_of_contents(files, spark, ContentReader(source, where), where)


def open_tfrecord_stream(
    source: TFRecordSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    """Opens a stream of the records of files, each of which must fit into memory. Damaged files are rejects."""
    load_masked_crc32c(where)
    files = stream_files(stream, source.file_pattern, where)
    return stream_of_contents(files, stream, spark, ContentReader(source, where))


def open_tfrecord_with_rejects(source: TFRecordSource, spark: SparkSession, where: str) -> Scan:
    """Opens the records of files, each of which must fit into memory. Damaged files are rejects."""
    return scan_with_rejects(open_tfrecord_stream, source, spark, where)


@dataclass(frozen=True)
class FileReader(PartsReader):
    source: TFRecordSource
    parts: Sequence[Sequence[Split]]
    where: str

    def read(self, split: Split) -> Iterator[list[Any]]:
        try:
            with file_store(split.path).open(split.path) as file:
                if size_of(file) < split.end:
                    # Otherwise whole records might be missing unnoticed.
                    raise OSError(errno.EIO, SHORTENED_FILE)
                yield from _batches(file, split.name, self.source, self.where)
        except OSError as error:
            fail_step(make_unreadable_error(error, split.name, self.where), self.where)


@dataclass(frozen=True)
class ContentReader:
    """Reads the bytes of a file."""

    source: TFRecordSource
    where: str

    def __call__(self, content: bytes, name: str) -> Iterator[Any]:
        return chain.from_iterable(_batches(io.BytesIO(content), name, self.source, self.where))


def _batches(file: BinaryIO, name: str, source: TFRecordSource, where: str) -> Iterator[list[Any]]:
    """Yields the elements of some records of a file at a time."""
    decode = (lambda record: record) if source.coder is None else source.coder.decode
    batch: list[Any] = []
    size = 0
    for record in _records(file, name, resolve_compression(name, source.compression_type), where):
        batch.append(decode(record))
        size += len(record)
        if len(batch) == _BATCH_RECORDS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _records(file: BinaryIO, name: str, compression: str, where: str) -> Iterator[bytes]:
    """Yields the records of a file as stored; the ValueError for a damaged file does not show its content."""
    checksum = load_masked_crc32c(where)
    try:
        with translate_decompression_errors(compression, name, where):
            yield from read_records(open_for_reading(file, compression), checksum)
    except DamagedRecord as error:
        is_plain = compression == CompressionTypes.UNCOMPRESSED
        place = f"byte {error.offset}" if is_plain else f"byte {error.offset} of the uncompressed content"
        what = f"{name} is not a TFRecord file, or it is damaged: the record at {place} {error.what}"
        hint = "write the file again, or give a pattern without it"
        if is_plain and error.offset == 0:
            hint = "pass compression_type if the file is compressed, or give a pattern without it"
        raise refusal(ValueError, what, where=where, hint=hint) from None
