"""Frames of files on object stores that Spark does not reach, with the same columns as Spark's readers."""

from __future__ import annotations

import abc
import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.io.files.compression import CompressionTypes
from penstock.io.files.object_stores import with_step
from penstock_spark.files.compressed import decompress
from penstock_spark.files.file_store import StoreFiles
from penstock_spark.files.splits import Split, blocks_of, distribute_parts, items_of_tasks, splits_of
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.parallelism import parallelism_of

_PLACE = pa.struct([("file_path", pa.string())])
_LINES = "value string, _metadata struct<file_path: string>"
_CONTENTS = "content binary, _metadata struct<file_path: string>"
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class ReadParts(TaskRows):
    """The function that tasks run: each reads the parts of files that belong to its number."""

    parts: tuple[tuple[Any, ...], ...]
    where: str

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for part in items_of_tasks(batch, self.parts):
            yield from self.read(part)

    @abc.abstractmethod
    def read(self, part: Any) -> Iterator[pa.RecordBatch]:
        """Returns the rows of a part."""


def read_by_tasks(spark: SparkSession, read: ReadParts, schema: str | StructType) -> DataFrame:
    """Returns a frame with the rows of all parts, which tasks read."""
    count = len(read.parts)
    frame: DataFrame = map_in_arrow(spark.range(0, count, 1, max(1, count)), read, schema)
    return frame


def whole_splits(spark: SparkSession, sizes: Mapping[str, int]) -> tuple[tuple[Split, ...], ...]:
    """Returns whole files by task."""
    files = [Split(path, path, 0, size) for path, size in sizes.items()]
    return distribute_parts(files, lambda file: file.end, parallelism_of(spark))


def frame_of_store(spark: SparkSession, sizes: Mapping[str, int], format: str, where: str) -> DataFrame:
    """Returns the lines, or the contents, of files, each with the file's name in the column that Spark uses.

    As with Spark's readers, ``text`` follows the compression in a file's name, and ``binaryFile`` does not.
    """
    assert format in ("text", "binaryFile")
    if format == "binaryFile":
        return read_by_tasks(spark, _Contents(whole_splits(spark, sizes), where), _CONTENTS)
    return read_by_tasks(spark, _Lines(line_splits(spark, sizes), where), _LINES)


def line_splits(spark: SparkSession, sizes: Mapping[str, int]) -> tuple[tuple[Split, ...], ...]:
    """Returns parts of files by task, cut between lines: tasks share large files, unless these are compressed."""
    compressed = {path: size for path, size in sizes.items() if is_compressed(path)}
    plain = {path: size for path, size in sizes.items() if path not in compressed}
    return (*splits_of(spark, plain, b"\n", sizes=plain), *whole_splits(spark, compressed))


def is_compressed(path: str) -> bool:
    return CompressionTypes.detect_compression_type(path) != CompressionTypes.UNCOMPRESSED


class _Contents(ReadParts):
    def read(self, part: Split) -> Iterator[pa.RecordBatch]:
        content = read_whole(part.path, part.end, self.where)
        columns = [pa.array([content], pa.binary()), make_name_column(part.path, 1)]
        yield pa.RecordBatch.from_arrays(columns, names=["content", "_metadata"])


class _Lines(ReadParts):
    """Reads the lines of files without their ends, as text; the decoder checks whether it is UTF-8."""

    def read(self, part: Split) -> Iterator[pa.RecordBatch]:
        for lines in lines_of(part, self.where):
            yield rows_of(part.path, pa.array(lines, pa.binary()).cast(pa.string(), safe=False))


def rows_of(path: str, values: pa.Array) -> pa.RecordBatch:
    """Returns strings of a file, each with the file's name."""
    return pa.RecordBatch.from_arrays(
        [values, make_name_column(path, len(values))], names=["value", "_metadata"]
    )


def lines_of(split: Split, where: str) -> Iterator[list[bytes]]:
    """Yields the lines of a split, many at a time."""
    if is_compressed(split.path):
        yield from split_lines([read_decompressed(split.path, split.end, where)])
        return
    try:
        yield from split_lines(blocks_of(split, b"\n"))
    except OSError as error:
        fail_step(make_store_error(error, split.path, where), where)


def read_whole(path: str, size: int, where: str) -> bytes:
    """Returns the bytes of a file, not decompressed; fails the step if it was deleted, or has another size."""
    try:
        with StoreFiles().open(path) as file:
            content = file.read()
        if len(content) != size:
            raise OSError(errno.EIO, "its size changed after the pipeline found it")
    except OSError as error:
        fail_step(make_store_error(error, path, where), where)
    return content


def read_beginning(path: str, count: int, where: str) -> bytes:
    """Returns the first bytes of a file, for the driver."""
    try:
        with StoreFiles().open(path) as file:
            return file.read(count)
    except OSError as error:
        raise make_store_error(error, path, where) from None


def read_decompressed(path: str, size: int, where: str) -> bytes:
    """Decompresses the bytes of a file according to its name."""
    content = read_whole(path, size, where)
    try:
        return decompress(content, CompressionTypes.detect_compression_type(path), path, where)
    except ValueError as error:
        fail_step(error, where)


def make_store_error(error: OSError, path: str, where: str) -> OSError:
    """Returns the error of a store with the step and its own hint, if it has one."""
    return with_step(error, where, f"{path} cannot be read: ")


def split_lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields the lines of blocks; each block except the last one of a file ends where a line ends."""
    for block in blocks:
        lines = _LINE_END.split(block) if b"\r" in block else block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield lines


def make_name_column(path: str, count: int) -> pa.Array:
    """Returns the column ``_metadata``, in which the name of the file is escaped, as by Spark."""
    names: Iterable[str] = [quote(path, safe=":/")]
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(names, pa.string()))
    return pa.StructArray.from_arrays([column.cast(pa.string())], fields=list(_PLACE))
