"""The records of Parquet files by pyarrow, a row group at a time, where Spark reads other values, or none."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.error import UnsupportedByRunner, refusal
from penstock_spark.columns.common_types import find_narrower_column
from penstock_spark.columns.types import arrow_schema_of, has_unknown_type, struct_of
from penstock_spark.columns.values import cast_column, cast_to_python_types, check_names, to_tables
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import Reach, file_store, reach_of, size_of
from penstock_spark.files.finding import Namer, look_at_all, make_changed_error, make_unreadable_error
from penstock_spark.files.store import FileStore
from penstock_spark.files.store_frames import ReadParts, read_by_tasks
from penstock_spark.formats.parquet.footers import (
    count_nulls,
    has_fixed_lists,
    is_read_by_spark,
    schema_of_footer,
    types_of_column,
    values_schema,
    without_note_of_types,
)
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.sources.later_columns import LaterColumns, list_nested_names
from penstock_spark.sources.needed_columns import NOTHING_NEEDED, NeededColumns
from penstock_spark.sources.partition_values import PartitionValues
from penstock_spark.sources.parts import PartsReader
from penstock_spark.sources.scan import Decoder, Part
from penstock_spark.sources.stream_files import FILE, Naming
from penstock_spark.worker.messages import Place

BATCH_ROWS = 10_000
_TYPES_SHOWN = 3


@dataclass(frozen=True)
class RowGroup:
    path: str
    number: int
    file_bytes: int  # The size of the file when it was found.
    weight_bytes: int  # What the row group has of them, more or less.


def groups_of(footers: Mapping[str, pq.FileMetaData], sizes: Mapping[str, int]) -> tuple[RowGroup, ...]:
    return tuple(
        RowGroup(path, number, sizes[path], sizes[path] // footer.num_row_groups)
        for path, footer in footers.items()
        for number in range(footer.num_row_groups)
    )


@dataclass(frozen=True)
class OpenFile:
    name: str
    footer: pq.FileMetaData
    columns: pq.ParquetFile


def open_for_python(file: BinaryIO, name: str, where: str) -> OpenFile:
    """An open file; INT96 has times of all years in microseconds, not only those that have nanoseconds.

    ValueError if it is not Parquet, or if columns of it have one name.
    """
    with _failures_told(name, where, opening=True):
        opened = _open_parquet(file)
        footer = opened.metadata
        check_names(struct_of(values_schema(footer)), name, where)
        if has_fixed_lists(footer):
            opened = _open_parquet(file, without_note_of_types(footer))
    return OpenFile(name, footer, opened)


def _open_parquet(file: BinaryIO, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(file, metadata=footer, pre_buffer=True, coerce_int96_timestamp_unit="us")


def read_group_for_python(opened: OpenFile, number: int, names: Sequence[str]) -> pa.Table:
    """Some columns of a row group, in the types that Python reads."""
    # Pyarrow takes a dot in a name for a field of a record, and so may read more.
    found = opened.columns.read_row_group(number, list(names))
    kinds = values_schema(opened.footer)
    columns = [cast_column(found.column(name), kinds.field(name)) for name in names]
    return cast_to_python_types(pa.Table.from_arrays(columns, names=list(names)))


@dataclass(frozen=True)
class ParquetRecords:
    """Reads the records of files."""

    schema: T.StructType  # The columns of the records, in order.
    values: PartitionValues  # The columns that are in the names of folders.
    where: str
    needed: NeededColumns = NOTHING_NEEDED

    def all_of(
        self, file: BinaryIO, name: str, later_columns: LaterColumns | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The records of a file that a stream found; ValueError if it is damaged, or has other types."""
        opened = open_for_python(file, name, self.where)
        if later_columns is not None:
            later_columns.look(name, lambda: list_nested_names(schema_of_footer(opened.footer)))
        wanted = self.values.without_columns(self.schema)
        other = find_narrower_column(schema_of_footer(opened.footer), wanted)
        if other is not None:
            raise self._of_other_type(name, other, wanted[other.name].dataType)
        for number in range(opened.footer.num_row_groups):
            yield from self.group(opened, number)

    def group(self, opened: OpenFile, number: int) -> Iterator[pa.RecordBatch]:
        """The records of a row group, many at a time; ValueError if pyarrow does not read it."""
        there = set(opened.columns.schema_arrow.names).difference(self.values.names)
        wanted = [each.name for each in self.schema if each.name in there]
        count = opened.footer.row_group(number).num_rows
        schema = arrow_schema_of(self.schema)
        with _failures_told(opened.name, self.where):
            found = read_group_for_python(opened, number, wanted)
        known = self.values.of_file(opened.name)
        columns = [
            cast_column(found.column(each.name), each)
            if each.name in there
            else pa.repeat(known.get(each.name, pa.scalar(None, each.type)), count)
            for each in schema
        ]
        table = pa.Table.from_arrays(columns, schema=schema).combine_chunks()
        for batch in table.to_batches(BATCH_ROWS):
            yield self.needed.check(batch, opened.name)

    def _of_other_type(self, name: str, column: T.StructField, wanted: T.DataType) -> ValueError:
        own = column.dataType.simpleString()
        what = f"the column {column.name} of {name} has the type {own}, and the pipeline reads it as "
        what += wanted.simpleString()
        hint = (
            "start the pipeline again, which finds a type for all files if there is one; otherwise write the file "
            "again with the type of the others"
        )
        return refusal(ValueError, what, where=self.where, hint=hint)


