"""Parquet files: through Spark's reader where it reads the values that they have, otherwise by pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.formats.partition_folders import table_of_pattern
from penstock.io.parquetio import ParquetSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.scalars.spark_forms import quote_name
from penstock_spark.columns.types import arrow_schema_of, is_unsupported_by_spark, struct_of, without_nothing
from penstock_spark.columns.values import cast_to_python_types, check_names, to_dicts, to_rows, to_tables
from penstock_spark.files.changed_files import warn_of_empty_files
from penstock_spark.files.file_store import disk_path
from penstock_spark.files.finding import Files, find_files, find_local_paths, look_at_all, working_folder
from penstock_spark.files.splits import distribute_parts, leaves_files_out
from penstock_spark.formats.parquet.footers import (
    certain_schema,
    is_of_pandas,
    is_read_by_spark,
    merge_schemas,
    read_footers,
    schema_of_footer,
    values_schema,
)
from penstock_spark.formats.parquet.records import (
    ContentRows,
    GroupReader,
    LaterFiles,
    ParquetRecords,
    RowsOfFiles,
    StreamOfFiles,
    check_types,
    find_unproven,
    footer_of,
    frame_of,
    groups_of,
    open_for_python,
)
from penstock_spark.plan.column_bounds import UNBOUNDED
from penstock_spark.session.backends import backend_of, map_in_arrow
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.contents import (
    ColumnsReader,
    frame_of_contents,
    scan_of_contents,
    stream_of_contents,
    stream_of_names,
)
from penstock_spark.sources.decoding import ByFile
from penstock_spark.sources.later_columns import LaterColumns, list_nested_names
from penstock_spark.sources.line_numbers import Lines
from penstock_spark.sources.needed_columns import NeededColumns
from penstock_spark.sources.partition_values import PartitionValues, partition_values
from penstock_spark.sources.parts import scan_of_parts
from penstock_spark.sources.scan import Decoder, Scan, StreamScan, prune_schema
from penstock_spark.sources.spark_refusals import translate_spark_errors
from penstock_spark.sources.stream_files import (
    choose_files_to_survey,
    make_schema_error,
    place_columns,
    stream_files,
)

_DECODERS: dict[str, Decoder] = {"dict": to_dicts, "row": to_rows, "table": to_tables}
"""The function that makes elements of batches, by the type of an element."""


def records_of_file(
    file: BinaryIO, name: str, columns: tuple[str, ...] | None, as_tables: bool
) -> Iterator[Any]:
    """The records of an open file, or a table for each row group, for ``ReadAllFromParquet``."""
    opened = open_for_python(file, name, "")
    schema = schema_of_footer(opened.footer)
    records = ParquetRecords(
        schema if columns is None else choose_columns(schema, columns, f"in {name}"),
        partition_values((), None, ""),
        "",
    )
    check_types(records.schema, {name: opened.footer}, "")
    declared = opened.footer.schema.to_arrow_schema()
    as_declared = pa.schema(
        [
            field.with_nullable(declared.field(field.name).nullable)
            for field in arrow_schema_of(records.schema)
        ]
    )
    for number in range(opened.footer.num_row_groups):
        batches = list(records.group(opened, number))
        if as_tables:
            yield cast_to_python_types(
                pa.Table.from_batches(batches, arrow_schema_of(records.schema)).cast(as_declared)
            )
        else:
            for batch in batches:
                yield from to_dicts(batch)


@dataclass(frozen=True)
class _Found:
    """Files with their columns, before they are read."""

    footers: Mapping[str, pq.FileMetaData]
    schema: T.StructType  # The columns of the files, then the columns in names of folders.
    wanted: T.StructType  # Those of the elements.
    by_spark: bool  # Whether Spark reads the wanted columns with their own values.
    merges: bool  # Whether Spark finds the schema itself, which a column that is not wanted may prevent.

    def records(self, values: PartitionValues, needed: NeededColumns) -> ParquetRecords:
        return ParquetRecords(self.wanted, values, values.where, needed)


def _found(footers: Mapping[str, pq.FileMetaData], source: ParquetSource, values: PartitionValues) -> _Found:
    """Reads the columns of files out of their footers; refuses those that no reader supports a type for."""
    for path, footer in footers.items():
        check_names(struct_of(values_schema(footer)), path, values.where)
    own = merge_schemas(footers.values())
    schema = values.with_columns(own)
    wanted = schema if source.columns is None else choose_columns(schema, source.columns, values.where)
    check_types(wanted, footers, values.where)
    by_spark = partial(is_read_by_spark, footers.values(), own)
    return _Found(
        footers, schema, wanted, by_spark(values.without_columns(wanted).names), by_spark(own.names)
    )


def _footers_of(
    files: Files, spark: SparkSession, where: str, paths: Sequence[str]
) -> dict[str, pq.FileMetaData] | None:
    """The footers of files; None if one that Spark reaches cannot be read, of which Spark says more."""
    if files.are_on_disk:
        sizes = files.sizes_on_disk()
        return read_footers(path for path in paths if sizes[path])
    store = files.store(spark)
    try:
        return dict(zip(paths, look_at_all(paths, lambda path: footer_of(path, store, where)), strict=True))
    except (OSError, ValueError):
        if files.is_unsupported_by_spark:
            raise
        return None


def open_parquet(source: ParquetSource, spark: SparkSession, where: str) -> Scan:
    """Dicts, Rows or tables. A column that only some files have is None in the others.

    Spark reads the files if it reads the values that they have, otherwise tasks read them by pyarrow.
    """
    values = partition_values(source.partition_by, source.schema, where)
    needed = NeededColumns.of(source, where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    decoder = _DECODERS[source.elements]
    if not files.paths:
        return Scan(backend_of(spark).empty_frame(T.StructType().add("nothing", "integer")), lambda: decoder)
    values.check(files.paths)
    if files.are_on_disk:
        warn_of_empty_files(files.sizes_on_disk(), where)
    looked_through = files.paths if files.is_open_to_tasks else choose_files_to_survey(files.paths)
    footers = _footers_of(files, spark, where, looked_through)
    found = _found(footers, source, values) if footers else None
    if found is None or (found.by_spark and not files.is_unsupported_by_spark):
        return _scan_by_spark(files, source, values, spark, found)
    if not files.is_open_to_tasks:
        footers = _footers_of(files, spark, where, files.paths)
        found = _found(footers, source, values) if footers else found
    records = found.records(values, needed)
    as_rows = replace(records, schema=without_nothing(found.wanted))
    if not files.is_open_to_tasks:
        if is_unsupported_by_spark(found.wanted):
            return scan_of_contents(files, spark, ColumnsReader(records, decoder), where)
        rows = ContentRows(as_rows, files.namer())
        frame = map_in_arrow(frame_of_contents(files, spark), rows, as_rows.schema)
        return Scan(frame, lambda: decoder, check=files.make_size_check(where))
    groups = groups_of(found.footers, files.sizes if files.is_unsupported_by_spark else files.sizes_on_disk())
    if is_unsupported_by_spark(found.wanted):
        parts = distribute_parts(groups, lambda group: group.weight_bytes, parallelism_of(spark)) or ((),)
        return scan_of_parts(spark, GroupReader(records, parts, decoder))
    return Scan(frame_of(spark, groups, as_rows), lambda: decoder)


def _scan_by_spark(
    files: Files, source: ParquetSource, values: PartitionValues, spark: SparkSession, found: _Found | None
) -> Scan:
    """The files through Spark's reader, which looks for the columns itself if it is not certain what it would find."""
    decoder = _DECODERS[source.elements]
    certain = None
    if found is not None and files.are_on_disk:
        certain = certain_schema(list(found.footers.values()))
    frame, schema, bounds = None, T.StructType(), UNBOUNDED
    if certain is not None:
        schema, bounds = certain.schema, certain.bounds
    elif found is not None and not found.merges:
        schema = values.without_columns(found.wanted)
    else:
        frame = files.load(spark.read.option("mergeSchema", True), "parquet")
        schema = frame.schema
    whole = values.with_columns(schema)
    wanted = whole if source.columns is None else choose_columns(whole, source.columns, values.where)
    if values.names:
        table = table_of_pattern(files.pattern, values.names)
        # Spark finds the columns in names of folders only if it is given all of them.
        frame = files.load(spark.read.schema(whole), "parquet", table).select(*map(_column, wanted.names))
    elif frame is None or source.columns is not None:
        frame = files.load(spark.read.schema(wanted), "parquet")
    needed = NeededColumns.of(source, values.where)
    is_all = found is not None and found.footers.keys() == set(files.paths)
    unproven: Collection[str] = needed.hints
    if found is not None and is_all:
        unproven = find_unproven(needed, wanted.names, found.footers)
    return Scan(needed.guarded(frame, unproven, source.describe()), lambda: decoder, bounds=bounds)


