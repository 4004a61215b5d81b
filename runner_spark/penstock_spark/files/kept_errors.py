"""Files for libraries in C++ that lose errors of files, or end the process: Python raises the errors they keep."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO


class FileToRead(io.RawIOBase):
    """An open file; if the library fails, `error` is the file's own error."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except Exception as error:
            self.error = error
            raise


class FileToWrite(io.RawIOBase):
    """A new file, whose writes never fail; call `check` after each call of the library.

    >>> closed = io.BytesIO()
    >>> closed.close()
    >>> file = FileToWrite(closed)
    >>> file.write(b"lost")
    4
    >>> file.check()
    Traceback (most recent call last):
        ...
    ValueError: I/O operation on closed file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = 0
        self._error: Exception | None = None

    def check(self) -> None:
        """Raises the first error."""
        if self._error is not None:
            raise self._error

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self._place += count
        self._try(lambda: self._file.write(data))
        return count

    def flush(self) -> None:
        if not self.closed:
            self._try(self._file.flush)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._try(self._file.close)

    def _try(self, call: Callable[[], Any]) -> None:
        if self._error is None:
            try:
                call()
            except Exception as error:
                self._error = error
