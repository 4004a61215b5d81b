"""Chunks of pickled values that can be read more than once in bounded memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Any

from penstock_spark.worker.batch import loads
from penstock_spark.worker.keys import restore

MEMORY_LIMIT_BYTES = 8 << 20


class Spool:
    """Appends chunks and reads them back by number; beyond a limit, a temporary file holds them."""

    def __init__(self, limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._chunks) + len(self._places)

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    def append(self, chunk: bytes) -> None:
        if self._held_bytes + len(chunk) <= self._limit_bytes and not self._places:
            self._chunks.append(chunk)
            self._held_bytes += len(chunk)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - It lives as long as the spool.
            weakref.finalize(self, self._file.close)
        place = self._file.seek(0, os.SEEK_END)
        self._file.write(chunk)
        self._places.append((place, len(chunk)))

    def __getitem__(self, number: int) -> bytes:
        if number < len(self._chunks):
            return self._chunks[number]
        place, size = self._places[number - len(self._chunks)]
        assert self._file is not None
        self._file.seek(place)
        return self._file.read(size)


class GroupedValues:
    """The values of one key and window, read on demand; may be iterated any number of times.

    Only the values of one chunk are in memory at a time. A `Spool` keeps the bytes that were read from the
    shuffle, so that a second iteration starts at the beginning. It pickles as a list.
    """

    def __init__(self, key: bytes, head: list[bytes], rest: Iterator[bytes]) -> None:
        self._key = key
        self._spool = Spool()
        for chunk in head:
            self._spool.append(chunk)
        self._rest = rest

    def _chunks(self) -> Iterator[bytes]:
        number = 0
        while number < len(self._spool) or self._pull():
            yield self._spool[number]
            number += 1

    def _pull(self) -> bool:
        """Moves one chunk from the shuffle to the spool; False if there is none left."""
        for chunk in self._rest:
            self._spool.append(chunk)
            return True
        return False

    def drain(self) -> None:
        """Keeps the rest of the group, so that the reader can continue with the next one."""
        while self._pull():
            pass

    def __iter__(self) -> Iterator[Any]:
        for chunk in self._chunks():
            yield from restore(self._key, loads(chunk))[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def __repr__(self) -> str:
        return "GroupedValues(...)"


def drain_if_kept(lent: weakref.ref[GroupedValues]) -> None:
    """Drains a group that was lent to the steps below if one of them still holds it."""
    values = lent()
    if values is not None:
        values.drain()
