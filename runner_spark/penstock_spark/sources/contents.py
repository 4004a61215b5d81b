"""Files that tasks get from Spark as a whole: each must fit into a task's memory, and into Spark's limit of 2 GB."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.columns.common_types import is_wider
from penstock_spark.columns.types import arrow_schema_of, struct_of
from penstock_spark.files.finding import Files, Namer
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.sources.decoding import ByFile, RejectingDecoder
from penstock_spark.sources.later_columns import LaterColumns
from penstock_spark.sources.needed_columns import NOTHING_NEEDED, NeededColumns
from penstock_spark.sources.scan import Decoder, Scan, StreamDecoder, StreamScan
from penstock_spark.sources.stream_files import FILE, Naming, StreamFiles, place_columns

ReadContent = Callable[[bytes, str], Iterable[Any]]
"""A function from the bytes of a file, and its name, to its elements."""

CONTENTS = "path string, modificationTime timestamp_ltz, length long, content binary"
"""The columns with which Spark reads whole files."""


def scan_of_contents(files: Files, spark: SparkSession, read: ReadContent, where: str) -> Scan:
    """The elements of files that are there."""
    decode = _Decoder(read, files.namer())
    frame = frame_of_contents(files, spark)
    return Scan(frame, lambda: decode, check=files.make_size_check(where), has_columns=False)


def frame_of_contents(files: Files, spark: SparkSession) -> DataFrame:
    """The names and the contents of files that are there, a row for each."""
    return files.load(spark.read, "binaryFile").select(*_columns())


def stream_of_contents(
    files: StreamFiles, stream: StreamSource, spark: SparkSession, read: ReadContent
) -> StreamScan:
    """The elements of files that arrive; a file that cannot be read is a reject, if the stream has rejects."""
    naming = files.naming()
    decode = _Decoder(read, naming.namer)
    hint = "write the file again, or pass rejects=True, which keeps such files apart"
    careful = RejectingDecoder(lambda batch, file: decode(batch), None, stream.has_rejects, files.where, hint)
    frame = files.load(files.reader(spark).schema(CONTENTS), "binaryFile")
    return StreamScan(frame.select(*_columns(), *place_columns(stream)), lambda: ByFile(careful, naming))


def stream_of_names(
    files: StreamFiles,
    stream: StreamSource,
    spark: SparkSession,
    make_decoder: Callable[[], StreamDecoder],
) -> StreamScan:
    """The names of files that arrive, which tasks open on their own: Spark reads nothing of them."""
    frame = files.load(files.reader(spark).schema(CONTENTS), "binaryFile")
    return StreamScan(frame.select(*place_columns(stream)), make_decoder)


def _columns() -> list[Column]:
    """A row for each file: its name, and its bytes as stored."""
    return [F.col("_metadata.file_path").alias("file"), F.col("content")]


NOT_IN_COLUMNS = "--without=native_streams and another checkpoint_location"
"""The end of a hint about values that Python has, but Spark's columns do not."""


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
    needed: NeededColumns = NOTHING_NEEDED

    def __call__(self, content: bytes, name: str) -> Iterator[Any]:
        for batch in self.records.all_of(io.BytesIO(content), name, self.later_columns):
            yield from self.needed.divide(batch, self.decode(batch), name)


@dataclass(frozen=True)
class _Decoder:
    read: ReadContent
    namer: Namer

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        rows = zip(batch.column("file").to_pylist(), batch.column("content").to_pylist(), strict=True)
        return [element for file, content in rows for element in self.read(content, self.namer(file))]


@dataclass(frozen=True)
class RowsOfContents(TaskRows):
    """Gives the columns of files that arrive as a whole, in a task, without Python's objects."""

    records: FileRecords
    schema: T.StructType  # The columns, in the types that they have in all files.
    naming: Naming
    later_columns: LaterColumns | None
    needed: NeededColumns
    where: str

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for file, content in zip(batch.column(FILE).to_pylist(), batch.column("content"), strict=True):
            name = self.naming.name(file)
            if name is not None:
                yield from self._rows(name, content.as_py())

    def _rows(self, name: str, content: bytes) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self.schema)
        try:
            for batch in self.records.all_of(io.BytesIO(content), name, self.later_columns):
                self._check(name, struct_of(batch.schema))
                self.needed.check(batch, name)
                columns = [column.cast(each.type) for column, each in zip(batch.columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except ValueError as error:
            fail_step(error, self.where)

    def _check(self, name: str, found: T.StructType) -> None:
        """Refuses values of another type, which would become others."""
        for own, wanted in zip(found, self.schema, strict=True):
            is_nothing = isinstance(own.dataType, T.NullType)
            if not is_nothing and not is_wider(wanted.dataType, own.dataType):
                what = f"the column {own.name} of {name} has the type {own.dataType.simpleString()}, and the pipeline "
                what += f"reads it as {wanted.dataType.simpleString()}"
                hint = f"write the file again with the type of the others, or pass {NOT_IN_COLUMNS}"
                raise refusal(ValueError, what, where=self.where, hint=hint)
