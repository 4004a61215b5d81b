"""The reduce side of groupings: sorted exchange rows, one key and window at a time.

Several groupings share one exchange; each row says by its tag which one it belongs to. A group that fits into a small
buffer becomes a list; a larger one is a `GroupedValues`, pushed alone and read as the step below reads it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from penstock.metrics.execution import MetricsContainer, set_current
from penstock.transforms.window import BoundedWindow
from penstock_spark.folding.merging import merge_groups
from penstock_spark.folding.tables import batch_fold
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.worker.batch import ONLY_PANE, Batch, Windows, loads
from penstock_spark.worker.keys import merges_in_one_pass, restore, timestamp_of, window_decoder
from penstock_spark.worker.program import GroupRoot
from penstock_spark.worker.pushing import Combining, Consumer, Records
from penstock_spark.worker.rows import GROUP_COLUMNS
from penstock_spark.worker.spool import GroupedValues, drain_if_kept

if TYPE_CHECKING:
    import pyarrow as pa

BUFFER_BYTES = 4 << 20
_MOST_GROUPS = 1_000
_MERGED_AT_ONCE = 500

Chunk = tuple[int, bytes]
"""Rank and pickled content of a row."""


def exchange_groups(records: Iterable[Any]) -> Iterator[tuple[tuple[Any, ...], Iterator[Chunk]]]:
    """Yields the groups of sorted exchange rows: the values of `GROUP_COLUMNS`, and the chunks, to be read before
    the next group.
    """
    rows = chain.from_iterable(_rows(record) for record in records)
    for ident, group in groupby(rows, key=itemgetter(0)):
        yield ident, map(itemgetter(1), group)


def _rows(record: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], Chunk]]:
    ident = zip(*(record.column(name).to_pylist() for name in GROUP_COLUMNS), strict=True)
    values = record.column("value").to_pylist()
    if record.column("value").null_count:
        # A row without a value is a number, see `penstock_spark.folding.numbers`.
        numbers = record.column("sequence").to_pylist()
        values = [number if value is None else value for value, number in zip(values, numbers, strict=True)]
    chunks = zip(record.column("rank").to_pylist(), values, strict=True)
    return zip(ident, chunks, strict=True)


class GroupReader(Combining):
    """Turns the groups of one grouping into batches of (key, values) or (key, result)."""

    def __init__(self, root: GroupRoot, out: Consumer, metrics: MetricsContainer) -> None:
        self.root = root
        self.combine = root.combine
        self._fold = batch_fold(root.combine, root.host.loop)
        self.out = out
        self.metrics = metrics
        self._guard = partial(call_guarded, metrics, root.where)
        self._merges = root.windowing.windowfn.is_merging()
        self._window = window_decoder(root.windowing)
        self._timestamp = timestamp_of(root.windowing)
        self._clear()

    def _clear(self) -> None:
        self._values: list[Any] = []
        self._timestamps: list[int] = []
        self._windows: list[Windows] = []
        self._bytes = 0

    def read_key(self, key: bytes, windows: Iterator[tuple[tuple[Any, ...], Iterator[Chunk]]]) -> Records:
        """Reads all windows of one key, and merges them if the WindowFn does."""
        decoded = ((self._window(*ident[2:]), chunks) for ident, chunks in windows)
        if self._merges:
            yield from self._read_merged(key, decoded)
        else:
            for window, chunks in decoded:
                yield from self.emit(key, window, chunks)

    def _read_merged(self, key: bytes, windows: Iterator[tuple[Any, Iterator[Chunk]]]) -> Records:
        windowfn = self.root.windowing.windowfn
        groups = merge_groups(windowfn, windows, merges_in_one_pass(windowfn))
        while True:
            set_current(self.metrics)
            try:
                window, chunks = next(groups)
            except StopIteration:
                return
            except Exception as error:
                fail_step(error, self.root.where)
            yield from self.emit(key, window, chunks)

    def emit(self, key: bytes, window: BoundedWindow, chunks: Iterator[Chunk]) -> Records:
        rank, head = next(chunks)
        timestamp = self._timestamp(rank, window)
        if self.combine is not None:
            element, size = self._guard(self._combined, key, head, chunks), len(head)
        else:
            heads, size, complete = _buffer(head, chunks)
            if not complete:
                yield from self._push_large(key, window, timestamp, heads, chunks)
                return
            element = self._small(key, heads)
        self._values.append(element)
        self._timestamps.append(timestamp)
        self._windows.append((window,))
        self._bytes += size
        if len(self._values) >= _MOST_GROUPS or self._bytes >= BUFFER_BYTES:
            yield from self.flush()

    def _small(self, key: bytes, heads: list[bytes]) -> tuple[Any, list[Any]]:
        restored, values = restore(key, loads(heads[0]))
        for chunk in heads[1:]:
            values.extend(restore(key, loads(chunk))[1])
        return restored, values

    def _push_large(
        self, key: bytes, window: BoundedWindow, timestamp: int, heads: list[bytes], chunks: Iterator[Chunk]
    ) -> Records:
        yield from self.flush()
        restored, _ = restore(key, loads(heads[0]))
        values = GroupedValues(key, heads, (chunk for _, chunk in chunks))
        lent = weakref.ref(values)
        batch = Batch([(restored, values)], timestamp, (window,), ONLY_PANE)
        del values
        yield from self.out.push(batch)
        del batch
        drain_if_kept(lent)

    def _combined(self, key: bytes, head: bytes, chunks: Iterator[Chunk]) -> tuple[Any, Any]:
        fold = self._fold
        restored, held = restore(key, loads(head))
        waiting = [held]
        for _, chunk in chunks:
            waiting.append(restore(key, loads(chunk))[1])
            if len(waiting) >= _MERGED_AT_ONCE:
                waiting = [fold.merged(waiting)]
        return restored, fold.finish(fold.merged(waiting))

    def flush(self) -> Records:
        if not self._values:
            return
        batch = Batch(self._values, self._timestamps, self._windows, ONLY_PANE)
        self._clear()
        yield from self.out.push(batch.collapse())


def _buffer(head: bytes, chunks: Iterator[Chunk]) -> tuple[list[bytes], int, bool]:
    """Returns the first chunks of a group, up to the size of the buffer; their size; whether they are all chunks."""
    heads, size = [head], len(head)
    while size < BUFFER_BYTES:
        for _, chunk in chunks:
            heads.append(chunk)
            size += len(chunk)
            break
        else:
            return heads, size, True
    return heads, size, False


def read_groups(records: Iterable[Any], readers: Mapping[int, Any]) -> Records:
    groups = exchange_groups(records)
    for (key, tag), rows in groupby(groups, key=lambda group: group[0][:2]):
        yield from readers[tag].read_key(key, rows)
    for reader in readers.values():
        yield from reader.flush()
