"""Sums and counts that Python merges: integers travel in a column, without being pickled.

A row of such a number has it in `sequence`, and no `value`. What is not an integer of 64 bits, or has a key that
only a pickle can hold, travels in `value`, as for any other combiner; a group may have rows of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from penstock.coders.deterministic import decode_key
from penstock.metrics.execution import MetricsContainer
from penstock.windows.window_fn import GrowingSession
from penstock_spark.folding.tables import batch_fold
from penstock_spark.reports.failure import call_guarded
from penstock_spark.worker.batch import ONLY_PANE, Batch, loads
from penstock_spark.worker.keys import SELF_CONTAINED_TYPES, WindowColumns, placer_of, restore, window_decoder
from penstock_spark.worker.program import GroupRoot
from penstock_spark.worker.pushing import Combining, Consumer, Records

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_GROUPS = 4096
_TEXTS = {ord("s")}
_LIMIT = 1 << 63

Row = tuple[bytes, int, int, int, bytes | None, int, bytes | None]
"""Key, tag, first and second bound of the window, the encoded window, the number, and the pickled accumulator."""

_COLUMNS = ("key", "tag", "first", "second", "window", "sequence", "value")


def are_numbers(numbers: list[Any], keys: Iterable[Any]) -> bool:
    """True if all sums fit into a column, and each of these keys can be restored from its encoding alone.

    >>> are_numbers([1, 2], ["a", ("b", 2)]), are_numbers([1, 2.0], []), are_numbers([1 << 63], [])
    (True, False, False)
    """
    if set(map(type, numbers)) != {int} or not -_LIMIT <= min(numbers) <= max(numbers) < _LIMIT:
        return False
    kinds = {kind for key in keys for kind in (map(type, key) if type(key) is tuple else (type(key),))}
    return kinds <= SELF_CONTAINED_TYPES


class NumberReader(Combining):
    """Turns sorted rows of numbers into batches of (key, sum)."""

    def __init__(self, root: GroupRoot, out: Consumer, metrics: MetricsContainer) -> None:
        self.root = root
        self.combine = root.combine
        self.out = out
        self._fold = batch_fold(root.combine, root.host.loop)
        self._guard = partial(call_guarded, metrics, root.where)
        self._window = window_decoder(root.windowing)
        self._place = placer_of(root.windowing)
        self._merges = root.windowing.windowfn.is_merging()
        self._clear()

    def _clear(self) -> None:
        self._keys: list[bytes] = []
        self._bounds: list[WindowColumns] = []
        self._sums: list[Any] = []
        self._restored: dict[int, Any] = {}

    def read_key(
        self, key: bytes, windows: Iterable[tuple[tuple[Any, ...], Iterator[tuple[int, Any]]]]
    ) -> Records:
        """Reads all windows of one key, from an exchange that also has rows of other kinds."""
        return self.read(
            (*ident, 0, chunk) if isinstance(chunk, bytes) else (*ident, chunk, None)
            for ident, chunks in windows
            for _, chunk in chunks
        )

    def read(self, rows: Iterable[Row]) -> Records:
        add = self._add_to_session if self._merges else self._add_to_window
        return add(iter(rows))

    def _add_to_window(self, rows: Iterator[Row]) -> Records:
        key: bytes | None = None
        first = second = total = 0
        window: bytes | None = None
        pickled: list[bytes] = []
        for own, _, start, end, encoded, number, value in rows:
            if start != first or end != second or own != key or encoded != window:
                if key is not None:
                    self._hold(key, (first, second, window), total, pickled)
                    if len(self._sums) >= _MOST_GROUPS:
                        yield from self.flush()
                key, first, second, window, total, pickled = own, start, end, encoded, 0, []
            if value is None:
                total += number
            else:
                pickled.append(value)
        if key is not None:
            self._hold(key, (first, second, window), total, pickled)

    def _add_to_session(self, rows: Iterator[Row]) -> Records:
        """Adds up the rows of each key whose windows overlap; they come sorted by their starts."""
        key: bytes | None = None
        total = 0
        pickled: list[bytes] = []
        session = GrowingSession(self.root.windowing.windowfn.merge_touching)
        for own, _, start, end, encoded, number, value in rows:
            if encoded is not None:
                bounds = self._window(start, end, encoded)
                start, end = bounds.start_micros, bounds.end_micros
            if own != key or not session.takes(start, end):
                if key is not None:
                    self._hold(key, (*session.bounds, None), total, pickled)
                    if len(self._sums) >= _MOST_GROUPS:
                        yield from self.flush()
                key, total, pickled = own, 0, []
                session.begin(start, end)
            if value is None:
                total += number
            else:
                pickled.append(value)
        if key is not None:
            self._hold(key, (*session.bounds, None), total, pickled)

    def _hold(self, key: bytes, bounds: WindowColumns, total: int, pickled: list[bytes]) -> None:
        self._keys.append(key)
        self._bounds.append(bounds)
        if pickled:
            self._restored[len(self._sums)], total = self._guard(self._merged, key, total, pickled)
        self._sums.append(total)

    def _merged(self, key: bytes, total: int, pickled: list[bytes]) -> tuple[Any, Any]:
        """The key and the sum of a group in which some rows hold no integer of 64 bits."""
        restored = [restore(key, loads(one)) for one in pickled]
        helds = [held for _, held in restored]
        if total:
            helds.append(total)
        return restored[0][0], self._fold.finish(self._fold.merged(helds))

    def flush(self) -> Records:
        if not self._sums:
            return
        keys = self._decoded()
        placed = list(map(self._place, self._bounds))
        windows: Any = [windows for windows, _ in placed]
        timestamps: Any = [timestamp for _, timestamp in placed]
        batch = Batch(list(zip(keys, self._sums, strict=True)), timestamps, windows, ONLY_PANE)
        self._clear()
        yield from self.out.push(batch.collapse())

    def _decoded(self) -> list[Any]:
        keys, restored = self._keys, self._restored
        if restored:
            return [
                restored[place] if place in restored else decode_key(key) for place, key in enumerate(keys)
            ]
        if set(map(itemgetter(0), keys)) == _TEXTS:
            try:
                return [key[1:].decode() for key in keys]
            except UnicodeDecodeError:
                pass
        return list(map(decode_key, keys))


def read_numbers(records: Iterable[Any], readers: Mapping[int, NumberReader]) -> Records:
    rows = chain.from_iterable(map(_rows, records))
    if len(readers) == 1:
        [reader] = readers.values()
        yield from reader.read(rows)
    else:
        for tag, some in groupby(rows, key=itemgetter(1)):
            yield from readers[tag].read(some)
    for reader in readers.values():
        yield from reader.flush()


def _rows(record: pa.RecordBatch) -> Iterator[Row]:
    count = record.num_rows
    columns = map(record.column, _COLUMNS)
    return zip(
        *(repeat(None, count) if column.null_count == count else column.to_pylist() for column in columns),
        strict=True,
    )
