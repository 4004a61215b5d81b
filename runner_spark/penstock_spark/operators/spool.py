"""Chunks of pickled values that can be read more than once in bounded memory."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Any

from penstock_spark.operators.batch import loads
from penstock_spark.operators.keys import restore

MEMORY_LIMIT_BYTES = 8 << 20
_LENGTH_BYTES = 8


class Spool:
    """Appends chunks and reads them back from the first one on; beyond a limit they are kept in a temporary file.

    >>> spool = Spool()
    >>> spool.append(b"one"); spool.append(b"two")
    >>> list(spool)
    [b'one', b'two']
    """

    def __init__(self, limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=limit_bytes)  # noqa: SIM115
        self._end = 0
        self.count = 0

    def append(self, chunk: bytes) -> None:
        """Adds a chunk at the end."""
        self._file.seek(self._end)
        self._file.write(len(chunk).to_bytes(_LENGTH_BYTES, "little"))
        self._file.write(chunk)
        self._end = self._file.tell()
        self.count += 1

    def read(self, position: int) -> tuple[bytes, int] | None:
        """The chunk at a position and the position of the next; None at the end."""
        if position >= self._end:
            return None
        self._file.seek(position)
        length = int.from_bytes(self._file.read(_LENGTH_BYTES), "little")
        return self._file.read(length), position + _LENGTH_BYTES + length

    def __iter__(self) -> Iterator[bytes]:
        position = 0
        while (found := self.read(position)) is not None:
            chunk, position = found
            yield chunk


class GroupedValues:
    """The values of one key and window, read as they are needed; may be iterated any number of times.

    Only the values of one chunk are in memory at a time. What has been read from the shuffle is kept as bytes in a
    `Spool`, so that a second iteration starts at the beginning. It pickles as a list.
    """

    def __init__(self, key: bytes, head: list[bytes], rest: Iterator[bytes]) -> None:
        self._key = key
        self._spool = Spool()
        for chunk in head:
            self._spool.append(chunk)
        self._rest = rest

    def _chunks(self) -> Iterator[bytes]:
        position = 0
        while True:
            found = self._spool.read(position)
            if found is None:
                if not self._pull():
                    return
                continue
            chunk, position = found
            yield chunk

    def _pull(self) -> bool:
        """Moves one chunk from the shuffle to the spool; False if there is none left."""
        for chunk in self._rest:
            self._spool.append(chunk)
            return True
        return False

    def drain(self) -> None:
        """Keeps the rest of the group, so that the reader can go on to the next one."""
        while self._pull():
            pass

    def __iter__(self) -> Iterator[Any]:
        for chunk in self._chunks():
            yield from restore(self._key, loads(chunk))[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def __repr__(self) -> str:
        return "GroupedValues(...)"


class Lent:
    """A `GroupedValues` lent to the steps below; on return it is drained if somebody kept it."""

    def __init__(self, values: GroupedValues) -> None:
        self._reference = weakref.ref(values)

    def settle(self) -> None:
        """Called when the steps are done with the group and this module's caller holds it no more."""
        kept = self._reference()
        if kept is not None:
            kept.drain()
