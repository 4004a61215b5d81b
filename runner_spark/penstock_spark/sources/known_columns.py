"""Sources whose elements are the rows of a frame, field by field: what is known of their columns, open or not."""

from __future__ import annotations

import glob
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.graph import Source, Step
from penstock.io.filesystems import FileSystems
from penstock.io.parquetio import ParquetSource
from penstock.io.sparkio import DataFrameSource, SparkSource
from penstock_spark.plan.column_kinds import NotInColumns
from penstock_spark.plan.column_plan import Table


def records_of(source: Source) -> str:
    """What an element of a source is, ``"dict"`` or ``"row"``.

    Raises:
        NotInColumns: It is not a row of the source's frame.
    """
    match source:
        case ParquetSource(elements="dict" | "row" as records):
            return records
        case SparkSource() | DataFrameSource():
            return "row"
    raise NotInColumns(f"the elements of {source.describe()} are not its rows")


def table_of_schema(schema: StructType, records: str) -> Table:
    """The columns of an open source.

    Raises:
        NotInColumns: Spark cannot tell two of them apart.
    """
    if len({name.lower() for name in schema.names}) < len(schema.names):
        raise NotInColumns("some names of columns differ in capital letters only")
    return Table(tuple((field.name, field.dataType) for field in schema), records)


def table_before_opening(step: Step, source: Source) -> Table:
    """The columns of a source as far as they can be known without Spark; `explain` starts nothing.

    Raises:
        NotInColumns: They will only be known when it is opened.
    """
    records = records_of(source)
    schema = None
    match source:
        case DataFrameSource(frame):
            schema = frame.schema
        case SparkSource(schema=StructType() as given):
            schema = given
        case ParquetSource(file_pattern, columns=None) if FileSystems.get_scheme(str(file_pattern)) is None:
            schema = _first_schema(str(file_pattern))
    if schema is None:
        raise NotInColumns(f"the columns of {source.describe()} are only known when it is opened")
    return table_of_schema(schema, records)


def _first_schema(pattern: str) -> Any:
    """The schema of the first file, which the others will have too, or None."""
    for path in sorted(glob.iglob(pattern)):
        try:
            return from_arrow_schema(pq.read_schema(path))
        except (OSError, pa.ArrowException, PySparkException, TypeError):
            return None
    return None
