"""ORC files: those on disks of the workers are read by the tasks stripe by stripe, others as whole files."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, BinaryIO, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.orcio import OrcSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.columns.common_types import merge_types, require_same_type
from penstock_spark.columns.types import has_unknown_type, is_unsupported_by_spark, struct_of
from penstock_spark.columns.values import check_names, to_dicts, to_rows
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import file_store, size_of
from penstock_spark.files.finding import (
    find_files,
    find_local_paths,
    look_at_all,
    make_changed_error,
    make_unreadable_error,
)
from penstock_spark.files.splits import distribute_parts, leaves_files_out
from penstock_spark.files.store import FileStore
from penstock_spark.formats.orc.records import OrcRecords
from penstock_spark.reports.failure import fail_step
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.contents import (
    ColumnsReader,
    RowsOfContents,
    scan_of_contents,
    stream_of_contents,
)
from penstock_spark.sources.later_columns import LaterColumns
from penstock_spark.sources.needed_columns import NeededColumns
from penstock_spark.sources.partition_values import partition_values
from penstock_spark.sources.parts import PartsReader, make_empty_scan, scan_of_parts
from penstock_spark.sources.scan import Decoder, Scan, StreamScan, prune_schema
from penstock_spark.sources.stream_files import make_schema_error, stream_files
from penstock_spark.sources.whole_read import scan_with_rejects


def records_of_file(file: BinaryIO, name: str, columns: tuple[str, ...] | None) -> Iterator[Any]:
    """The records of an open file, for ``ReadAllFromOrc``."""
    for batch in OrcRecords(columns, partition_values((), None, ""), "").all_of(file, name):
        yield from to_dicts(batch)


class Stripe(NamedTuple):
    path: str
    number: int
    file_bytes: int  # The size of the file when it was found.
    weight_bytes: int  # What the stripe has of them, more or less.


def open_orc(source: OrcSource, spark: SparkSession, where: str) -> Scan:
    """Dicts or Rows. A column that only some files have is None in the others."""
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    if not files.paths:
        return make_empty_scan(spark)
    values.check(files.paths)
    schema, stripes = _survey(files.paths, files.store(spark), where)
    records = OrcRecords(_choose_columns(values.with_columns(schema), source, where), values, where)
    needed = NeededColumns.of(source, where, has_rejects=False)
    if files.is_open_to_tasks and not leaves_files_out(spark):
        parts = distribute_parts(stripes, lambda stripe: stripe.weight_bytes, parallelism_of(spark))
        return scan_of_parts(spark, StripeReader(records, parts, _decoder_of(source), needed))
    return scan_of_contents(files, spark, ColumnsReader(records, _decoder_of(source), needed=needed), where)


def open_orc_stream(source: OrcSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """The records of files that arrive, with the columns of the files that are there now.

    A file must fit into a task's memory. Files that are not ORC are rejects.
    """
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    present = files.present(spark)
    schema, _ = _survey(present.paths, present.store(spark), where, skips_damaged=True)
    if not schema and source.columns is None:
        hint = "put a file there before the pipeline starts, or name the columns: columns=[...]"
        raise make_schema_error("columns", files, hint)
    columns = _choose_columns(values.with_columns(schema), source, where) if schema else source.columns
    later_columns = LaterColumns(columns or (), where) if source.columns is None else None
    needed = NeededColumns.of(source, where, has_rejects=stream.has_rejects)
    read = ColumnsReader(OrcRecords(columns, values, where), _decoder_of(source), later_columns, needed)
    scan = stream_of_contents(files, stream, spark, read)
    whole = T.StructType([values.with_columns(schema)[name] for name in columns or ()]) if schema else schema
    if is_unsupported_by_spark(whole) or has_unknown_type(whole):
        return scan

    def make_columns(names: Collection[str] | None) -> DataFrame:
        wanted = prune_schema(whole, names)
        records = OrcRecords(tuple(wanted.names), values, where)
        rows = RowsOfContents(records, wanted, files.naming(), later_columns, needed, where)
        frame: DataFrame = map_in_arrow(scan.frame, rows, wanted)
        return frame

    return replace(scan, make_columns=make_columns)


def open_orc_with_rejects(source: OrcSource, spark: SparkSession, where: str) -> Scan:
    """The records of files, each of which must fit into a task's memory. Files that are not ORC are rejects."""
    return scan_with_rejects(open_orc_stream, source, spark, where)


