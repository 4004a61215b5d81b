"""The changes of a micro-batch by key: tasks write them to files, and the driver merges them into the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.io.delta import DeltaSink
from penstock_connectors.delta.data_files import DataFile, discard_on_failure, rows_of
from penstock_connectors.delta.table import files_of
from penstock_spark.connecting.tables import DELETED, LatestUpserts, check_keys, make_upsert_schema
from penstock_spark.connecting.writing import Encoder

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable


class ChangeFiles(Encoder):
    """Writes the last upsert of each key of a task to one file, which does not belong to the table."""

    def __init__(self, sink: DeltaSink, columns: pa.Schema, where: str) -> None:
        self._sink = sink
        self._columns = columns
        self._where = where
        self._changes = LatestUpserts(sink, columns, where)

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        self._changes.add(values)
        return rows_of(())

    def finish(self) -> pa.RecordBatch | None:
        batches = self._changes.batches()
        first = next(batches, None)
        if first is None:
            return rows_of(())
        files = files_of(self._sink.place, self._where)
        file = DataFile(files, make_upsert_schema(self._sink, self._columns), "changes")
        with discard_on_failure([file]):
            for batch in chain([first], batches):
                file.write(batch)
            return rows_of([file.close()])


def check_keys_in(sink: DeltaSink, paths: Sequence[str], where: str) -> None:
    """Refuses two changes of one key from different tasks."""
    if len(paths) > 1:
        keys = [pq.ParquetFile(path).read(columns=[*sink.key]) for path in paths]
        check_keys(sink, keys, where)


def merge_changes(
    table: DeltaTable, sink: DeltaSink, schema: pa.Schema, paths: Sequence[str], properties: CommitProperties
) -> None:
    """Merges the changes in one commit, batch by batch.

    The files are on a local disk: while Delta reads them, it could not reach its store for us.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches():
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    names = [name for name in schema.names if name != DELETED]
    written = names if sink.value is None else [*sink.key, sink.value]
    updates = {f'"{_quote(name)}"': f'changes."{_quote(name)}"' for name in names}
    new = {f'"{_quote(name)}"': f'changes."{_quote(name)}"' for name in written}
    same = " AND ".join(f'kept."{_quote(name)}" = changes."{_quote(name)}"' for name in sink.key)
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    (
        table.merge(reader, same, "changes", "kept", commit_properties=properties)
        .when_matched_delete(f'changes."{DELETED}"')
        .when_matched_update(updates if sink.value is None else new, f'NOT changes."{DELETED}"')
        .when_not_matched_insert(new, f'NOT changes."{DELETED}"')
        .execute()
    )


def _quote(name: str) -> str:
    return name.replace('"', '""')
