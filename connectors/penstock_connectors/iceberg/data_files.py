"""Writes files of the table in tasks, or the changes of keys as bytes; the driver gets a row for each."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.io.iceberg import IcebergSink
from penstock_connectors.iceberg.table import Target, load_module
from penstock_spark.connecting.tables import LatestUpserts, make_upsert_schema
from penstock_spark.connecting.values import to_batch
from penstock_spark.connecting.writing import Encoder

if TYPE_CHECKING:
    from pyiceberg.io import FileIO, OutputFile

ROWS_SCHEMA = "written binary"

_FILE_BYTES = 128 << 20
"""So many bytes in memory become files, which are several times smaller."""


class DataFiles(Encoder):
    """Writes the elements of a task to files of the table, which no snapshot names yet."""

    def __init__(self, target: Target, where: str) -> None:
        self._target = target
        self._where = where
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._written: list[bytes] = []

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        if values:
            batch = to_batch(values, self._target.columns, self._where)
            self._batches.append(batch)
            self._bytes += batch.nbytes
            if self._bytes >= _FILE_BYTES:
                self._flush()
        return rows_of(())

    def finish(self) -> pa.RecordBatch | None:
        self._flush()
        return rows_of(self._written)

    def _flush(self) -> None:
        if self._batches:
            rows = pa.Table.from_batches(self._batches)
            try:
                self._written += map(pickle.dumps, files_of_rows(rows, self._target, self._where))
            except BaseException:
                delete_files([pickle.loads(each).file_path for each in self._written], self._target.io)
                raise
            self._batches, self._bytes = [], 0


class ChangeRows(Encoder):
    """Gives the driver the last upsert of each key of a task."""

    def __init__(self, sink: IcebergSink, columns: pa.Schema, where: str) -> None:
        self._schema = make_upsert_schema(sink, columns)
        self._changes = LatestUpserts(sink, columns, where)

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        self._changes.add(values)
        return rows_of(())

    def finish(self) -> pa.RecordBatch | None:
        batches = [*self._changes.batches()]
        if not batches:
            return rows_of(())
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            stream, self._schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
        ) as out:
            for batch in batches:
                out.write_batch(batch)
        return rows_of([stream.getvalue().to_pybytes()])


def changes_of(written: bytes) -> pa.Table:
    """The changes of a task."""
    return pa.ipc.open_stream(written).read_all()


def files_of_rows(rows: pa.Table, target: Target, where: str) -> list[Any]:
    """Writes rows to files, apart by partitions, and describes the files; if one fails, it deletes all of them."""
    arrow = load_module("io.pyarrow", where)
    noted = _NotedFiles(target.io)
    try:
        return list(arrow._dataframe_to_data_files(target.metadata, rows, noted))
    except BaseException:
        # On a full disk, they would keep the next try from writing.
        noted.is_over = True
        delete_files(noted.paths, target.io)
        raise


def delete_files(paths: Iterable[str], io: FileIO) -> None:
    """Deletes files that the table does not name, if that is possible."""
    for path in paths:
        with contextlib.suppress(Exception):
            io.delete(path)


class _NotedFiles:
    """Access to files that notes which ones were begun."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self.paths: list[str] = []
        self.is_over = False

    def new_output(self, path: str) -> OutputFile:
        if self.is_over:
            # Another thread has failed.
            raise OSError(None, "the write has failed", path)
        self.paths.append(path)
        return self._io.new_output(path)


def rows_of(written: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([*written], pa.binary())], names=["written"])
