"""The rows of a table that tasks read as Arrow: their types, and what makes elements of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from penstock_spark.columns.values import to_dicts, to_rows
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.scan import Decoder


def decoder_of(elements: str) -> Decoder:
    """Returns the function that makes elements of rows: ``"dict"`` or ``"row"``."""
    return to_dicts if elements == "dict" else to_rows


def schema_in_spark(columns: pa.Schema) -> StructType | None:
    """The columns as Spark has them; None if it has no type for one, so that only Python reads the rows.

    >>> schema_in_spark(pa.schema([("team", pa.string())])).names
    ['team']
    >>> schema_in_spark(pa.schema([("team", pa.dense_union([]))])) is None
    True
    """
    try:
        return from_arrow_schema(columns)
    except (PySparkException, TypeError):
        return None


def hint_of_table(schema: Callable[[], StructType | None], elements: str) -> object:
    """The type of the elements; None if the table cannot be asked, or Spark has no type for a column."""
    with contextlib.suppress(Exception):
        found = schema()
        return None if found is None else hint_of_schema(found, elements)
    return None
