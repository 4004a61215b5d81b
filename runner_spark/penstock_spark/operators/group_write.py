"""The map side of a grouping: values, or accumulators, by key and window, chunk by chunk, as exchange rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from penstock.coders.deterministic import encode_keys
from penstock.error import three_parts
from penstock.metrics.execution import MetricsContainer
from penstock_spark.operators.batch import Batch, by_windows
from penstock_spark.operators.failure import guarded, step_failed
from penstock_spark.operators.keys import keys_to_carry, payloads, rank_of, window_encoder
from penstock_spark.operators.numbers import are_columns, travels_in_columns
from penstock_spark.operators.program import GroupWriterSpec
from penstock_spark.operators.pushing import Quiet, Records
from penstock_spark.operators.session_sums import SessionTable, Spans, spans_of
from penstock_spark.operators.tables import Table, accumulators_of, add_by_window, known, table_for
from penstock_spark.operators.totals import split_numbers
from penstock_spark.rows import exchange_records

FLUSH_BYTES = 8 << 20
_FIRST_FLUSH_ELEMENTS = 128
_MOST_VALUES = 100_000
_MOST_COMBINED = 1_000_000
_MOST_NAMES = 200_000
_NEVER_PAIRS = (str, bytes, dict, set, frozenset)


class FlushLimit:
    """How many elements to hold before writing rows: learned from the bytes that the last ones took.

    >>> limit = FlushLimit()
    >>> limit.learn(elements=1000, size_bytes=800_000_000)
    >>> limit.elements
    10
    """

    def __init__(self, most_elements: int = _MOST_VALUES) -> None:
        self.most_elements = most_elements
        self.elements = _FIRST_FLUSH_ELEMENTS

    def learn(self, elements: int, size_bytes: int) -> None:
        """Sets the limit so that the next flush takes about `FLUSH_BYTES`, growing at most fourfold at a time."""
        fitting = FLUSH_BYTES * max(elements, 1) // max(size_bytes, 1)
        self.elements = max(1, min(fitting, self.elements * 4, self.most_elements))


def split_pairs(batch: Batch, where: str) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a batch of pairs; texts, dicts and sets of two are no pairs."""
    kinds = set(map(type, batch.values))
    if kinds != {tuple} and any(issubclass(kind, _NEVER_PAIRS) for kind in kinds):
        step_failed(_not_a_pair(batch.values), where)
    try:
        return [key for key, _ in batch.values], [value for _, value in batch.values]
    except (TypeError, ValueError):
        step_failed(_not_a_pair(batch.values), where)


def _not_a_pair(values: list[Any]) -> TypeError:
    kinds = {type(value).__name__ for value in values if not (isinstance(value, tuple) and len(value) == 2)}
    return TypeError(
        three_parts(
            f"a grouping reads elements that are not (key, value) pairs: {', '.join(sorted(kinds)) or 'unknown'}",
            hint="map the elements to 2-tuples first, for example with beam.WithKeys",
        )
    )


def unexpected_retraction() -> ValueError:
    """The error for a retraction that does not come out of a grouping."""
    return ValueError(
        three_parts(
            "a step before gives elements that take earlier ones back, in panes of its own making",
            hint="only groupings in the mode ACCUMULATING_AND_RETRACTING give retractions",
        )
    )


