"""Finding the header lines of files among the rows that Spark reads of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F


def make_head_column() -> Column:
    """Returns a number for the file, in rows of its first split; null in all others."""
    return F.when(F.col("_metadata.file_block_start") == 0, F.xxhash64("_metadata.file_path"))


class Headers:
    """Finds the header lines of files among the rows of a task.

    They are the first rows with a file's number. Spark emits the rows of a split in order and one split after
    the other, and only a file's first split carries a number, so a change of the number starts a file. (A
    header must fit into the first split: ``spark.sql.files.maxPartitionBytes``, 128 MB unless set.)

    >>> headers = Headers(1)
    >>> headers.rest(pa.array([7, 7, 8])).to_pylist(), headers.rest(pa.array([8, None])) is None
    ([False, True, False], True)
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._file: int | None = None
        self._left = 0

    def rest(self, heads: pa.Array) -> pa.Array | None:
        """Returns which rows, with these numbers, are not header lines; None if no row is a header line."""
        if heads.null_count == len(heads) or (
            not self._left and pc.all(pc.equal(heads, self._file or 0)).as_py()
        ):
            return None
        return pa.array([self._is_rest(head) for head in heads.to_pylist()], pa.bool_())

    def _is_rest(self, head: int | None) -> bool:
        if head is None:
            return True
        if head != self._file:
            self._file, self._left = head, self._count
        if self._left:
            self._left -= 1
            return False
        return True
