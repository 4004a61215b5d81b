"""What the footers of a few Parquet files on a local disk tell: Spark runs a job for their columns alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

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
    IntegralType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds, Range

_FILES_MAX = 16
"""With more files, a job that reads their footers side by side is no slower."""

_STATISTICS_MAX = 10_000
"""Each takes microseconds, and some files have thousands of columns."""

NOTED = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark notes its own schema in a file."""

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


@dataclass(frozen=True, eq=False)
class Footers:
    """What the footers of some files tell.

    Attributes:
        schema: The schema that all files have, as Spark would find it.
        bounds: How many rows they have, and how large the numbers in their columns are.
    """

    schema: StructType
    bounds: Bounds


def read_footers(paths: Sequence[str]) -> Footers | None:
    """What the footers of files tell; None if that is left to Spark.

    Args:
        paths: The files.
    """
    if len(paths) > _FILES_MAX:
        return None
    try:
        footers = [pq.read_metadata(path) for path in paths]
        first, *others = map(_schema_of, footers)
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None
    if first is None or any(other != first for other in others):
        return None
    return Footers(first, _bounds(footers, first))


def _bounds(footers: Sequence[pq.FileMetaData], schema: StructType) -> Bounds:
    whole = [field.name for field in schema if isinstance(field.dataType, IntegralType)]
    if len(whole) * sum(footer.num_row_groups for footer in footers) > _STATISTICS_MAX:
        return UNBOUNDED
    ranges = {name: _range(name, footers) for name in whole}
    rows = sum(footer.num_rows for footer in footers)
    return Bounds(rows, {name: found for name, found in ranges.items() if found is not None})


def _range(name: str, footers: Sequence[pq.FileMetaData]) -> Range | None:
    """The range of a column in all row groups that have rows; None if one of them does not tell."""
    ends: list[int] = []
    for footer in footers:
        # Who renamed the columns of a file of Spark's may have left Spark's note as it was.
        if name not in footer.schema.names:
            return None
        place = footer.schema.names.index(name)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            found = group.column(place).statistics
            if found is not None and found.has_min_max:
                ends += (found.min, found.max)
            elif found is None or not found.has_null_count or found.null_count < group.num_rows:
                return None
    # Values of a type that is no whole number to everybody are not believed.
    return Range(min(ends), max(ends)) if ends and all(type(end) is int for end in ends) else None


def _schema_of(footer: pq.FileMetaData) -> StructType | None:
    """One file's schema. Spark notes its own in each file that it writes, and believes that."""
    noted = (footer.metadata or {}).get(NOTED)
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