class GroupWriter:
    """Keeps values, or accumulators, by window and key in tables, and writes what each key has as one row."""

    def __init__(
        self, spec: GroupWriterSpec, partition: int, metrics: MetricsContainer, shortcuts: bool = False
    ) -> None:
        self.spec = spec
        self._guard = partial(guarded, metrics, spec.where)
        self._encode_window = window_encoder(spec.windowing)
        self._rank = rank_of(spec.windowing)
        self._sequence = partition << 40
        self._limit = FlushLimit(_MOST_VALUES if spec.combine is None else _MOST_COMBINED)
        kind = known(spec.combine) if shortcuts and spec.combine is not None else None
        self._in_columns = kind is not None and travels_in_columns(spec.windowing, spec.combine)
        self._counts, self._adds = kind == "count", kind == "sum"
        self.merges_early = self._in_columns and spec.windowing.windowfn.is_merging()
        if kind in ("sum", "count"):
            # A number takes as much space, however many values it stands for: names alone fill the memory.
            self._limit.most_elements = sys.maxsize
        self._make_table: Callable[[], Table] = table_for(spec.combine)
        self._clear()

    def setup(self) -> None:
        """Prepares the CombineFn."""
        if self.spec.combine is not None:
            self._guard(self.spec.combine.setup)

    def teardown(self) -> None:
        """Lets the CombineFn go."""
        if self.spec.combine is not None:
            self._guard(self.spec.combine.teardown)

    def start_bundle(self) -> None:
        """Nothing to do: tables live across bundles."""

    def finish_bundle(self) -> Records:
        """Nothing to do: tables live across bundles."""
        return iter(())

    def finish(self) -> Records:
        """Writes what is left."""
        if self._tables or self._sessions:
            yield self._guard(self._flush)

    def _clear(self) -> None:
        self._tables: dict[tuple[Any, bool], Table] = {}
        self._sessions: dict[bool, SessionTable] = {}
        self._keys: dict[bytes, Any] = {}
        self._ranks: dict[tuple[Any, Any], int] = {}
        self._held = 0

    def push(self, batch: Batch) -> Records:
        """Takes a batch of pairs."""
        keys, values = split_pairs(batch, self.spec.where)
        yield from self.take(keys, values, batch)

    def take(self, keys: list[Any], values: list[Any], batch: Batch) -> Records:
        """Takes keys and values with the timestamps and windows of a batch."""
        if batch.retracts:
            step_failed(unexpected_retraction(), self.spec.where)
        names, plain = self._names(keys)
        spans = spans_of(batch.windows, len(names)) if self.merges_early else None
        if spans is not None:
            self._guard(self._add_to_sessions, plain, names, spans, values)
        elif self._adds and isinstance(batch.windows, list) and set(map(len, batch.windows)) == {1}:
            self._guard(add_by_window, partial(self._sums, plain), batch.windows, names, values)
        else:
            for windows, some_names, some_values in by_windows(batch.windows, names, values):
                for window in windows:
                    self._guard(self._table(window, plain).add, some_names, some_values)
        if self._rank is not None:
            self._guard(self._note_ranks, batch, names)
        yield from self._flush_if_full(len(values))

    def take_sessions(self, batch: Batch, spans: Spans) -> Records:
        """Takes a batch of pairs, each in a session from a start to an end that its windows need not tell."""
        keys, values = split_pairs(batch, self.spec.where)
        if batch.retracts:
            step_failed(unexpected_retraction(), self.spec.where)
        names, plain = self._names(keys)
        self._guard(self._add_to_sessions, plain, names, spans, values)
        yield from self._flush_if_full(len(values))

    def _add_to_sessions(self, plain: bool, names: list[Any], spans: Spans, values: list[Any]) -> None:
        table = self._sessions.get(plain)
        if table is None:
            table = self._sessions[plain] = SessionTable(self.spec.windowing.windowfn)
        table.add(names, *spans, [1] * len(values) if self._counts else values)

    def _sums(self, plain: bool, windows: tuple[Any]) -> dict[Any, Any]:
        sums: dict[Any, Any] = self._table(windows[0], plain).numbers()
        return sums

    def _flush_if_full(self, taken: int) -> Records:
        self._held += taken
        if self._held >= self._limit.elements or self._names_held() >= _MOST_NAMES:
            yield self._guard(self._flush)

    def _names(self, keys: list[Any]) -> tuple[list[Any], bool]:
        """What the tables call the keys: texts are called by themselves, all others by their encoding.

        Python finds 1, 1.0 and True equal, and so a table must not be keyed by them.
        """
        if set(map(type, keys)) == {str}:
            return keys, True
        names = self._guard(encode_keys, keys)
        self._keys.update(keys_to_carry(names, keys))
        return names, False

    def _table(self, window: Any, plain: bool) -> Table:
        table = self._tables.get((window, plain))
        if table is None:
            table = self._tables[window, plain] = self._make_table()
        return table

    def _names_held(self) -> int:
        return sum(map(len, self._tables.values())) + sum(map(len, self._sessions.values()))

    def _note_ranks(self, batch: Batch, names: list[Any]) -> None:
        assert self._rank is not None
        for name, (_, timestamp, windows, _) in zip(names, batch.rows(), strict=True):
            for window in windows:
                rank = self._rank(timestamp, window)
                self._ranks[window, name] = min(rank, self._ranks.get((window, name), rank))

    def _flush(self) -> Any:
        columns: list[list[Any]] = [[], [], [], [], [], [], []]
        write = self._add_numbers if self.spec.as_numbers else self._add_accumulators
        for (window, plain), table in self._tables.items():
            write(columns, window, plain, table)
        for plain, sessions in self._sessions.items():
            self._add_sessions(columns, plain, sessions)
        self._limit.learn(self._held, _size_bytes(columns))
        self._clear()
        return exchange_records(self.spec.port, self.spec.tag, *columns)

    def _add_names(self, columns: list[list[Any]], window: Any, plain: bool, names: list[Any]) -> list[bytes]:
        """Adds the columns that say which key and window a row is of."""
        encoded = encode_keys(names) if plain else names
        columns[0].extend(encoded)
        for column, bound in zip(columns[1:4], self._encode_window(window), strict=True):
            column.extend([bound] * len(names))
        return encoded

    def _add_accumulators(self, columns: list[list[Any]], window: Any, plain: bool, table: Table) -> None:
        if self._in_columns:
            numbers = table.numbers()
            if self._are_columns(plain, numbers.values()):
                self._add_names(columns, window, plain, list(numbers))
                _add_columns(columns, list(numbers.values()))
                return
        accumulators = table.accumulators()
        encoded = self._add_names(columns, window, plain, list(accumulators))
        columns[4].extend([self._ranks.get((window, name), 0) for name in accumulators])
        self._add_payloads(columns, encoded, list(accumulators.values()))

    def _add_sessions(self, columns: list[list[Any]], plain: bool, table: SessionTable) -> None:
        names, starts, ends, totals = map(list, zip(*table.rows(), strict=True))
        encoded = encode_keys(names) if plain else names
        for column, part in zip(columns, (encoded, starts, ends, [None] * len(encoded)), strict=False):
            column.extend(part)
        if self._are_columns(plain, totals):
            _add_columns(columns, totals)
            return
        columns[4].extend([0] * len(encoded))
        self._add_payloads(columns, encoded, accumulators_of(self.spec.combine, totals))

    def _are_columns(self, plain: bool, numbers: Iterable[Any]) -> bool:
        return are_columns(list(numbers), () if plain else self._keys.values())

    def _add_payloads(self, columns: list[list[Any]], encoded: list[bytes], held: list[Any]) -> None:
        columns[5].extend(range(self._sequence, self._sequence + len(encoded)))
        columns[6].extend(payloads(encoded, self._keys, held))
        self._sequence += len(encoded)

    def _add_numbers(self, columns: list[list[Any]], window: Any, plain: bool, table: Table) -> None:
        numbers = table.numbers()
        self._add_names(columns, window, plain, list(numbers))
        highs, lows = split_numbers(list(numbers.values()), self.spec.where)
        columns[4].extend(highs)
        columns[5].extend(lows)
        columns[6].extend([b""] * len(highs))


def _add_columns(columns: list[list[Any]], numbers: list[int]) -> None:
    columns[4].extend([0] * len(numbers))
    columns[5].extend(numbers)
    columns[6].extend([None] * len(numbers))


def _size_bytes(columns: list[list[Any]]) -> int:
    """What rows take; of those that hold a number the key may be the largest part."""
    names, *_, values = columns
    return sum(map(len, names)) + sum(map(len, filter(None, values)))


class PairStep(Quiet):
    """Pairs elements with None for groupings alone, which would take the pairs apart again: no pair is made."""

    def __init__(self, writers: list[GroupWriter]) -> None:
        self.writers = writers

    def push(self, batch: Batch) -> Records:
        """Takes a batch of elements."""
        nothing = [None] * len(batch.values)
        for writer in self.writers:
            yield from writer.take(batch.values, nothing, batch)
