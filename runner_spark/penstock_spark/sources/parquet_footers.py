"""The columns of a few Parquet files on a local disk, read from their footers: Spark runs a job for that."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_FILES_MAX = 16
"""With more files, a job that reads their footers side by side is no slower."""

_NOTED = b"org.apache.spark.sql.parquet.row.metadata"

_KINDS: dict[tuple[str, str], DataType] = {
    ("BOOLEAN", "None"): BooleanType(),
    ("INT32", "None"): IntegerType(),
    ("INT32", "Int(bitWidth=8, isSigned=true)"): ByteType(),
    ("INT32", "Int(bitWidth=16, isSigned=true)"): ShortType(),
    ("INT32", "Int(bitWidth=32, isSigned=true)"): IntegerType(),
    ("INT32", "Date"): DateType(),
    ("INT64", "None"): LongType(),
    ("INT64", "Int(bitWidth=64, isSigned=true)"): LongType(),
    ("FLOAT", "None"): FloatType(),
    ("DOUBLE", "None"): DoubleType(),
    ("BYTE_ARRAY", "String"): StringType(),
}
"""Spark's types, by the physical and the logical one of a column; only those that no setting of Spark's changes."""

_INSTANTS = tuple(f"Timestamp(isAdjustedToUTC=true, timeUnit={unit}seconds" for unit in ("micro", "milli"))


def schema_of_footers(paths: Sequence[str]) -> StructType | None:
    """The schema that all files have, as Spark would find it; None if that is left to Spark.

    Args:
        paths: The files.
    """
    if len(paths) > _FILES_MAX:
        return None
    try:
        first, *others = (_schema_of(pq.read_metadata(path)) for path in paths)
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None
    return first if all(other == first for other in others) else None


def _schema_of(footer: pq.FileMetaData) -> StructType | None:
    """One file's schema. Spark notes its own in each file that it writes, and believes that."""
    noted = (footer.metadata or {}).get(_NOTED)
    if noted is None:
        fields = [_field(footer.schema.column(place)) for place in range(len(footer.schema))]
    else:
        fields = [_plain(field) for field in StructType.fromJson(json.loads(noted))]
    known = [field for field in fields if field is not None]
    return StructType(known) if len(known) == len(fields) else None


def _field(column: pq.ColumnSchema) -> StructField | None:
    """A column as a field; None if it is part of a list, a map or a record, or of a type that is not listed here."""
    logical = str(column.logical_type)
    kind = _KINDS.get((column.physical_type, logical))
    if column.physical_type == "INT64" and logical.startswith(_INSTANTS):
        kind = TimestampType()
    is_flat = column.path == column.name and column.max_repetition_level == 0
    return StructField(column.name, kind) if kind is not None and is_flat else None


def _plain(field: StructField) -> StructField | None:
    is_plain = field.dataType in (*_KINDS.values(), TimestampType()) and not field.metadata
    return StructField(field.name, field.dataType) if is_plain else None
