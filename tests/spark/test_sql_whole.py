"""Queries that Spark computes whole give their rows, and a plan says who computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.error import RunnerError
from penstock.io import WriteToMemory
from penstock.io.sparkio import WriteToSpark, from_dataframe
from penstock.scalars.types import BIGINT
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution.spark_query import spark_query
from penstock.sql.plan.relations import ColumnDef
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.sql import Catalog, SqlTransform
from tests.sql.query_cases import CASES as QUERY_CASES
from tests.sql.query_cases import shown

CASES = {case.name.removeprefix("goals: "): case for case in QUERY_CASES if case.name.startswith("goals: ")}
GOALS = CASES["sums"].tables["goals"]


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(GOALS.rows, GOALS.spark_schema)


def rows_of(pipeline: Any, frame: Any, query: str, whole: bool, catalog: Catalog | None = None) -> Any:
    goals = pipeline | f"Read {whole}" >> from_dataframe(frame)
    if not whole:
        goals |= "Touched by Python" >> beam.Filter(lambda goal: True)
    return {"goals": goals} | f"Query {whole}" >> SqlTransform(query, catalog)


def test_spark_computes_each_query_of_the_cases_whole(frame: Any) -> None:
    found: dict[str, list[Any]] = {name: [] for name in CASES}
    with beam.Pipeline() as pipeline:
        for name, case in CASES.items():
            rows = {"goals": pipeline | f"Goals of {name}" >> from_dataframe(frame)} | name >> SqlTransform(
                case.query
            )
            _ = rows | f"Keep {name}" >> WriteToMemory(found[name])
        explained = pipeline.explain()
    for name, case in CASES.items():
        assert f"sql, computed by Spark: {' '.join(case.query.split())}" in explained, name
        assert shown(found[name]) == case.rows, name


def test_some_queries_of_the_cases_in_a_stream(spark: Any) -> None:
    """All give their rows in a stream without Spark (tests/sql)."""
    some = QUERY_CASES[::5]
    found: dict[str, list[Any]] = {case.name: [] for case in some}
    with beam.Pipeline(spark=spark, mode="streaming", shuffle_partitions=2) as pipeline:
        for case in some:
            inputs = {
                name: pipeline | f"{name} of {case.name}" >> table.create()
                for name, table in case.read.items()
            }
            _ = (
                inputs
                | case.name >> SqlTransform(case.query)
                | f"Keep {case.name}" >> WriteToMemory(found[case.name])
            )
    for case in some:
        assert shown(found[case.name]) == case.rows, case.name


@pytest.mark.parametrize("name", ["expressions", "sums", "left join", "tumble"])
def test_a_sink_of_columns_gets_the_result_without_python(
    spark: Any, frame: Any, name: str, tmp_path: Path
) -> None:
    with beam.Pipeline() as pipeline:
        for whole in (True, False):
            result = rows_of(pipeline, frame, CASES[name].query, whole)
            _ = result | f"Write {whole}" >> WriteToSpark("parquet", str(tmp_path / str(whole)))
        [_, plan] = pipeline.explain().split("# plan")
        assert plan.count("columns, without Python") == 1
    by_spark, by_python = (spark.read.parquet(str(tmp_path / str(whole))) for whole in (True, False))
    assert by_spark.dtypes == by_python.dtypes
    assert sorted(map(repr, by_spark.collect())) == sorted(map(repr, by_python.collect()))


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


def test_tables_of_from_are_joined_by_the_equalities_of_where(spark: Any) -> None:
    names = {"a": ("x",), "b": ("y",), "c": ("x", "y")}
    columns = {table: tuple(ColumnDef(name, BIGINT) for name in each) for table, each in names.items()}
    for table, each in names.items():
        schema = ", ".join(f"{name} BIGINT" for name in each)
        spark.createDataFrame([tuple(range(len(each)))], schema).createOrReplaceTempView(f"joined_{table}")
    query = "SELECT a.x FROM a, b, c WHERE a.x = c.x AND b.y = c.y AND c.x < 3"
    text = spark_query(bind(query, Tables(columns, {}, {})), {name: f"joined_{name}" for name in names})
    plan = spark.sql(text)._jdf.queryExecution().optimizedPlan().toString()
    joins = [line for line in plan.splitlines() if "Join" in line]
    assert len(joins) == 2
    assert all(" = " in line for line in joins)


def test_a_result_is_a_table_for_what_follows(frame: Any) -> None:
    with beam.Pipeline() as pipeline:
        totals = rows_of(pipeline, frame, CASES["sums"].query, True)
        again = totals | "Again" >> SqlTransform("SELECT team FROM PCOLLECTION WHERE s >= 5")
        assert_that(again | beam.Map(lambda row: row.team), equal_to(["blue", "red"]))
