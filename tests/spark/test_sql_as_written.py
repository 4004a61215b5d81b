"""In a batch, queries go to Spark as the user wrote them if the transforms do not know them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.elements.row import Row
from penstock.error import RunnerError, UnsupportedByRunner
from penstock.graph import Read
from penstock.io import WriteToMemory, WriteToText
from penstock.io.query_source import QuerySource
from penstock.io.source_transforms import SourceTransform
from penstock.io.sparkio import WriteToSpark, from_dataframe
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.sql import Catalog, SqlError, SqlTransform
from penstock.typehints import List, Optional
from penstock.typehints.column_types import decimal_of

pytestmark = pytest.mark.usefixtures("spark")


class Goal(NamedTuple):
    team: str
    points: int
    price: Decimal | None


GOALS = [Goal("red", 3, Decimal("1.50")), Goal("blue", 5, None), Goal("red", 4, Decimal("2.25"))]
WRITTEN = "computed by: Spark, as the query is written; "
ONLY_SPARKS = "QUOTE(team) IS NOT NULL"
"""A condition, true for each goal, that only Spark computes."""


def made(pipeline: Any, label: str = "Goals") -> Any:
    return pipeline | label >> beam.Create(GOALS).with_output_types(Goal)


QUERIES: dict[str, list[tuple[Any, ...]]] = {
    # Functions.
    "SELECT STDDEV_POP(points) AS s, MODE(team) AS m FROM goals WHERE team = 'red'": [(0.5, "red")],
    "SELECT team, RANK() OVER (ORDER BY points) AS r, LAG(points) OVER (ORDER BY points) AS l FROM goals": [
        *(("red", 1, None), ("red", 2, 3), ("blue", 3, 4)),
    ],
    "SELECT team, COUNT(*) AS n FROM goals GROUP BY ROLLUP (team)": [(None, 3), ("blue", 1), ("red", 2)],
    "SELECT points FROM goals g WHERE EXISTS (SELECT 1 FROM goals h WHERE h.team = g.team AND h.points > g.points)": [
        (3,)
    ],
    "SELECT x FROM goals LATERAL VIEW EXPLODE(ARRAY(points, points + 1)) AS x WHERE team = 'blue'": [
        (5,),
        (6,),
    ],
    """SELECT * FROM (SELECT team, points FROM goals)
    PIVOT (SUM(points) FOR team IN ('red' AS r, 'blue' AS b))""": [(7, 5)],
    """WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a WHERE x < 3)
    SELECT x FROM a JOIN goals ON x = points""": [(3,)],
    "FROM goals |> WHERE points > 4 |> AGGREGATE MEDIAN(points) AS m": [(5.0,)],
    "SELECT TABLE g.team FROM goals g JOIN goals h ON g.points < h.points": [("red",), ("red",), ("red",)],
    # Types.
    "SELECT PERCENTILE_APPROX(points, 0.5) AS p, SUM(price) AS s, AVG(price) AS a FROM goals": [
        (4, Decimal("3.75"), Decimal("1.875000"))
    ],
    "SELECT MAP(team, NAMED_STRUCT('x', points)) AS m, TRANSFORM(ARRAY(points), x -> x * 2) AS t FROM goals": [
        *(({"red": Row(x=3)}, [6]), ({"blue": Row(x=5)}, [10]), ({"red": Row(x=4)}, [8])),
    ],
    "SELECT INTERVAL '1' DAY * points AS i, TIME '10:30:00' AS t FROM goals WHERE team = 'blue'": [
        (datetime.timedelta(days=5), datetime.time(10, 30))
    ],
}


KNOWN_TO_BOTH = [
    query for query in QUERIES if not any(word in query for word in ("PIVOT", "RECURSIVE", "TIME '"))
]


def test_spark_computes_what_the_transforms_do_not_know_over_rows_that_python_makes() -> None:
    """What both know means the same, whoever computes it."""
    found: dict[str, list[Any]] = {query: [] for query in QUERIES}
    with beam.Pipeline() as pipeline:
        goals = made(pipeline) | beam.Map(lambda goal: goal).with_output_types(Goal)
        for number, (query, rows) in enumerate(found.items()):
            transform = SqlTransform(query)
            result = {"goals": goals} | f"Query {number}" >> transform
            assert (WRITTEN in transform.explained) != (query in KNOWN_TO_BOTH), query
            _ = result | f"Keep {number}" >> WriteToMemory(rows)
    assert {query: sorted(map(tuple, rows), key=repr) for query, rows in found.items()} == {
        query: sorted(rows, key=repr) for query, rows in QUERIES.items()
    }


def test_the_result_has_the_types_of_spark() -> None:
    query = "SELECT MEDIAN(points) AS m, SUM(price) AS s, COLLECT_SET(team) AS t, COUNT(*) AS n FROM goals"
    query += f" WHERE {ONLY_SPARKS}"
    result = {"goals": made(beam.Pipeline())} | SqlTransform(query)
    types = {name: str(hint) for name, hint in result.element_type.fields}
    assert types == {
        "m": str(Optional[float]),
        "s": str(Optional[decimal_of(38, 18)]),
        "t": str(List[str]),
        "n": str(int),
    }


def test_views_and_queries_over_queries_are_one_text(spark: Any) -> None:
    catalog = Catalog()
    catalog.create_view(
        "ranked", f"SELECT team, RANK() OVER (ORDER BY points DESC) AS r FROM `all goals` WHERE {ONLY_SPARKS}"
    )
    catalog.create_view("Best", "SELECT team FROM Ranked WHERE r = 1")
    frame = spark.createDataFrame(GOALS, "team string, points int, price decimal(5, 2)")
    with beam.Pipeline() as pipeline:
        goals = pipeline | from_dataframe(frame)
        best = {"all goals": goals} | "Best" >> SqlTransform("SELECT * FROM best", catalog)
        many = best | "Many" >> SqlTransform("SELECT team FROM PCOLLECTION WHERE QUOTE(team) > ''")
        tables = {"a": best, "b": made(pipeline), "c": many}
        query = "SELECT a.team, b.points, MEDIAN(b.points) OVER () AS m FROM a JOIN b USING (team) JOIN c USING (team)"
        query += f" WHERE {ONLY_SPARKS}"
        joined = tables | "Joined" >> SqlTransform(query)
        assert_that(joined | beam.Map(tuple), equal_to([("blue", 5, 5.0)]))
        assert pipeline.explain().count("table '") == 1


def test_a_step_that_also_leads_to_something_else_gives_its_elements_to_both(tmp_path: Path) -> None:
    found: list[Any] = []

    def is_high(goal: Goal) -> bool:
        beam.metrics.Metrics.counter("goals", "seen").inc()
        return goal.points > 3

    with beam.Pipeline() as pipeline:
        goals = made(pipeline) | beam.Filter(is_high)
        _ = goals | beam.Map(str) | WriteToMemory(found)
        result = {"goals": goals} | SqlTransform(f"SELECT MEDIAN(points) AS m FROM goals WHERE {ONLY_SPARKS}")
        _ = result | WriteToSpark("parquet", str(tmp_path / "out"))
        [_, plan] = pipeline.explain().split("# plan")
        assert plan.count("columns, without Python") == 1
    assert len(found) == 2
    assert pipeline.result is not None
    [seen] = pipeline.result.metrics().query()["counters"]
    assert seen.committed == 2 * len(GOALS)


def test_a_query_whose_values_java_computes_with_other_last_bits_goes_to_spark_over_its_tables(
    spark: Any,
) -> None:
    frame = spark.createDataFrame(GOALS, "team string, points int, price decimal(5, 2)")
    query = "SELECT UPPER(team) AS u, EXP(points) AS e FROM goals"
    over_tables, over_rows = SqlTransform(query), SqlTransform(query)
    with beam.Pipeline() as pipeline:
        found = {"goals": pipeline | from_dataframe(frame)} | "Tables" >> over_tables
        _ = {"goals": made(pipeline)} | "Rows" >> over_rows
        assert_that(found | beam.Map(lambda row: row.u), equal_to(["BLUE", "RED", "RED"]))
    assert f"{WRITTEN}not as our plan, since UPPER: " in over_tables.explained
    assert "computed by: the transforms; " in over_rows.explained


WRONG = {
    "SELECT team, RANK() OVER (ORDER BY pionts) AS r\nFROM goals": """there is no column 'pionts'
  line 1, column 36 of the query
    SELECT team, RANK() OVER (ORDER BY pionts) AS r
                                       ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: did you mean 'points'?""",
    "SELECT MEDIAN(points) AS m\n  FROM (SELECT * FROM goal)": """there is no table 'goal'
  line 2, column 23 of the query
      FROM (SELECT * FROM goal)
                          ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: did you mean 'goals'?""",
    "SELECT STDEV(points) AS s FROM goals": """unknown function STDEV
  line 1, column 8 of the query
    SELECT STDEV(points) AS s FROM goals
           ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: did you mean STDDEV?""",
    "SELECT MEDIAN(points) OVER (BY team) AS m FROM goals": """expecting )
  line 1, column 32 of the query
    SELECT MEDIAN(points) OVER (BY team) AS m FROM goals
                                   ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: correct the query here""",
    "SELECT MEDIAN(points) AS m, QUOTE(ARRAY(1)) AS t FROM goals": """\
