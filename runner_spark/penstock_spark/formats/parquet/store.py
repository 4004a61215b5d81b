"""Parquet files that Spark does not read: tasks read their row groups with pyarrow.

Spark does not reach some object stores. It also refuses nanoseconds, and files whose types differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.object_stores import ObjectStore, store_of
from penstock_spark.files.finding import unreadable
from penstock_spark.files.found_file import looked_at, open_found, size_of
from penstock_spark.files.store_frames import ReadParts, read_by_tasks
from penstock_spark.formats.parquet.footers import (
    UnknownType,
    has_nanoseconds,
    merged,
    schema_of_footer,
    types_of_column,
)
from penstock_spark.reports.failure import step_failed
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sources.partition_values import PartitionValues

_BATCH_ROWS = 10_000
_TYPES_SHOWN = 3


@dataclass(frozen=True)
class RowGroup:
    path: str
    number: int
    file_bytes: int  # The size of the file when it was found.


@dataclass(frozen=True)
class StoredParquet:
    """What the footers of files tell."""

    schema: T.StructType  # The columns of all files.
    groups: tuple[RowGroup, ...]
    footers: Mapping[str, pq.FileMetaData]  # By the file.


def read_stored(sizes: Mapping[str, int], where: str) -> StoredParquet:
    """Reads the footers; a ValueError for a file that is not Parquet."""
    footers = dict(zip(sizes, looked_at(sizes, lambda path: _footer(path, where)), strict=True))
    schema = reduce(merged, map(schema_of_footer, footers.values()))
    groups = (
        RowGroup(path, number, sizes[path])
        for path, footer in footers.items()
        for number in range(footer.num_row_groups)
    )
    return StoredParquet(_with_nulls(schema), tuple(groups), footers)


def frame_of(
    spark: SparkSession, stored: StoredParquet, schema: T.StructType, values: PartitionValues
) -> DataFrame:
    """The rows of all row groups, a task for each as far as there are cores, with the columns of a schema."""
    where = values.where
    check_types(schema, stored.footers, where)
    count = max(1, min(len(stored.groups), 4 * parallelism_of(spark)))
    parts = tuple(stored.groups[number::count] for number in range(count))
    read = _ReadGroups(parts, where, to_arrow_schema(schema), values)
    return read_by_tasks(spark, read, schema)


def check_types(schema: T.StructType, footers: Mapping[str, pq.FileMetaData], where: str) -> None:
    """UnsupportedByRunner for a column whose types have none in common, or whose type Spark lacks."""
    for column in schema:
        if _is_unknown(column.dataType):
            types = types_of_column(footers, column.name)
            listed = ", ".join(f"{kind} in {path}" for kind, path in types[:_TYPES_SHOWN])
            wrong = "different types in the files" if len(types) > 1 else "a type that Spark lacks"
            hint = (
                "leave it out with columns=[...], write the files again with one type that Spark has, or use "
            )
            hint += "ReadAllFromParquet, which takes each file as it is"
            raise UnsupportedByRunner(
                f"the column {column.name} has {wrong}: {listed}", where=where, hint=hint
            )


def _with_nulls(kind: T.DataType) -> Any:
    """The type with numbers where no file has a type, because there are only nulls; so does Spark."""
    match kind:
        case T.NullType():
            return T.IntegerType()
        case T.StructType():
            return T.StructType([T.StructField(inner.name, _with_nulls(inner.dataType)) for inner in kind])
        case T.ArrayType():
            return T.ArrayType(_with_nulls(kind.elementType))
        case T.MapType():
            return T.MapType(_with_nulls(kind.keyType), _with_nulls(kind.valueType))
    return kind


def _is_unknown(kind: T.DataType) -> bool:
    match kind:
        case T.StructType():
            return any(_is_unknown(inner.dataType) for inner in kind)
        case T.ArrayType():
            return _is_unknown(kind.elementType)
        case T.MapType():
            return _is_unknown(kind.keyType) or _is_unknown(kind.valueType)
    return isinstance(kind, UnknownType)


def _footer(path: str, where: str) -> pq.FileMetaData:
    try:
        with _open(path) as file:
            return pq.read_metadata(file)
    except pa.ArrowException:
        raise _damaged(path, where) from None
    except OSError as error:
        raise unreadable(error, path, where) from None


def _open(path: str, *, reads_ahead: bool = True) -> BinaryIO:
    return ObjectStore().open_stored(path, reads_ahead=reads_ahead) if store_of(path) else open_found(path)


def _damaged(path: str, where: str) -> ValueError:
    what = f"{path} is not a Parquet file, or it is damaged"
    return refusal(
        ValueError, what, where=where, hint="delete it, write it again, or give a pattern without it"
    )


@dataclass(frozen=True)
class _ReadGroups(ReadParts):
    schema: pa.Schema
    values: PartitionValues  # The columns that are in the names of folders.

    def read(self, part: RowGroup) -> Iterator[pa.RecordBatch]:
        yield from self._table(part).to_batches(_BATCH_ROWS)

    def _table(self, group: RowGroup) -> pa.Table:
        try:
            with _open(group.path, reads_ahead=False) as file:
                if size_of(file) != group.file_bytes:
                    step_failed(_changed(group.path, self.where), self.where)
                opened = pq.ParquetFile(file, pre_buffer=True, coerce_int96_timestamp_unit="us")
                there = set(opened.schema_arrow.names).difference(self.values.names)
                wanted = [name for name in self.schema.names if name in there]
                table = opened.read_row_group(group.number, wanted)
            known = self.values.of_file(group.path)
            columns = [
                _as(column.type, table.column(column.name))
                if column.name in there
                else pa.repeat(known.get(column.name, pa.scalar(None, column.type)), table.num_rows)
                for column in self.schema
            ]
        except pa.ArrowException:
            step_failed(_damaged(group.path, self.where), self.where)
        except OSError as error:
            step_failed(unreadable(error, group.path, self.where), self.where)
        return pa.Table.from_arrays(columns, schema=self.schema).combine_chunks()


def _as(kind: pa.DataType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in a type that has all of them, except that Python's times have no nanoseconds."""
    return column.cast(kind, safe=not has_nanoseconds(column.type))


def _changed(path: str, where: str) -> OSError:
    what = f"{path} cannot be read: it has changed since the pipeline has found it"
    return refusal(OSError, what, where=where, hint="do not change files while the pipeline reads them")
