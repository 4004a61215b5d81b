"""The numbers of the lines that a task reads: Spark emits the lines of a split in order, and no numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from penstock.io.files.compression import CompressionTypes
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import is_on_disk

_BLOCK_BYTES = 4 << 20
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Split:
    """A part of a file, whose first line has a number that is only looked for when it is wanted."""

    def __init__(self, file: str, start: int, delimiter: bytes | None) -> None:
        self.place = file, start
        self._delimiter = delimiter

    @functools.cached_property
    def lines_before(self) -> int | None:
        """The number of lines of the file that belong to earlier splits; None if a task cannot know it."""
        file, start = self.place
        return lines_before(file, start, self._delimiter) if start else 0


Numbers = Callable[[int], int | None]
"""A function from the place of an element to the number of the line at which it begins; None if that is unknown."""


@dataclass(frozen=True)
class Lines:
    """The rows of a batch that are lines of one file, in their order.

    Attributes:
        split: The part of the file.
        before: How many lines of the split came in earlier batches.
    """

    split: Split
    before: int = 0

    def number(self, row: int) -> int | None:
        """Returns the number of the line in a row, which begins with 1; None if a task cannot know it."""
        first = self.split.lines_before
        return None if first is None else first + self.before + row + 1


class LineCounter:
    """Counts the lines of each split that a task reads.

    >>> count = LineCounter()
    >>> [count.rows("file:/a", 0, rows).number(1) for rows in (3, 2)], count.rows("file:/b", 0, 5).number(1)
    ([2, 5], 2)
    """

    def __init__(self, delimiter: bytes | None = None) -> None:
        self._delimiter = delimiter
        self._split: Split | None = None
        self._count = 0

    def rows(self, file: str, start: int, count: int) -> Lines:
        """Returns the next rows of a split."""
        if self._split is None or self._split.place != (file, start):
            self._split, self._count = Split(file, start, self._delimiter), 0
        found = Lines(self._split, self._count)
        self._count += count
        return found


def lines_before(file: str, start: int, delimiter: bytes | None = None) -> int | None:
    """Returns how many lines of a file begin at or before a byte, which is above 0; None if a task cannot know it.

    Where a split begins at the beginning of a line, Spark reads this line with the split before.
    """
    path = re.sub("^file:/+", "/", unquote(file))
    is_plain = CompressionTypes.detect_compression_type(path) == CompressionTypes.UNCOMPRESSED
    if not is_plain or not is_on_disk(path):
        return None
    ends = _line_ends if delimiter is None else functools.partial(_ends_of, delimiter)
    try:
        return 1 + sum(map(ends, _blocks(path, start, delimiter)))
    except OSError:
        return None


def _blocks(path: str, end: int, delimiter: bytes | None) -> Iterator[bytes]:
    """The bytes before a place, cut so that no end of a line is divided."""
    kept, left = b"", end
    with DiskFiles().open(path) as file:
        while left and (block := file.read(min(_BLOCK_BYTES, left))):
            left -= len(block)
            if not left and delimiter is None and block.endswith(b"\r") and file.read(1) == b"\n":
                # The line ends behind the place.
                block = block[:-1]
            block = kept + block
            kept = b""
            cut = len(block)
            if left and delimiter is None and block.endswith(b"\r"):
                cut -= 1
            elif left and delimiter is not None and len(delimiter) > 1:
                cut -= len(block.split(delimiter)[-1])
            yield block[:cut]
            kept = block[cut:]
        yield kept


def _ends_of(delimiter: bytes, block: bytes) -> int:
    return block.count(delimiter)


def _line_ends(block: bytes) -> int:
    return len(_LINE_END.findall(block)) if b"\r" in block else block.count(b"\n")
