"""Parquet files through Spark's reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from penstock.error import three_parts
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSource, provide_row_groups
from penstock_spark.arrow.values import to_dicts, to_rows, to_tables
from penstock_spark.files.finding import find_files
from penstock_spark.plan.column_bounds import UNBOUNDED
from penstock_spark.session.session import empty_frame
from penstock_spark.sources.parquet_footers import Footers, read_footers
from penstock_spark.sources.scan import Decoder, Scan, open_source

DECODERS: dict[str, Decoder] = {"dict": to_dicts, "row": to_rows, "table": to_tables}
"""What makes elements of batches, by what an element is."""


def row_groups(file: BinaryIO, columns: list[str] | None) -> Iterator[pa.Table]:
    """One table for each row group of an open Parquet file, for ``ReadAllFromParquet``.

    Args:
        file: The file.
        columns: The wanted columns; None means all.
    """
    opened = pq.ParquetFile(file)
    for number in range(opened.num_row_groups):
        yield opened.read_row_group(number, columns)


provide_row_groups(row_groups)


@open_source.register
def open_parquet(source: ParquetSource, spark: SparkSession, where: str) -> Scan:
    """Dicts, Rows or tables. A column that only some files have is None in the others."""
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    decoder = DECODERS[source.elements]
    if not files.paths:
        return Scan(empty_frame(spark, StructType().add("nothing", "integer")), lambda: decoder)
    footers = read_footers(files.paths) if FileSystems.get_scheme(files.pattern) is None else None
    frame = None
    if footers is None:
        frame = files.load(spark.read.option("mergeSchema", True), "parquet")
        footers = Footers(frame.schema, UNBOUNDED)
    schema = footers.schema
    if source.columns is not None:
        frame, schema = None, pruned(schema, source.columns, where)
    frame = frame or files.load(spark.read.schema(schema), "parquet")
    return Scan(frame, lambda: decoder, bounds=footers.bounds)


def pruned(schema: StructType, columns: tuple[str, ...], where: str) -> StructType:
    """The schema with the wanted columns only, in the order of the file; a name stands for all that is below
    it.
    """
    missing = [name for name in columns if not _has(schema, name.split("."))]
    if missing:
        raise ValueError(
            three_parts(
                f"the files have no columns {', '.join(missing)}",
                where=where,
                hint=f"they have {', '.join(schema.names)}",
            )
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