@contextmanager
def _failures_told(name: str, where: str, *, opening: bool = False) -> Iterator[None]:
    """Turns failures of pyarrow into a ValueError with its reason; other errors of a file are raised unchanged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        # Pyarrow's own have no number. Those of object stores may have none either.
        if isinstance(error, OSError) and (error.errno is not None or reach_of(name) is Reach.STORE):
            raise
        if opening and type(error) is pa.ArrowInvalid:
            what = f"{name} is not a Parquet file, or it is damaged"
            hint = "delete it, write it again, or give a pattern without it"
        else:
            what = f"pyarrow cannot read {name}: {str(error).partition(chr(10))[0]}"
            hint = (
                "if the file is damaged, write it again; otherwise read it with ReadFromSpark('parquet', ...)"
            )
        raise refusal(ValueError, what, where=where, hint=hint) from None


def find_unproven(
    needed: NeededColumns, wanted: Collection[str], footers: Mapping[str, pq.FileMetaData]
) -> frozenset[str]:
    """The wanted columns that need values, and of which the statistics do not prove that they have all.

    ValueError if the statistics of a file prove that a value is missing.
    """
    unproven: set[str] = set()
    names = needed.hints.keys() & set(wanted)
    if not names:
        return frozenset()
    for path, footer in footers.items():
        for name, count in count_nulls(footer, names).items():
            if count is None:
                unproven.add(name)
            elif count:
                raise needed.make_error(name, path)
    return frozenset(unproven)


def footer_of(path: str, store: FileStore, where: str) -> pq.FileMetaData:
    """The footer of a file; ValueError if it is not Parquet, and OSError if it cannot be read."""
    try:
        with store.open(path) as file, _failures_told(path, where, opening=True):
            return pq.read_metadata(file)
    except OSError as error:
        raise make_unreadable_error(error, path, where) from None


def check_types(schema: T.StructType, footers: Mapping[str, pq.FileMetaData], where: str) -> None:
    """Refuses a column whose types have none in common, or that no reader supports a type for, such as an UUID."""
    for column in schema:
        if has_unknown_type(column.dataType):
            types = types_of_column(footers, column.name)
            listed = ", ".join(f"{kind} in {path}" for kind, path in types[:_TYPES_SHOWN])
            if len(types) > 1:
                wrong = "different types in the files"
                hint = "leave it out with columns=[...], write the files again with one type, or use "
                hint += "ReadAllFromParquet, which reads each file alone"
            else:
                wrong = "a type that no reader supports"
                hint = "leave it out with columns=[...], or write the column again with another type, such as string"
            raise UnsupportedByRunner(
                f"the column {column.name} has {wrong}: {listed}", where=where, hint=hint
            )


def _read_group(records: ParquetRecords, group: RowGroup) -> Iterator[pa.RecordBatch]:
    """The records of a row group, in a task."""
    where = records.where
    try:
        with file_store(group.path).open(group.path, reads_ahead=False) as file:
            if size_of(file) != group.file_bytes:
                fail_step(make_changed_error(group.path, where), where)
            yield from records.group(open_for_python(file, group.path, where), group.number)
    except OSError as error:
        fail_step(make_unreadable_error(error, group.path, where), where)
    except ValueError as error:
        fail_step(error, where)


def frame_of(spark: SparkSession, groups: Sequence[RowGroup], records: ParquetRecords) -> DataFrame:
    """The rows of all row groups, a task for each as far as there are cores."""
    count = max(1, min(len(groups), 4 * parallelism_of(spark)))
    parts = tuple(tuple(groups[number::count]) for number in range(count))
    return read_by_tasks(spark, _GroupRows(parts, records.where, records), records.schema)


@dataclass(frozen=True)
class _GroupRows(ReadParts):
    records: ParquetRecords

    def read(self, part: RowGroup) -> Iterator[pa.RecordBatch]:
        return _read_group(self.records, part)


@dataclass(frozen=True)
class GroupReader(PartsReader):
    """Makes elements in the task that reads a row group: Spark has no types for some of their values."""

    records: ParquetRecords
    parts: Sequence[Sequence[RowGroup]]
    decode: Decoder

    def read(self, group: RowGroup) -> Iterator[list[Any]]:
        return map(self.decode, _read_group(self.records, group))


@dataclass(frozen=True)
class ContentRows(TaskRows):
    """Makes rows of the bytes of files that only Spark reaches, in a task."""

    records: ParquetRecords
    namer: Namer

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for file, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                yield from self.records.all_of(io.BytesIO(content), self.namer(file))
            except ValueError as error:
                fail_step(error, self.records.where)


@dataclass(frozen=True)
class StreamOfFiles:
    """Makes elements of the names of files that a stream found on disks; a `StreamDecoder`."""

    records: ParquetRecords
    decode: Decoder
    naming: Naming
    folder: str  # The folder to which the program's paths relate.
    later_columns: LaterColumns | None

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        for name, start, *changed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            file = self.naming.name(name)
            if file is not None:
                place = (*changed, file, start)
                yield from self._parts(file, place)

    def _parts(self, name: str, place: Place) -> Iterator[Part]:
        try:
            for batch in self.batches(name):
                if batch.num_rows:
                    columns = None if self.decode is to_tables else batch
                    yield Part(place, self.decode(batch), columns=columns)
        except ValueError as error:
            fail_step(error, self.records.where)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The records of a file."""
        path, where = os.path.join(self.folder, name.removeprefix("file://")), self.records.where
        try:
            with DiskFiles().open(path) as file:
                # Spark's readers leave out empty files.
                if size_of(file):
                    yield from self.records.all_of(file, name, self.later_columns)
        except OSError as error:
            fail_step(make_unreadable_error(error, name, where), where)
        except ValueError as error:
            fail_step(error, where)