Spark refuses the query: cannot resolve "quote(array(1))" due to data type mismatch: \
The first parameter requires the "STRING" type, however "array(1)" has the type "ARRAY<INT>"
  line 1, column 29 of the query
    SELECT MEDIAN(points) AS m, QUOTE(ARRAY(1)) AS t FROM goals
                                ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: correct the query here""",
    "SELECT MEDIAN(points) AS m, team FROM goals GROUP BY points": """\
the column 'team' is neither a key of the grouping nor aggregated
  line 1, column 29 of the query
    SELECT MEDIAN(points) AS m, team FROM goals GROUP BY points
                                ^
  at step 'Query' (test_sql_as_written.py:…)
  hint: add it to GROUP BY, or write MAX(team)""",
    "SELECT INTERVAL '1' MONTH AS i, MEDIAN(points) AS m FROM goals": """\
the column 'i' has values of the type interval month, which Python does not have
  at step 'Query' (test_sql_as_written.py:…)
  hint: write CAST(`i` AS STRING)""",
    "SELECT MEDIAN(points) AS m, MEDIAN(points) AS m FROM goals": """\
two columns of the result have the name 'm'
  at step 'Query' (test_sql_as_written.py:…)
  hint: give one of them an alias with AS""",
}


@pytest.mark.parametrize("query", WRONG, ids=[f"query {number}" for number in range(len(WRONG))])
def test_what_spark_refuses_is_an_error_with_its_place_in_the_query(query: str) -> None:
    with pytest.raises(SqlError) as refused:
        _ = {"goals": made(beam.Pipeline())} | "Query" >> SqlTransform(query)
    said = str(refused.value)
    line = said.partition("test_sql_as_written.py:")[2].partition(")")[0]
    assert said.replace(f".py:{line})", ".py:…)") == WRONG[query]


def test_an_error_in_a_view_has_its_place_in_the_view() -> None:
    catalog = Catalog()
    catalog.create_view("medians", "SELECT MEDIAN(point) AS m FROM goals")
    with pytest.raises(
        SqlError, match="there is no column 'point'\n  line 1, column 15 of the query\n    SELECT MED"
    ):
        _ = {"goals": made(beam.Pipeline())} | SqlTransform("SELECT m, 'µ😀' AS x FROM medians", catalog)
    catalog.create_view("medians", "SELECT MEDIAN(points) AS m FROM goals", replace=True)
    with pytest.raises(SqlError, match=r"there is no column 'm3'\n  line 1, column 15 of"):
        _ = {"goals": made(beam.Pipeline())} | SqlTransform("SELECT '😀' x, m3 FROM medians", catalog)


def test_what_is_not_sparks_is_refused_as_in_a_stream() -> None:
    catalog = Catalog()
    catalog.create_function("shout", str.upper, str)
    for query in (
        "SELECT QUOTE(team) AS r FROM goals EMIT AFTER WATERMARK",
        "SELECT STREAM QUOTE(team) AS r FROM goals",
        "SELECT QUOTE(SHOUT(team)) AS r FROM goals",
    ):
        with pytest.raises(SqlError, match="QUOTE"):
            _ = {"goals": made(beam.Pipeline())} | SqlTransform(query, catalog)


def test_errors_of_values_name_the_step_and_do_not_show_them() -> None:
    for query in (
        f"SELECT MEDIAN(points / 0) AS m FROM goals WHERE {ONLY_SPARKS}",
        f"SELECT MEDIAN(CAST(team AS INT)) AS m FROM goals WHERE {ONLY_SPARKS}",
    ):
        pipeline = beam.Pipeline()
        _ = {"goals": made(pipeline)} | "Query" >> SqlTransform(query) | WriteToMemory([])
        with pytest.raises(RunnerError, match="at step 'Query/Query'") as failed:
            pipeline.run().wait_until_finish()
        assert "blue" not in str(failed.value)
        assert "py4j" not in str(failed.value)


def test_the_rows_of_a_failing_step_fail_there() -> None:
    pipeline = beam.Pipeline()
    goals = made(pipeline) | "Break" >> beam.Map(lambda goal: goal.team.absent).with_output_types(Goal)
    _ = {"goals": goals} | SqlTransform(f"SELECT points FROM goals WHERE {ONLY_SPARKS}") | WriteToMemory([])
    with pytest.raises(AttributeError, match=r"while running 'Break"):
        pipeline.run().wait_until_finish()


def test_a_query_over_what_a_sink_has_written_is_refused(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    written = made(pipeline) | beam.Map(str) | WriteToText(str(tmp_path / "out"))
    names = written | beam.Map(lambda name: Goal(name, 1, None)).with_output_types(Goal)
    _ = {"names": names} | SqlTransform(f"SELECT team FROM names WHERE {ONLY_SPARKS}") | WriteToMemory([])
    with pytest.raises(UnsupportedByRunner, match="cannot read what a sink has written"):
        pipeline.run()


def test_spark_gets_the_users_text_if_it_means_the_same_there(spark: Any, tmp_path: Path) -> None:
    """The result has the names of the plan, and Spark gets the plan's text for what it does not know as written."""
    spark.createDataFrame([("red", 3), ("blue", None)], "team string, points long").write.parquet(
        str(tmp_path / "goals")
    )
    asked: dict[str, list[tuple[Any, ...]]] = {
        "SELECT team, points + 1 FROM goals WHERE points > 1": [("red", 4)],
        "SELECT 5 NOT IN (SELECT points FROM goals) AS x FROM goals WHERE team = 'red'": [(None,)],
        "SELECT points FROM goals ORDER BY points DESC LIMIT 1": [(3,)],
    }
    found: dict[str, list[Any]] = {query: [] for query in asked}
    with beam.Pipeline() as pipeline:
        goals = pipeline | beam.io.ReadFromParquet(str(tmp_path / "goals" / "*.parquet"), as_rows=True)
        for number, (query, rows) in enumerate(found.items()):
            result = {"goals": goals} | f"Query {number}" >> SqlTransform(query)
            _ = result | f"Keep {number}" >> WriteToMemory(rows)
    assert {query: [tuple(row) for row in rows] for query, rows in found.items()} == asked
    primitives = [step.primitive for step in pipeline.to_graph().steps]
    sources = [
        each.source for each in primitives if isinstance(each, Read) and isinstance(each.source, QuerySource)
    ]
    assert [each.text == each.query for each in sources] == [True, False, False]
    names = [list(row.as_dict()) for rows in found.values() for row in rows]
    assert names == [["team", "column_2"], ["x"], ["points"]]
    others = [
        replace(sources[0], text="SELECT no_function(team), points FROM goals"),
        replace(sources[0], text="SELECT team, CAST(points AS INT) FROM goals"),
    ]
    in_other_words: list[list[Any]] = [[] for _ in others]
    with beam.Pipeline() as pipeline:
        for number, (source, rows) in enumerate(zip(others, in_other_words, strict=True)):
            read = SourceTransform[Any](source, f"Query {number}").with_output_types(beam.Row)
            _ = pipeline | read | f"Keep {number}" >> WriteToMemory(rows)
    assert [list(map(tuple, rows)) for rows in in_other_words] == [[("red", 4)]] * 2
