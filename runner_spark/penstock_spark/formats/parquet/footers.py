"""Reads the footers of Parquet files on a local disk, since Spark runs a job for their columns alone."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from penstock.io.parquetio import ParquetSource
from penstock.values.types import BOOLEAN, DATE, FLOAT, INSTANT, INTEGER, TEXT
from penstock_spark.columns.common_types import merge_types
from penstock_spark.columns.types import (
    UNKNOWN,
    ArrowOnly,
    UnknownType,
    change_single_types,
    has_like_names,
    in_spark,
    is_unsupported_by_spark,
    spark_type_of,
    struct_of,
)
from penstock_spark.columns.values import has_nanoseconds
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.finding import find_local_paths, look_at_all
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds, Range
from penstock_spark.sources.partition_values import partition_values

_FILES_MAX = 16
"""With more files, a job that reads their footers in parallel is as fast."""

_STATISTICS_MAX = 10_000
"""Each takes microseconds, and some files have thousands of columns."""

_NOTED = b"org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark notes its own schema in a file."""

_ARROW_NOTE = b"\x18\x0cARROW:schema\x18"
"""The key of the types that Arrow notes, with its length and what stands around it in a footer."""

_NO_NOTE = _ARROW_NOTE.replace(b"ARROW", b"-----")

_CERTAIN = tuple(kind for value in (BOOLEAN, INTEGER, FLOAT, DATE, INSTANT, TEXT) for kind in in_spark(value))
"""The types that no setting of Spark changes."""


@dataclass(frozen=True, eq=False)
class Footers:
    schema: T.StructType  # The common schema of all files, as Spark would find it.
    bounds: Bounds


def read_footers(paths: Iterable[str]) -> dict[str, pq.FileMetaData] | None:
    """The footers of files on a local disk; None if one cannot be read, of which Spark says more."""
    paths = list(paths)
    try:
        footers = dict(zip(paths, look_at_all(paths, pq.read_metadata), strict=True))
        merge_schemas(footers.values())  # The note of Spark may also be damaged.
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


def merge_schemas(footers: Iterable[pq.FileMetaData]) -> T.StructType:
    """The columns of all files; a column whose types have none in common is `UNKNOWN`."""
    return reduce(merge_types, map(schema_of_footer, footers), T.StructType())


def values_schema(footer: pq.FileMetaData) -> pa.Schema:
    """The columns of a file with the types of their values: INT96 is an instant, which pyarrow does not know.

    All lists are plain ones, since pyarrow does not read those of one length that have nulls beside them.
    """
    own: pa.Schema = footer.schema.to_arrow_schema()
    physical = iter([footer.schema.column(place).physical_type for place in range(len(footer.schema))])

    def in_python(kind: pa.DataType) -> pa.DataType:
        return pa.timestamp("us", "UTC") if next(physical) == "INT96" else kind

    return pa.schema(
        [field.with_type(change_single_types(field.type, in_python, plain_lists=True)) for field in own]
    )


def has_fixed_lists(footer: pq.FileMetaData) -> bool:
    """True if a note in a file says that some of its lists, at any depth, have one length."""
    return "fixed_size_list<" in str(footer.schema.to_arrow_schema().types)


def without_note_of_types(footer: pq.FileMetaData) -> pq.FileMetaData:
    """A footer whose columns have the types of the format, without those that Arrow has noted in the file."""
    content = io.BytesIO()
    footer.write_metadata_file(content)
    # Pyarrow has no way to leave the note out; a key of the same length is as good.
    return pq.read_metadata(io.BytesIO(content.getvalue().replace(_ARROW_NOTE, _NO_NOTE)))


def is_read_by_spark(
    footers: Collection[pq.FileMetaData], schema: T.StructType, wanted: Sequence[str]
) -> bool:
    """True if Spark reads the wanted columns of all files, which have this schema, with their own values.

    It takes a duration for a number, a number without a sign for a Decimal, and columns whose names differ in
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
    """True if pandas wrote a file: its columns without any values have the type null, which Spark does not read."""
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
    # The file has plain numbers for types that pyarrow has and the format lacks.
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
    try:
        pattern = source.file_pattern
        # A stream takes a folder for its files.
        paths = find_local_paths(
            f"{str(pattern).rstrip('/')}/*" if DiskFiles().is_folder(str(pattern)) else pattern
        )
        values = partition_values(source.partition_by, source.schema, "")
        if not paths:
            return None
        schema = values.with_columns(schema_of_footer(pq.read_metadata(paths[0])))
        if source.columns is not None:
            # Other names belong to fields inside of columns.
            if not set(source.columns) <= set(schema.names):
                return None
            schema = T.StructType([schema[name] for name in source.columns])
        # Only Python reads some columns.
        return None if is_unsupported_by_spark(schema) else schema
    except (OSError, pa.ArrowException, PySparkException, TypeError, ValueError):
        return None


def _bounds(footers: Sequence[pq.FileMetaData], schema: T.StructType) -> Bounds:
    whole = [field.name for field in schema if isinstance(field.dataType, T.IntegralType)]
    if len(whole) * sum(footer.num_row_groups for footer in footers) > _STATISTICS_MAX:
        return UNBOUNDED
    ranges = {name: _range(name, footers) for name in whole}
    rows = sum(footer.num_rows for footer in footers)
    return Bounds(rows, {name: found for name, found in ranges.items() if found is not None})


def count_nulls(footer: pq.FileMetaData, names: Collection[str]) -> dict[str, int | None]:
    """The numbers of nulls in columns, which are all values of a column that the file lacks; None if unknown."""
    own = footer.schema.to_arrow_schema().names
    # A column that has columns in it has no place.
    places = {footer.schema.column(each).path: each for each in range(len(footer.schema))}
    counts: dict[str, int | None] = {}
    for name in names:
        if name not in own:
            counts[name] = int(footer.num_rows)
        else:
            counts[name] = _count_nulls_at(footer, places[name]) if name in places else None
    return counts


def _count_nulls_at(footer: pq.FileMetaData, place: int) -> int | None:
    count = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        found = group.column(place).statistics
        if found is None or not found.has_null_count:
            return None
        count += int(found.null_count)
    return count


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
