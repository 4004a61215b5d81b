"""The blocks of an Avro file that begin in a split, as an Avro file of their own.

An Avro file has a header, which ends with 16 bytes of its own, and blocks, each of which ends with the same bytes. The
block after the first such mark at or behind the start of a split is the split's first one, as in Hadoop.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from penstock_spark.connecting.files import BLOCK_BYTES, Split, file_store, size_of

_MAGIC = b"Obj\x01"
_MARK_BYTES = 16


class NotAvroError(ValueError):
    """A file does not begin with a header of Avro."""


def open_part(split: Split) -> BinaryIO:
    """Returns the header of a file, and the blocks of a split; close it after use."""
    file = file_store(split.path).open(split.path)
    try:
        size = size_of(file)
        header = _header(file, size)
        mark = header[-_MARK_BYTES:]
        start = len(header) if split.start == 0 else _after_mark(file, mark, split.start, len(header), size)
        end = size if split.end >= size else _after_mark(file, mark, split.end, len(header), size)
        file.seek(start)
    except BaseException:
        file.close()
        raise
    return io.BufferedReader(_Joined(header, file, max(end - start, 0)), BLOCK_BYTES)


def blocks_of(content: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yields the byte at which each block of a file begins, and the block as a file of its own.

    Behind a block that does not end with the mark of the file, the next one begins behind the next mark; instead of
    such a block comes None. Raises NotAvroError for a file without a header.
    """
    file = io.BytesIO(content)
    header = _header(file, len(content))
    mark, start = header[-_MARK_BYTES:], len(header)
    while start < len(content):
        end = _end_of_block(file, content, mark, start)
        yield start, None if end is None else header + content[start:end]
        if end is None:
            found = content.find(mark, start)
            end = len(content) if found < 0 else found + _MARK_BYTES
        start = end


def _end_of_block(file: BinaryIO, content: bytes, mark: bytes, start: int) -> int | None:
    """Returns the byte behind a block; None if no mark is there."""
    file.seek(start)
    try:
        _number(file)
        size = _number(file)
    except NotAvroError:
        return None
    end = file.tell() + size
    is_whole = size >= 0 and content[end : end + _MARK_BYTES] == mark
    return end + _MARK_BYTES if is_whole else None


class _Joined(io.RawIOBase):
    """Some bytes, then some of a file."""

    def __init__(self, header: bytes, file: BinaryIO, count: int) -> None:
        self._header = header
        self._file = file
        self._count = count

    def readable(self) -> bool:
        return True

    def readinto(self, into: object) -> int:
        view = memoryview(into)  # type: ignore[arg-type]
        if self._header:
            data, self._header = self._header[: len(view)], self._header[len(view) :]
        else:
            data = self._file.read(min(len(view), self._count))
            self._count -= len(data)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _header(file: BinaryIO, size: int) -> bytes:
    """Returns the header, whatever its length; NotAvroError if there is none."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise NotAvroError
    while count := _number(file):
        if count < 0:
            _number(file)
        for _ in range(2 * abs(count)):
            length = _number(file)
            # A damaged file may claim more than the memory can hold.
            if not 0 <= length <= size - file.tell():
                raise NotAvroError
            file.seek(length, io.SEEK_CUR)
    end = file.tell() + _MARK_BYTES
    file.seek(0)
    header = file.read(end)
    if len(header) < end:
        raise NotAvroError
    return header


def _number(file: BinaryIO) -> int:
    """Returns an integer in Avro's form: seven bits a byte, the sign in the last bit."""
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte or shift > 63:
            raise NotAvroError
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)


def _after_mark(file: BinaryIO, mark: bytes, start: int, header_bytes: int, size: int) -> int:
    """Returns the end of the first mark at or behind a place; the size if there is none."""
    if start <= header_bytes - _MARK_BYTES:
        return header_bytes
    place = file.seek(start)
    kept = b""
    while block := file.read(BLOCK_BYTES):
        data = kept + block
        found = data.find(mark)
        if found >= 0:
            return place - len(kept) + found + _MARK_BYTES
        place += len(block)
        kept = data[1 - _MARK_BYTES :]
    return size
