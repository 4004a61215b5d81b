"""The changes of a micro-batch by key: tasks write them to files, and the driver merges them into the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.base.bounded_window import IntervalWindow
from penstock.coders.deterministic import encode_key
from penstock.error import refusal
from penstock.io.delta import DeltaSink
from penstock.transforms.upserts import Upsert
from penstock_spark.arrow.records import plain, to_batch
from penstock_spark.formats.delta.data_files import DataFile, rows_of
from penstock_spark.formats.delta.table import files_of
from penstock_spark.sinks.plan import Encoder

_DELETED = "_penstock_deleted"
_CHUNK_ROWS = 10_000


class ChangeFiles(Encoder):
    """Writes the last upsert of each key of a task to one file, which is no part of the table."""

    def __init__(self, sink: DeltaSink, columns: pa.Schema, where: str) -> None:
        self._sink = sink
        self._columns = columns
        self._where = where
        self._last: dict[bytes, Upsert] = {}

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        for value in values:
            if not isinstance(value, Upsert):
                what = f"a key was given, but an element is a {type(value).__name__}, not an Upsert"
                raise refusal(
                    TypeError, what, where=self._where, hint="put Upserts() before, or leave key out"
                )
            self._last[encode_key(value.key)] = value
        return rows_of(())

    def finish(self) -> pa.RecordBatch | None:
        if not self._last:
            return rows_of(())
        upserts = [*self._last.values()]
        file = DataFile(
            files_of(self._sink.place, self._where), change_schema(self._sink, self._columns), "changes"
        )
        for start in range(0, len(upserts), _CHUNK_ROWS):
            file.write(self._batch(upserts[start : start + _CHUNK_ROWS]))
        return rows_of([file.close()])

    def _batch(self, upserts: Sequence[Upsert]) -> pa.RecordBatch:
        schema = change_schema(self._sink, self._columns)
        kept = [self._record(each) for each in upserts if not each.is_deleted]
        gone = [self._key(each) for each in upserts if each.is_deleted]
        # What stays has to fit the columns of the table, nulls included; of what goes, the key is enough.
        required = pa.schema(
            [field.with_nullable(False) if field.name in self._sink.key else field for field in self._columns]
        )
        parts = [
            pa.Table.from_batches([to_batch(kept, required, self._where)]),
            pa.Table.from_batches([to_batch(gone, pa.schema(list(schema)[:-1]), self._where)]),
        ]
        marked = [
            part.append_column(_DELETED, pa.array([is_gone] * part.num_rows, pa.bool_())).cast(schema)
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
            return {**key, self._sink.value: plain(upsert.value)}
        record = plain(upsert.value)
        if not isinstance(record, dict):
            what = f"the value of an upsert is a {type(upsert.value).__name__} without named fields"
            raise refusal(
                TypeError, what, where=self._where, hint="pass value='column' for it, or make it a Row"
            )
        unknown = sorted(set(record) - set(self._columns.names))
        if unknown:
            what = f"the table {self._sink.place.shown} has no column {', '.join(unknown)}"
            raise refusal(
                ValueError, what, where=self._where, hint="add it to the table, or leave the field out"
            )
        if any(name in record and record[name] != plain(part) for name, part in key.items()):
            what = "the value of an upsert has another key than the upsert"
            raise refusal(ValueError, what, where=self._where, hint="leave the key out of the value")
        return {**record, **key}


def change_schema(sink: DeltaSink, columns: pa.Schema) -> pa.Schema:
    """The columns of the table, of which only the key is needed, and whether the row goes."""
    fields = [field.with_nullable(field.name not in sink.key) for field in columns]
    return pa.schema([*fields, pa.field(_DELETED, pa.bool_(), False)])


def check_keys(sink: DeltaSink, paths: Sequence[str], where: str) -> None:
    """Refuses two changes of one key from different tasks, since nobody knows which is the later one."""
    if len(paths) < 2:
        return
    keys = pa.concat_tables([pq.ParquetFile(path).read(columns=[*sink.key]) for path in paths])
    if keys.group_by([*sink.key]).aggregate([]).num_rows < keys.num_rows:
        what = "two tasks have changes of one key, so that their order is unknown"
        hint = "put Upserts() directly before the write, without a Reshuffle in between"
        raise refusal(ValueError, what, where=where, hint=hint)


def merge_changes(
    table: Any, sink: DeltaSink, schema: pa.Schema, paths: Sequence[str], properties: Any
) -> None:
    """Merges the changes in one commit, batch by batch.

    The files are on a local disk: while Delta reads them, it could not reach its store for us.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches():
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    names = [name for name in schema.names if name != _DELETED]
    written = names if sink.value is None else [*sink.key, sink.value]
    updates = {f'"{_quoted(name)}"': f'changes."{_quoted(name)}"' for name in names}
    new = {f'"{_quoted(name)}"': f'changes."{_quoted(name)}"' for name in written}
    same = " AND ".join(f'kept."{_quoted(name)}" = changes."{_quoted(name)}"' for name in sink.key)
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    (
        table.merge(reader, same, "changes", "kept", commit_properties=properties)
        .when_matched_delete(f'changes."{_DELETED}"')
        .when_matched_update(updates if sink.value is None else new, f'NOT changes."{_DELETED}"')
        .when_not_matched_insert(new, f'NOT changes."{_DELETED}"')
        .execute()
    )


def _parts(key: Any) -> Iterator[Any]:
    """The parts of a key, in their order; a window has two."""
    if isinstance(key, IntervalWindow):
        yield key.start
        yield key.end
    elif isinstance(key, tuple):
        for part in key:
            yield from _parts(part)
    else:
        yield key


def _quoted(name: str) -> str:
    return name.replace('"', '""')
