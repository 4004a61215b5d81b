"""Records as ORC files, written by the tasks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import orc

from penstock.error import noun_for, refusal
from penstock.io.files.compression import CompressionTypes
from penstock.io.orcio import OrcSink
from penstock.values.types import INSTANT, LOCAL_TIME
from penstock_spark.columns.records import schema_of, to_batch
from penstock_spark.columns.types import change_single_types, value_of
from penstock_spark.files.compressed import open_for_writing
from penstock_spark.files.kept_errors import FileToWrite
from penstock_spark.sinks.files import FileSink, make_task_file_sink
from penstock_spark.sinks.partitions import Partitions, remove_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def orc_files(sink: OrcSink, where: str) -> FileSink:
    schema = sink.schema
    if schema is None:
        schema = schema_of(sink.element_type, where)
    _check_types(schema, where)

    partitions = None
    if sink.partition_by:
        open_rows = partial(_OrcRows, remove_columns(schema, sink.partition_by), sink, where)
        partitions = Partitions(sink.partition_by, schema, open_rows, where)
    open_shard = partial(_OrcShard, schema=schema, sink=sink, where=where)
    instead = ", or use WriteToSpark('orc', ...)"
    return make_task_file_sink(sink.shards, "ORC files", open_shard, where, partitions, instead)


def _check_types(schema: StructType, where: str) -> None:
    """Refuses what is not a schema, and columns for which ORC has no type."""
    if not isinstance(schema, pa.Schema):
        what = f"schema must be a pyarrow.Schema, but is {noun_for(schema)}"
        raise refusal(TypeError, what, where=where, hint="write schema=pyarrow.schema([...])")
    for field in schema:
        try:
            orc.write_table(pa.schema([field]).empty_table(), io.BytesIO())
        except (pa.ArrowException, NotImplementedError):
            what = f"ORC has no type for the column {field.name} of type {field.type}"
            hint = "convert the values first; times of day and durations may become integers"
            raise refusal(ValueError, what, where=where, hint=hint) from None


class _OrcRows:
    """One ORC file on a local disk."""

    def __init__(self, schema: pa.Schema, sink: OrcSink, where: str, path: str) -> None:
        self._in_nanos = pa.schema(
            [field.with_type(change_single_types(field.type, _in_nanos)) for field in schema]
        )
        self._where = where
        self._file = FileToWrite(open_for_writing(path, CompressionTypes.UNCOMPRESSED))
        self._writer = orc.ORCWriter(
            self._file,
            stripe_size=sink.stripe_size,
            compression="uncompressed" if sink.codec == "none" else sink.codec,
        )
        # A file without records also has its columns.
        self._writer.write(self._in_nanos.empty_table())

    def write(self, rows: pa.RecordBatch) -> None:
        table = pa.Table.from_batches([rows])
        try:
            table = table.cast(self._in_nanos)
        except pa.ArrowException:
            what = "a time is before the year 1678 or after 2261, so that pyarrow could not read it in an ORC file"
            hint = "write dates, or write Parquet files"
            raise refusal(ValueError, what, where=self._where, hint=hint) from None
        self._writer.write(table)
        self._file.check()

    def close(self) -> None:
        self._writer.close()
        self._file.close()
        self._file.check()


class _OrcShard:
    """One ORC file of records."""

    def __init__(self, path: str, schema: pa.Schema, sink: OrcSink, where: str) -> None:
        self._rows = _OrcRows(schema, sink, where, path)
        self._schema = schema
        self._where = where

    def write(self, values: Sequence[Any]) -> int:
        self._rows.write(to_batch(values, self._schema, self._where))
        return len(values)

    def close(self) -> None:
        self._rows.close()


def _in_nanos(kind: pa.DataType) -> pa.DataType:
    """A type of single values with nanoseconds, as pyarrow writes all times in ORC, whose zones are UTC."""
    if value_of(kind) not in (INSTANT, LOCAL_TIME):
        return kind
    return pa.timestamp("ns", None if kind.tz is None else "UTC")
