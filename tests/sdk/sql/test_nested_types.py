"""Arrays, maps and structs as types of SQL: their hints, their values, their casts, their equality and their order."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from penstock.elements.row import Row
from penstock.scalars.casting import can_cast, cast_function, try_cast_function
from penstock.scalars.conditions import order
from penstock.scalars.nested_values import value_maker_of
from penstock.scalars.spark_forms import write_type
from penstock.scalars.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    SqlType,
    array_of,
    find_common_type,
    from_hint,
    map_of,
    struct_of,
    to_hint,
)
from penstock.sql.execution.equality import canonicalizer_of
from penstock.sql.plan.relations import ColumnDef
from penstock.sql.transform import FieldsOf
from penstock.typehints import typehints
from penstock.typehints.column_types import PairsConstraint, RecordConstraint


class Point(NamedTuple):
    x: int
    y: float | None


@dataclasses.dataclass
class Path:
    name: str
    points: list[Point]
    tags: dict[str, int]
    at: datetime


@dataclasses.dataclass
class Tree:
    left: Tree | None
    size: int


HINTS: list[tuple[Any, str]] = [
    (Point, "STRUCT<x: BIGINT NOT NULL, y: DOUBLE> NOT NULL"),
    (tuple[int, ...], "ARRAY<BIGINT NOT NULL> NOT NULL"),
    (dict[str, list[int]] | None, "MAP<STRING NOT NULL, ARRAY<BIGINT NOT NULL> NOT NULL>"),
    (dict[tuple[int, ...], int], "ANY"),
    (Tree, "STRUCT<left: ANY, size: BIGINT NOT NULL> NOT NULL"),
    (list[Point | None], "ARRAY<STRUCT<x: BIGINT NOT NULL, y: DOUBLE>> NOT NULL"),
]


@pytest.mark.parametrize(("hint", "shown"), HINTS, ids=[shown for _, shown in HINTS])
def test_a_hint_has_a_type_and_the_type_has_a_hint(hint: Any, shown: str) -> None:
    kind = from_hint(hint)
    assert str(kind) == shown
    assert from_hint(to_hint(kind)) == kind


def test_records_and_pairs_of_files_become_rows_and_maps() -> None:
    record = RecordConstraint([("x", int), ("tags", PairsConstraint(typehints.Tuple[str, int]))])
    kind = from_hint(typehints.List[record])
    assert (
        str(kind) == "ARRAY<STRUCT<x: BIGINT, tags: MAP<STRING NOT NULL, BIGINT NOT NULL>> NOT NULL> NOT NULL"
    )
    make = value_maker_of(kind)
    assert make is not None
    assert make([{"x": 1, "tags": [("a", 2)]}, {}]) == [Row(x=1, tags={"a": 2}), Row(x=None, tags=None)]


def test_rows_of_classes_become_rows() -> None:
    columns = (ColumnDef("path", from_hint(Path)), ColumnDef("n", BIGINT))
    get = pickle.loads(pickle.dumps(FieldsOf(columns)))
    at = datetime(2026, 1, 2)
    path = Path("a", [Point(1, None)], {"t": 2}, at)
    wanted = Row(name="a", points=[Row(x=1, y=None)], tags={"t": 2}, at=at.replace(tzinfo=UTC))
    assert get(Row(path=path, n=1)) == (wanted, 1)
    assert get(Row(path=None, n=None)) == (None, None)


POINT = struct_of([("x", BIGINT), ("y", DOUBLE)])
COMMON: list[tuple[SqlType, SqlType, str]] = [
    (POINT, struct_of([("a", DOUBLE), ("b", BIGINT)]), "STRUCT<x: DOUBLE, y: DOUBLE>"),
    (POINT, struct_of([("x", BIGINT)]), "None"),
    (POINT, struct_of([("x", BIGINT), ("y", STRING)]), "None"),
    (map_of(STRING, BIGINT), map_of(STRING, DOUBLE), "MAP<STRING NOT NULL, DOUBLE>"),
    (array_of(POINT), array_of(SqlType("NULL")), "ARRAY<STRUCT<x: BIGINT, y: DOUBLE>>"),
    (array_of(BIGINT), map_of(STRING, BIGINT), "None"),
]


@pytest.mark.parametrize(("left", "right", "shown"), COMMON, ids=[f"{a} {b}" for a, b, _ in COMMON])
def test_common_types(left: SqlType, right: SqlType, shown: str) -> None:
    assert str(find_common_type([left, right])) == shown


CASTS: list[tuple[SqlType, SqlType, Any, Any]] = [
    (array_of(STRING), array_of(BIGINT), ["1", None], [1, None]),
    (POINT, struct_of([("a", STRING), ("b", BOOLEAN)]), Row(x=1, y=0.0), Row(a="1", b=False)),
    (map_of(STRING, BIGINT), map_of(BIGINT, STRING), {"1": 2, "3": None}, {1: "2", 3: None}),
    (array_of(POINT), STRING, [Row(x=1, y=1e10), None], "[{1, 1.0E10}, null]"),
    (
        map_of(STRING, array_of(BOOLEAN)),
        STRING,
        {"a": [True, None], "b": None},
        "{a -> [true, null], b -> null}",
    ),
]


@pytest.mark.parametrize(
    ("source", "target", "value", "wanted"), CASTS, ids=[f"{a} {b}" for a, b, *_ in CASTS]
)
def test_casts_part_by_part(source: SqlType, target: SqlType, value: Any, wanted: Any) -> None:
    assert can_cast(source, target)
    assert cast_function(source, target)(value) == wanted


def test_a_tried_cast_makes_null_of_the_parts_that_do_not_fit() -> None:
    assert try_cast_function(array_of(STRING), array_of(BIGINT))(["1", "x", None]) == [1, None, None]
    with pytest.raises(ArithmeticError):
        cast_function(array_of(STRING), array_of(BIGINT))(["1", "x", None])
    assert not can_cast(array_of(BIGINT), BIGINT)
    assert not can_cast(POINT, struct_of([("x", BIGINT)]))


def test_equal_values_have_one_form() -> None:
    price = struct_of([("price", SqlType("DECIMAL")), ("size", DOUBLE)])
    form = canonicalizer_of(array_of(price))
    assert form is not None
    one, other = ([Row(price=Decimal(text), size=size)] for text, size in (("1.50", 0.0), ("1.5", -0.0)))
    assert repr(form(one)) == repr(form(other))
    tags = canonicalizer_of(map_of(STRING, DOUBLE))
    assert tags is not None
    assert repr(tags({"a": -0.0})) == repr({"a": 0.0})
    assert canonicalizer_of(struct_of([("a", STRING)])) is None


def test_structs_are_ordered_by_their_fields_and_null_is_lowest() -> None:
    rows = [Row(x=2, y=None), Row(x=1, y=float("nan")), Row(x=1, y=None), Row(x=1, y=3.0)]
    ranks = [sum(order(other, row) < 0 for other in rows) for row in rows]
    assert ranks == [3, 2, 0, 1]


def test_the_type_in_spark() -> None:
    kind = struct_of([("a b", array_of(BIGINT)), ("m", map_of(STRING, POINT))])
    assert (
        write_type(kind) == "STRUCT<`a b`: ARRAY<BIGINT>, `m`: MAP<STRING, STRUCT<`x`: BIGINT, `y`: DOUBLE>>>"
    )
