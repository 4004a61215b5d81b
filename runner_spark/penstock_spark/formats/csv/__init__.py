"""CSV files: rows, with the types and the missing values that pandas would see."""

from __future__ import annotations

from penstock_spark.formats.csv.sample import type_of_csv
from penstock_spark.formats.csv.scan import open_csv
from penstock_spark.formats.csv.stream import open_csv_stream, open_csv_with_rejects, schema_before_opening
from penstock_spark.formats.csv.writer import csv_files
from penstock_spark.formats.format import Format
from penstock_spark.sources.file_samples import infer_type_from_files

CSV = Format(
    open_csv,
    open_csv_stream,
    infer_type_from_files(type_of_csv),
    records=lambda source: "row",
    schema=schema_before_opening,
    files=csv_files,
    open_with_rejects=open_csv_with_rejects,
)
