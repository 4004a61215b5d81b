"""Files that Spark gives to tasks as a whole: each must fit into a task's memory, and into Spark's limit of 2 GB."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.io.streams import StreamSource
from penstock_spark.files.finding import Files, Namer
from penstock_spark.sources.decoding import ByFile, Careful
from penstock_spark.sources.later_columns import LaterColumns
from penstock_spark.sources.scan import Decoder, Scan, StreamDecoder, StreamScan
from penstock_spark.sources.stream_files import StreamFiles, place_columns

ReadContent = Callable[[bytes, str], Iterable[Any]]
"""From the bytes of a file, and its name, to its elements."""

CONTENTS = "path string, modificationTime timestamp_ltz, length long, content binary"
"""The columns of Spark's reader of whole files."""


def scan_of_contents(files: Files, spark: SparkSession, read: ReadContent, where: str) -> Scan:
    """The elements of files that are there."""
    decode = _Decoder(read, files.namer())
    frame = frame_of_contents(files, spark)
    return Scan(frame, lambda: decode, check=files.unchanged(where), has_columns=False)


def frame_of_contents(files: Files, spark: SparkSession) -> DataFrame:
    """The names and the contents of files that are there, a row for each."""
    return files.load(spark.read, "binaryFile").select(*_columns())


def stream_of_contents(
    files: StreamFiles, stream: StreamSource, spark: SparkSession, read: ReadContent
) -> StreamScan:
    """The elements of files that arrive; a file that cannot be read is a reject, if the stream has rejects."""
    naming = files.naming()
    decode = _Decoder(read, naming.namer)
    careful = Careful(lambda batch, file: decode(batch), "content", stream.has_rejects, files.where)
    frame = files.load(spark.readStream.schema(CONTENTS), "binaryFile")
    return StreamScan(frame.select(*_columns(), *place_columns(stream)), lambda: ByFile(careful, naming))


def stream_of_names(
    files: StreamFiles,
    stream: StreamSource,
    spark: SparkSession,
    make_decoder: Callable[[], StreamDecoder],
) -> StreamScan:
    """The names of files that arrive, which tasks open on their own: Spark reads nothing of them."""
    frame = files.load(spark.readStream.schema(CONTENTS), "binaryFile")
    return StreamScan(frame.select(*place_columns(stream)), make_decoder)


def _columns() -> list[Column]:
    """A row for each file: its name, and its bytes as stored."""
    return [F.col("_metadata.file_path").alias("file"), F.col("content")]


class FileRecords(Protocol):
    """Reads the files of a format that has columns."""

    def all_of(
        self, file: BinaryIO, name: str, later_columns: LaterColumns | None = None
    ) -> Iterable[pa.RecordBatch]:
        """The records of a file, many at a time; ValueError if it is damaged."""


@dataclass(frozen=True)
class ColumnsReader:
    """Makes elements of the bytes of a file that has columns; a `ReadContent`."""

    records: FileRecords
    decode: Decoder
    later_columns: LaterColumns | None = None  # For a stream.

    def __call__(self, content: bytes, name: str) -> Iterator[Any]:
        for batch in self.records.all_of(io.BytesIO(content), name, self.later_columns):
            yield from self.decode(batch)


@dataclass(frozen=True)
class _Decoder:
    read: ReadContent
    namer: Namer

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        rows = zip(batch.column("file").to_pylist(), batch.column("content").to_pylist(), strict=True)
        return [element for file, content in rows for element in self.read(content, self.namer(file))]
