"""What the footers of Parquet files on a local disk tell: Spark runs a job for their columns alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from penstock.io.parquetio import ParquetSource
from penstock.values.types import DECIMAL_DIGITS
from penstock_spark.arrow.types import (
    UNKNOWN,
    ArrowOnly,
    UnknownType,
    has_like_names,
    is_beyond_spark,
    is_list,
    spark_type_of,
    struct_of,
)
from penstock_spark.arrow.values import has_nanoseconds
from penstock_spark.files.file_system import LocalFiles
from penstock_spark.files.finding import local_paths
from penstock_spark.files.found_file import looked_at
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds, Range
from penstock_spark.sources.partition_values import partition_values

_FILES_MAX = 16
"""With more files, a job that reads their footers in parallel is as fast."""

_STATISTICS_MAX = 10_000
"""Each takes microseconds, and some files have thousands of columns."""

_NOTED = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark notes its own schema in a file."""

_ARROW_NOTE = b"\x18\x0cARROW:schema\x18"
"""The key of the types that Arrow notes, with its length and what stands around it in a footer."""

_NO_NOTE = _ARROW_NOTE.replace(b"ARROW", b"-----")

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


def read_footers(paths: Iterable[str]) -> dict[str, pq.FileMetaData] | None:
    """The footers of files on a local disk; None if one cannot be read, of which Spark says more."""
    paths = list(paths)
    try:
        footers = dict(zip(paths, looked_at(paths, pq.read_metadata), strict=True))
        merged_schema(footers.values())  # The note of Spark may also be damaged.
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None
    return footers


def certain_schema(footers: Sequence[pq.FileMetaData]) -> Footers | None:
    """The common schema of a few files, if it is certain that Spark would find the same; otherwise None."""
    if not footers or len(footers) > _FILES_MAX:
        return None
    first, *others = map(_certain_schema_of, footers)
    if first is None or any(other != first for other in others):
        return None
    return Footers(first, _bounds(footers, first))


def merged_schema(footers: Iterable[pq.FileMetaData]) -> T.StructType:
    """The columns of all files; a column whose types have none in common is `UNKNOWN`."""
    return reduce(merged, map(schema_of_footer, footers), T.StructType())


def values_schema(footer: pq.FileMetaData) -> pa.Schema:
    """The columns of a file with the types of their values: INT96 is an instant, which pyarrow does not know.

    All lists are plain ones, since pyarrow does not read those of one length that have nulls beside them.
    """
    own: pa.Schema = footer.schema.to_arrow_schema()
    fields = pa.schema([field.with_type(_with_plain_lists(field.type)) for field in own])
    physical = [footer.schema.column(place).physical_type for place in range(len(footer.schema))]
    if "INT96" not in physical:
        return fields
    kinds = iter(physical)
    return pa.schema([field.with_type(_with_instants(field.type, kinds)) for field in fields])


def has_fixed_lists(footer: pq.FileMetaData) -> bool:
    """True if a note in a file says that some of its lists, at any depth, have one length."""
    return "fixed_size_list<" in str(footer.schema.to_arrow_schema().types)


def without_note_of_types(footer: pq.FileMetaData) -> pq.FileMetaData:
    """A footer whose columns have the types of the format, without those that Arrow has noted in the file."""
    content = io.BytesIO()
    footer.write_metadata_file(content)
    # Pyarrow has no way to leave the note out; a key of the same length is as good.
    return pq.read_metadata(io.BytesIO(content.getvalue().replace(_ARROW_NOTE, _NO_NOTE)))


def _with_plain_lists(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_plain_lists(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key = _with_plain_lists(kind.key_type)
        return pa.map_(key, kind.item_field.with_type(_with_plain_lists(kind.item_type)))
    if is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_plain_lists(kind.value_type)))
    return kind


