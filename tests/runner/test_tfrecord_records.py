"""TFRecord's bytes: what TensorFlow writes is read and written, and each damage is found where it is."""

from __future__ import annotations

import base64
import io
import tracemalloc
import zlib
from typing import Any

import pytest

from penstock_connectors.tfrecord import records
from penstock_connectors.tfrecord.checksums import load_masked_crc32c
from penstock_connectors.tfrecord.records import DamagedRecord, encode_records, read_records

# TensorFlow has written the records foo and bar.
FOO_BAR = base64.b64decode(b"AwAAAAAAAACwmUkOZm9vYYq+/gMAAAAAAAAAsJlJDmJhckYA5cg=")

RECORDS = [b"one", b"", b"\x00" * 9, b"four"]
STARTS = [0, 19, 35, 60]
"""The positions of these records."""
SIZE = 80


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, with the format's mask."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32)


def read(data: bytes) -> list[bytes]:
    return list(read_records(io.BytesIO(data), crc32c))


def damage_of(data: bytes) -> tuple[str, int]:
    """The reason why a file is wrong, and the position of the damaged record."""
    with pytest.raises(DamagedRecord) as caught:
        read(data)
    return caught.value.what, caught.value.offset


def start_before(place: int) -> int:
    return max(start for start in STARTS if start <= place)


def test_the_package_gives_the_checksum_of_the_format() -> None:
    pytest.importorskip("google_crc32c", reason="needs the package google-crc32c")
    checksum = load_masked_crc32c("")
    for data in (b"", b"foo", bytes(32), b"\xff" * 32, b"\x03" + bytes(7), bytes(range(256)) * 9):
        assert checksum(data) == crc32c(data)
    # The numbers of Beam's own test.
    assert [checksum(bytes(32)), checksum(b"\xff" * 32), checksum(b"foo")] == [
        0xFD7FFFA,
        0xF909B029,
        0xFEBE8A61,
    ]


def test_the_bytes_are_those_of_tensorflow() -> None:
    assert encode_records([b"foo", b"bar"], crc32c) == FOO_BAR
    assert read(FOO_BAR) == [b"foo", b"bar"]


def test_any_records_are_read_as_they_were_written() -> None:
    assert (encode_records([], crc32c), read(b"")) == (b"", [])
    assert read(encode_records(RECORDS, crc32c)) == RECORDS
    assert len(encode_records(RECORDS, crc32c)) == SIZE


@pytest.mark.parametrize("size", [0, 7, 8, 9, 12, 16, 100])
def test_a_record_is_read_in_pieces_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_PIECE_BYTES", 8)
    data = encode_records([bytes(size), b"next"], zlib.crc32)
    assert list(read_records(io.BytesIO(data), zlib.crc32)) == [bytes(size), b"next"]


def test_a_file_that_ends_inside_a_record_is_damaged_where_the_record_begins() -> None:
    data = encode_records(RECORDS, crc32c)
    for end in range(SIZE):
        if end in STARTS:
            assert read(data[:end]) == RECORDS[: STARTS.index(end)]
        else:
            assert damage_of(data[:end]) == ("is truncated", start_before(end)), end


def test_each_byte_that_changes_is_found_in_its_record() -> None:
    data = encode_records(RECORDS, crc32c)
    for place in range(SIZE):
        start = start_before(place)
        part = "a length" if place < start + 12 else "data"
        for mask in (0x01, 0x80, 0xFF):
            changed = bytes([*data[:place], data[place] ^ mask, *data[place + 1 :]])
            assert damage_of(changed) == (f"has {part} that does not match its checksum", start), place


def test_records_before_the_damage_are_given_first() -> None:
    found = read_records(io.BytesIO(encode_records(RECORDS, crc32c)[:-1]), crc32c)
    assert [next(found) for _ in RECORDS[:-1]] == RECORDS[:-1]
    with pytest.raises(DamagedRecord):
        next(found)


class Counting(io.BytesIO):
    """Notes how many bytes are asked for."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked: list[int] = []

    def read(self, size: Any = -1) -> bytes:
        self.asked.append(size)
        return super().read(size)


@pytest.mark.parametrize("length", [1 << 33, 1 << 62, (1 << 64) - 1])
def test_a_length_that_no_file_has_takes_no_memory(length: int) -> None:
    head = length.to_bytes(8, "little")
    # Nothing behind a length is read unless the checksum matches.
    wrong = Counting(head + b"oops" + b"data")
    with pytest.raises(DamagedRecord, match="a length that does not match its checksum"):
        list(read_records(wrong, crc32c))
    assert wrong.asked == [12]
    # Such a reader makes room for all that it is asked for.
    right = io.BufferedReader(Counting(head + crc32c(head).to_bytes(4, "little") + b"data"))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedRecord, match="is truncated"):
            list(read_records(right, crc32c))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
