"""The types of values in Arrow and Spark: the columns that may arrive, the values read from them, the column written.

`SPELLINGS` says which types of Arrow and Spark an integer of 64 bits has; connectors of databases and Avro have tables
of their own. Columns that arrive are first brought to the types of `type_in_python`, whose values pyarrow makes as the
table of `penstock.values.types` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from penstock.typehints import typehints
from penstock.typehints.column_types import decimal_of
from penstock.utils.timestamp import Timestamp
from penstock.values import types as values
from penstock.values.types import ValueType
from penstock_spark.session.spark_versions import to_arrow_schema


@dataclass(frozen=True)
class Spelling:
    """A type of values as Arrow and Spark spell it."""

    value: ValueType
    # The types that may arrive, with any unit, scale or length.
    arrives: tuple[pa.DataType, ...]
    leaves: pa.DataType  # The type of columns that are written.
    # The type to which such columns are brought before Python reads them; None for their own.
    read_as: pa.DataType | None = None
    # The type of columns that are written where `leaves` is lacking; it holds more than values of this type.
    otherwise: pa.DataType | None = None
    # Spark's types with such values, the narrowest first; empty if Arrow reads no such type.
    spark: tuple[T.DataType, ...] = ()
    # Other types of Spark that arrive.
    also_in_spark: tuple[type[T.DataType], ...] = ()


# Older versions lack some types.
_SMALL_DECIMALS = (pa.decimal32(1), pa.decimal64(1)) if hasattr(pa, "decimal32") else ()
_TIME_OF_SPARK = (T.TimeType,) if hasattr(T, "TimeType") else ()

SPELLINGS = (
    Spelling(values.BOOLEAN, (pa.bool_(),), pa.bool_(), spark=(T.BooleanType(),)),
    Spelling(
        values.INTEGER,
        (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        pa.int64(),
        spark=(T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType()),
    ),
    # Spark and most files and databases have no such integers.
    Spelling(values.UNSIGNED_INTEGER, (pa.uint64(),), pa.uint64(), otherwise=pa.decimal128(20, 0)),
    Spelling(
        values.FLOAT,
        (pa.float16(), pa.float32(), pa.float64()),
        pa.float64(),
        spark=(T.FloatType(), T.DoubleType()),
    ),
    Spelling(
        values.DECIMAL,
        (pa.decimal128(1), pa.decimal256(1), *_SMALL_DECIMALS),
        pa.decimal128(values.DECIMAL_DIGITS, values.DECIMAL_SCALE),
        also_in_spark=(T.DecimalType,),
    ),
    Spelling(
        values.TEXT,
        (pa.string(), pa.large_string(), pa.string_view()),
        pa.string(),
        spark=(T.StringType(),),
        also_in_spark=(T.CharType, T.VarcharType),
    ),
    Spelling(
        values.BINARY,
        (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)),
        pa.binary(),
        spark=(T.BinaryType(),),
    ),
    Spelling(values.DATE, (pa.date32(), pa.date64()), pa.date32(), spark=(T.DateType(),)),
    Spelling(
        values.TIME,
        (pa.time32("s"), pa.time64("us")),
        pa.time64("us"),
        pa.time64("us"),
        also_in_spark=_TIME_OF_SPARK,
    ),
    Spelling(
        values.INSTANT,
        (),  # Arrow has one type of times with a zone or without.
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "UTC"),
        spark=(T.TimestampType(),),
    ),
    Spelling(
        values.LOCAL_TIME,
        (pa.timestamp("us"),),
        pa.timestamp("us"),
        pa.timestamp("us"),
        spark=(T.TimestampNTZType(),),
    ),
    Spelling(
        values.DURATION,
        (pa.duration("us"),),
        pa.duration("us"),
        pa.duration("us"),
        spark=(T.DayTimeIntervalType(),),
    ),
    Spelling(values.NOTHING, (pa.null(),), pa.null(), spark=(T.NullType(),)),
)

_BY_VALUE = {each.value: each for each in SPELLINGS}
_BY_HINT: dict[Any, Spelling] = {each.value.hint: each for each in SPELLINGS} | {
    Timestamp: _BY_VALUE[values.INSTANT]
}
_IN_SPARK: dict[type[T.DataType], ValueType] = {
    kind: each.value for each in SPELLINGS for kind in (*map(type, each.spark), *each.also_in_spark)
}
_BY_ID: dict[int, Spelling] = {kind.id: each for each in SPELLINGS for kind in each.arrives}
_TIMES_ID = pa.timestamp("us").id


def spelling_of_hint(hint: object) -> Spelling | None:
    """The spelling of the values of a plain hint; None for other hints.

    >>> spelling_of_hint(int).leaves, spelling_of_hint(list)
    (DataType(int64), None)
    """
    return _BY_HINT.get(hint)


def spelling_of(kind: pa.DataType) -> Spelling | None:
    """Returns the spelling that has a type of Arrow; None for types of several values, and if the table has none.

    >>> spelling_of(pa.uint8()).value.name, spelling_of(pa.list_(pa.uint8()))
    ('integer', None)
    """
    if kind.id == _TIMES_ID and kind.tz is not None:
        return _BY_VALUE[values.INSTANT]
    return _BY_ID.get(kind.id)


def value_of(kind: pa.DataType) -> ValueType | None:
    """The type of the values in columns of a type; None for types of several values, and if the table has none.

    >>> value_of(pa.large_string()) is values.TEXT, value_of(pa.list_(pa.uint8()))
    (True, None)
    """
    spelling = spelling_of(kind)
    return None if spelling is None else spelling.value


def value_in_spark(kind: T.DataType) -> ValueType | None:
    """The type of the values in columns of Spark; None for types of several values, and if the table has none.

    >>> value_in_spark(T.ShortType()) is values.INTEGER, value_in_spark(T.ArrayType(T.ShortType()))
    (True, None)
    """
    return _IN_SPARK.get(type(kind))


def in_spark(value: ValueType) -> tuple[T.DataType, ...]:
    """Spark's types for the values of a type, the narrowest first.

    >>> in_spark(values.FLOAT)
    (FloatType(), DoubleType())
    """
    return _BY_VALUE[value].spark


_OTHERWISE = b"penstock.values"
"""The key of a field's metadata which says that its column holds more than the values of the type that is named."""


