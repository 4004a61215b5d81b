"""Parquet files through Spark's readers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.error import refusal
from penstock.io.file_readers import provide_reader
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSource
from penstock.io.partition_folders import table_of_pattern
from penstock.io.streams import StreamSource
from penstock_spark.arrow.values import table_as_read, to_dicts, to_rows, to_tables
from penstock_spark.files.changed_files import tell_empty
from penstock_spark.files.finding import Files, find_files, local_paths, working_folder
from penstock_spark.files.found_file import looked_at, open_by_hadoop
from penstock_spark.formats.parquet.footers import (
    Footers,
    merged_schema,
    read_footers,
    schema_for_spark,
    struct_of,
)
from penstock_spark.formats.parquet.store import check_types, frame_of, read_stored
from penstock_spark.plan.column_bounds import UNBOUNDED
from penstock_spark.session.session import empty_frame
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.decoding import ByFile
from penstock_spark.sources.later_columns import LaterColumns, names_at_any_depth
from penstock_spark.sources.partition_values import partition_values
from penstock_spark.sources.refusals import refusals
from penstock_spark.sources.scan import Decoder, Scan, StreamScan
from penstock_spark.sources.stream_files import no_schema, place_columns, stream_files

_TYPES = re.compile("CANNOT_MERGE|Failed merging schemas|PARQUET_TYPE_|UNSUPPORTED_TIME_TYPE")
"""What Spark says of types that it does not read, or not together."""

_DECODERS: dict[str, Decoder] = {"dict": to_dicts, "row": to_rows, "table": to_tables}
"""What makes elements of batches, by what an element is."""


def records_of_file(
    file: BinaryIO, name: str, columns: tuple[str, ...] | None, as_tables: bool
) -> Iterator[Any]:
    """The records of an open file, or a table for each row group, for ``ReadAllFromParquet``."""
    opened = pq.ParquetFile(file)
    for number in range(opened.num_row_groups):
        table = opened.read_row_group(number, columns)
        yield from [table_as_read(table)] if as_tables else to_dicts(table)


provide_reader("Parquet", records_of_file)


def open_parquet(source: ParquetSource, spark: SparkSession, where: str) -> Scan:
    """Dicts, Rows or tables. A column that only some files have is None in the others."""
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    decoder = _DECODERS[source.elements]
    if not files.paths:
        return Scan(empty_frame(spark, StructType().add("nothing", "integer")), lambda: decoder)
    values.check(files.paths)

    def read_by_row_groups(sizes: Mapping[str, int]) -> Scan:
        stored = read_stored(sizes, where)
        wanted = values.with_columns(stored.schema)
        if source.columns is not None:
            wanted = _pruned(wanted, source.columns, where)
        return Scan(frame_of(spark, stored, wanted, values), lambda: decoder)

    if files.is_beyond_spark:
        return read_by_row_groups(files.sizes)
    is_local = FileSystems.get_scheme(files.pattern) is None
    if is_local:
        tell_empty(files.sizes_on_disk(), where)
    footers = read_footers(files.paths) if is_local else None
    frame, by_file = None, dict[str, pq.FileMetaData]()
    if footers is None:
        try:
            frame = files.load(spark.read.option("mergeSchema", True), "parquet")
        except Exception as error:  # PySpark has no class for some.
            if not _TYPES.search(str(error)):
                raise
            if is_local:
                return read_by_row_groups(files.sizes_on_disk())
            by_file = _footers_by_hadoop(files, spark)
            footers = Footers(schema_for_spark(by_file.values()), UNBOUNDED)
        else:
            footers = Footers(frame.schema, UNBOUNDED)
    whole = values.with_columns(footers.schema)
    schema = whole if source.columns is None else _pruned(whole, source.columns, where)
    check_types(schema, by_file, where)
    if values.names:
        table = table_of_pattern(files.pattern, values.names)
        # Spark finds the columns in names of folders only if it is told of all of them.
        frame = files.load(spark.read.schema(whole), "parquet", table).select(*map(_column, schema.names))
    elif frame is None or source.columns is not None:
        frame = files.load(spark.read.schema(schema), "parquet")
    return Scan(frame, lambda: decoder, bounds=footers.bounds)


def open_parquet_stream(
    source: ParquetSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    """Dicts, Rows or tables, with the columns of the files that are there now; a file may lack some of them."""
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    present = files.present(spark)
    if not present.paths:
        hint = (
            "put a file there before the pipeline starts, or use ReadFromSpark('parquet', path, schema=...)"
        )
        raise no_schema("columns", files, hint)
    with refusals(source.describe(), where):
        found, footers = _schema_of_present(present, spark)
    whole = values.with_columns(found)
    wanted = whole if source.columns is None else _pruned(whole, source.columns, where)
    check_types(wanted, footers, where)
    in_files = values.without_columns(wanted)
    frame = files.load(spark.readStream.schema(in_files), "parquet")
    decode, naming = _DECODERS[source.elements], files.naming()
    is_local = FileSystems.get_scheme(files.pattern) is None
    # The path of a file by its name; a worker reaches only what is on a disk.
    is_on_disk = is_local or FileSystems.get_scheme(files.pattern) == "file"
    folder = working_folder() if is_on_disk and source.columns is None else None

    def make_decoder() -> ByFile:
        later_columns = LaterColumns(list(names_at_any_depth(whole)), where)

        def decode_part(batch: pa.RecordBatch, file: str) -> list[Any]:
            if folder is not None:
                later_columns.look(
                    file, lambda: _columns_in(os.path.join(folder, file.removeprefix("file://")))
                )
            return decode(values.added(batch, file).select(wanted.names) if values.names else batch)

        return ByFile(decode_part, naming)

    return StreamScan(frame.select(*map(_column, in_files.names), *place_columns(stream)), make_decoder)


def _schema_of_present(
    present: Files, spark: SparkSession
) -> tuple[StructType, Mapping[str, pq.FileMetaData]]:
    """The columns of files that a stream finds at its start, and the footers if Spark does not merge them."""
    try:
        return present.load(spark.read.option("mergeSchema", True), "parquet").schema, {}
    except Exception as error:  # As above.
        if not _TYPES.search(str(error)):
            raise
    if FileSystems.get_scheme(present.pattern) is None:
        footers = {path: pq.read_metadata(path) for path in present.paths}
    else:
        footers = _footers_by_hadoop(present, spark)
    return schema_for_spark(footers.values()), footers


def _footers_by_hadoop(files: Files, spark: SparkSession) -> dict[str, pq.FileMetaData]:
    """The footers of files that only Spark reaches."""

    def read(path: str) -> pq.FileMetaData:
        with open_by_hadoop(spark, path) as file:
            return pq.read_metadata(file)

    return dict(zip(files.paths, looked_at(files.paths, read), strict=True))


def _columns_in(path: str) -> list[str]:
    """The columns of a file, at any depth; [] if it cannot be read any more."""
    try:
        return list(names_at_any_depth(struct_of(pq.read_schema(path))))
    except (OSError, pa.ArrowException):
        return []


def type_of_parquet(source: ParquetSource, spark: SparkSession | None, where: str) -> Any:
    """By the footers, or by Spark if the files are not on a local disk."""
    with contextlib.suppress(Exception):
        schema = None
        paths = local_paths(source.file_pattern)
        if paths:
            values = partition_values(source.partition_by, source.schema, where)
            schema = values.with_columns(merged_schema(paths))
            if source.columns is not None:
                schema = _pruned(schema, source.columns, where)
        elif spark is not None:
            schema = open_parquet(source, spark, where).frame.schema
        return None if schema is None else hint_of_schema(schema, source.elements, is_file=True)
    return None


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _pruned(schema: StructType, columns: tuple[str, ...], where: str) -> StructType:
    """The schema with the wanted columns only, in the order of the file; a name includes everything below it."""
    missing = [name for name in columns if not _has(schema, name.split("."))]
    if missing:
        raise refusal(
            ValueError,
            f"the files have no columns {', '.join(missing)}",
            where=where,
            hint=f"they have {', '.join(schema.names)}",
        )
    return _keep(schema, [name.split(".") for name in columns])


def _has(kind: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(kind, StructType) and path[0] in kind.names and _has(kind[path[0]].dataType, path[1:])


def _keep(schema: StructType, paths: list[list[str]]) -> StructType:
    kept = StructType()
    for field in schema:
        rests = [path[1:] for path in paths if path[0] == field.name]
        if rests and all(rests) and isinstance(field.dataType, StructType):
            kept.add(StructField(field.name, _keep(field.dataType, rests), field.nullable))
        elif rests:
            kept.add(field)
    return kept
