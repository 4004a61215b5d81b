"""The map side of a grouping: values, or their partial results, by key and window, as exchange rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.coders.deterministic import encode_keys
from penstock.functions.combinefn import DefaultingCombineFn
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.transforms.window import BoundedWindow
from penstock_spark.folding.loops import Partials, kind_of_keys, loop_of
from penstock_spark.folding.numbers import are_numbers
from penstock_spark.folding.sessions import SessionTable, Spans, spans_of
from penstock_spark.folding.tables import LoopTable, Table, batch_fold, table_for
from penstock_spark.folding.totals import split_numbers
from penstock_spark.plan.hosts import BySpark, InPython, Loop, Rows
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.worker.batch import Batch, by_windows
from penstock_spark.worker.fixed_windows import FixedAssigner
from penstock_spark.worker.flush_limit import MOST_COMBINED, MOST_NAMES, FlushLimit
from penstock_spark.worker.keys import find_keys_to_pickle, payloads, rank_of, window_encoder
from penstock_spark.worker.pairs import make_retraction_error, split_pairs
from penstock_spark.worker.program import GroupWriterSpec
from penstock_spark.worker.pushing import Combining, Node, Records
from penstock_spark.worker.rows import exchange_records, first_number

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_VALUES = 100_000
_PLAIN_KEYS = (str, int, type(None))
"""The types of keys that are their own names in tables; other keys are encoded."""
_NUMBERS = frozenset((int, float))
_NUMBER_BYTES = sys.getsizeof(0)


class GroupWriter(Combining, Node):
    """Keeps values, or their partial results, by window and key in tables, and writes one row for each key.

    The tables live across bundles.
    """

    def __init__(self, spec: GroupWriterSpec, stage: int, partition: int, metrics: MetricsContainer) -> None:
        self.spec = spec
        self.combine = spec.combine
        self._metrics = metrics
        self._guard = partial(call_guarded, metrics, spec.where)
        self._encode_window = window_encoder(spec.windowing)
        self._rank = rank_of(spec.windowing)
        self._sequence = first_number(stage, partition)
        self._limit = FlushLimit(_MOST_VALUES if spec.combine is None else MOST_COMBINED)
        # The marker of an input that may be empty is never combined.
        self._has_default = isinstance(spec.combine, DefaultingCombineFn)
        self._loop = spec.host.loop
        self._fold = fold = batch_fold(spec.combine, self._loop)
        self._has_numbers = isinstance(spec.host, InPython) and spec.host.rows is Rows.NUMBERS
        # The expressions of the fold, if a loop contains them.
        self._source = source = None if self._loop is Loop.CALLS else fold.source
        if source is not None:
            # A number takes as much space, however many values it stands for: names alone fill the memory.
            self._limit.most_elements = sys.maxsize
            self._add_by_key = loop_of(source, "key")
            self._add_by_time = loop_of(source, "time")
            self._add_by_window = loop_of(source, "window")
            self._add_lists_by_window = loop_of(source, "window", from_pairs=False)
        self._make_table: Callable[[], Table] = table_for(fold, self._loop)
        self._clear()

    def finish(self) -> Records:
        if self._tables or self._sessions:
            yield self._guard(self._flush)

    def _clear(self) -> None:
        self._tables: dict[tuple[Any, type | None], Table] = {}
        self._sessions: dict[type | None, SessionTable] = {}
        self._names_most = 0
        self._keys: dict[bytes, Any] = {}
        self._ranks: dict[tuple[Any, Any], int] = {}
        self._held = 0

    def push(self, batch: Batch) -> Records:
        if self._has_default and self._is_marker(batch):
            names, kind = self._names([name for name, _ in batch.values])
            self._table(batch.windows[0], kind).open(names)
            return
        windows = batch.windows
        if self._loop is Loop.SESSIONS and (spans := spans_of(windows, len(batch.values))) is not None:
            yield from self.take_sessions(batch, spans)
            return

        def add(kind: type) -> object:
            if isinstance(windows, list):
                return self._add_by_window(partial(self._partials_in, kind), windows, batch.values, kind)
            return self._add_by_key(self._partials_in(kind, windows), batch.values, kind)

        taken = self._leading(batch, add) if self._loop is Loop.PAIRS and batch.has_one_window_each else 0
        yield from self._take_rest(batch, taken)

    def _is_marker(self, batch: Batch) -> bool:
        """True if a batch has the marker of an input that may be empty, which comes alone: steps never join batches."""
        return len(batch.values) == 1 and DefaultingCombineFn.is_marker(batch.values[0][1])

    def take_fixed(self, batch: Batch, windows: FixedAssigner) -> Records:
        """Takes a batch of pairs with a list of timestamps, which determine the windows."""
        times: int | list[int] = batch.timestamps

        def add(kind: type) -> object:
            def held_at(start_micros: int) -> Partials:
                return self._partials_in(kind, windows.windows_at(start_micros))

            spacing = windows.size_micros, windows.offset_micros
            return self._add_by_time(held_at, *spacing, times, batch.values, kind)

        taken = self._leading(batch, add)
        if taken < len(batch.values):
            batch = Batch(batch.values, times, windows(batch), batch.panes)
        yield from self._take_rest(batch, taken)

    def _leading(self, batch: Batch, add: Callable[[type], Any]) -> int:
        """Adds up leading pairs if it can; returns their number.

        `add` adds pairs whose keys have a given type, and returns their number.
        """
        kind = kind_of_keys(batch.values, _PLAIN_KEYS)
        if kind is None:
            return 0
        self._check_inserts(batch)
        set_current(self._metrics)
        try:
            taken: int = add(kind)
            return taken
        except Exception as error:
            # An error of a pair or a key takes precedence over a value that cannot be added.
            self._names(split_pairs(batch, self.spec.where)[0])
            fail_step(error, self.spec.where)

    def _take_rest(self, batch: Batch, taken: int) -> Records:
        if taken:
            yield from self._flush_if_full(taken)
            batch = batch.slice(taken, len(batch.values))
        if batch.values:
            keys, values = split_pairs(batch, self.spec.where)
            yield from self.take(keys, values, batch)

    def _check_inserts(self, batch: Batch) -> None:
        if batch.retracts:
            fail_step(make_retraction_error(), self.spec.where)

    def take(self, keys: list[Any], values: list[Any], batch: Batch) -> Records:
        self._check_inserts(batch)
        names, kind = self._names(keys)
        lengths = set(map(len, batch.windows)) if isinstance(batch.windows, list) else {len(batch.windows)}
        spans = spans_of(batch.windows, len(names)) if self._loop is Loop.SESSIONS else None
        if spans is not None:
            self._guard(self._add_to_sessions, names, kind, spans, values)
        elif self._source is not None and isinstance(batch.windows, list) and lengths == {1}:
            found_of = partial(self._partials_in, kind)
            self._guard(self._add_lists_by_window, found_of, batch.windows, names, values)
        else:
            for windows, some_names, some_values in by_windows(batch.windows, names, values):
                for window in windows:
                    self._guard(self._table(window, kind).add, some_names, some_values)
        if self._rank is not None:
            self._guard(self._note_ranks, batch, names)
        yield from self._flush_if_full(len(values), max(lengths, default=0))

    def take_sessions(self, batch: Batch, spans: Spans) -> Records:
        """Takes a batch of pairs, each in a session from a start to an end, which replaces its windows."""
        taken = self._leading(batch, lambda kind: self._session_table(kind).add(spans, batch.values, kind))
        if taken:
            yield from self._flush_if_full(taken)
            batch = batch.slice(taken, len(batch.values))
            spans = spans[0][taken:], spans[1][taken:]
        if batch.values:
            keys, values = split_pairs(batch, self.spec.where)
            self._check_inserts(batch)
            self._guard(self._add_to_sessions, *self._names(keys), spans, values)
            yield from self._flush_if_full(len(values))

    def _session_table(self, kind: type | None) -> SessionTable:
        table = self._sessions.get(kind)
        if table is None:
            assert self._source is not None
            table = self._sessions[kind] = SessionTable(self._source, self.spec.windowing.windowfn)
        return table

    def _add_to_sessions(self, names: list[Any], kind: type | None, spans: Spans, values: list[Any]) -> None:
        self._session_table(kind).add(spans, list(zip(names, values, strict=True)), kind or bytes)

    def _partials_in(self, kind: type | None, windows: tuple[Any, ...]) -> Partials:
        table = self._table(windows[0], kind)
        assert isinstance(table, LoopTable)
        return table.held

    def _flush_if_full(self, taken: int, windows_each: int = 1) -> Records:
        self._held += taken
        self._names_most += taken * windows_each
        if self._names_most >= MOST_NAMES:
            # This is an upper bound, and counting the names in many windows takes time.
            self._names_most = self._names_held()
        if self._names_most >= MOST_NAMES or (
            self._held >= self._limit.elements and not (self._source is not None and self._stretched())
        ):
            yield self._guard(self._flush)

    def _stretched(self) -> bool:
        """Raises the limit if numbers take little memory; returns whether more elements may be held.

        Sessions never may: there are nearly as many sessions as elements, and measuring them takes time.
        """
        if self._sessions:
            return False
        size_bytes = 0
        for kind, names, numbers in self._all_held():
            if kind is None or not _NUMBERS.issuperset(map(type, numbers)):
                return False
            size_bytes += sum(map(sys.getsizeof, numbers)) - _NUMBER_BYTES * len(numbers)
            size_bytes += sum(map(len, names)) if kind is str else sum(map(sys.getsizeof, names))
        return self._limit.stretch(self._held, size_bytes)

    def _all_held(self) -> Iterator[tuple[type | None, Collection[Any], Collection[Any]]]:
        """Yields the names and the content of each table, with the type of the names."""
        for (_, kind), table in self._tables.items():
            assert isinstance(table, LoopTable)
            yield kind, table.held.keys(), table.held.values()

    def _names(self, keys: list[Any]) -> tuple[list[Any], type | None]:
        """Returns the names of keys in tables, and their type if keys such as strings are their own names.

        All other names are encoded keys: Python finds 1, 1.0 and True equal, so no table has keys of several
        types.
        """
        kinds = set(map(type, keys))
        if len(kinds) == 1:
            [kind] = kinds
            if kind in _PLAIN_KEYS:
                return keys, kind
        names = self._guard(encode_keys, keys)
        self._keys.update(find_keys_to_pickle(names, keys))
        return names, None

    def _table(self, window: object, kind: type | None) -> Table:
        table = self._tables.get((window, kind))
        if table is None:
            table = self._tables[window, kind] = self._make_table()
        return table

    def _names_held(self) -> int:
        return sum(map(len, self._tables.values())) + sum(map(len, self._sessions.values()))

    def _note_ranks(self, batch: Batch, names: list[Any]) -> None:
        assert self._rank is not None
        for name, (_, timestamp, windows, _) in zip(names, batch.rows(), strict=True):
            for window in windows:
                rank = self._rank(timestamp, window)
                self._ranks[window, name] = min(rank, self._ranks.get((window, name), rank))

    def _flush(self) -> pa.RecordBatch:
        columns: list[list[Any]] = [[], [], [], [], [], [], []]
        write = self._add_halves if isinstance(self.spec.host, BySpark) else self._add_table
        for (window, kind), table in self._tables.items():
            write(columns, window, kind, table)
        for kind, sessions in self._sessions.items():
            self._add_sessions(columns, kind, sessions)
        self._limit.learn(self._held, _size_bytes(columns))
        self._clear()
        return exchange_records(self.spec.output, self.spec.tag, *columns)

    def _add_names(
        self, columns: list[list[Any]], window: BoundedWindow, kind: type | None, names: list[Any]
    ) -> list[bytes]:
        encoded = encode_keys(names) if kind else names
        columns[0].extend(encoded)
        for column, bound in zip(columns[1:4], self._encode_window(window), strict=True):
            column.extend([bound] * len(names))
        return encoded

    def _add_table(
        self, columns: list[list[Any]], window: BoundedWindow, kind: type | None, table: Table
    ) -> None:
        partials_by_name = table.partials_by_name()
        encoded = self._add_names(columns, window, kind, list(partials_by_name))
        ranks = [self._ranks.get((window, name), 0) for name in partials_by_name] if self._ranks else None
        self._add_partials(columns, kind, encoded, list(partials_by_name.values()), ranks)

    def _add_sessions(self, columns: list[list[Any]], kind: type | None, table: SessionTable) -> None:
        names, starts, ends, partials = table.columns()
        encoded = encode_keys(names) if kind else names
        for column, part in zip(columns, (encoded, starts, ends, [None] * len(encoded)), strict=False):
            column.extend(part)
        self._add_partials(columns, kind, encoded, partials)

    def _add_partials(
        self,
        columns: list[list[Any]],
        kind: type | None,
        encoded: list[bytes],
        partials: list[Any],
        ranks: list[int] | None = None,
    ) -> None:
        """Adds partial results: as numbers if the reader takes these and all of them are integers."""
        count = len(partials)
        columns[4].extend(ranks or [0] * count)
        if self._has_numbers and are_numbers(partials, () if kind else self._keys.values()):
            columns[5].extend(partials)
            columns[6].extend([None] * count)
            return
        columns[5].extend(range(self._sequence, self._sequence + count))
        columns[6].extend(payloads(encoded, self._keys, list(map(self._fold.compact, partials))))
        self._sequence += count

    def _add_halves(
        self, columns: list[list[Any]], window: BoundedWindow, kind: type | None, table: Table
    ) -> None:
        """Adds integers in two halves, for Spark's own aggregate."""
        partials_by_name = table.partials_by_name()
        self._add_names(columns, window, kind, list(partials_by_name))
        highs, lows = split_numbers(list(partials_by_name.values()), self.spec.where)
        columns[4].extend(highs)
        columns[5].extend(lows)
        columns[6].extend([b""] * len(highs))


def _size_bytes(columns: list[list[Any]]) -> int:
    """Returns the size of rows; for rows with a number, the key may be the largest part."""
    names, *_, values = columns
    return sum(map(len, names)) + sum(map(len, filter(None, values)))
