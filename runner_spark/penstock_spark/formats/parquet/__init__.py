"""Parquet files: dicts, rows or tables of records."""

from __future__ import annotations

from penstock.io.parquetio import ParquetSource
from penstock_spark.formats.format import Format
from penstock_spark.formats.parquet.footers import schema_before_opening
from penstock_spark.formats.parquet.scan import (
    open_parquet,
    open_parquet_stream,
    records_of_file,
    type_of_parquet,
)
from penstock_spark.formats.parquet.writer import parquet_files


def _records_of(source: ParquetSource) -> str | None:
    return None if source.elements == "table" else source.elements


PARQUET = Format(
    open_parquet,
    open_parquet_stream,
    type_of_parquet,
    records=_records_of,
    schema=schema_before_opening,
    files=parquet_files,
    read_file=records_of_file,
)
