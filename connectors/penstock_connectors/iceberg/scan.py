"""An Iceberg table as rows: each task reads data files, without the rows that delete files name."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.checks.similar_names import hint_at_name
from penstock.error import UnsupportedByRunner, refusal
from penstock.io.iceberg import CatalogTable, IcebergSource
from penstock_connectors.iceberg.table import (
    arrow_columns,
    load_module,
    open_catalog,
    open_table,
    strip_history,
    translate_errors,
)
from penstock_spark.connecting.reading import (
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
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import DataScan, FileScanTask, Table
    from pyiceberg.table.metadata import TableMetadata


def open_iceberg(source: IcebergSource, spark: SparkSession, where: str) -> Scan:
    """Dicts or Rows of one snapshot, with the columns in the order of the table."""
    with open_catalog(source.place, where) as catalog:
        table = open_table(catalog, source.place, where)
        scan = _scan(table, source, where)
        files = plan_files(scan, source.place, where)
    if not files:
        return make_empty_scan(spark)
    tasks = distribute_parts(files, lambda file: file.file.file_size_in_bytes, parallelism_of(spark))
    reader = FilesReader(
        source, strip_history(table.metadata), table.io, scan.projection(), scan.row_filter, tasks, where
    )
    return scan_of_parts(spark, reader)


def type_of_iceberg(source: IcebergSource, spark: SparkSession | None, where: str) -> object:
    """By the metadata of the table, which is read when the transform is applied; None if that fails."""
    load_module("catalog", where)
    return hint_of_table(lambda: schema_of_iceberg(source), source.elements)


def schema_of_iceberg(source: IcebergSource) -> StructType | None:
    """The columns as Spark's types; None, so that Python reads the rows."""
    with open_catalog(source.place, "") as catalog:
        scan = _scan(open_table(catalog, source.place, ""), source, "")
    return schema_in_spark(arrow_columns(scan.projection(), ""))


def _scan(table: Table, source: IcebergSource, where: str) -> DataScan:
    """The scan of the table, which is checked."""
    snapshot_id = _snapshot(table, source, where)
    schema = table.schema()
    if snapshot_id is not None:
        schema = table.schemas().get(table.snapshot_by_id(snapshot_id).schema_id, schema)
    if source.columns is not None:
        known = [field.name for field in schema.fields]
        missing = [name for name in source.columns if name not in known]
        if missing:
            what = f"the Iceberg table {source.place.shown} has no columns {', '.join(missing)}"
            hint = hint_at_name(missing[0], known, f"it has {', '.join(known)}")
            raise refusal(ValueError, what, where=where, hint=hint)
    expressions = load_module("expressions", where)
    row_filter = expressions.AlwaysTrue()
    if source.filter is not None:
        try:
            row_filter = load_module("expressions.parser", where).parse(source.filter)
            for of in (table.schema(), schema):
                load_module("expressions.visitors", where).bind(of, row_filter, case_sensitive=True)
        except Exception as error:
            shown = str(error).partition("\n")[0]
            what = (
                f"the filter {source.filter!r} does not fit the Iceberg table {source.place.shown}: {shown}"
            )
            hint = "compare columns with values, such as \"points > 3 and team = 'red'\""
            raise refusal(ValueError, what, where=where, hint=hint) from None
    return table.scan(row_filter, source.columns or ("*",), snapshot_id=snapshot_id)


def _snapshot(table: Table, source: IcebergSource, where: str) -> int | None:
    """The snapshot to read; None for the current one."""
    found = None
    if source.snapshot_id is not None:
        found = table.snapshot_by_id(source.snapshot_id)
    elif source.as_of is not None:
        millis = int(datetime.datetime.fromisoformat(source.as_of).timestamp() * 1000)
        found = table.snapshot_as_of_timestamp(millis)
    else:
        return None
    if found is None:
        wanted = f"of {source.as_of}" if source.snapshot_id is None else str(source.snapshot_id)
        what = f"the Iceberg table {source.place.shown} has no snapshot {wanted}"
        hint = "table.history() lists the snapshots; old ones may have been expired"
        raise refusal(ValueError, what, where=where, hint=hint)
    return int(found.snapshot_id)


def plan_files(scan: DataScan, place: CatalogTable, where: str) -> list[Any]:
    """The files that may have rows of a scan, each with its delete files."""
    with translate_errors(place, "cannot be read", where):
        try:
            return list(scan.plan_files())
        except ValueError as error:
            if "equality deletes" not in str(error):
                raise
    raise UnsupportedByRunner(
        f"the Iceberg table {place.shown} has delete files that name rows by values, which pyiceberg does not read",
        where=where,
        hint="compact the table first, or read it with ReadFromSpark('iceberg', table) and Iceberg's own jar",
    )


@dataclass(frozen=True)
class FilesReader(PartsReader):
    source: IcebergSource
    metadata: TableMetadata
    io: FileIO
    projection: Schema
    row_filter: BooleanExpression
    parts: Sequence[Sequence[Any]]
    where: str

    def read(self, file: FileScanTask) -> Iterator[list[Any]]:
        return map(decoder_of(self.source.elements), self._batches(file))

    def _batches(self, file: FileScanTask) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches_of(
                file, self.source.place, self.metadata, self.io, self.projection, self.row_filter, self.where
            )
        except OSError as error:
            fail_step(error, self.where)


def batches_of(
    file: FileScanTask,
    place: CatalogTable,
    metadata: TableMetadata,
    io: FileIO,
    projection: Schema,
    row_filter: BooleanExpression,
    where: str,
) -> Iterator[pa.RecordBatch]:
    """The rows of a data file without those that are deleted, with the columns of the projection.

    OSError if it cannot be read; Arrow's own message may show values.
    """
    arrow = load_module("io.pyarrow", where)
    columns = arrow_columns(projection, where)
    try:
        scan = arrow.ArrowScan(metadata, io, projection, row_filter)
        deleted = arrow._read_all_delete_files(io, [file])
        # The public method would keep a whole file in memory.
        for batch in scan._record_batches_from_scan_tasks_and_deletes([file], deleted):
            yield batch if batch.schema.equals(columns) else batch.cast(columns)
    except Exception as error:
        name = file.file.file_path.rpartition("/")[2]
        what = f"the file {name} of the Iceberg table {place.shown} cannot be read"
        if isinstance(error, OSError):
            hint = "read a newer snapshot: the files of expired snapshots are deleted"
        else:
            what += f" ({type(error).__name__})"
            hint = "it is damaged, or pyiceberg cannot read it: restore it, or read it with Iceberg's own jar"
        raise refusal(OSError, what, where=where, hint=hint) from None
