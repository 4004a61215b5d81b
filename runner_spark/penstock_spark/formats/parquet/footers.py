"""What the footers of Parquet files on a local disk tell: Spark runs a job for their columns alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from penstock.io.parquetio import ParquetSource
from penstock_spark.files.finding import local_paths
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds, Range
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.sources.partition_values import partition_values


class UnknownType(T.DataType):
    """The type of a column that is not listed here; a plain `DataType` would equal every other one."""


UNKNOWN = UnknownType()

_FILES_MAX = 16
"""With more files, a job that reads their footers in parallel is as fast."""

_STATISTICS_MAX = 10_000
"""Each takes microseconds, and some files have thousands of columns."""

_NOTED = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark notes its own schema in a file."""

_DIGITS_MAX = 38
_SIMPLE: dict[pa.DataType, T.DataType] = {
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
    pa.uint64(): T.DecimalType(20, 0),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.string(): T.StringType(),
    pa.large_string(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.large_binary(): T.BinaryType(),
    pa.date32(): T.DateType(),
    pa.date64(): T.DateType(),
}

_CERTAIN = (
    *(
        T.BooleanType(),
        T.ByteType(),
        T.ShortType(),
        T.IntegerType(),
        T.LongType(),
        T.FloatType(),
        T.DoubleType(),
    ),
    *(T.DateType(), T.TimestampType(), T.StringType()),
)
"""The types that no setting of Spark's changes."""


@dataclass(frozen=True, eq=False)
class Footers:
    schema: T.StructType  # The common schema of all files, as Spark would find it.
    bounds: Bounds


def read_footers(paths: Sequence[str]) -> Footers | None:
    """What the footers of files show; None if Spark must read them."""
    if len(paths) > _FILES_MAX:
        return None
    try:
        footers = [pq.read_metadata(path) for path in paths]
        first, *others = map(_certain_schema_of, footers)
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None
    if first is None or any(other != first for other in others):
        return None
    return Footers(first, _bounds(footers, first))


def merged_schema(paths: Sequence[str]) -> T.StructType:
    """The columns of all files; a column with several types is `UNKNOWN`."""
    return reduce(merged, map(schema_of_footer, map(pq.read_metadata, paths)))


def schema_before_opening(source: ParquetSource) -> T.StructType | None:
    """The schema of the first file on a local disk, which the others should share; None if unknown."""
    if source.columns is not None:
        return None
    try:
        paths = local_paths(source.file_pattern)
        values = partition_values(source.partition_by, source.schema, "")
        return values.with_columns(from_arrow_schema(pq.read_schema(paths[0]))) if paths else None
    except (OSError, pa.ArrowException, PySparkException, TypeError, ValueError):
        return None


def _bounds(footers: Sequence[pq.FileMetaData], schema: T.StructType) -> Bounds:
    whole = [field.name for field in schema if isinstance(field.dataType, T.IntegralType)]
    if len(whole) * sum(footer.num_row_groups for footer in footers) > _STATISTICS_MAX:
        return UNBOUNDED
    ranges = {name: _range(name, footers) for name in whole}
    rows = sum(footer.num_rows for footer in footers)
    return Bounds(rows, {name: found for name, found in ranges.items() if found is not None})


def _range(name: str, footers: Sequence[pq.FileMetaData]) -> Range | None:
    """The range of a column in all row groups that have rows; None if one of them has no statistics."""
    ends: list[int] = []
    for footer in footers:
        # Somebody may have renamed the columns of a file without changing Spark's note.
        if name not in footer.schema.names:
            return None
        place = footer.schema.names.index(name)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            found = group.column(place).statistics
            if found is not None and found.has_min_max:
                ends += (found.min, found.max)
            elif found is None or not found.has_null_count or found.null_count < group.num_rows:
                return None
    # Only statistics of integers mean the same to every writer.
    return Range(min(ends), max(ends)) if ends and all(type(end) is int for end in ends) else None


def _certain_schema_of(footer: pq.FileMetaData) -> T.StructType | None:
    schema = schema_of_footer(footer)
    is_certain = all(field.dataType in _CERTAIN and not field.metadata for field in schema)
    # Spark reads some numbers without a sign as larger numbers, others as what their bits would be with one.
    logical = [str(footer.schema.column(place).logical_type) for place in range(len(footer.schema))]
    if not is_certain or any("isSigned=false" in each for each in logical):
        return None
    return T.StructType([T.StructField(field.name, field.dataType) for field in schema])


def schema_of_footer(footer: pq.FileMetaData) -> T.StructType:
    """The schema of a file: the one that Spark noted in it, if Spark wrote it."""
    noted = (footer.metadata or {}).get(_NOTED)
    if noted is None:
        return struct_of(footer.schema.to_arrow_schema())
    parsed = T.StructType.fromJson(json.loads(noted))
    assert isinstance(parsed, T.StructType)
    return parsed


def merged(one: T.StructType, other: T.StructType) -> T.StructType:
    others = {field.name: field for field in other}
    fields = [
        T.StructField(field.name, _common(field.dataType, others[field.name].dataType))
        if field.name in others
        else field
        for field in one
    ]
    return T.StructType([*fields, *(field for field in other if field.name not in one.names)])


def _common(one: T.DataType, other: T.DataType) -> T.DataType:
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return merged(one, other)
    return one if one == other else UNKNOWN


def struct_of(fields: pa.Schema | pa.StructType) -> T.StructType:
    return T.StructType([T.StructField(field.name, _type_of(field.type)) for field in fields])


def _type_of(kind: pa.DataType) -> T.DataType:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_dictionary(kind):
        return _type_of(kind.value_type)
    if pa.types.is_struct(kind):
        return struct_of(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return T.ArrayType(_type_of(kind.value_type))
    if pa.types.is_map(kind):
        return T.MapType(_type_of(kind.key_type), _type_of(kind.item_type))
    if pa.types.is_decimal(kind) and kind.precision <= _DIGITS_MAX:
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return T.TimestampNTZType() if kind.tz is None else T.TimestampType()
    # The file holds a length of time as a plain number.
    return T.LongType() if pa.types.is_duration(kind) else UNKNOWN
