"""Test helpers: temporary files, hashes, repeatable numbers (Beam's ``apache_beam.testing.test_utils``)."""

from __future__ import annotations

import hashlib
import importlib
import shutil
import struct
import tempfile
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from unittest import mock

from penstock.absent import hint_at_absent_names
from penstock.error import refusal
from penstock.io.filesystems import FileSystems
from penstock.utils import retry

__all__ = ["LCGenerator", "TempDir", "compute_hash", "create_file", "delete_files", "read_files_from_pattern"]

DEFAULT_HASHING_ALG = "sha1"


class TempDir:
    """A folder that exists during a ``with`` block (Beam's name).

    >>> with TempDir() as folder:
    ...     read_files_from_pattern(folder.create_temp_file(".txt", [b"one"]))
    'one'
    """

    def __init__(self) -> None:
        self._path = tempfile.mkdtemp()

    def __enter__(self) -> TempDir:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._path, ignore_errors=True)

    def get_path(self) -> str:
        """Returns the folder's path."""
        return self._path

    def create_temp_file(self, suffix: str = "", lines: Iterable[bytes] | None = None) -> str:
        """Makes a file in the folder with lines, including their ends, and returns its path."""
        with tempfile.NamedTemporaryFile(delete=False, dir=self._path, suffix=suffix) as file:
            file.writelines(lines or ())
        return file.name


def compute_hash(content: Iterable[Any], hashing_alg: str = DEFAULT_HASHING_ALG) -> str:
    """Returns a hash of objects in any order, each as a string or bytes, by a name for `hashlib.new` (Beam's name).

    >>> compute_hash([2, "a"]) == compute_hash(["a", b"2"])
    True
    """
    parts = [each if isinstance(each, bytes) else str(each).encode() for each in content]
    return hashlib.new(hashing_alg, b"".join(sorted(parts))).hexdigest()


def delete_files(file_paths: list[str]) -> None:
    """Deletes files, folders and everything that matches patterns (Beam's name)."""
    if not file_paths:
        what = f"Clean up failed. Invalid file path: {file_paths}"
        raise refusal(RuntimeError, what, hint="pass paths of files")
    FileSystems.delete(file_paths)


def create_file(path: str, contents: str) -> str:
    """Writes a string to a new file and returns the path (Beam's name)."""
    with FileSystems.create(path) as file:
        file.write(contents.encode())
    return path


def patch_retry(testcase: Any, module: Any) -> None:
    """Lets the retries of a module neither wait nor log until a `unittest.TestCase` ends (Beam's name).

    The module decorates functions with `penstock.utils.retry`; it is loaded again, now and at the end.
    """
    original = retry.with_exponential_backoff

    def without_waiting(**kwargs: Any) -> Any:
        return original(**{**kwargs, "logger": lambda *_: None, "clock": _NoClock()})

    patch = mock.patch.object(retry, "with_exponential_backoff", without_waiting)
    patch.start()
    # Cleanups run in the opposite order.
    testcase.addCleanup(importlib.reload, module)
    testcase.addCleanup(patch.stop)
    importlib.reload(module)


class _NoClock:
    def sleep(self, value: float) -> None:
        """Returns at once."""


def read_files_from_pattern(file_pattern: str) -> str:
    """Returns the text of all files that match a pattern, each without white space around it (Beam's name)."""
    contents = []
    for metadata in FileSystems.match([file_pattern])[0].metadata_list:
        with FileSystems.open(metadata.path) as file:
            contents.append(file.read().decode().strip())
    return "\n".join(contents)


class LCGenerator:
    """A linear congruential generator, by default with Java's numbers (Beam's name).

    Args:
        a: The factor.
        c: The summand.
        bits: The size of the state; the numbers are its upper 32 bits.

    >>> numbers = LCGenerator()
    >>> numbers.seed_jdk(7)
    >>> numbers.next_int()
    -1156638823
    """

    def __init__(self, a: int = 0x5DEECE66D, c: int = 0xB, bits: int = 48) -> None:
        self._a = a
        self._c = c
        self._bits = bits
        self._mask = (1 << bits) - 1
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Sets the state to the one after `seed`."""
        self._seed = (seed * self._a + self._c) & self._mask

    def seed_jdk(self, seed: int) -> None:
        """Sets the state as ``java.util.Random.setSeed`` does."""
        self._seed = (seed ^ self._a) & self._mask

    def next_int(self) -> int:
        """Returns the next number, -2**31 or more."""
        number = self.next_uint()
        return number - (1 << 32) if number >> 31 else number

    def next_uint(self) -> int:
        """Returns the next number, 0 or more."""
        self.seed(self._seed)
        return (self._seed >> (self._bits - 32)) & 0xFFFFFFFF

    def randbytes(self, length: int) -> bytes:
        """Returns random bytes."""
        count = (length + 3) // 4
        return struct.pack(f"<{count}I", *(self.next_uint() for _ in range(count)))[:length]

    def random_sample(self) -> float:
        """Returns the next number from 0 to 1, of 24 bits."""
        return float(self.next_uint() >> 8) / (1 << 24)


hint_at_absent_names(globals())
