"""The type of a column that has all values of two types, exactly: no number is rounded, and no string becomes bytes."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types as T

from penstock.values.types import DECIMAL_DIGITS, FLOAT, FLOAT_DIGIT_BITS, INTEGER
from penstock_spark.columns.types import UNKNOWN, in_spark, value_in_spark

Common = Callable[[T.DataType, T.DataType], T.DataType]
"""Returns, for two types of a column, the type that both have in common, or `UNKNOWN`."""


def common_type(one: T.DataType, other: T.DataType) -> T.DataType:
    """The type that has all values of two types, of which Python may read some as another class; or `UNKNOWN`.

    >>> common_type(T.ShortType(), T.FloatType()), common_type(T.LongType(), T.DoubleType()) is UNKNOWN
    (FloatType(), True)
    >>> common_type(T.DecimalType(5, 2), T.DecimalType(5, 0))
    DecimalType(7,2)
    """
    match one, other:
        case T.StructType(), T.StructType():
            return merge_types(one, other)
        case T.ArrayType(elementType=item), T.ArrayType(elementType=other_item):
            return T.ArrayType(common_type(item, other_item))
        case T.MapType(keyType=key, valueType=value), T.MapType(keyType=other_key, valueType=other_value):
            return T.MapType(common_type(key, other_key), common_type(value, other_value))
        case T.NullType(), _:
            return other
        case _, T.NullType():
            return one
        case T.DecimalType(), T.DecimalType():
            scale = max(one.scale, other.scale)
            digits = max(one.precision - one.scale, other.precision - other.scale) + scale
            return T.DecimalType(digits, scale) if digits <= DECIMAL_DIGITS else UNKNOWN
    if one == other:
        return one
    kinds = {value_in_spark(one), value_in_spark(other)}
    if kinds == {INTEGER} or kinds == {FLOAT}:
        return max(one, other, key=_width)
    if kinds == {INTEGER, FLOAT}:
        whole, number = (one, other) if value_in_spark(one) is INTEGER else (other, one)
        bits = 8 << _width(whole)
        # A float has all integers of as many bits as its digits, and their signs.
        wider = (each for each in in_spark(FLOAT) if _width(each) >= _width(number))
        return next((each for each in wider if bits <= FLOAT_DIGIT_BITS[32 << _width(each)] + 1), UNKNOWN)
    return UNKNOWN


def _width(kind: T.DataType) -> int:
    value = value_in_spark(kind)
    assert value is not None
    return in_spark(value).index(kind)


def require_same_type(one: T.DataType, other: T.DataType) -> T.DataType:
    """The type that two columns have; `UNKNOWN` if they have different ones. Records may have different fields."""
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return merge_types(one, other, require_same_type)
    return one if one == other else UNKNOWN


def merge_types(one: T.StructType, other: T.StructType, common: Common = common_type) -> T.StructType:
    """Returns the columns of both; a column that both have gets the type that its two types have in common.

    >>> merge_types(T.StructType().add("a", "integer"), T.StructType().add("a", "long").add("b", "date")).simpleString()
    'struct<a:bigint,b:date>'
    """
    others = {field.name: field for field in other}
    fields = [
        T.StructField(field.name, common(field.dataType, others[field.name].dataType))
        if field.name in others
        else field
        for field in one
    ]
    return T.StructType([*fields, *(field for field in other if field.name not in one.names)])


def find_narrower_column(own: T.StructType, wanted: T.StructType) -> T.StructField | None:
    """The first column whose values a column of the same name does not hold; None if there is none.

    >>> wanted = T.StructType().add("a", "long").add("b", "integer")
    >>> find_narrower_column(T.StructType().add("a", "integer").add("b", "long"), wanted)
    StructField('b', LongType(), True)
    """
    return next(
        (
            field
            for field in own
            if field.name in wanted.names and not _is_held(field.dataType, wanted[field.name].dataType)
        ),
        None,
    )


def _is_held(own: T.DataType, wanted: T.DataType) -> bool:
    match own, wanted:
        case T.StructType(), T.StructType():
            return find_narrower_column(own, wanted) is None
        case T.ArrayType(elementType=item), T.ArrayType(elementType=other):
            return _is_held(item, other)
        case T.MapType(keyType=key, valueType=value), T.MapType(keyType=other_key, valueType=other_value):
            return _is_held(key, other_key) and _is_held(value, other_value)
    return common_type(own, wanted).simpleString() == wanted.simpleString()


def is_wider(wanted: T.DataType, own: T.DataType) -> bool:
    """True if a type has all values of another one, and Python reads both as the same values.

    >>> is_wider(T.LongType(), T.IntegerType()), is_wider(T.DoubleType(), T.IntegerType())
    (True, False)
    """
    value = value_in_spark(own)
    if value in (INTEGER, FLOAT) and value_in_spark(wanted) is value:
        return _width(own) <= _width(wanted)
    return own.simpleString() == wanted.simpleString()
