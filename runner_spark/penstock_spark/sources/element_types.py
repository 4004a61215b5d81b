"""The types of a source's elements, as far as they can be told while a pipeline is written.

A DataFrame and a given schema tell them at once. Files on a local disk are opened: the footers of Parquet files, the
first megabytes of CSV and JSON files. For all else a session is asked that is running already; none is started.
Whatever is wrong with a file is said when the pipeline opens it, with the step named; here it only has no types.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.graph import Source
from penstock.io.columnar import CsvSource, JsonSource
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSource
from penstock.io.paths import known_path
from penstock.io.sparkio import DataFrameSource, SparkSource
from penstock_spark.files.finding import Files, find_files
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.csv_sample import type_of_csv
from penstock_spark.sources.json_sample import type_of_json
from penstock_spark.sources.parquet import pruned
from penstock_spark.sources.parquet_schemas import merged_schema
from penstock_spark.sources.scan import open_source
from penstock_spark.sources.schema_text import schema_of_text
from penstock_spark.sources.tables import check_names


@functools.singledispatch
def element_type_of(source: Source, spark: SparkSession | None, where: str) -> Any:
    """The type of a source's elements; None if it is not known before the source is opened.

    Args:
        source: A description from `penstock.io`.
        spark: A session that is running, if any.
        where: The step, for errors.

    Raises:
        ValueError: Two columns of a DataFrame have one name.
    """
    return None


@element_type_of.register
def type_of_frame(source: DataFrameSource, spark: SparkSession | None, where: str) -> Any:
    """That of the frame's rows."""
    check_names(source.frame, where)
    return hint_of_schema(source.frame.schema, "row")


@element_type_of.register
def type_of_table(source: SparkSource, spark: SparkSession | None, where: str) -> Any:
    """By the given schema, or by Spark."""
    schema = source.schema
    if isinstance(schema, str):
        schema = schema_of_text(schema)
    if schema is None:
        schema = _found_by_spark(source, spark)
    return None if schema is None else hint_of_schema(schema, "row")


@element_type_of.register
def type_of_parquet(source: ParquetSource, spark: SparkSession | None, where: str) -> Any:
    """By the footers, or by Spark."""
    with contextlib.suppress(Exception):
        files = _local_files(source.file_pattern)
        schema = _found_by_spark(source, spark) if files is None else merged_schema(files.paths)
        if schema is None:
            return None
        if source.columns is not None and files is not None:
            schema = pruned(schema, source.columns, "")
        return hint_of_schema(schema, source.elements, is_file=True)
    return None


@element_type_of.register
def type_of_csv_files(source: CsvSource, spark: SparkSession | None, where: str) -> Any:
    """By the first megabytes."""
    with contextlib.suppress(Exception):
        files = _local_files(source.file_pattern)
        return None if files is None else type_of_csv(source, files.paths)
    return None


@element_type_of.register
def type_of_json_files(source: JsonSource, spark: SparkSession | None, where: str) -> Any:
    """By all of the data, if there are few megabytes of it."""
    with contextlib.suppress(Exception):
        files = _local_files(source.file_pattern)
        return None if files is None else type_of_json(source, files.paths)
    return None


def _local_files(path: Any) -> Files | None:
    """The files of a pattern; None if they are not on a local disk, or there are none yet."""
    pattern = known_path(path)
    if pattern is None or FileSystems.get_scheme(pattern) is not None:
        return None
    # A local pattern needs no session.
    return find_files(None, pattern, "")  # type: ignore[arg-type]


def _found_by_spark(source: Source, spark: SparkSession | None) -> StructType | None:
    if spark is None:
        return None
    with contextlib.suppress(Exception):
        return open_source(source, spark, "").frame.schema
    return None