def schema_before_opening(source: OrcSource) -> T.StructType | None:
    """The columns of the files that are on a local disk when the pipeline is built; None if unknown."""
    with contextlib.suppress(Exception):
        values = partition_values(source.partition_by, source.schema, "")
        schema = values.with_columns(_survey(find_local_paths(source.file_pattern), DiskFiles(), "")[0])
        found = T.StructType([schema[name] for name in _choose_columns(schema, source, "")])
        return None if is_unsupported_by_spark(found) or has_unknown_type(found) else found
    return None


def type_of_orc(source: OrcSource, spark: SparkSession | None, where: str) -> object:
    """By the footers of the files, if they are on a local disk."""
    with contextlib.suppress(Exception):
        paths = find_local_paths(source.file_pattern)
        if paths:
            values = partition_values(source.partition_by, source.schema, where)
            schema = values.with_columns(_survey(paths, DiskFiles(), where)[0])
            wanted = T.StructType([schema[name] for name in _choose_columns(schema, source, where)])
            return hint_of_schema(wanted, "row" if source.as_rows else "dict", is_file=True)
    return None


def _decoder_of(source: OrcSource) -> Decoder:
    return to_rows if source.as_rows else to_dicts


def _choose_columns(schema: T.StructType, source: OrcSource, where: str) -> tuple[str, ...]:
    """The columns of the elements, in the order of the files."""
    missing = [name for name in source.columns or () if name not in schema.names]
    if missing:
        what = f"the files have no columns {', '.join(missing)}"
        raise refusal(ValueError, what, where=where, hint=f"they have {', '.join(schema.names)}")
    return tuple(name for name in schema.names if source.columns is None or name in source.columns)


def _survey(
    paths: tuple[str, ...], store: FileStore, where: str, *, skips_damaged: bool = False
) -> tuple[T.StructType, list[Stripe]]:
    """The columns and the stripes of all files, from their footers; ValueError for a file that is not ORC.

    Columns of one name are refused.
    """
    records = OrcRecords(None, partition_values((), None, where), where)

    def look(path: str) -> tuple[T.StructType, list[Stripe]]:
        try:
            with store.open(path) as file:
                size = size_of(file)
                found = records.open(file, path).footer
                count = found.nstripes
                return struct_of(found.schema), [
                    Stripe(path, number, size, size // count) for number in range(count)
                ]
        except OSError as error:
            raise make_unreadable_error(error, path, where) from None
        except ValueError:
            # The stream finds it again, when it reads it.
            if skips_damaged:
                return T.StructType(), []
            raise

    found = look_at_all(paths, look)
    for path, (columns, _) in zip(paths, found, strict=True):
        check_names(columns, path, where)
    as_they_are = partial(merge_types, common=require_same_type)
    schema = reduce(as_they_are, (schema for schema, _ in found), T.StructType())
    return schema, [each for _, stripes in found for each in stripes]


@dataclass(frozen=True)
class StripeReader(PartsReader):
    records: OrcRecords
    parts: Sequence[Sequence[Stripe]]
    decode: Decoder
    needed: NeededColumns

    def read(self, stripe: Stripe) -> Iterator[list[Any]]:
        where = self.records.where
        try:
            with file_store(stripe.path).open(stripe.path) as file:
                if size_of(file) != stripe.file_bytes:
                    fail_step(make_changed_error(stripe.path, where), where)
                opened = self.records.open(file, stripe.path)
                for batch in self.records.stripe(opened, stripe.number):
                    yield self.decode(self.needed.check(batch, stripe.path))
        except OSError as error:
            fail_step(make_unreadable_error(error, stripe.path, where), where)
