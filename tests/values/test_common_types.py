"""The common type of two types of a column has all values of both: a law over the edges of the table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from penstock.values.types import BOOLEAN, DATE, FLOAT, INSTANT, INTEGER, LOCAL_TIME, NOTHING, TEXT
from penstock_spark.columns import common_types
from penstock_spark.columns.common_types import common_type, is_wider
from penstock_spark.columns.types import UNKNOWN, arrow_schema_of, in_spark, value_in_spark
from tests.values.arrow_borders import fits

DECIMALS = [T.DecimalType(*each) for each in ((5, 2), (10, 4), (38, 0), (38, 18))]
COLUMNS = [
    *(
        kind
        for value in (BOOLEAN, INTEGER, FLOAT, TEXT, DATE, INSTANT, LOCAL_TIME)
        for kind in in_spark(value)
    ),
    *DECIMALS,
    *in_spark(NOTHING),
]
PAIRS = list(product(COLUMNS, COLUMNS))


def arrow_type(kind: T.DataType) -> pa.DataType:
    return arrow_schema_of(T.StructType().add("c", kind)).field(0).type


def values_of(kind: T.DataType) -> Iterator[Any]:
    value = value_in_spark(kind)
    assert value is not None
    edges = [
        *value.edges,
        *(end for bits in (8, 16, 24, 25, 32, 53) for end in (2**bits, -(2**bits), 2**bits - 1)),
    ]
    some = edges if value is INTEGER else map(float, edges) if value is FLOAT else value.edges
    column = arrow_type(kind)
    return (each for each in some if each == each and fits(each, column))


def lost() -> list[tuple[T.DataType, T.DataType, Any]]:
    """The values that a common type changes."""
    found = []
    for one, other in PAIRS:
        common = common_type(one, other)
        if common is UNKNOWN:
            continue
        for value in values_of(one):
            try:
                (got,) = pa.array([value], arrow_type(one)).cast(arrow_type(common)).to_pylist()
            except pa.ArrowException:
                got = None
            if got != value:
                found.append((one, other, value))
    return found


def test_the_common_type_of_two_types_has_all_values_of_both() -> None:
    assert lost() == []
    assert all(common_type(one, other) == common_type(other, one) for one, other in PAIRS)
    assert all(common_type(one, one) == one for one in COLUMNS)


def test_numbers_have_no_common_type_only_where_one_would_be_rounded() -> None:
    numbers = [*in_spark(INTEGER), *in_spark(FLOAT)]
    assert {
        frozenset((one.simpleString(), other.simpleString()))
        for one, other in product(numbers, numbers)
        if common_type(one, other) is UNKNOWN
    } == {frozenset(("bigint", "float")), frozenset(("bigint", "double"))}
    assert common_type(DECIMALS[2], DECIMALS[3]) is UNKNOWN
    assert common_type(DECIMALS[0], DECIMALS[1]) == T.DecimalType(10, 4)


def test_a_wider_type_has_values_of_one_class() -> None:
    wider = {(one.simpleString(), other.simpleString()) for one, other in PAIRS if is_wider(one, other)}
    assert ("bigint", "smallint") in wider
    assert ("double", "float") in wider
    assert wider.isdisjoint({("double", "int"), ("smallint", "bigint"), ("decimal(10,4)", "decimal(5,2)")})


def test_floats_that_seem_to_have_more_digits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_types, "FLOAT_DIGIT_BITS", {32: 31, 64: 63})
    assert lost() != []


def test_decimals_that_keep_the_digits_of_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_types, "max", min, raising=False)
    assert lost() != []
