"""The columns of Parquet files on a local disk as Spark will find them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock_spark.sources.parquet_footers import NOTED

UNKNOWN = DataType()
"""The type of a column that is not listed here."""

_DIGITS_MAX = 38
_SIMPLE: dict[pa.DataType, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.date64(): DateType(),
}


def merged_schema(paths: Sequence[str]) -> StructType | None:
    """The columns of all files; a column that files have with other types is `UNKNOWN`. None if there is no file.

    Args:
        paths: The files.

    Raises:
        OSError: One cannot be read.
        ArrowException: One is no Parquet file.
    """
    return reduce(_merged, map(_schema_of, paths)) if paths else None


def _schema_of(path: str) -> StructType:
    """The schema of a file. Spark notes its own in each file that it writes, and believes that."""
    with pq.ParquetFile(path) as file:
        noted = (file.metadata.metadata or {}).get(NOTED)
        if noted is not None:
            parsed = StructType.fromJson(json.loads(noted))
            assert isinstance(parsed, StructType)
            return parsed
        return _struct_of(file.schema_arrow)


def _merged(one: StructType, other: StructType) -> StructType:
    others = {field.name: field for field in other}
    fields = [
        StructField(field.name, _common(field.dataType, others[field.name].dataType))
        if field.name in others
        else field
        for field in one
    ]
    return StructType([*fields, *(field for field in other if field.name not in one.names)])


def _common(one: DataType, other: DataType) -> DataType:
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _merged(one, other)
    return one if one == other else UNKNOWN


def _struct_of(fields: pa.Schema | pa.StructType) -> StructType:
    return StructType([StructField(field.name, _type_of(field.type)) for field in fields])


def _type_of(kind: pa.DataType) -> DataType:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_dictionary(kind):
        return _type_of(kind.value_type)
    if pa.types.is_struct(kind):
        return _struct_of(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ArrayType(_type_of(kind.value_type))
    if pa.types.is_map(kind):
        return MapType(_type_of(kind.key_type), _type_of(kind.item_type))
    if pa.types.is_decimal(kind) and kind.precision <= _DIGITS_MAX:
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return TimestampNTZType() if kind.tz is None else TimestampType()
    # The file holds a length of time as a plain number.
    return LongType() if pa.types.is_duration(kind) else UNKNOWN
