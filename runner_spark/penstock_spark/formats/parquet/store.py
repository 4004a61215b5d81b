"""Parquet files on object stores that Spark does not reach: tasks read row groups with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.object_stores import ObjectStore
from penstock_spark.files.store_frames import ReadParts, read_by_tasks, unreadable_part
from penstock_spark.formats.parquet.footers import UnknownType, merged, schema_of_footer
from penstock_spark.reports.failure import step_failed
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sources.partition_values import PartitionValues

_AT_ONCE = 16
"""So many footers are read at a time, because each waits for the network."""
_BATCH_ROWS = 10_000


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


def read_stored(sizes: Mapping[str, int], where: str) -> StoredParquet:
    """Reads the footers; a ValueError for a file that is not Parquet."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        footers = list(threads.map(lambda path: _footer(path, where), sizes))
    schema = reduce(merged, map(schema_of_footer, footers))
    groups = (
        RowGroup(path, number, sizes[path])
        for path, footer in zip(sizes, footers, strict=True)
        for number in range(footer.num_row_groups)
    )
    return StoredParquet(schema, tuple(groups))


def frame_of(
    spark: SparkSession, stored: StoredParquet, schema: T.StructType, values: PartitionValues
) -> DataFrame:
    """The rows of all row groups, a task for each as far as there are cores, with the columns of a schema."""
    where = values.where
    for column in schema:
        if _is_unknown(column.dataType):
            raise UnsupportedByRunner(
                f"the column {column.name} has different types in the files, or a type that Spark lacks",
                where=where,
                hint="leave it out with columns=[...], or write the files again with one type",
            )
    count = max(1, min(len(stored.groups), 4 * parallelism_of(spark)))
    parts = tuple(stored.groups[number::count] for number in range(count))
    read = _ReadGroups(parts, where, to_arrow_schema(schema), values)
    return read_by_tasks(spark, read, schema)


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
        with ObjectStore().open_stored(path) as file:
            return pq.read_metadata(file)
    except pa.ArrowException:
        raise _damaged(path, where) from None
    except OSError as error:
        raise unreadable_part(error, path, where) from None


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
            with ObjectStore().open_stored(group.path, reads_ahead=False) as file:
                if file.size != group.file_bytes:  # type: ignore[attr-defined]
                    step_failed(_changed(group.path, self.where), self.where)
                opened = pq.ParquetFile(file, pre_buffer=True, coerce_int96_timestamp_unit="us")
                there = set(opened.schema_arrow.names).difference(self.values.names)
                wanted = [name for name in self.schema.names if name in there]
                table = opened.read_row_group(group.number, wanted)
            known = self.values.of_file(group.path)
            columns = [
                table.column(column.name).cast(column.type)
                if column.name in there
                else pa.repeat(known.get(column.name, pa.scalar(None, column.type)), table.num_rows)
                for column in self.schema
            ]
        except pa.ArrowException:
            step_failed(_damaged(group.path, self.where), self.where)
        except OSError as error:
            step_failed(unreadable_part(error, group.path, self.where), self.where)
        return pa.Table.from_arrays(columns, schema=self.schema).combine_chunks()


def _changed(path: str, where: str) -> OSError:
    what = f"{path} cannot be read: it has changed since the pipeline has found it"
    return refusal(OSError, what, where=where, hint="do not change files while the pipeline reads them")
