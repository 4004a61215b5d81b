"""The places of a stream's rows in its source: runs of rows with one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock_spark.sources.stream_files import Naming
from penstock_spark.worker.messages import Place


@dataclass(frozen=True)
class Placing:
    """The names of the columns that hold the places of a stream's rows.

    These are the file, an offset in it, and perhaps when it has changed, if there is a `naming`; otherwise the parts of
    a queue's partition, and an offset in it, or nothing.
    """

    columns: tuple[str, ...] = ()
    naming: Naming | None = None

    def places(self, columns: Sequence[pa.Array], batch: pa.RecordBatch) -> Iterator[tuple[Place, int, int]]:
        """Yields the places of rows from their columns, as (place, first row, last row + 1); some rows have none."""
        if not columns:
            yield (), 0, batch.num_rows
        elif self.naming is None:
            *partition, offsets = columns
            for known, start, end in find_runs(partition):
                yield (*known, offsets[start].as_py()), start, end
        else:
            for (name, offset, *changed), start, end in find_runs(columns):
                file = self.naming.name(name)
                if file is not None:
                    yield (*changed, file, offset), start, end


def find_runs(columns: Sequence[pa.Array]) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yields the runs of rows with equal values in all of these columns, as (values, first row, last row + 1).

    >>> list(find_runs([pa.array(["a", "a", "a", "b"]), pa.array([1, 2, 2, 2])]))
    [(('a', 1), 0, 1), (('a', 2), 1, 3), (('b', 2), 3, 4)]
    """
    ends = {end for column in columns for end in pc.run_end_encode(column).run_ends.to_pylist()}
    start = 0
    for end in sorted(ends):
        yield tuple(column[start].as_py() for column in columns), start, end
        start = end