def open_parquet_stream(
    source: ParquetSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    """Dicts, Rows or tables, with the columns of the files that are there now; a file may lack some of them.

    Tasks read files on disks by pyarrow, since a later file may have types that Spark cannot read as the types of the
    first files, such as the type of a column without values.
    """
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    present = files.present(spark)
    if not present.paths:
        hint = (
            "put a file there before the pipeline starts, or use ReadFromSpark('parquet', path, schema=...)"
        )
        raise make_schema_error("columns", files, hint)
    footers = _footers_of(present, spark, where, present.paths)
    if footers is None:
        with translate_spark_errors(source.describe(), where):
            present.load(spark.read.option("mergeSchema", True), "parquet")
    found = _found(footers or {}, source, values)
    needed = NeededColumns.of(source, where)
    decode, naming = _DECODERS[source.elements], files.naming()
    known = list(list_nested_names(found.schema)) if source.columns is None else None
    if disk_path(files.pattern) is not None and not leaves_files_out(spark):
        later = None if known is None else LaterColumns(known, where)
        read = StreamOfFiles(found.records(values, needed), decode, naming, working_folder(), later)
        scan = stream_of_names(files, stream, spark, lambda: read)
        if is_unsupported_by_spark(found.wanted):
            return scan
        by_spark = (
            found.by_spark and not values.names and not any(map(is_of_pandas, (footers or {}).values()))
        )
        if not by_spark or not all(map(naming.name, files.seen_by_spark(spark))):
            return replace(scan, make_columns=partial(_rows_by_python, scan.frame, read))
        check = LaterFiles(found.schema, found.wanted.names, naming, where, later, needed)
        by_spark_frame = files.load(spark.readStream.schema(found.wanted), "parquet")
        guarded = needed.guarded(by_spark_frame, needed.hints, source.describe())
        return replace(scan, make_columns=lambda names: guarded, check_files=check)
    if not found.by_spark:
        later = None if known is None else LaterColumns(known, where)
        return stream_of_contents(
            files, stream, spark, ColumnsReader(found.records(values, needed), decode, later)
        )
    in_files = values.without_columns(found.wanted)
    frame = files.load(spark.readStream.schema(in_files), "parquet")

    def decode_part(batch: pa.RecordBatch, file: str, lines: Lines) -> list[Any]:
        needed.check(batch, file)
        return decode(values.added(batch, file).select(found.wanted.names) if values.names else batch)

    columns = [*map(_column, in_files.names), *place_columns(stream)]
    return StreamScan(
        frame.select(*columns), partial(ByFile, decode_part, naming, makes_records=decode is not to_tables)
    )


def _rows_by_python(frame: DataFrame, read: StreamOfFiles, names: Collection[str] | None) -> DataFrame:
    """The columns with some names, or all, of the files whose names are in a frame."""
    whole = read.records.schema
    wanted = prune_schema(whole, names)
    rows = RowsOfFiles(replace(read, records=replace(read.records, schema=wanted)), without_nothing(wanted))
    columns: DataFrame = map_in_arrow(frame, rows, rows.schema)
    return columns


def type_of_parquet(source: ParquetSource, spark: SparkSession | None, where: str) -> object:
    """By the footers, or by Spark if the files are not on a local disk."""
    with contextlib.suppress(Exception):
        schema = None
        paths = find_local_paths(source.file_pattern)
        if paths:
            values = partition_values(source.partition_by, source.schema, where)
            schema = values.with_columns(merge_schemas(look_at_all(paths, pq.read_metadata)))
            if source.columns is not None:
                schema = choose_columns(schema, source.columns, where)
        elif spark is not None:
            schema = _schema_by_spark(source, spark, where)
        return None if schema is None else hint_of_schema(schema, source.elements, is_file=True)
    return None


def _schema_by_spark(source: ParquetSource, spark: SparkSession, where: str) -> T.StructType | None:
    """The columns of files that are not on this machine's disks."""
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    looked_through = files.paths if files.is_unsupported_by_spark else choose_files_to_survey(files.paths)
    footers = _footers_of(files, spark, where, looked_through)
    found = _found(footers, source, values) if footers else None
    if found is None or (found.by_spark and not files.is_unsupported_by_spark):
        return open_parquet(source, spark, where).frame.schema
    return found.wanted


def _column(name: str) -> Column:
    return F.col(quote_name(name))


def choose_columns(schema: T.StructType, columns: Sequence[str], where: str) -> T.StructType:
    """The schema with the wanted columns only, in the order of the file.

    A name includes everything below it. A name with a dot is a column of that name if there is one, otherwise a field
    of a record.

    >>> inner = T.StructType().add("b", "long").add("c", "long")
    >>> both = T.StructType().add("a", inner).add("a.b", "string").add("d", inner)
    >>> choose_columns(both, ["a.b", "d.c"], "").simpleString()
    'struct<a.b:string,d:struct<c:bigint>>'
    """
    paths = {name: _path_of(schema, name) for name in columns}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        raise refusal(
            ValueError,
            f"the files have no columns {', '.join(missing)}",
            where=where,
            hint=f"they have {', '.join(schema.names)}",
        )
    return _keep(schema, [path for path in paths.values() if path is not None])


def _path_of(kind: object, name: str) -> list[str] | None:
    """The names of columns and fields that lead to a column; None if there is none."""
    if not isinstance(kind, T.StructType):
        return None
    if name in kind.names:
        return [name]
    for field in kind:
        if name.startswith(f"{field.name}."):
            rest = _path_of(field.dataType, name.removeprefix(f"{field.name}."))
            if rest is not None:
                return [field.name, *rest]
    return None


def _keep(schema: T.StructType, paths: list[list[str]]) -> T.StructType:
    kept = T.StructType()
    for field in schema:
        rests = [path[1:] for path in paths if path[0] == field.name]
        if rests and all(rests) and isinstance(field.dataType, T.StructType):
            kept.add(T.StructField(field.name, _keep(field.dataType, rests), field.nullable))
        elif rests:
            kept.add(field)
    return kept