@dataclass(frozen=True)
class RowsOfFiles(TaskRows):
    """Makes rows of the names of files that a stream found on disks, in a task."""

    files: StreamOfFiles
    schema: T.StructType

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self.schema)
        for name in map(self.files.naming.name, batch.column(FILE).to_pylist()):
            for records in () if name is None else self.files.batches(name):
                # A column without any values has another type there.
                yield records if records.schema == schema else records.cast(schema)


@dataclass(frozen=True)
class LaterFiles:
    """Looks at files on disks before Spark reads them, which would take some values for others."""

    schema: T.StructType  # The columns of the files that the stream began with.
    wanted: Sequence[str]
    naming: Naming
    where: str
    later_columns: LaterColumns | None
    needed: NeededColumns

    def __call__(self, names: Sequence[str]) -> None:
        """Raises a step's failure if Spark would not read the elements of one of the files.

        Then nothing of the micro-batch is written, and the next run reads these files another way.
        """
        paths = [os.path.abspath(unquote(urlsplit(name).path)) for name in names]
        try:
            for name, path, footer in zip(names, paths, look_at_all(paths, self._footer), strict=True):
                self._check(name, path, footer)
        except (OSError, ValueError) as error:
            fail_step(error, self.where)

    def _footer(self, path: str) -> pq.FileMetaData | None:
        with DiskFiles().open(path) as file:
            # Spark's readers leave out empty files.
            is_empty = not size_of(file)
        return None if is_empty else footer_of(path, DiskFiles(), self.where)

    def _check(self, name: str, path: str, footer: pq.FileMetaData | None) -> None:
        if self.naming.name(name) is None:
            raise self._refused(f"{path} is deeper than the pattern, and Spark would read it")
        if footer is None:
            return
        if self.later_columns is not None:
            self.later_columns.look(path, lambda: list_nested_names(schema_of_footer(footer)))
        if not is_read_by_spark([footer], self.schema, self.wanted):
            raise self._refused(
                f"{path} has columns of different types than the first files, which Spark does not read"
            )
        find_unproven(self.needed, self.wanted, {path: footer})

    def _refused(self, what: str) -> ValueError:
        hint = "start the pipeline again: it then reads these files in their current state, and loses nothing"
        return refusal(ValueError, what, where=self.where, hint=hint)
