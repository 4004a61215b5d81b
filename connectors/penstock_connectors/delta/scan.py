"""A Delta table as rows: each task reads files, or groups of rows of a large file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal
from penstock.io.delta import DeltaSource, TablePlace
from penstock_connectors.delta.table import files_of, open_table, schema_of_table, translate_errors
from penstock_connectors.packages import DELTALAKE
from penstock_spark.connecting.reading import (
    SHARE_BYTES,
    PartsReader,
    Scan,
    decoder_of,
    distribute_parts,
    hint_of_table,
    make_empty_scan,
    parallelism_of,
    scan_of_parts,
    schema_in_spark,
)
from penstock_spark.connecting.running import fail_step

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class Share:
    """A part of a file: one of some equal numbers of its groups of rows."""

    path: str
    guarantee: pc.Expression  # Facts about all its rows, among them the values of partition columns.
    number: int
    count: int
    bytes: int


def open_delta(source: DeltaSource, spark: SparkSession, where: str) -> Scan:
    """Dicts or Rows of one version, with the columns in the order of the table."""
    table = _table(source, where)
    schema = _columns(source, table, where)
    shares = _shares(table, source, where)
    if not shares:
        return make_empty_scan(spark)
    tasks = distribute_parts(shares, lambda share: share.bytes, parallelism_of(spark))
    reader = _Reader(source, schema_of_table(table), tuple(schema.names), tasks, where)
    return scan_of_parts(spark, reader)


def type_of_delta(source: DeltaSource, spark: SparkSession | None, where: str) -> object:
    """By the log of the table, which is read when the transform is applied; None if that fails."""
    DELTALAKE.check(where)
    return hint_of_table(lambda: schema_of_delta(source), source.elements)


def schema_of_delta(source: DeltaSource) -> StructType | None:
    """The columns as Spark's types; None, so that Python reads the rows."""
    return schema_in_spark(_columns(source, _table(source, ""), ""))


def table_at(place: TablePlace, version: int | None, timestamp: str | None, where: str) -> DeltaTable:
    """A version of a table: the newest, or the one with a number, or as of a time."""
    table = open_table(place, where)
    newest = table.version()
    package = DELTALAKE.load(where)
    if version is not None and version > newest:
        raise make_version_error(place, str(version), f"the newest is {newest}", where)
    if version is None and timestamp is None:
        return table
    try:
        table.load_as_version(version if timestamp is None else timestamp)
    except (package.exceptions.DeltaError, ValueError, OSError):
        known = f"the newest is {newest}, and old ones may be cleaned up"
        raise make_version_error(
            place, f"of {timestamp}" if version is None else str(version), known, where
        ) from None
    return table


def make_version_error(place: TablePlace, wanted: str, known: str, where: str) -> ValueError:
    what = f"the Delta table {place.shown} has no version {wanted}: {known}"
    return refusal(ValueError, what, where=where, hint="DeltaTable(path).history() lists the versions")


def columns_to_read(
    place: TablePlace, columns: tuple[str, ...] | None, schema: pa.Schema, where: str
) -> pa.Schema:
    """The columns, in the order of the table; ValueError if it lacks one."""
    if columns is None:
        return schema
    missing = [name for name in columns if name not in schema.names]
    if missing:
        what = f"the Delta table {place.shown} has no columns {', '.join(missing)}"
        hint = hint_at_name(missing[0], schema.names, f"it has {', '.join(schema.names)}")
        raise refusal(ValueError, what, where=where, hint=hint)
    return pa.schema([field for field in schema if field.name in columns])


def _table(source: DeltaSource, where: str) -> DeltaTable:
    return table_at(source.place, source.version, source.timestamp, where)


def _columns(source: DeltaSource, table: DeltaTable, where: str) -> pa.Schema:
    return columns_to_read(source.place, source.columns, schema_of_table(table), where)


def _shares(table: DeltaTable, source: DeltaSource, where: str) -> list[Share]:
    with translate_errors(source.place, "cannot be read", where):
        fragments = list(table.to_pyarrow_dataset().get_fragments())
        log = pa.table(table.get_add_actions())
    sizes = dict(zip(log.column("path").to_pylist(), log.column("size_bytes").to_pylist(), strict=True))
    shares = []
    for each in fragments:
        size = sizes.get(each.path) or SHARE_BYTES
        count = -(-size // SHARE_BYTES)
        shares += [
            Share(each.path, each.partition_expression, number, count, size // count)
            for number in range(count)
        ]
    return shares


@dataclass(frozen=True)
class _Reader(PartsReader):
    source: DeltaSource
    schema: pa.Schema  # All columns of the table.
    names: tuple[str, ...]
    parts: Sequence[Sequence[Share]]
    where: str

    @cached_property
    def _files(self) -> fs.FileSystem:
        return files_of(self.source.place, self.where)

    def read(self, share: Share) -> Iterator[list[Any]]:
        return map(decoder_of(self.source.elements), self._batches(share))

    def _batches(self, share: Share) -> Iterator[pa.RecordBatch]:
        try:
            format = ds.ParquetFileFormat()
            fragment = format.make_fragment(share.path, self._files, share.guarantee)
            groups = len(fragment.row_groups)
            first, last = (groups * place // share.count for place in (share.number, share.number + 1))
            if first == last:
                return
            if share.count > 1:
                ids = list(range(first, last))
                fragment = format.make_fragment(share.path, self._files, share.guarantee, row_groups=ids)
            yield from fragment.scanner(
                self.schema, columns=list(self.names), batch_size=_BATCH_ROWS
            ).to_batches()
        except OSError:
            what = f"the file {share.path} of the Delta table {self.source.place.shown} cannot be read"
            hint = "read a newer version: vacuum may have deleted it"
            fail_step(refusal(OSError, what, where=self.where, hint=hint), self.where)
