"""Opening sources: each description in `penstock.io` becomes a DataFrame and a decoder of its batches."""

from __future__ import annotations

from penstock_spark.sources import csv_files, json_files, parquet, sequences, tables, text
from penstock_spark.sources.scan import Decoder, Scan, open_source

__all__ = [
    "Decoder",
    "Scan",
    "csv_files",
    "json_files",
    "open_source",
    "parquet",
    "sequences",
    "tables",
    "text",
]