def _with_instants(kind: pa.DataType, physical: Iterator[str]) -> pa.DataType:
    """Replaces each single value of a type by an instant whose physical type, the next one, is INT96."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_instants(field.type, physical)) for field in kind])
    if pa.types.is_map(kind):
        key = _with_instants(kind.key_type, physical)
        return pa.map_(key, kind.item_field.with_type(_with_instants(kind.item_type, physical)))
    if is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_instants(kind.value_type, physical)))
    return pa.timestamp("us", "UTC") if next(physical) == "INT96" else kind


def is_read_by_spark(
    footers: Collection[pq.FileMetaData], schema: T.StructType, wanted: Sequence[str]
) -> bool:
    """True if Spark reads the wanted columns of all files, which have this schema, with their own values.

    It takes a length of time for a number, a number without a sign for a Decimal, and columns whose names differ in
    capital letters only for one. It refuses nanoseconds, times of day, nulls without a type where other files have
    one, and files without columns.
    """
    if has_like_names(schema) or not all(len(footer.schema) for footer in footers):
        return False
    kinds = {field.name: field.dataType for field in schema}
    return all(
        _is_read_as(own, kinds[name])
        for footer in footers
        for name, own in _kinds_in(footer)
        if name in wanted and name in kinds
    )


def is_of_pandas(footer: pq.FileMetaData) -> bool:
    """True if pandas wrote a file: it gives a column without any values the type null, which Spark does not read."""
    return b"pandas" in (footer.metadata or {})


def _kinds_in(footer: pq.FileMetaData) -> list[tuple[str, T.DataType]]:
    """The columns with their types; those that Spark does not read have one that is equal to no other."""
    if _NOTED in (footer.metadata or {}):
        return [(field.name, field.dataType) for field in schema_of_footer(footer)]
    fields = values_schema(footer)
    return [
        (field.name, UNKNOWN if _is_foreign(field.type) else spark_type_of(field.type)) for field in fields
    ]


def _is_foreign(kind: pa.DataType) -> bool:
    # Of what pyarrow has a type for and the format has not, the file has plain numbers.
    return has_nanoseconds(kind) or "duration[" in str(kind) or "halffloat" in str(kind)


def _is_read_as(own: T.DataType, wanted: T.DataType) -> bool:
    match own, wanted:
        case T.StructType(), T.StructType():
            return all(
                field.name in wanted.names and _is_read_as(field.dataType, wanted[field.name].dataType)
                for field in own
            )
        case T.ArrayType(elementType=item), T.ArrayType(elementType=other):
            return _is_read_as(item, other)
        case T.MapType(keyType=key, valueType=value), T.MapType(keyType=other_key, valueType=other_value):
            return _is_read_as(key, other_key) and _is_read_as(value, other_value)
    if isinstance(own, ArrowOnly | UnknownType):
        return False
    return own.simpleString() == wanted.simpleString()


def misfit_of(footer: pq.FileMetaData, schema: T.StructType) -> tuple[str, str, str] | None:
    """The first column whose values a schema does not hold, with its type and the one of the schema; None if none."""
    for field in schema_of_footer(footer):
        if field.name in schema.names and not _is_held(field.dataType, schema[field.name].dataType):
            return field.name, field.dataType.simpleString(), schema[field.name].dataType.simpleString()
    return None


def _is_held(own: T.DataType, wanted: T.DataType) -> bool:
    match own, wanted:
        case T.StructType(), T.StructType():
            return all(
                _is_held(field.dataType, wanted[field.name].dataType)
                for field in own
                if field.name in wanted.names
            )
        case T.ArrayType(elementType=item), T.ArrayType(elementType=other):
            return _is_held(item, other)
        case T.MapType(keyType=key, valueType=value), T.MapType(keyType=other_key, valueType=other_value):
            return _is_held(key, other_key) and _is_held(value, other_value)
    return _wider(own, wanted).simpleString() == wanted.simpleString()


def types_of_column(footers: Mapping[str, pq.FileMetaData], name: str) -> list[tuple[str, str]]:
    """The types that a column has in some files, each with the first file that has it."""
    found: dict[str, str] = {}
    for path, footer in footers.items():
        schema = values_schema(footer)
        if name in schema.names:
            found.setdefault(str(schema.field(name).type), path)
    return list(found.items())


def schema_before_opening(source: ParquetSource) -> T.StructType | None:
    """The schema of the first file on a local disk, which the others should share; None if unknown."""
    if source.columns is not None:
        return None
    try:
        pattern = source.file_pattern
        # A stream takes a folder for its files.
        paths = local_paths(
            f"{str(pattern).rstrip('/')}/*" if LocalFiles().is_folder(str(pattern)) else pattern
        )
        values = partition_values(source.partition_by, source.schema, "")
        if not paths:
            return None
        schema = values.with_columns(schema_of_footer(pq.read_metadata(paths[0])))
        # Only Python reads some columns.
        return None if is_beyond_spark(schema) else schema
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
        return struct_of(values_schema(footer))
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
            return T.DecimalType(digits, scale) if digits <= DECIMAL_DIGITS else UNKNOWN
    return one if one == other else _WIDER.get(frozenset((type(one), type(other))), UNKNOWN)
