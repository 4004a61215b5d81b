"""The files that tasks write into the folder of a table, and what the log of the table has to know about each.

The folder is flat: the log says which values of the partition columns a file has, and no reader looks at its path.
Names are unique, so an attempt never overwrites the file of another; what no commit names is not in the table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext

from penstock.error import refusal
from penstock.io.delta import TablePlace
from penstock.utils.identifiers import identifier
from penstock.values.types import BOOLEAN, DATE, INTEGER
from penstock_connectors.delta.table import files_of
from penstock_spark.connecting.values import to_batch, value_of
from penstock_spark.connecting.writing import Encoder

ROWS_SCHEMA = "file string"
"""A row for each file: its description, as JSON."""

_GROUP_ROWS = 1 << 18
_GROUP_BYTES = 64 << 20
_OPEN_FILES_MAX = 64

PartitionKey = tuple[str | None, ...]


class DataFiles(Encoder):
    """Writes the elements of a task to a file for each combination of partition values."""

    def __init__(self, place: TablePlace, columns: pa.Schema, parts: tuple[str, ...], where: str) -> None:
        self._place = place
        self._columns = columns
        self._parts = parts
        self._where = where
        self._open: dict[PartitionKey, DataFile] = {}
        self._written: list[str] = []

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        if values:
            batch = to_batch(values, self._columns, self._where)
            with discard_on_failure(self._open.values()):
                for key, rows in self._apart(batch):
                    self._file(key).write(rows)
        return rows_of(())

    def finish(self) -> pa.RecordBatch | None:
        with discard_on_failure(self._open.values()):
            for key in [*self._open]:
                self._close(key)
        return rows_of(self._written)

    def _apart(self, batch: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
        if not self._parts:
            yield (), batch
            return
        keys = zip(*(self._texts(batch, name) for name in self._parts), strict=True)
        found: dict[PartitionKey, list[int]] = {}
        for row, key in enumerate(keys):
            found.setdefault(key, []).append(row)
        rest = batch.select([name for name in batch.schema.names if name not in self._parts])
        for key, rows in found.items():
            yield key, rest.take(pa.array(rows)) if len(found) > 1 else rest

    def _texts(self, batch: pa.RecordBatch, name: str) -> list[str | None]:
        """The values of a partition column as the log writes them."""
        values = batch.column(name).to_pylist()
        if "" in values:
            what = f"the partition column {name} contains an empty string, which Delta would read as null"
            raise refusal(
                ValueError,
                what,
                where=self._where,
                hint="replace the empty string, or partition by something else",
            )
        strings = {value: None if value is None else str(value) for value in set(values)}
        if value_of(batch.schema.field(name).type) is BOOLEAN:
            strings = {value: None if value is None else str(value).lower() for value in set(values)}
        return [strings[value] for value in values]

    def _file(self, key: PartitionKey) -> DataFile:
        if key not in self._open:
            if len(self._open) >= _OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
            fields = [field for field in self._columns if field.name not in self._parts]
            partition = dict(zip(self._parts, key, strict=True))
            self._open[key] = DataFile(
                files_of(self._place, self._where), pa.schema(fields), "part", partition
            )
        return self._open[key]

    def _close(self, key: PartitionKey) -> None:
        self._written.append(self._open[key].close())
        del self._open[key]


class DataFile:
    """One file of a table while it is written."""

    def __init__(
        self,
        files: fs.FileSystem,
        columns: pa.Schema,
        prefix: str,
        partition: Mapping[str, str | None] | None = None,
    ) -> None:
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        self._files = files
        self._path = f"{prefix}-{number:05d}-{identifier()}.parquet"
        self._partition = dict(partition or {})
        self._columns = columns
        self._stream = files.open_output_stream(self._path)
        self._footers: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._stream, columns, compression="snappy", metadata_collector=self._footers
        )
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> str:
        """Ends the file, and describes it as JSON."""
        self._flush()
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        [footer] = self._footers
        statistics = json.dumps(_statistics(footer, self._columns))
        return json.dumps(
            {
                "path": self._path,
                "size": size,
                "rows": footer.num_rows,
                "partition": self._partition,
                "statistics": statistics,
            }
        )

    def discard(self) -> None:
        """Deletes the file, as far as that is possible."""
        # Else it would try to write its end when it is deleted.
        self._writer.is_open = False
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._files.delete_file(self._path)

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._rows, self._bytes = [], 0, 0


@contextmanager
def discard_on_failure(files: Collection[DataFile]) -> Iterator[None]:
    """If the disk is full, half a file on it would keep the next try from writing."""
    try:
        yield
    except OSError:
        for file in files:
            file.discard()
        raise


def _statistics(footer: pq.FileMetaData, columns: pa.Schema) -> dict[str, Any]:
    """The statistics by which a reader skips the file: the ranges of integers and dates, whose text is unambiguous."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    ranged = {each.name for each in columns if value_of(each.type) in (INTEGER, DATE)}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if name not in ranged or not footer.num_row_groups:
            continue
        groups = [
            footer.row_group(number).column(place).statistics for number in range(footer.num_row_groups)
        ]
        if all(group is not None and group.has_min_max for group in groups):
            least[name] = min(group.min for group in groups)
            most[name] = max(group.max for group in groups)
    for values in (least, most):
        values.update(
            {name: value if isinstance(value, int) else str(value) for name, value in values.items()}
        )
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": {}}


def rows_of(files: list[str] | tuple[()]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([*files], pa.string())], names=["file"])
