"""The first megabytes of files, for what has to be known of them before Spark reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.io.filesystems import FileSystems

SAMPLE_BYTES = 4 << 20
"""So much is read of all files together; it takes a few tenths of a second to look at."""

_FILES_MAX = 16


@dataclass(frozen=True)
class Beginning:
    """The beginning of a file.

    Attributes:
        content: Its first bytes.
        is_all: Whether there are no more.
    """

    content: bytes
    is_all: bool


def beginnings(paths: Sequence[str]) -> Iterator[Beginning]:
    """The beginnings of the first files.

    Args:
        paths: The files; compressed ones are read as what is in them.
    """
    looked_at = paths[:_FILES_MAX]
    for path in looked_at:
        size = SAMPLE_BYTES // len(looked_at)
        with FileSystems.open(path) as file:
            content = file.read(size + 1)
        yield Beginning(content[:size], len(content) <= size)


def all_content(paths: Sequence[str]) -> list[bytes] | None:
    """The content of all files; None if it is more than `SAMPLE_BYTES`."""
    contents: list[bytes] = []
    left = SAMPLE_BYTES
    for path in paths:
        with FileSystems.open(path) as file:
            contents.append(file.read(left + 1))
        left -= len(contents[-1])
        if left < 0:
            return None
    return contents
