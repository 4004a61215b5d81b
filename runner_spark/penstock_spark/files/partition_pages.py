"""Groups the rows of a task by folder, in memory up to a limit and then on the task's disk.

A task may have rows for very many folders, in any order. An open file for each would take its memory and its file
handles, and files that are closed early would be small. So the rows are sorted by folder each time that the limit is
reached, and a folder's file is written when all of its rows are known.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

PAGES_BYTES = 32 << 20
"""The size of the rows that stay in memory."""


class PartitionPages:
    """Groups rows by folder.

    >>> pages = PartitionPages(limit_bytes=1)
    >>> for numbers in ([1, 2, 3], [4, 5]):
    ...     rows = pa.RecordBatch.from_pydict({"n": numbers})
    ...     pages.add(rows, [["odd", "even"][number % 2 == 0] for number in numbers])
    >>> {folder: [rows.to_pydict()["n"] for rows in parts] for folder, parts in pages.by_folder()}
    {'even': [[2], [4]], 'odd': [[1, 3], [5]]}
    """

    def __init__(self, limit_bytes: int = PAGES_BYTES) -> None:
        self._limit = limit_bytes
        self._numbers: dict[str, int] = {}  # The numbers of folders, in the order in which they come.
        self._rows: list[pa.RecordBatch] = []
        self._of_rows: list[pa.Array] = []  # The numbers of the folders of these rows.
        self._bytes = 0
        self._file: _PageFile | None = None

    def add(self, rows: pa.RecordBatch, folders: list[str]) -> None:
        """Adds rows, with the folder of each."""
        numbers = self._numbers
        found = [numbers.setdefault(folder, len(numbers)) for folder in folders]
        self._rows.append(rows)
        self._of_rows.append(pa.array(found, pa.int64()))
        self._bytes += rows.nbytes + 8 * len(found)
        if self._bytes >= self._limit:
            if self._file is None:
                self._file = _PageFile(rows.schema)
            for number, page in self._sorted():
                self._file.add(number, page)

    def by_folder(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Yields each folder with its rows, in the order in which they came; read the rows of one before the next."""
        last: dict[int, pa.RecordBatch] = {}
        if self._file is None:
            last = dict(self._sorted())
        else:
            for number, page in self._sorted():
                self._file.add(number, page)
            self._file.end()
        for folder, number in sorted(self._numbers.items()):
            yield folder, iter([last[number]]) if self._file is None else self._file.pages(number)

    def _sorted(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yields a page for each folder with the rows in memory, and forgets them."""
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows)
        numbers = pa.concat_arrays(self._of_rows)
        self._rows, self._of_rows, self._bytes = [], [], 0
        order = pc.sort_indices(numbers)  # It keeps the order of equal numbers.
        [rows] = table.take(order).combine_chunks().to_batches()
        runs = pc.run_end_encode(numbers.take(order))
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield number, rows.slice(start, end - start)
            start = end


class _PageFile:
    """Pages on the task's disk, which are deleted when the task no longer needs them, or has failed."""

    def __init__(self, schema: pa.Schema) -> None:
        folder = tempfile.mkdtemp(prefix="penstock-")
        self._clean = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = os.path.join(folder, "pages")
        self._writer = pa.ipc.new_file(self._path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        self._places: dict[int, list[int]] = {}
        self._count = 0

    def add(self, number: int, page: pa.RecordBatch) -> None:
        self._writer.write_batch(page)
        self._places.setdefault(number, []).append(self._count)
        self._count += 1

    def end(self) -> None:
        self._writer.close()
        self._reader = pa.ipc.open_file(self._path)

    def pages(self, number: int) -> Iterator[pa.RecordBatch]:
        return map(self._reader.get_batch, self._places[number])
