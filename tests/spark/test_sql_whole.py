"""Queries that Spark computes whole give what the transforms give, and a plan says who computes them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.error import RunnerError
from penstock.io import WriteToMemory
from penstock.io.sparkio import WriteToSpark, from_dataframe
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.sql import Catalog, SqlTransform

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
GOALS = [
    ("blue", 3, 1.5, NOON),
    ("red", 5, None, NOON + 7 * SECOND),
    ("blue", 4, float("nan"), NOON + 70 * SECOND),
    ("blue", 4, -0.0, NOON + 70 * SECOND),
    (None, 1, 2.5, NOON + 200 * SECOND),
    ("green", None, 0.0, None),
]
SCHEMA = "team string, points int, weight double, at timestamp"

QUERIES = {
    "expressions": "SELECT team, points * 2 + 1 AS p, team || '!' AS u, weight = 0 AS z FROM goals WHERE points > 3",
    "sums": "SELECT team, SUM(points) AS s, COUNT(*) AS n, AVG(points) AS m, MAX(weight) AS w FROM goals GROUP BY team",
    "decimals": "SELECT team, SUM(CAST(points AS DECIMAL(12, 2)) * 1.25) AS s, "
    "AVG(CAST(points AS DECIMAL(12, 2))) AS m, MAX(CAST(points AS DECIMAL(5, 3)) / 7) AS q FROM goals "
    "WHERE CAST(points AS DECIMAL(4, 1)) <> 1.0 GROUP BY team",
    "of everything": "SELECT SUM(points) AS s, COUNT(DISTINCT team) AS n, MIN(at) AS first FROM goals",
    "of nothing": "SELECT SUM(points) AS s, COUNT(*) AS n FROM goals WHERE points > 100",
    "filters": "SELECT team, SUM(points) FILTER (WHERE weight > 0) AS s FROM goals GROUP BY team HAVING COUNT(*) > 1",
    "distinct": "SELECT DISTINCT team, points FROM goals",
    "tumble": "SELECT window_start, SUM(points) AS s FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE) "
    "GROUP BY window_start, window_end",
    "hop": "SELECT window_end, COUNT(*) AS n FROM "
    "HOP(TABLE goals, DESCRIPTOR(at), INTERVAL '30' SECONDS, INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
    "cumulate": "SELECT window_end, COUNT(*) AS n FROM "
    "CUMULATE(TABLE goals, DESCRIPTOR(at), INTERVAL '30' SECONDS, INTERVAL '2' MINUTES) "
    "GROUP BY window_start, window_end",
    "left join": "SELECT a.team, a.points, b.points AS p FROM goals a LEFT JOIN goals b "
    "ON a.team = b.team AND a.points < b.points",
    "cross join above others": "SELECT a.team, b.points AS p, c.points AS q FROM goals a "
    "LEFT JOIN goals b ON a.team = b.team JOIN goals d ON a.points = d.points CROSS JOIN goals c",
    "full join": "SELECT a.points, b.points AS p FROM goals a FULL JOIN goals b ON a.points = b.points + 1",
    "semi join": "SELECT team, points FROM goals a LEFT SEMI JOIN goals b ON a.points = b.points + 1",
    "anti join": "SELECT team, points FROM goals a LEFT ANTI JOIN goals b ON a.points = b.points + 1",
    "in": "SELECT team, points FROM goals WHERE points IN (SELECT points + 1 FROM goals)",
    "not in": "SELECT team FROM goals WHERE points NOT IN (SELECT points FROM goals WHERE points > 3)",
    "scalar": "SELECT team FROM goals WHERE points > (SELECT AVG(points) FROM goals)",
    "union": "SELECT team FROM goals UNION SELECT team || '!' FROM goals",
    "equal floats": "SELECT a.weight, COUNT(*) AS n FROM goals a JOIN goals b ON a.weight = b.weight GROUP BY a.weight",
    "except": "SELECT points FROM goals EXCEPT ALL SELECT points FROM goals WHERE team = 'red'",
    "top": "SELECT team, points FROM goals WHERE points IS NOT NULL ORDER BY points DESC, weight LIMIT 3",
    "first of each": "SELECT team, points FROM goals QUALIFY ROW_NUMBER() OVER (PARTITION BY team ORDER BY points) = 1",
    "with": "WITH s AS (SELECT team, SUM(points) AS s FROM goals GROUP BY team) "
    "SELECT a.team FROM s a JOIN s b ON a.s = b.s WHERE a.s > 4",
}


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(GOALS, SCHEMA)


def rows_of(pipeline: Any, frame: Any, query: str, whole: bool, catalog: Catalog | None = None) -> Any:
    goals = pipeline | f"Read {whole}" >> from_dataframe(frame)
    if not whole:
        goals |= "Touched by Python" >> beam.Filter(lambda goal: True)
    return {"goals": goals} | f"Query {whole}" >> SqlTransform(query, catalog)


@pytest.mark.parametrize("name", QUERIES)
def test_spark_alone_gives_what_the_transforms_give(frame: Any, name: str) -> None:
    found: dict[bool, list[Any]] = {True: [], False: []}
    with beam.Pipeline() as pipeline:
        for whole, rows in found.items():
            result = rows_of(pipeline, frame, QUERIES[name], whole)
            _ = result | f"Keep {whole}" >> WriteToMemory(rows)
        assert pipeline.explain().count("sql, computed by Spark") >= 1
    by_spark, by_python = (
        sorted(repr([*map(shown, row)]) for row in found[whole]) for whole in (True, False)
    )
    assert by_spark == by_python
    assert by_spark or "100" in QUERIES[name]


@pytest.mark.parametrize("name", ["expressions", "sums", "left join", "tumble"])
def test_a_sink_of_columns_gets_the_result_without_python(
    spark: Any, frame: Any, name: str, tmp_path: Path
) -> None:
    with beam.Pipeline() as pipeline:
        for whole in (True, False):
            result = rows_of(pipeline, frame, QUERIES[name], whole)
            _ = result | f"Write {whole}" >> WriteToSpark("parquet", str(tmp_path / str(whole)))
        [_, plan] = pipeline.explain().split("# plan")
        assert plan.count("columns, without Python") == 1
    by_spark, by_python = (spark.read.parquet(str(tmp_path / str(whole))) for whole in (True, False))
    assert by_spark.dtypes == by_python.dtypes
    assert sorted(map(repr, by_spark.collect())) == sorted(map(repr, by_python.collect()))


def shown(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime.datetime) else value


def test_what_spark_cannot_do_whole_python_does(frame: Any) -> None:
    catalog = Catalog()
    catalog.create_function("shout", lambda team: None if team is None else f"{team}!", str)
    query = "SELECT shout(team) AS loud FROM goals WHERE points = 5"
    with beam.Pipeline() as pipeline:
        rows = rows_of(pipeline, frame, query, True, catalog)
        assert "computed by Spark" not in pipeline.explain()
        assert_that(rows | beam.Map(lambda row: row.loud), equal_to(["red!"]))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT points / 0 AS x FROM goals",
        "SELECT points + 9223372036854775807 AS x FROM goals",
        "SELECT CAST(team AS BIGINT) AS x FROM goals",
    ],
)
def test_errors_of_values_end_the_run_and_do_not_show_them(frame: Any, query: str) -> None:
    for whole in (True, False):
        pipeline = beam.Pipeline()
        _ = rows_of(pipeline, frame, query, whole) | WriteToMemory([])
        with pytest.raises((RunnerError, ArithmeticError, ValueError)) as failed:
            pipeline.run().wait_until_finish()
        text = str(failed.value)
        assert f"'Query {whole}/" in text
        assert "test_sql_whole.py:" in text
        assert "\n  hint: set the logger" not in text
        assert "py4j" not in text
        assert "blue" not in text


def test_a_result_is_a_table_for_what_follows(frame: Any) -> None:
    with beam.Pipeline() as pipeline:
        totals = rows_of(pipeline, frame, QUERIES["sums"], True)
        again = totals | "Again" >> SqlTransform("SELECT team FROM PCOLLECTION WHERE s >= 5")
        assert_that(again | beam.Map(lambda row: row.team), equal_to(["blue", "red"]))
