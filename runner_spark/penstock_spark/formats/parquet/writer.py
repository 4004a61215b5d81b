"""Records as Parquet files: pyarrow writes them on a local disk, Spark on any other file system."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.parquetio import ParquetSink
from penstock_spark.columns.records import schema_of, to_batch
from penstock_spark.columns.types import to_arrow_types, with_values_of, without_values_of
from penstock_spark.files.file_store import is_on_disk
from penstock_spark.session.spark_versions import from_arrow_schema, to_arrow_schema
from penstock_spark.sinks.file_names import TemplateNames
from penstock_spark.sinks.files import FileSink, SparkFiles
from penstock_spark.sinks.partitions import Partitions, refuse_lost_values, remove_columns
from penstock_spark.sinks.records import RecordRows

_TIMESTAMP_SETTING = "spark.sql.parquet.outputTimestampType"


def parquet_files(sink: ParquetSink, where: str) -> FileSink:
    schema = sink.schema
    if schema is None and not sink.batched:
        schema = schema_of(sink.element_type, where)
    names = TemplateNames(sink.shards)
    if sink.schema is None and schema is not None and is_on_disk(names.place):
        schema = to_arrow_types(schema)
    partitions = _partitions(sink, schema, where)

    def columns() -> SparkFiles | None:
        if sink.batched or schema is None:
            return None
        try:
            # pyarrow writes types that Spark lacks, such as milliseconds, unchanged.
            has_types = to_arrow_schema(_spark_schema(schema, where)).types == schema.types
            return (
                _by_spark(sink, schema, partitions, where)
                if has_types or not is_on_disk(names.place)
                else None
            )
        except UnsupportedByRunner:
            return None

    return FileSink(
        names,
        sink.shards.count,
        # Without a schema, a file without records is impossible.
        0 if schema is None else max(sink.shards.count, 1),
        lambda path: _ParquetShard(path, sink, schema, where),
        lambda: _by_spark(sink, schema, partitions, where),
        columns,
        partitions=partitions,
    )


def _partitions(sink: ParquetSink, schema: pa.Schema | None, where: str) -> Partitions | None:
    if not sink.partition_by or schema is None:
        return None
    rest = remove_columns(schema, sink.partition_by)
    return Partitions(
        sink.partition_by, schema, lambda path: _RowGroups(_open(path, rest, sink), sink), where, sink.batched
    )


def _open(path: str, schema: pa.Schema, sink: ParquetSink) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        schema,
        compression=sink.codec,
        use_deprecated_int96_timestamps=sink.use_deprecated_int96_timestamps,
        use_compliant_nested_type=sink.use_compliant_nested_type,
    )


class _RowGroups:
    """One Parquet file on a local disk, with row groups of the requested size."""

    def __init__(self, writer: pq.ParquetWriter, sink: ParquetSink) -> None:
        self._writer = writer
        self._group_bytes = sink.row_group_buffer_size
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._batches.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._group_bytes:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._bytes = [], 0


class _ParquetShard:
    """One Parquet file on a local disk, of records or tables."""

    def __init__(self, path: str, sink: ParquetSink, schema: pa.Schema | None, where: str) -> None:
        self._path = path
        self._sink = sink
        self._where = where
        self._writer = None if schema is None else _open(path, schema, sink)
        self._groups = None if self._writer is None else _RowGroups(self._writer, sink)
        self._schema = schema
        self._records: list[Any] = []

    def write(self, values: Sequence[Any]) -> int:
        if self._sink.batched:
            for table in values:
                self._write_table(table)
            return len(values)
        self._records += values
        size = self._sink.record_batch_size
        while len(self._records) >= size:
            self._add_batch(self._records[:size])
            self._records = self._records[size:]
        return len(values)

    def close(self) -> None:
        if self._records:
            self._add_batch(self._records)
        if self._groups is not None:
            self._groups.close()
        elif self._writer is not None:
            self._writer.close()

    def _write_table(self, table: pa.Table) -> None:
        if self._writer is None:
            self._schema = table.schema
            self._writer = _open(self._path, table.schema, self._sink)
        if table.schema != self._schema:
            raise refusal(
                ValueError,
                f"a table of {', '.join(table.column_names)} has a different schema than the file",
                where=self._where,
                hint="cast the tables to the schema that you pass",
            )
        self._writer.write_table(table)

    def _add_batch(self, records: list[Any]) -> None:
        if self._groups is None:
            raise refusal(ValueError, "records need a schema", where=self._where, hint="pass schema=")
        self._groups.write(to_batch(records, self._schema, self._where))


def _by_spark(
    sink: ParquetSink, schema: pa.Schema | None, partitions: Partitions | None, where: str
) -> SparkFiles:
    if schema is None or sink.use_deprecated_int96_timestamps:
        missing = "without a schema" if schema is None else "with INT96 timestamps"
        raise UnsupportedByRunner(
            f"Parquet files {missing} cannot be written to {sink.shards.prefix}",
            where=where,
            hint="write to a path without a scheme, on a disk that all workers share",
        )
    kind = _spark_schema(schema, where)
    # The columns as Spark has them, e.g. text with 32-bit offsets and instants in UTC.
    columns = with_values_of(to_arrow_schema(kind), schema)
    empty_file = io.BytesIO()
    pq.write_table(without_values_of(columns).empty_table(), empty_file, compression=sink.codec)

    def write(rows: DataFrame, target: str) -> None:
        options: dict[str, Any] = {
            "compression": sink.codec,
            "parquet.block.size": sink.row_group_buffer_size,
        }
        settings = rows.sparkSession.conf
        before = settings.get(_TIMESTAMP_SETTING)
        # Spark's default is INT96, which does not say that it is an instant; the writer has no option for it.
        settings.set(_TIMESTAMP_SETTING, "TIMESTAMP_MICROS")
        try:
            if partitions is not None:
                rows = refuse_lost_values(rows, partitions)
            rows.write.format("parquet").options(**options).partitionBy(*sink.partition_by).save(target)
        finally:
            settings.set(_TIMESTAMP_SETTING, before or "INT96")

    return SparkFiles(
        kind,
        lambda: RecordRows(columns, where, batched=sink.batched),
        write,
        lambda content: pq.ParquetFile(io.BytesIO(content)).metadata.num_rows > 0,
        empty_file.getvalue(),
    )


def _spark_schema(schema: pa.Schema, where: str) -> StructType:
    try:
        return from_arrow_schema(schema)
    except (PySparkException, TypeError) as error:
        raise UnsupportedByRunner(
            f"Spark has no type for a column of the schema ({error})",
            where=where,
            hint="change the schema, or write to a path without a scheme",
        ) from error
