"""The types of values as Arrow and Spark spell them: which columns may arrive, as what they are read, which one leaves.

This is the only place that says what an ``int64`` is. Columns that arrive are first brought to the types of `as_read`,
whose values pyarrow makes as the table of `penstock.values.types` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from penstock.utils.timestamp import Timestamp
from penstock.values import types as values
from penstock.values.types import ValueType
from penstock_spark.session.spark_versions import to_arrow_schema


@dataclass(frozen=True)
class Spelling:
    """A type of values as Arrow spells it."""

    value: ValueType
    leaves: pa.DataType  # The type of columns that are written.
    arrives: Callable[[pa.DataType], bool]
    # The type to which such columns are brought before Python reads them; None for their own.
    read_as: pa.DataType | None = None


def _is_small_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _is_text(kind: pa.DataType) -> bool:
    is_usual = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_usual or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    is_plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(is_plain or pa.types.is_fixed_size_binary(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None


SPELLINGS = (
    Spelling(values.BOOLEAN, pa.bool_(), pa.types.is_boolean),
    Spelling(values.INTEGER, pa.int64(), _is_small_whole),
    # Spark and most files and databases have no such integers.
    Spelling(values.UNSIGNED_INTEGER, pa.decimal128(20, 0), lambda kind: kind == pa.uint64()),
    Spelling(values.FLOAT, pa.float64(), pa.types.is_floating),
    Spelling(values.DECIMAL, pa.decimal128(values.DECIMAL_DIGITS, values.DECIMAL_SCALE), pa.types.is_decimal),
    Spelling(values.TEXT, pa.string(), _is_text),
    Spelling(values.BINARY, pa.binary(), _is_bytes),
    Spelling(values.DATE, pa.date32(), pa.types.is_date),
    Spelling(values.TIME, pa.time64("us"), pa.types.is_time, pa.time64("us")),
    Spelling(values.INSTANT, pa.timestamp("us", "UTC"), _is_instant, pa.timestamp("us", "UTC")),
    Spelling(values.LOCAL_TIME, pa.timestamp("us"), _is_local_time, pa.timestamp("us")),
    Spelling(values.DURATION, pa.duration("us"), pa.types.is_duration, pa.duration("us")),
    Spelling(values.NOTHING, pa.null(), pa.types.is_null),
)

_LEAVES: dict[Any, pa.DataType] = {each.value.hint: each.leaves for each in SPELLINGS} | {
    Timestamp: pa.timestamp("us", "UTC")
}


def leaves_as(hint: Any) -> pa.DataType | None:
    """The Arrow type in which values of a plain hint leave; None for other hints.

    >>> leaves_as(int), leaves_as(list)
    (DataType(int64), None)
    """
    return _LEAVES.get(hint)


def spelling_of(kind: pa.DataType) -> Spelling | None:
    """Returns the spelling that has a type of Arrow; None for types of several values, and if the table has none.

    >>> spelling_of(pa.uint8()).value.name, spelling_of(pa.list_(pa.uint8()))
    ('integer', None)
    """
    return next((each for each in SPELLINGS if each.arrives(kind)), None)


_BITS_OF_DIGITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}


def limits_of(kind: pa.DataType) -> str:
    """Says what a value of a type may be, as a clause for hints; empty for types of several values.

    >>> limits_of(pa.int32()), limits_of(pa.decimal128(5, 2)), limits_of(pa.list_(pa.int32()))
    ('an int has 32 bits', 'a Decimal has at most 5 digits, 2 of them behind the point', '')
    """
    if pa.types.is_floating(kind):
        return f"a float has {kind.bit_width} bits, {_BITS_OF_DIGITS[kind]} of them for its digits"
    if pa.types.is_integer(kind):
        return f"an int has {kind.bit_width} bits" + (" and no sign" if str(kind).startswith("u") else "")
    if pa.types.is_decimal(kind):
        return f"a Decimal has at most {kind.precision} digits, {kind.scale} of them behind the point"
    spelling = spelling_of(kind)
    return "" if spelling is None else spelling.value.limits


def as_read(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which Python reads a column: instants are in UTC, and times have microseconds.

    >>> as_read(pa.list_(pa.timestamp("ns", "Europe/Berlin"))), as_read(pa.duration("s")), as_read(pa.uint8())
    (ListType(list<item: timestamp[us, tz=UTC]>), DurationType(duration[us]), DataType(uint8))
    """
    if pa.types.is_struct(kind):
        made = pa.struct([field.with_type(as_read(field.type)) for field in kind])
    elif pa.types.is_map(kind):
        made = pa.map_(as_read(kind.key_type), kind.item_field.with_type(as_read(kind.item_type)))
    elif is_list(kind):
        made = pa.list_(kind.value_field.with_type(as_read(kind.value_type)))
        # A list of another form has the same values.
        return kind if made.value_type == kind.value_type else made
    elif pa.types.is_dictionary(kind):
        value = as_read(kind.value_type)
        return kind if value == kind.value_type else value
    else:
        spelling = spelling_of(kind)
        return kind if spelling is None or spelling.read_as is None else spelling.read_as
    return kind if made == kind else made