def field_of_value(name: str, spelling: Spelling, nullable: bool) -> pa.Field:
    """The field of a column that every border has.

    >>> field_of_value("size", spelling_of(pa.uint64()), False).type
    Decimal128Type(decimal128(20, 0))
    """
    if spelling.otherwise is None:
        return pa.field(name, spelling.leaves, nullable)
    return pa.field(name, spelling.otherwise, nullable, {_OTHERWISE: spelling.value.name})


def narrower_spelling_of(field: pa.Field) -> Spelling | None:
    """The spelling of the values of a field of `field_of_value` whose type holds more than these."""
    name = (field.metadata or {}).get(_OTHERWISE, b"").decode()
    return next((each for each in SPELLINGS if each.value.name == name), None) if name else None


def to_arrow_types(schema: pa.Schema) -> pa.Schema:
    """The columns of a schema in the types of Arrow itself, for borders that have all of them.

    >>> to_arrow_types(pa.schema([field_of_value("size", spelling_of(pa.uint64()), True)]))
    size: uint64
    """
    found = [(field, narrower_spelling_of(field)) for field in schema]
    return pa.schema(
        [
            field if spelling is None else pa.field(field.name, spelling.leaves, field.nullable)
            for field, spelling in found
        ]
    )


def with_values_of(columns: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """Columns that a border made of a schema, with what the schema says of the values of fields of the same names."""
    marked = {field.name: field.metadata for field in schema if narrower_spelling_of(field) is not None}
    return pa.schema([field.with_metadata(marked.get(field.name, field.metadata)) for field in columns])


def without_values_of(schema: pa.Schema) -> pa.Schema:
    """A schema that no longer says of any field what its values are beside what its type says."""
    return pa.schema(
        [field if narrower_spelling_of(field) is None else field.remove_metadata() for field in schema],
        schema.metadata,
    )


def limits_of(kind: pa.DataType) -> str:
    """Says what a value of a type may be, as a clause for hints; empty for types of several values.

    >>> limits_of(pa.int32()), limits_of(pa.decimal128(5, 2)), limits_of(pa.list_(pa.int32()))
    ('an int has 32 bits', 'a Decimal has at most 5 digits, 2 of them after the point', '')
    """
    if pa.types.is_floating(kind):
        digits = values.FLOAT_DIGIT_BITS[kind.bit_width]
        return f"a float has {kind.bit_width} bits, {digits} of them for its digits"
    if pa.types.is_integer(kind):
        return f"an int has {kind.bit_width} bits" + (" and no sign" if str(kind).startswith("u") else "")
    if pa.types.is_decimal(kind):
        return f"a Decimal has at most {kind.precision} digits, {kind.scale} of them after the point"
    value = value_of(kind)
    return "" if value is None else value.limits


def type_in_python(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which Python reads a column: instants are in UTC, and times have microseconds.

    >>> type_in_python(pa.list_(pa.timestamp("ns", "Europe/Berlin")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    >>> type_in_python(pa.duration("s")), type_in_python(pa.uint8())
    (DurationType(duration[us]), DataType(uint8))
    """
    return change_single_types(kind, _single_as_read)


def _single_as_read(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        value = type_in_python(kind.value_type)
        return kind if value == kind.value_type else value
    spelling = spelling_of(kind)
    return kind if spelling is None or spelling.read_as is None else spelling.read_as


def change_single_types(
    kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType], *, plain_lists: bool = False
) -> pa.DataType:
    """A type in which each type of single values is changed, in their order, at any depth.

    Args:
        kind: The type.
        change: From a type of single values, or of repeated ones, to the one that takes its place.
        plain_lists: Whether all lists become plain ones; otherwise a list of another form, such as one of a fixed
            length, becomes a plain one only if something in it changes.

    >>> change_single_types(pa.struct([("a", pa.list_(pa.int8(), 2))]), lambda kind: pa.int64())
    StructType(struct<a: list<item: int64>>)
    """
    inner = partial(change_single_types, change=change, plain_lists=plain_lists)
    if pa.types.is_struct(kind):
        made = pa.struct([field.with_type(inner(field.type)) for field in kind])
    elif pa.types.is_map(kind):
        key = inner(kind.key_type)
        made = pa.map_(key, kind.item_field.with_type(inner(kind.item_type)))
    elif is_list(kind):
        made = pa.list_(kind.value_field.with_type(inner(kind.value_type)))
        if not plain_lists and made.value_type == kind.value_type:
            return kind
    else:
        return change(kind)
    return kind if made == kind else made


_LIST_IDS = frozenset(
    form(pa.null()).id
    for form in (pa.list_, pa.large_list, partial(pa.list_, list_size=1), pa.list_view, pa.large_list_view)
)


def is_list(kind: pa.DataType) -> bool:
    """True if the values of a type are lists of any form.

    >>> is_list(pa.list_(pa.int8(), 2)), is_list(pa.map_(pa.int8(), pa.int8()))
    (True, False)
    """
    return kind.id in _LIST_IDS


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
    if pa.types.is_decimal(kind) and kind.precision <= values.DECIMAL_DIGITS:
        return T.DecimalType(kind.precision, kind.scale)
    if not spelling.spark:
        return ArrowOnly(type_in_python(kind))
    return spelling.spark[_width_of(kind)]


def _width_of(kind: pa.DataType) -> int:
    """Returns which of its spelling's types in Spark is the narrowest one that holds the values of a type."""
    if pa.types.is_integer(kind):
        # Without a sign, they need one bit more than Spark's integers of as many bits have.
        return int(kind.bit_width * (1 if pa.types.is_signed_integer(kind) else 2)).bit_length() - 4
    return int(pa.types.is_floating(kind) and kind.bit_width == 64)


def hint_in_spark(kind: T.DataType) -> object:
    """The hint for single values in columns of Spark, or in those that only Arrow reads; ``Any`` for other types.

    >>> hint_in_spark(T.ShortType()), hint_in_spark(T.DecimalType(5, 2)), hint_in_spark(ArrowOnly(pa.uint64()))
    (<class 'int'>, Decimal(5, 2), Unsigned)
    """
    if isinstance(kind, T.DecimalType):
        return decimal_of(kind.precision, kind.scale)
    value = value_of(kind.kind) if isinstance(kind, ArrowOnly) else value_in_spark(kind)
    return typehints.Any if value is None else value.hint


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


def is_unsupported_by_spark(columns: T.StructType) -> bool:
    """True if Spark has no frame of these columns: it lacks a type, takes two names for one, or needs a column.

    >>> alike = T.StructType().add("a", "long").add("A", "long")
    >>> is_unsupported_by_spark(alike), is_unsupported_by_spark(T.StructType())
    (True, True)
    """
    return is_arrow_only(columns) or has_like_names(columns) or not columns.fields


def has_like_names(columns: T.StructType) -> bool:
    """True if names beside each other, at any depth, differ in capital letters only: Spark takes them for one."""
    return any(_find_doubled(map(str.lower, record.names)) for record in _records_in(columns))


def find_doubled_names(columns: T.StructType) -> list[str]:
    """The names that several columns, or fields of one record at any depth, have.

    >>> point = T.StructType().add("x", "long").add("x", "long")
    >>> find_doubled_names(T.StructType().add("a.x", "long").add("a", point)), find_doubled_names(T.StructType())
    (['x'], [])
    """
    return [name for record in _records_in(columns) for name in _find_doubled(record.names)]


def _find_doubled(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _records_in(kind: T.DataType) -> Iterator[T.StructType]:
    return (each for each in _types_in(kind) if isinstance(each, T.StructType))


def has_unknown_type(kind: T.DataType) -> bool:
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
