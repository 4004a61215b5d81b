"""Records as stored in a file: the length, a checksum of the length, the data, and a checksum of the data."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from penstock_connectors.tfrecord.checksums import Checksum

_LENGTH = struct.Struct("<Q")
_HEAD = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_PIECE_BYTES = 16 << 20
"""At most so much is read at once, because a file may claim that a record is longer than the file."""


class DamagedRecord(Exception):
    """A record of a file is not whole; `offset` is the byte where it begins."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset


def encode_records(records: Iterable[bytes], checksum: Checksum) -> bytes:
    """Returns the bytes of records in a file."""
    parts: list[bytes] = []
    for data in records:
        length = _LENGTH.pack(len(data))
        parts += (length, _CRC.pack(checksum(length)), data, _CRC.pack(checksum(data)))
    return b"".join(parts)


def read_records(file: BinaryIO, checksum: Checksum) -> Iterator[bytes]:
    """Yields the records of an open file without its compression; `DamagedRecord` at the first damaged one."""
    offset = 0
    while head := file.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise DamagedRecord("is truncated", offset)
        length, of_length = _HEAD.unpack(head)
        if checksum(head[: _LENGTH.size]) != of_length:
            raise DamagedRecord("has a length that does not match its checksum", offset)
        rest = _read(file, length + _CRC.size)
        if len(rest) < length + _CRC.size:
            raise DamagedRecord("is truncated", offset)
        data = rest[:length]
        if checksum(data) != _CRC.unpack_from(rest, length)[0]:
            raise DamagedRecord("has data that does not match its checksum", offset)
        yield data
        offset += _HEAD.size + length + _CRC.size


def _read(file: BinaryIO, count: int) -> bytes:
    """Reads `count` bytes, or fewer at the end of the file."""
    data = file.read(min(count, _PIECE_BYTES))
    if len(data) < _PIECE_BYTES:
        return data
    pieces = [data]
    count -= len(data)
    while data := file.read(min(count, _PIECE_BYTES)):
        pieces.append(data)
        count -= len(data)
    return b"".join(pieces)
