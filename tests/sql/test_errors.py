"""Wrong queries are refused before anything starts, with the place in the query and what to do."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.runners.runner import PipelineRunner
from penstock.transforms.sql import Catalog, SqlError, SqlTransform


class Goal(NamedTuple):
    team: str
    points: int
    at: datetime.datetime


def apply(query: str, catalog: Catalog | None = None, **tables: Any) -> Any:
    # In a batch, Spark's SQL knows more.
    goals = beam.Pipeline(runner=PipelineRunner()) | beam.Create([]).with_output_types(Goal)
    inputs = tables or {"goals": goals, "rates": goals}
    return inputs | SqlTransform(query, catalog)


def _refusal(line: str) -> tuple[str, str]:
    query, _, pattern = f" {line}".partition(" => ")
    return query.strip(), pattern


REFUSED = dict(
    _refusal(line)
    for line in Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)


@pytest.mark.parametrize("query", REFUSED)
def test_a_wrong_query_is_refused(query: str) -> None:
    with pytest.raises(SqlError, match=f"(?s){REFUSED[query]}") as refused:
        apply(query)
    assert "hint: " in str(refused.value)
    assert "\n  at step " in str(refused.value)


def test_the_parser_logs_nothing_of_a_command(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SqlError, match="this is EXPLAIN"):
        apply("EXPLAIN SELECT team FROM goals")
    assert caplog.messages == []


def test_the_place_in_the_query_has_a_caret() -> None:
    with pytest.raises(SqlError) as refused:
        apply("SELECT team,\n       ponts\nFROM goals")
    lines = str(refused.value).splitlines()
    assert lines[1].strip() == "line 2, column 8 of the query"
    assert lines[2].index("ponts") == lines[3].index("^")


def test_a_query_of_megabytes_is_refused_and_a_long_one_is_not() -> None:
    names = ", ".join(f"points + {number} AS p{number}" for number in range(2_000))
    assert apply(f"SELECT {names} FROM goals") is not None
    with pytest.raises(SqlError, match="at most 1,000,000 are taken"):
        apply(f"SELECT team FROM goals -- {'x' * 1_000_000}")


def test_a_deep_query_is_computed_or_refused() -> None:
    apply(f"SELECT {'(' * 50}points{')' * 50} AS points FROM goals")
    with pytest.raises(SqlError, match="nested too deeply"):
        apply(f"SELECT {'(' * 5_000}points{')' * 5_000} AS points FROM goals")


def test_inputs_that_are_no_rows_are_refused() -> None:
    numbers = beam.Pipeline() | beam.Create([1, 2])
    with pytest.raises(TypeError, match="a query reads rows"):
        _ = numbers | SqlTransform("SELECT * FROM PCOLLECTION")
    with pytest.raises(TypeError, match="is a list, and not a PCollection"):
        _ = {"goals": [1]} | SqlTransform("SELECT * FROM goals")


def test_names_that_need_quotes_work() -> None:
    rows = beam.Pipeline() | beam.Create([]).with_output_types(Goal)
    result = {"order": rows} | SqlTransform("SELECT `team` AS `select` FROM `order`")
    assert result.element_type.fields[0][0] == "select"


def test_a_view_may_read_views_and_not_itself() -> None:
    catalog = Catalog()
    catalog.create_view("totals", "SELECT team, SUM(points) AS total FROM goals GROUP BY team")
    catalog.create_view("big", "SELECT * FROM totals WHERE total > 3")
    assert apply("SELECT * FROM big", catalog) is not None
    catalog.create_view("totals", "SELECT * FROM big", replace=True)
    with pytest.raises(SqlError, match="reads itself"):
        apply("SELECT * FROM big", catalog)
    with pytest.raises(ValueError, match="the view 'BIG' already exists"):
        catalog.create_view("BIG", "SELECT 1 AS x")


class Longest(beam.CombineFn):
    def create_accumulator(self) -> str:
        return ""

    def add_input(self, accumulator: str, element: str) -> str:
        return max(accumulator, element, key=len)

    def merge_accumulators(self, accumulators: Any) -> str:
        return max(accumulators, key=len, default="")

    def extract_output(self, accumulator: str) -> str:
        return accumulator


def test_a_catalog_may_have_what_other_dialects_write_with_words_of_their_own() -> None:
    catalog = Catalog()
    catalog.create_function("string_agg", Longest())
    catalog.create_function("initcap", str.title)
    query = "SELECT STRING_AGG(team) AS x, INITCAP(at) AS y FROM (SELECT team, 'a' AS at FROM goals) t GROUP BY at"
    assert apply(query, catalog) is not None


def test_calls_of_a_function_are_one_value_wherever_they_stand() -> None:
    catalog = Catalog()
    catalog.create_function("shout", str.upper)
    query = "SELECT SHOUT(team) AS x, COUNT(*) AS n FROM goals GROUP BY SHOUT(team)"
    assert apply(query, catalog) is not None


def test_a_query_of_no_table_needs_none() -> None:
    pipeline = beam.Pipeline(runner=PipelineRunner())
    assert str((pipeline | SqlTransform("SELECT 1 AS one")).element_type) == "Row(one=<class 'int'>)"
    with pytest.raises(SqlError, match=r"there is no table 'goals'[^!]*query\(text, goals='goals.csv'\)"):
        _ = pipeline | SqlTransform("SELECT team FROM goals")


def test_rows_of_a_table_have_names() -> None:
    catalog = Catalog()
    catalog.create_table("goals", [("red", 3)])
    with pytest.raises(TypeError, match=r"are tuples, so its columns are unknown\n[^!]*write dicts"):
        _ = beam.Pipeline(runner=PipelineRunner()) | SqlTransform("SELECT * FROM goals", catalog)


def test_functions_are_checked() -> None:
    with pytest.raises(TypeError, match="is of type int"):
        Catalog().create_function("three", 3)  # type: ignore[arg-type]


def test_explain_shows_the_query_its_plan_and_who_computes_it() -> None:
    goals = beam.Pipeline() | beam.Create([]).with_output_types(Goal)
    result = {"goals": goals} | "Totals" >> SqlTransform(
        "SELECT team, SUM(points) AS s FROM goals GROUP BY team"
    )
    text = result.pipeline.explain()
    assert text.startswith(
        "# Totals\nSELECT team, SUM(points) AS s FROM goals GROUP BY team\n\nplan:\nProject("
    )
    assert "computed by: the transforms; Spark alone does not, since the input 'goals' is not a table" in text
