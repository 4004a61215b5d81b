"""Sinks whose files are kept apart by the values of columns: what the columns may be, and what a task writes.

Tasks sort rows by folder, and write the files themselves wherever they reach the disk or the store. Spark's own
`partitionBy` needs columns with Spark types, and writes CSV and JSON in its own way: no option of pandas, no number of
more than 64 bits, no value of a class. So it only serves Hadoop's file systems, which nothing but Spark reaches, and
gets rows of text there as lines that are made already: both ways write the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.error import refusal
from penstock.io.formats.partition_folders import NOTHING, folder_of_value, is_lost
from penstock.scalars.spark_forms import quote_name
from penstock.values.types import IN_FOLDERS, TEXT
from penstock_spark.columns.records import to_batch
from penstock_spark.columns.types import value_of
from penstock_spark.files.partition_pages import PartitionPages
from penstock_spark.reports.failure import mark
from penstock_spark.worker.batch import dumps, loads

_NAME_BYTES = 255
"""No file system of today takes a longer name."""

_VALUES_AT_ONCE = 4096
"""So many Python values are made of the pages of a folder at a time."""


class RowsWriter(Protocol):
    """Writes the rows of one file."""

    def write(self, rows: object) -> Any:
        """Writes a ``pyarrow.RecordBatch``."""

    def close(self) -> None:
        """Ends the file."""


@dataclass(frozen=True)
class Partitions:
    """Describes how the rows of a sink are kept apart."""

    columns: tuple[str, ...]
    schema: (
        pa.Schema
    )  # All columns of the elements; with `record_of`, only the ones that name folders matter.
    open_file: Callable[[str], RowsWriter]  # Opens a file on a local disk, for the rows that `cut` returns.
    where: str
    batched: bool = False  # Whether the elements are ``pyarrow.Table`` values.
    # Makes a dict of an element with unchanged values; None if the values become columns of the schema. A row
    # is then the pickled dict without the columns of the folders: formats of text show any Python value in their own
    # way, which no type of a column keeps.
    record_of: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        """Refuses columns whose values cannot be in the name of a folder."""
        for name in self.columns:
            kind = self.schema.field(name).type
            if not can_keep_apart(kind):
                what = f"the name of a folder cannot hold the column {name!r} of partition_by, of type {kind}"
                hint = "partition by strings, integers, dates or booleans; make such a column in a Map first"
                raise refusal(ValueError, what, where=self.where, hint=hint)

    @property
    def rest(self) -> pa.Schema:
        """The columns of the files."""
        return remove_columns(self.schema, self.columns)

    @property
    def keys(self) -> pa.Schema:
        """The columns of the folders, in their order."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def split(self, values: Sequence[Any]) -> Iterator[tuple[pa.RecordBatch, list[str]]]:
        """The rows for the files, and the folder of each row."""
        for keys, rest in self.cut(values):
            yield rest, self.folders(keys)

    def cut(self, values: Sequence[Any]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The columns of the folders, and what the files get, row by row."""
        if self.record_of is not None:
            yield self._cut_records(list(map(self.record_of, values)))
            return
        for batch in self._batches(values):
            if batch.num_rows:
                yield batch.select(self.columns), batch.select(self.rest.names)

    def folders(self, keys: pa.RecordBatch) -> list[str]:
        """The folder of each row; ValueError for a value that no folder name can express."""
        names = [self._folders(keys.column(name), name) for name in self.columns]
        return names[0] if len(names) == 1 else ["/".join(each) for each in zip(*names, strict=True)]

    def _cut_records(self, records: list[Any]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        own = [
            {name: record[name] for name in self.columns if name in record}
            if isinstance(record, dict)
            else record
            for record in records
        ]
        keys = to_batch(own, self.keys, self.where)
        left_out = frozenset(self.columns)
        pages = [
            dumps({name: value for name, value in record.items() if name not in left_out})
            for record in records
        ]
        return keys, pa.RecordBatch.from_arrays([pa.array(pages, pa.binary())], names=["record"])

    def _batches(self, values: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        if not self.batched:
            yield to_batch(values, self.schema, self.where)
            return
        for table in values:
            if table.schema.names != self.schema.names:
                what = f"a table of {', '.join(table.column_names)} has different columns than the schema"
                hint = "cast the tables to the schema that you pass"
                raise refusal(ValueError, what, where=self.where, hint=hint)
            yield from table.cast(self.schema).to_batches()

    def _folders(self, column: pa.Array, name: str) -> list[str]:
        encoded = column.dictionary_encode(null_encoding="encode")
        folders = [self._folder(name, value) for value in encoded.dictionary.to_pylist()]
        return [folders[place] for place in encoded.indices.to_pylist()]

    def _folder(self, name: str, value: object) -> str:
        if is_lost(value):
            raise make_lost_value_error(name, self.where)
        folder = folder_of_value(name, value)
        if len(folder.encode("utf-8", "surrogatepass")) > _NAME_BYTES:
            what = (
                f"the column {name!r} of partition_by has a string that is too long for the name of a folder"
            )
            hint = "partition by a shorter column, for example by the beginning of the string"
            raise refusal(ValueError, what, where=self.where, hint=hint)
        return folder


class ValuesWriter(Protocol):
    """Writes the Python values of one file."""

    def write(self, values: Sequence[Any]) -> Any:
        """Writes dicts."""

    def close(self) -> None:
        """Ends the file."""


class RecordsFile:
    """A file of a format that takes Python values, as `Partitions.open_file` opens it where there is a `record_of`."""

    def __init__(self, open_shard: Callable[[str], ValuesWriter], path: str) -> None:
        self._shard = open_shard(path)

    def write(self, rows: pa.RecordBatch) -> None:
        for start in range(0, rows.num_rows, _VALUES_AT_ONCE):
            self._shard.write(records_in(rows.slice(start, _VALUES_AT_ONCE)))

    def close(self) -> None:
        self._shard.close()


def records_in(rows: pa.RecordBatch) -> list[Any]:
    """The dicts in rows of `Partitions` with a `record_of`."""
    return [loads(page) for page in rows.column(0).to_pylist()]


def can_keep_apart(kind: pa.DataType) -> bool:
    """True if the name of a folder can hold the values of a type.

    >>> can_keep_apart(pa.int8()), can_keep_apart(pa.float64()), can_keep_apart(pa.list_(pa.string()))
    (True, False, False)
    """
    return value_of(kind) in IN_FOLDERS and kind != pa.date64()


def remove_columns(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns that are not in the names of folders."""
    return pa.schema([field for field in schema if field.name not in columns])


def make_lost_value_error(name: str, where: str) -> ValueError:
    what = f"the column {name!r} of partition_by has an empty string, or {NOTHING}, which readers would read as None"
    return refusal(
        ValueError, what, where=where, hint="replace it in a Map first, or partition by another column"
    )


def refuse_lost_values(rows: DataFrame, partitions: Partitions) -> DataFrame:
    """The rows for Spark's writer, with an error for a string that would be lost."""
    for name in partitions.columns:
        kind = partitions.schema.field(name).type
        if value_of(kind) is TEXT:
            column = F.col(quote_name(name))
            error = F.raise_error(
                F.lit(mark(make_lost_value_error(name, partitions.where), partitions.where))
            )
            is_wrong = column.isin("", NOTHING)
            rows = rows.withColumn(name, F.when(is_wrong, error.cast("string")).otherwise(column))
    return rows


class PartitionWriter:
    """Writes elements to a file in each folder; the files are there when it is closed."""

    def __init__(self, partitions: Partitions, open_in: Callable[[str], RowsWriter]) -> None:
        self._partitions = partitions
        self._open_in = open_in  # Opens the file in a folder, whose name it takes.
        self._pages = PartitionPages()

    def write(self, values: Sequence[Any]) -> int:
        for rows, folders in self._partitions.split(values):
            self._pages.add(rows, folders)
        return len(values)

    def close(self) -> None:
        for folder, parts in self._pages.by_folder():
            writer = self._open_in(folder)
            for rows in parts:
                writer.write(rows)
            writer.close()
