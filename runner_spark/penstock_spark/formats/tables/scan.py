"""Tables that Spark reads, at once or as a stream, by the name of their format."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.elements.row import Row
from penstock.error import UnsupportedByRunner, refusal
from penstock.io.sparkio import FILE_FORMATS, SparkSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.columns.values import to_rows
from penstock_spark.files.file_store import files_of_spark
from penstock_spark.formats.tables.rejecting import has_records, scan_of_records
from penstock_spark.plan.schema_text import schema_of_text
from penstock_spark.reports.failure import fail_step
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.decoding import OFFSET_COLUMNS, ByFile, by_offset
from penstock_spark.sources.frame_rows import check_names, rows_of
from penstock_spark.sources.line_numbers import Lines
from penstock_spark.sources.reader_options import (
    check_file_options,
    check_format_options,
    file_options,
    strict_options,
)
from penstock_spark.sources.scan import Part, Scan, StreamScan
from penstock_spark.sources.spark_refusals import translate_spark_errors
from penstock_spark.sources.stream_files import Naming, place_columns
from penstock_spark.sources.whole_read import scan_with_rejects


def open_table(source: SparkSource, spark: SparkSession, where: str) -> Scan:
    schema = _given_schema(source)
    options = strict_options(source.format, source.options, schema)
    reader = spark.read.format(source.format).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return rows_of(reader.load() if source.path is None else reader.load(source.path), where)


def open_table_with_rejects(source: SparkSource, spark: SparkSession, where: str) -> Scan:
    """Rows, and a `penstock.io.rejects.Rejected` for each record of text that does not fit the schema."""
    if not has_records(source):
        what = f"{source.describe()} has no records that could be kept apart with rejects=True"
        raise UnsupportedByRunner(
            what, where=where, hint="leave rejects out: then anything that cannot be read is an error"
        )
    return scan_with_rejects(open_table_stream, source, spark, where)


def type_of_table(source: SparkSource, spark: SparkSession | None, where: str) -> object:
    """By the given schema, or by Spark."""
    schema = _given_schema(source)
    if isinstance(schema, str):
        schema = None
    if schema is None and spark is not None:
        with contextlib.suppress(Exception):
            schema = open_table(source, spark, where).frame.schema
    return None if schema is None else hint_of_schema(schema, "row")


def open_table_stream(
    source: SparkSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    is_files = source.format.lower() in FILE_FORMATS
    if stream.has_rejects and has_records(source):
        return _open_records(source, stream, spark, where)
    options = (*source.options, *stream.options)
    looks_deep = ("recursivefilelookup", "true") in {
        (name.lower(), str(value).lower()) for name, value in options
    }
    check_format_options(source.format, options, where)
    if is_files:
        check_file_options(stream.options, where)
    if source.path is not None and not isinstance(source.path, str):
        what = f"{source.describe()} has several paths, but a stream watches only one"
        raise refusal(
            ValueError, what, where=where, hint="give a pattern such as /logs/*, or flatten streams"
        )
    with translate_spark_errors(source.describe(), where):
        schema = _found_schema(source, spark, where) if is_files else _given_schema(source)
        reader = spark.readStream.format(source.format)
        own = strict_options(source.format, options, schema)
        reader = reader.options(**_file_options(tuple(own.items()), looks_deep) if is_files else own)
        if schema is not None:
            reader = reader.schema(schema)
        frame = reader.load() if source.path is None else reader.load(source.path)
        check_names(frame, where)
    if not is_files:
        has_offsets = OFFSET_COLUMNS.items() <= dict(frame.dtypes).items()
        decoder = by_offset if has_offsets else _all
        return StreamScan(frame, lambda: decoder, make_columns=lambda names: frame)

    def check(file: str) -> None:
        if not looks_deep:
            _check_name(file, where)

    def decode(batch: pa.RecordBatch, file: str, lines: Lines) -> list[Row]:
        check(file)
        return to_rows(batch)

    def check_files(names: Sequence[str]) -> None:
        for name in names:
            check(name)

    rows = frame.select("*", *place_columns(stream))
    make_decoder = partial(ByFile, decode, Naming(), makes_records=True)
    return StreamScan(rows, make_decoder, make_columns=lambda names: frame, check_files=check_files)


def _open_records(source: SparkSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Rows, and the records that do not fit the schema, of files at once or as a stream."""
    schema = schema_of_source(source)
    options = (*source.options, *stream.options)
    looks_deep = ("recursivefilelookup", "true") in {
        (name.lower(), str(value).lower()) for name, value in options
    }
    if not stream.is_bounded:
        check_file_options(stream.options, where)
        _found_schema(source, spark, where)

    def read(format: str, own: dict[str, Any], columns: StructType | None) -> DataFrame:
        reader = (spark.read if stream.is_bounded else spark.readStream).format(format)
        chosen = own if stream.is_bounded else _file_options(tuple(own.items()), looks_deep)
        reader = reader.options(**chosen)
        if columns is not None:
            reader = reader.schema(columns)
        with translate_spark_errors(source.describe(), where):
            frame: DataFrame = reader.load() if source.path is None else reader.load(source.path)
        return frame

    def check(file: str) -> None:
        if not looks_deep and not stream.is_bounded:
            _check_name(file, where)

    return scan_of_records(source, schema, dict(options), read, place_columns(stream), check, where)


def _check_name(file: str, where: str) -> None:
    # See `reader_options.file_options`.
    if not frozenset(file).isdisjoint("[]{}*?\\"):
        what = f"because of a special character in the path, Spark would read {file} more than once"
        hint = "rename it, or pass recursiveFileLookup=True to ReadFromSpark"
        fail_step(refusal(ValueError, what, where=where, hint=hint), where)


def schema_of_source(source: SparkSource) -> StructType | None:
    """The columns in the description of a source, if they are known without Spark."""
    known = _given_schema(source)
    return known if isinstance(known, StructType) else None


def _file_options(options: tuple[tuple[str, Any], ...], looks_deep: bool) -> dict[str, Any]:
    # Folders such as day=7 are columns, as where Spark reads a table at once, unless the user says otherwise.
    return file_options(options) | ({} if looks_deep else {"recursiveFileLookup": False})


def _all(batch: pa.RecordBatch) -> list[Part]:
    return [Part((), to_rows(batch), columns=batch)]


def _given_schema(source: SparkSource) -> Any:
    """The schema from the user, if there is one; as a string if only Spark can read it."""
    schema = source.schema
    return (schema_of_text(schema) or schema) if isinstance(schema, str) else schema


def _found_schema(source: SparkSource, spark: SparkSession, where: str) -> Any:
    """The schema of files: the user's, or the schema of the present files."""
    if source.path is None:
        raise refusal(
            ValueError, f"{source.describe()} has no path", where=where, hint="pass the path of a folder"
        )
    files = files_of_spark(spark, source.path)
    if files.exists(source.path) and not files.is_folder(source.path):
        what = f"{source.describe()} is one file, but a stream watches a folder"
        raise refusal(ValueError, what, where=where, hint="give its folder, or a pattern such as /logs/*")
    if source.schema is not None:
        return _given_schema(source)
    options = strict_options(source.format, source.options, None)
    reader = spark.read.format(source.format).options(**options)
    schema = reader.load(source.path).schema
    if not schema.names:
        what = f"the columns of {source.describe()} are unknown: no file there has any yet"
        hint = "pass a schema to ReadFromSpark, such as schema='name string, points int'"
        raise refusal(ValueError, what, where=where, hint=hint)
    return schema
