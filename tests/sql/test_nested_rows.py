"""Rows with nested values: classes of Python go into queries, and Rows or classes come out."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.elements.row import Row
from penstock.transforms.sql import Catalog, SqlTransform
from tests.runner.plain_runner import Settings, collect, run_plain


class Point(NamedTuple):
    x: int
    y: float | None


class Given(NamedTuple):
    name: str
    point: Point
    path: list[Point]
    tags: dict[str, int]


@dataclasses.dataclass
class Made:
    point: Point | None
    points: tuple[Point, ...]
    by_name: dict[str, Point]


ROWS = [
    Given("a", Point(1, 0.5), [Point(3, 1.0), Point(1, None)], {"t": 7}),
    Given("b", Point(1, 0.5), [], {}),
    Given("c", Point(0, None), [Point(0, 2.0)], {"t": 1, "u": 2}),
]


def computed(query: str, output: type[Any] | None = None) -> list[Any]:
    pipeline = beam.Pipeline()
    rows = pipeline | beam.Create(ROWS, reshuffle=False).with_output_types(Given)
    found = collect(rows | (SqlTransform(query, output=output) if output else SqlTransform(query)))
    run_plain(pipeline, Settings())
    return list(found)


CASES: list[tuple[str, list[Any]]] = [
    ("SELECT point, COUNT(*) FROM PCOLLECTION GROUP BY point", [(Row(x=0, y=None), 1), (Row(x=1, y=0.5), 2)]),
    ("SELECT p.point.x, p.path[0].y FROM PCOLLECTION AS p WHERE SIZE(path) > 0", [(0, 2.0), (1, 1.0)]),
    ("SELECT point.* EXCEPT (y) FROM PCOLLECTION", [(0,), (1,), (1,)]),
    ("SELECT path.x, tags.t FROM PCOLLECTION WHERE tags['t'] > 0", [([0], 1), ([3, 1], 7)]),
    (
        "SELECT STRUCT(*).name, STRUCT(point.x, name AS n) FROM PCOLLECTION WHERE name = 'a'",
        [("a", Row(x=1, n="a"))],
    ),
    (
        "SELECT a.name, b.name AS other FROM PCOLLECTION a JOIN PCOLLECTION b ON a.point = b.point AND a.name < b.name",
        [("a", "b")],
    ),
    (
        "SELECT point.x, TRANSFORM(COLLECT_LIST(name), n -> n || point.x) FROM PCOLLECTION GROUP BY point.x",
        [(0, ["c0"]), (1, ["a1", "b1"])],
    ),
    (
        "SELECT a.name, (SELECT MAX(b.name) FROM PCOLLECTION b WHERE b.point.x = a.point.x) FROM PCOLLECTION a",
        [("a", "b"), ("b", "b"), ("c", "c")],
    ),
    (
        "SELECT tags, MAX(point) FROM PCOLLECTION WHERE name < 'c' GROUP BY tags",
        [({}, Row(x=1, y=0.5)), ({"t": 7}, Row(x=1, y=0.5))],
    ),
    ("SELECT name FROM PCOLLECTION ORDER BY point, name DESC LIMIT 2", [("b",), ("c",)]),
]


@pytest.mark.parametrize(("query", "wanted"), CASES, ids=[query for query, _ in CASES])
def test_a_query_of_nested_rows(query: str, wanted: list[Any]) -> None:
    assert sorted((tuple(row) for row in computed(query)), key=repr) == sorted(wanted, key=repr)


def test_rows_become_instances_of_the_classes_of_fields() -> None:
    query = "SELECT point, path AS points, MAP(name, point) AS by_name FROM PCOLLECTION WHERE name = 'a'"
    one = Point(1, 0.5)
    assert computed(query, Made) == [Made(one, (Point(3, 1.0), Point(1, None)), {"a": one})]


def test_a_field_of_another_type_inside_is_refused() -> None:
    with pytest.raises(TypeError, match="the column 'point' of the query is a STRUCT<x: STRING"):
        computed(
            "SELECT STRUCT('1' AS x, 1.0D AS y) AS point, path AS points, MAP(name, point) AS by_name FROM PCOLLECTION",
            Made,
        )


def test_a_function_of_the_user_takes_and_returns_structs() -> None:
    def moved(point: Any) -> Point:
        return Point(point.x + 1, point.y)

    catalog = Catalog()
    catalog.create_function("moved", moved, result_type=Point)
    pipeline = beam.Pipeline()
    rows = pipeline | beam.Create(ROWS, reshuffle=False).with_output_types(Given)
    found = collect(
        rows | SqlTransform("SELECT DISTINCT moved(point) AS p FROM PCOLLECTION", catalog=catalog)
    )
    run_plain(pipeline, Settings())
    assert sorted(found, key=repr) == [Row(p=Row(x=1, y=None)), Row(p=Row(x=2, y=0.5))]
