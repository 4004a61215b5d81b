"""Copies of files on the driver's own disk, for code that must not wait for a network."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyarrow import fs

_CHUNK_BYTES = 4 << 20


@contextmanager
def local_copies(files: fs.FileSystem, paths: Sequence[str]) -> Iterator[list[str]]:
    """Yields the paths of copies, which are deleted at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        copies = []
        for number, path in enumerate(paths):
            copies.append(f"{folder}/{number}")
            with files.open_input_stream(path) as source, open(copies[-1], "wb") as target:
                while data := source.read(_CHUNK_BYTES):
                    target.write(data)
        yield copies
