"""A file that was found, open for reading: by a task, or by the driver, which also reaches what only Hadoop does."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar, cast

from pyspark.sql import SparkSession

from penstock.io.filesystem import CompressionTypes
from penstock.io.filesystems import FileSystems
from penstock_spark.files.file_system import HadoopFiles

_Found = TypeVar("_Found")

_AT_ONCE = 16
"""So many files are looked at together, because each may wait for a network."""

_BLOCK_BYTES = 1 << 16
"""Each read is a call of Java, which takes a millisecond."""


def open_found(path: str) -> BinaryIO:
    """Opens a file on a disk or an object store; its bytes are not decompressed."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def looked_at(paths: Iterable[str], look: Callable[[str], _Found]) -> list[_Found]:
    """Returns the result of `look` for each file, in the order of the paths; calls it for many at once.

    >>> looked_at(["/in/a", "/in/b.c"], len)
    [5, 7]
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(look, paths))


def size_of(file: BinaryIO) -> int:
    """Returns the size of a file, which is then at its beginning.

    >>> size_of(io.BytesIO(b"abc"))
    3
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def open_by_hadoop(spark: SparkSession, path: str) -> BinaryIO:
    """Opens a file of one of Hadoop's file systems; OSError if that fails."""
    try:
        return cast(BinaryIO, io.BufferedReader(_HadoopFile(spark, path), _BLOCK_BYTES))
    except Exception as error:
        raise OSError(None, _cause(error), path) from None


class _HadoopFile(io.RawIOBase):
    def __init__(self, spark: SparkSession, path: str) -> None:
        self._stream, self._size = HadoopFiles(spark, path).open(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._stream.getPos())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        # Java refuses to go beyond the end, and Python does not.
        place = min(start + offset, self._size)
        if place < 0:
            raise ValueError(f"the place {place} is before the file")
        self._stream.seek(place)
        return place

    def readinto(self, buffer: Any) -> int:
        try:
            found = bytes(self._stream.readNBytes(len(buffer)))
        except Exception as error:
            raise OSError(None, _cause(error)) from None
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _cause(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None)
    return str(error if thrown is None else thrown.getMessage()).partition("\n")[0]