def is_list(kind: pa.DataType) -> bool:
    is_usual = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(is_usual or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


class ArrowOnly(T.DataType):
    """The type of a column that only pyarrow reads, because Spark has no type with its values."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    @classmethod
    def typeName(cls) -> str:
        return "arrow"

    def simpleString(self) -> str:
        return str(self.kind)


class UnknownType(T.DataType):
    """The type of a column that no border reads; a plain `DataType` would equal every other one."""


UNKNOWN = UnknownType()

_WHOLE: dict[pa.DataType, T.DataType] = {
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
}
_IN_SPARK: dict[str, T.DataType] = {
    values.BOOLEAN.name: T.BooleanType(),
    values.TEXT.name: T.StringType(),
    values.BINARY.name: T.BinaryType(),
    values.DATE.name: T.DateType(),
    values.INSTANT.name: T.TimestampType(),
    values.LOCAL_TIME.name: T.TimestampNTZType(),
    values.DURATION.name: T.DayTimeIntervalType(),
    values.NOTHING.name: T.NullType(),
}
"""The types of which Spark has only one."""


_FLOATS = (T.FloatType(), T.DoubleType())


def hints_in_spark() -> dict[type[T.DataType], Any]:
    """The hint for the values of each type of single values in Spark, except decimals.

    >>> hints_in_spark()[T.ShortType], hints_in_spark()[T.TimestampNTZType]
    (<class 'int'>, LocalDatetime)
    """
    by_name = {each.value.name: each.value.hint for each in SPELLINGS}
    found: dict[type[T.DataType], Any] = {type(kind): by_name[name] for name, kind in _IN_SPARK.items()}
    found.update((type(kind), values.INTEGER.hint) for kind in _WHOLE.values())
    found.update((type(kind), values.FLOAT.hint) for kind in _FLOATS)
    if hasattr(T, "TimeType"):  # Spark has it since 4.1.
        found[T.TimeType] = values.TIME.hint
    return found


def struct_of(fields: pa.Schema | pa.StructType) -> T.StructType:
    """The columns of Spark that have the values of columns of Arrow.

    >>> struct_of(pa.schema([("a", pa.uint32()), ("b", pa.uint64())])).simpleString()
    'struct<a:bigint,b:uint64>'
    """
    return T.StructType([T.StructField(field.name, spark_type_of(field.type)) for field in fields])


def spark_type_of(kind: pa.DataType) -> T.DataType:
    """Spark's type for the values of a type; `ArrowOnly` if it has none, and `UNKNOWN` if Python has none either."""
    if pa.types.is_dictionary(kind):
        return spark_type_of(kind.value_type)
    if pa.types.is_struct(kind):
        return struct_of(kind)
    if pa.types.is_map(kind):
        return T.MapType(spark_type_of(kind.key_type), spark_type_of(kind.item_type))
    if is_list(kind):
        return T.ArrayType(spark_type_of(kind.value_type))
    spelling = spelling_of(kind)
    if spelling is None:
        return UNKNOWN
    if pa.types.is_floating(kind):
        return _FLOATS[kind.bit_width == 64]
    if pa.types.is_decimal(kind) and kind.precision <= values.DECIMAL_DIGITS:
        return T.DecimalType(kind.precision, kind.scale)
    return _WHOLE.get(kind) or _IN_SPARK.get(spelling.value.name) or ArrowOnly(as_read(kind))


def arrow_schema_of(schema: T.StructType) -> pa.Schema:
    """Returns the columns in which Python reads columns of these types.

    >>> arrow_schema_of(T.StructType().add("a", "long").add("b", ArrowOnly(pa.uint64())))
    a: int64
    b: uint64
    """
    return pa.schema([(field.name, _arrow_type_of(field.dataType)) for field in schema])


def _arrow_type_of(kind: T.DataType) -> pa.DataType:
    match kind:
        case ArrowOnly(kind=own):
            return own
        case T.StructType():
            return pa.struct([(field.name, _arrow_type_of(field.dataType)) for field in kind])
        case T.ArrayType(elementType=item):
            return pa.list_(_arrow_type_of(item))
        case T.MapType(keyType=key, valueType=value):
            return pa.map_(_arrow_type_of(key), _arrow_type_of(value))
    return to_arrow_schema(T.StructType([T.StructField("value", kind)])).field(0).type


def without_nothing(kind: T.DataType) -> Any:
    """A type with numbers where no file has a type, because there are only nulls; so does Spark."""
    match kind:
        case T.NullType():
            return T.IntegerType()
        case T.StructType():
            return T.StructType([T.StructField(each.name, without_nothing(each.dataType)) for each in kind])
        case T.ArrayType():
            return T.ArrayType(without_nothing(kind.elementType))
        case T.MapType():
            return T.MapType(without_nothing(kind.keyType), without_nothing(kind.valueType))
    return kind


def is_arrow_only(kind: T.DataType) -> bool:
    """True if a type holds values that Spark has no type for, at any depth."""
    return any(isinstance(each, ArrowOnly) for each in leaves_of(kind))


def is_beyond_spark(columns: T.StructType) -> bool:
    """True if Spark has no frame of these columns: it lacks a type, takes two names for one, or needs a column.

    >>> is_beyond_spark(T.StructType().add("a", "long").add("A", "long")), is_beyond_spark(T.StructType())
    (True, True)
    """
    return is_arrow_only(columns) or has_like_names(columns) or not columns.fields


def has_like_names(columns: T.StructType) -> bool:
    """True if names beside each other, at any depth, differ in capital letters only: Spark takes them for one."""
    return any(_doubled(map(str.lower, record.names)) for record in _records_in(columns))


def doubled_names(columns: T.StructType) -> list[str]:
    """The names that several columns, or fields of one record at any depth, have.

    >>> point = T.StructType().add("x", "long").add("x", "long")
    >>> doubled_names(T.StructType().add("a.x", "long").add("a", point)), doubled_names(T.StructType())
    (['x'], [])
    """
    return [name for record in _records_in(columns) for name in _doubled(record.names)]


def _doubled(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _records_in(kind: T.DataType) -> Iterator[T.StructType]:
    return (each for each in _types_in(kind) if isinstance(each, T.StructType))


def is_unknown(kind: T.DataType) -> bool:
    return any(isinstance(each, UnknownType) for each in leaves_of(kind))


def leaves_of(kind: T.DataType) -> Iterator[T.DataType]:
    """The types of the single values in a type."""
    several = (T.StructType, T.ArrayType, T.MapType)
    return (each for each in _types_in(kind) if not isinstance(each, several))


def _types_in(kind: T.DataType) -> Iterator[T.DataType]:
    """A type, and those in it, at any depth."""
    yield kind
    match kind:
        case T.StructType():
            for field in kind:
                yield from _types_in(field.dataType)
        case T.ArrayType(elementType=item):
            yield from _types_in(item)
        case T.MapType(keyType=key, valueType=value):
            yield from _types_in(key)
            yield from _types_in(value)


def hint_of_arrow(kind: ArrowOnly) -> Any:
    """The hint for the values of a type that Spark lacks.

    >>> hint_of_arrow(ArrowOnly(pa.uint64()))
    Unsigned
    """
    spelling = spelling_of(kind.kind)
    return Any if spelling is None else spelling.value.hint
