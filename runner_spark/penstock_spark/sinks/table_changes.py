"""The changes of a micro-batch by key: what a task keeps of them, and how they become columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.checks.similar_names import hint_at_name
from penstock.coders.deterministic import encode_key
from penstock.elements.bounded_window import IntervalWindow
from penstock.error import noun_for, refusal
from penstock.relations.upserts import Upsert
from penstock_spark.columns.records import to_batch, to_plain
from penstock_spark.sinks.table_columns import TableSink

DELETED = "_penstock_deleted"
"""The name of the column that says whether a row goes."""

_CHUNK_ROWS = 10_000


class LatestUpserts:
    """The last upsert of each key of a task."""

    def __init__(self, sink: TableSink, columns: pa.Schema, where: str) -> None:
        self._sink = sink
        self._columns = columns
        self._where = where
        self._last: dict[bytes, Upsert] = {}

    def add(self, values: list[Any]) -> None:
        for value in values:
            if not isinstance(value, Upsert):
                what = f"a key was given, but an element is {noun_for(value)}, not an Upsert"
                raise refusal(
                    TypeError, what, where=self._where, hint="apply Upserts() first, or leave key out"
                )
            self._last[encode_key(value.key)] = value

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them as columns, in the form of `make_upsert_schema`.

        ValueError in the end if keys that differ are one key in the table: it has one row for each.
        """
        upserts = [*self._last.values()]
        keys: list[pa.Table] = []
        for start in range(0, len(upserts), _CHUNK_ROWS):
            batch = self._batch(upserts[start : start + _CHUNK_ROWS])
            keys.append(_keys_of(self._sink, pa.Table.from_batches([batch])))
            yield batch
        if _repeats(keys):
            columns = ", ".join(self._sink.key)
            what = f"two keys that differ, such as 1.5 and 1.50 as Decimals, are the same in the columns {columns}"
            hint = "make them equal before they are grouped: decimals of one scale, and instants of one time zone"
            raise refusal(ValueError, what, where=self._where, hint=hint)

    def _batch(self, upserts: Sequence[Upsert]) -> pa.RecordBatch:
        schema = make_upsert_schema(self._sink, self._columns)
        kept = [self._record(each) for each in upserts if not each.is_deleted]
        gone = [self._key(each) for each in upserts if each.is_deleted]
        # Upserts have to fit the columns of the table, nulls included; of deletions, the key is enough.
        required = pa.schema(
            [field.with_nullable(False) if field.name in self._sink.key else field for field in self._columns]
        )
        parts = [
            pa.Table.from_batches([to_batch(kept, required, self._where)]),
            pa.Table.from_batches([to_batch(gone, pa.schema(list(schema)[:-1]), self._where)]),
        ]
        marked = [
            part.append_column(DELETED, pa.array([is_gone] * part.num_rows, pa.bool_())).cast(schema)
            for part, is_gone in zip(parts, (False, True), strict=True)
        ]
        return pa.concat_tables(marked).combine_chunks().to_batches()[0]

    def _key(self, upsert: Upsert) -> dict[str, Any]:
        parts = list(_parts(upsert.key))
        if len(parts) != len(self._sink.key):
            what = f"the key of an upsert has {len(parts)} parts, but the table's key has {len(self._sink.key)} columns"
            hint = "name a column for each part in key=; a window has two, its start and its end"
            raise refusal(ValueError, what, where=self._where, hint=hint)
        return dict(zip(self._sink.key, parts, strict=True))

    def _record(self, upsert: Upsert) -> dict[str, Any]:
        key = self._key(upsert)
        if self._sink.value is not None:
            return {**key, self._sink.value: to_plain(upsert.value)}
        record = to_plain(upsert.value)
        if not isinstance(record, dict):
            what = f"the value of an upsert is {noun_for(upsert.value)} without named fields"
            raise refusal(
                TypeError, what, where=self._where, hint="pass value='column' for it, or make it a Row"
            )
        unknown = sorted(set(record) - set(self._columns.names))
        if unknown:
            what = f"the table {self._sink.place.shown} has no column {', '.join(unknown)}"
            hint = hint_at_name(
                unknown[0], self._columns.names, "add it to the table, or leave the field out"
            )
            raise refusal(ValueError, what, where=self._where, hint=hint)
        if any(name in record and record[name] != to_plain(part) for name, part in key.items()):
            what = "the value of an upsert has a different key than the upsert"
            raise refusal(ValueError, what, where=self._where, hint="leave the key out of the value")
        return {**record, **key}


def make_upsert_schema(sink: TableSink, columns: pa.Schema) -> pa.Schema:
    """The columns of the table, of which only the key is needed, and whether the row goes."""
    fields = [field.with_nullable(field.name not in sink.key) for field in columns]
    return pa.schema([*fields, pa.field(DELETED, pa.bool_(), False)])


def check_keys(sink: TableSink, tables: Sequence[pa.Table], where: str) -> None:
    """Refuses two changes of one key from different tasks, since their order is unknown."""
    if len(tables) < 2:
        return
    if _repeats([_keys_of(sink, table) for table in tables]):
        what = "two tasks have changes of the same key, so their order is unknown"
        hint = "put Upserts() directly before the write, without a Reshuffle in between"
        raise refusal(ValueError, what, where=where, hint=hint)


def _keys_of(sink: TableSink, table: pa.Table) -> pa.Table:
    return table.select([*sink.key])


def _repeats(parts: Sequence[pa.Table]) -> bool:
    """True if a row is there twice."""
    if not parts:
        return False
    rows = pa.concat_tables(parts)
    return bool(rows.group_by(rows.column_names).aggregate([]).num_rows < rows.num_rows)


def _parts(key: object) -> Iterator[Any]:
    """The parts of a key, in their order; a window has two."""
    if isinstance(key, IntervalWindow):
        yield key.start
        yield key.end
    elif isinstance(key, tuple):
        for part in key:
            yield from _parts(part)
    else:
        yield key
