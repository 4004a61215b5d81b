"""A value that has no result ends a batch and a stream with an error that says what is wrong, where, and what to do."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.transforms.sql import Catalog, SqlTransform
from penstock.typehints import Optional
from penstock.typehints.column_types import decimal_of
from penstock.typehints.row_type import RowTypeConstraint
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.runner.plain_runner import collect, run_plain
from tests.shards.toy_query import ToyQuery

GOALS = RowTypeConstraint.from_fields(
    [("team", Optional[str]), ("points", Optional[int]), ("price", Optional[decimal_of(6, 3)])]
)
ROWS = [("red", 3, Decimal("1.500")), ("blue", 0, Decimal("123.456")), (None, None, None)]
NOTHING = [(None, None, None)]


def points_of(points: int) -> int:
    """Fails where there are none."""
    return {3: 1}[points]


def rows_of(query: str, rows: list[Any], is_stream: bool) -> list[Any]:
    """The rows of a query over some goals, which may read a view and call a function."""
    catalog = Catalog()
    catalog.create_view("shares", "SELECT team, 6 / points AS share FROM goals")
    catalog.create_function("points_of", points_of)
    pipeline = beam.Pipeline()
    made = [beam.Row(team=team, points=points, price=price) for team, points, price in rows]
    goals = pipeline | "Goals" >> beam.Create(made, reshuffle=False).with_output_types(GOALS)
    result = {"goals": goals} | "Query" >> SqlTransform(query, catalog)
    if not is_stream:
        found = collect(result)
        run_plain(pipeline)
        return [tuple(row) for row in found]
    _ = result | WriteToMemory([])
    toy = ToyQuery(pipeline, "streaming", 2, None)
    batches = [toy.batch() for _ in range(toy.timeline.batches)]
    return [tuple(row) for batch in batches for sink in batch.values() for row in sink]


DIGITS, ZERO = "more digits than DECIMAL(4, 2)", "divides by zero"
WIDER, NULLIF = "CAST to a wider DECIMAL or to DOUBLE", "write NULLIF(divisor, 0) to get NULL instead"
FAILING = {
    "SELECT CAST(price AS DECIMAL(4, 2)) AS p FROM goals": ("Select", DIGITS, WIDER),
    "SELECT COUNT(*) AS n FROM goals GROUP BY CAST(price AS DECIMAL(4, 2))": ("Key", DIGITS, WIDER),
    "SELECT SUM(CAST(price AS DECIMAL(4, 2))) AS s FROM goals": ("Key", DIGITS, WIDER),
    "SELECT CAST(team AS INT) AS x FROM goals": ("Select", "casts a text to BIGINT", "TRY_CAST returns NULL"),
    "SELECT points + 9223372036854775807 AS x FROM goals": ("Select", "more than 64 bits", "AS DOUBLE"),
    "SELECT team FROM shares WHERE share > 1": ("Select", ZERO, NULLIF),
    "SELECT SUM(share) AS s FROM shares": ("Select", ZERO, NULLIF),
    "SELECT g.team FROM goals AS g JOIN goals AS h ON g.points / h.points > 1": ("Where", ZERO, NULLIF),
    "SELECT SUM(6 / points) OVER (ORDER BY team) AS s FROM goals": ("Over", ZERO, NULLIF),
    "SELECT team FROM goals ORDER BY 1 / points LIMIT 1": ("Select", ZERO, NULLIF),
    "SELECT (SELECT points FROM goals) AS p FROM goals": ("Group", "has 3 rows, not one", "LIMIT 1"),
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("query", FAILING)
def test_the_error_says_what_is_wrong_where_and_what_to_do(query: str, is_stream: bool) -> None:
    step, what, hint = FAILING[query]
    with pytest.raises(StepFailure, match=f"at step 'Query/{step}' .test_bad_values.py:") as raised:
        rows_of(query, ROWS, is_stream)
    failure = find_failure(str(raised.value))
    assert failure is not None
    first, _, second = failure.message.partition("\n  hint: ")
    assert what in first
    assert hint in second
    assert not any(value in failure.message for value in ("blue", "123.456"))


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
def test_an_error_of_a_users_function_names_its_step(is_stream: bool) -> None:
    with pytest.raises(StepFailure, match=r"at step 'Query/Select' .test_bad_values.py:"):
        rows_of("SELECT POINTS_OF(points) AS x FROM goals", ROWS[:2], is_stream)


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("query", [each for each in FAILING if "9223372036854775807" not in each])
def test_null_in_each_place_is_no_error(query: str, is_stream: bool) -> None:
    found = rows_of(query, NOTHING, is_stream)
    assert found in ([], [(None,)], [(1,)])


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT TRY_CAST(price AS DECIMAL(4, 2)) AS p FROM goals WHERE team = 'blue'", [(None,)]),
        ("SELECT 6 / NULLIF(points, 0) AS x FROM goals WHERE team = 'blue'", [(None,)]),
        ("SELECT team FROM shares WHERE team = 'red'", [("red",)]),
        ("SELECT (SELECT MAX(points) FROM goals) AS p FROM goals WHERE team = 'red'", [(3,)]),
    ],
)
def test_what_the_hint_says_helps(query: str, rows: list[Any]) -> None:
    for is_stream in (False, True):
        assert rows_of(query, ROWS, is_stream)[-1:] == rows
