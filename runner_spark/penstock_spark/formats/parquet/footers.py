"""What the footers of Parquet files on a local disk tell: Spark runs a job for their columns alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_WIDER: dict[frozenset[type[T.DataType]], T.DataType] = {
    **{frozenset((small, large)): large() for at, large in enumerate(_WHOLE) for small in _WHOLE[:at]},
    # A double has all numbers of 32 bits, but not all of 64.
    **{frozenset((small, T.DoubleType)): T.DoubleType() for small in (*_WHOLE[:3], T.FloatType)},
    **{frozenset((small, T.FloatType)): T.FloatType() for small in _WHOLE[:2]},
    frozenset((T.IntegerType, T.FloatType)): T.DoubleType(),
}
"""The type of numbers that has all values of two types."""

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
    """The columns of all files; a column whose types have none in common is `UNKNOWN`."""
    return reduce(merged, map(schema_of_footer, map(pq.read_metadata, paths)))


def schema_for_spark(footers: Iterable[pq.FileMetaData]) -> T.StructType:
    """The columns of all files with types in which Spark reads each of them; `UNKNOWN` for other columns."""
    schema = T.StructType()
    for footer in footers:
        fields = footer.schema.to_arrow_schema()
        readable = [
            T.StructField(
                field.name, UNKNOWN if has_nanoseconds(fields.field(field.name).type) else field.dataType
            )
            for field in schema_of_footer(footer)
        ]
        schema = merged(schema, T.StructType(readable))
    return schema


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Whether times with nanoseconds are in values of a type, at any depth.

    >>> has_nanoseconds(pa.list_(pa.timestamp("ns"))), has_nanoseconds(pa.timestamp("us", "UTC"))
    (True, False)
    """
    return "[ns" in str(kind)


def types_of_column(footers: Mapping[str, pq.FileMetaData], name: str) -> list[tuple[str, str]]:
    """The types that a column has in some files, each with the first file that has it."""
    found: dict[str, str] = {}
    for path, footer in footers.items():
        schema = footer.schema.to_arrow_schema()
        if name in schema.names:
            found.setdefault(str(schema.field(name).type), path)
    return list(found.items())


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
    # Spark reads some numbers without a sign as larger numbers, others as what their bits would be with one. It does
    # not read nanoseconds.
    logical = [str(footer.schema.column(place).logical_type) for place in range(len(footer.schema))]
    if not is_certain or any("isSigned=false" in each or "nanoseconds" in each for each in logical):
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


Common = Callable[[T.DataType, T.DataType], T.DataType]
"""From two types of a column to the one that both have in common, or `UNKNOWN`."""


def merged(one: T.StructType, other: T.StructType) -> T.StructType:
    """The columns of both, with types that have all values of both; `UNKNOWN` where there is none."""
    return _merged(one, other, _wider)


def merged_as_they_are(one: T.StructType, other: T.StructType) -> T.StructType:
    """The columns of both; `UNKNOWN` where they have different types."""
    return _merged(one, other, _same)


def _merged(one: T.StructType, other: T.StructType, common: Common) -> T.StructType:
    others = {field.name: field for field in other}
    fields = [
        T.StructField(field.name, common(field.dataType, others[field.name].dataType))
        if field.name in others
        else field
        for field in one
    ]
    return T.StructType([*fields, *(field for field in other if field.name not in one.names)])


def _same(one: T.DataType, other: T.DataType) -> T.DataType:
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return merged_as_they_are(one, other)
    return one if one == other else UNKNOWN


def _wider(one: T.DataType, other: T.DataType) -> T.DataType:
    match one, other:
        case T.StructType(), T.StructType():
            return merged(one, other)
        case T.ArrayType(elementType=item), T.ArrayType(elementType=other_item):
            return T.ArrayType(_wider(item, other_item))
        case T.MapType(keyType=key, valueType=value), T.MapType(keyType=other_key, valueType=other_value):
            return T.MapType(_wider(key, other_key), _wider(value, other_value))
        case T.NullType(), _:
            return other
        case _, T.NullType():
            return one
        case T.DecimalType(), T.DecimalType():
            scale = max(one.scale, other.scale)
            digits = max(one.precision - one.scale, other.precision - other.scale) + scale
            return T.DecimalType(digits, scale) if digits <= _DIGITS_MAX else UNKNOWN
    return one if one == other else _WIDER.get(frozenset((type(one), type(other))), UNKNOWN)


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
    if pa.types.is_timestamp(kind):
        return T.TimestampNTZType() if kind.tz is None else T.TimestampType()
    if pa.types.is_null(kind):
        return T.NullType()
    # The file holds a length of time as a plain number.
    return T.LongType() if pa.types.is_duration(kind) else UNKNOWN
