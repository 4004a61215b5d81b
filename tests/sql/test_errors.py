"""Wrong queries are refused before anything starts, with the place in the query and what to do."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.transforms.sql import Catalog, SqlError, SqlTransform


class Goal(NamedTuple):
    team: str
    points: int
    at: datetime.datetime


def apply(query: str, catalog: Catalog | None = None, **tables: Any) -> Any:
    goals = beam.Pipeline() | beam.Create([]).with_output_types(Goal)
    inputs = tables or {"goals": goals, "rates": goals}
    return inputs | SqlTransform(query, catalog)


REFUSED = {
    # The grammar.
    "SELECT": "SELECT names no column",
    "SELECT team FROM": "an expression is missing|this word does not fit here|expected table name",
    "SELECT team team2 points FROM goals": "this word does not fit here",
    "SELECT COUNT(*) AS n FROM goals GROUP BY team AS t": "this word does not fit here\n.*\n.*\n.*\n  hint: name a key",
    "SELECT 'team FROM goals": "a quoted text or a comment does not end",
    "": "there is no query",
    "SELECT 1; SELECT 2": "there are 2 statements where one query belongs",
    "DROP TABLE goals": "this is DROP, not a query",
    "SELECT team FROM goals EMIT WHEN points > 3": "a condition on values belongs into HAVING",
    "SELECT team FROM goals EMIT AFTER soon": "a delay is a number and a unit",
    # Names.
    "SELECT tem FROM goals": "there is no column 'tem'\n.*\n.*\n.*\n  hint: did you mean 'team'",
    "SELECT team FROM gaols": "there is no table 'gaols'",
    "SELECT g.team FROM goals h": "there is no table 'g' here",
    "SELECT team FROM goals a JOIN rates b ON a.team = b.team": "the column 'team' is ambiguous: it is in a and in b",
    "SELECT UPER(team) AS x FROM goals": "unknown function UPER",
    "SELECT team, points AS team FROM goals": "two columns of the result have the name 'team'",
    "SELECT points FROM goals GROUP BY team": "neither a key of the grouping nor aggregated",
    "SELECT team FROM goals GROUP BY 7": "GROUP BY 7 names no column",
    "SELECT * FROM NO_WINDOWS(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE)": "there is no table function",
    # Types.
    "SELECT team + points AS x FROM goals": r"\+ does not take",
    "SELECT SUM(team) AS x FROM goals": "SUM takes numbers",
    "SELECT team FROM goals WHERE points": "the condition of WHERE is BIGINT",
    "SELECT team FROM goals UNION ALL SELECT points FROM goals": "STRING NOT NULL on the left and BIGINT NOT NULL",
    "SELECT team FROM goals UNION ALL SELECT team, points FROM goals": "UNION combines 1 columns with 2",
    "SELECT team FROM goals WHERE points IN (SELECT team FROM goals)": "the query returns STRING",
    "SELECT * FROM TUMBLE(TABLE goals, DESCRIPTOR(points), INTERVAL '1' MINUTE)": "windows are of timestamps",
    "SELECT * FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '0' MINUTE)": "lengths of TUMBLE must be positive",
    "SELECT * FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MONTH)": "a length of time belongs here",
    "SELECT DATE 'yesterday' AS x FROM goals": "'yesterday' is not a DATE",
    "SELECT 300Y AS x FROM goals": "300 is not a TINYINT, as its suffix says",
    "SELECT -1.5S AS x FROM goals": "-1.5 is not a SMALLINT, as its suffix says",
    "SELECT CAST(DATE '2026-01-01' AS BIGINT) AS x FROM goals": "no CAST from DATE to BIGINT",
    "SELECT TRY_CAST(DATE '2026-01-01' AS BIGINT) AS x FROM goals": "no CAST from DATE to BIGINT",
    # Shapes that are refused by name.
    "SELECT team FROM goals WHERE SUM(points) > 3": "the aggregate SUM is in WHERE",
    "SELECT SUM(COUNT(*)) AS x FROM goals": "the aggregate COUNT is inside another one",
    "SELECT a.team FROM goals a JOIN rates b ON a.points < b.points": "INNER JOIN needs an equality",
    "SELECT a.at FROM goals a ASOF JOIN rates b ON a.team <=> b.team AND a.at > b.at": "ASOF JOIN takes equal columns",
    "SELECT team FROM goals NATURAL JOIN rates": "NATURAL JOIN is not supported",
    "SELECT RANK() OVER (ORDER BY points) AS x FROM goals": r"RANK\(\) OVER is not supported",
    "SELECT team FROM goals GROUP BY ROLLUP (team)": "GROUP BY ROLLUP is not supported",
    "WITH RECURSIVE a AS (SELECT 1 AS x) SELECT x FROM a": "WITH RECURSIVE is not supported",
    "SELECT team FROM goals g WHERE EXISTS (SELECT 1 FROM rates r WHERE r.team = g.team)": (
        "the subquery reads g.team, a column of the query around it.*hint: write a join: LEFT SEMI JOIN"
    ),
    "SELECT g.team FROM goals g WHERE g.team IN (SELECT r.team FROM rates r WHERE r.points > g.points)": (
        "the subquery reads g.points, a column of the query around it"
    ),
    "SELECT (SELECT MAX(r.points) FROM rates r WHERE r.team = g.team) AS x FROM goals g": "reads g.team, a column of",
    "SELECT (SELECT COUNT(*) + goals.points FROM rates) AS x FROM goals": "reads goals.points, a column of",
    "SELECT team FROM goals g WHERE 1 < (SELECT MAX(x) FROM (SELECT g.points + 1 AS x FROM rates) t)": (
        "reads g.points, a column of the query around it"
    ),
    "SELECT goal FROM (SELECT team AS goal FROM goals) t WHERE EXISTS (SELECT 1 FROM rates WHERE team = goal)": (
        "reads goal, a column of the query around it"
    ),
    "SELECT g.team FROM goals g JOIN (SELECT team FROM rates WHERE team = g.team) r ON g.team = r.team": (
        "there is no table 'g' here"
    ),
    "SELECT team FROM goals g WHERE EXISTS (SELECT 1 FROM rates r) AND h.points > 1": "there is no table 'h' here",
    "SELECT * FROM SESSION(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE)": "sessions are only there in a grouping",
    "SELECT team FROM goals EMIT AFTER WATERMARK": "needs rows that have the end of a window",
    "SELECT TABLE team, Sys.Undo FROM goals": "Sys.Undo tells of changes, and a TABLE shows none",
    "SELECT team, Sys.Undo FROM goals": "Sys.Undo tells of changes, and a query without STREAM shows none",
    "SELECT TVR team, Sys.EmitIndex AS n FROM goals": "Sys.EmitIndex tells of changes, and a TVR shows none",
    "SELECT team, CURRENT_TIMESTAMP AS t FROM goals": "Sys.EmitTime tells of changes, and a query without STREAM",
    "SELECT WINDOW_END(TUMBLE(at, INTERVAL '2' MINUTES)) AS e FROM goals GROUP BY TUMBLE(at, INTERVAL '1' MINUTES)": (
        "is not the window that the query groups by.*hint: write the window as in GROUP BY"
    ),
    "SELECT window_start FROM TUMBLE(TABLE (SELECT window_start, window_end FROM TUMBLE(TABLE goals, DESCRIPTOR(at), "
    "INTERVAL '1' MINUTE)), DESCRIPTOR(window_start), INTERVAL '2' MINUTES)": (
        "the column 'window_start' is ambiguous.*hint: name one of them with AS, in the query inside"
    ),
    "SELECT Sys.Undo, team FROM (SELECT team, Sys.Undo FROM goals) x": "belongs to the outermost SELECT STREAM",
    "SELECT STREAM team FROM goals AS OF SYSTEM TIME '2026-01-01 00:00:00'": "a STREAM has none",
    "SELECT team FROM (SELECT STREAM team FROM goals) x": "SELECT STREAM stands inside another query",
    "SELECT team FROM goals LIMIT -1": "LIMIT takes a whole number",
    "SELECT * FROM goals MATCH_RECOGNIZE (PARTITION BY team ORDER BY at PATTERN (A) DEFINE A AS points > 1)": (
        "MATCH_RECOGNIZE is not supported"
    ),
    "SELECT COUNT(*) AS n FROM goals GROUP BY WINDOW(at, '10 minutes')": "the function WINDOW is not supported",
    "SELECT team FROM goals WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY team": "WINDOW TUMBLING is not supported",
    "SELECT LATEST(points) AS x FROM goals GROUP BY team": "unknown function LATEST",
    "EXPLAIN SELECT team FROM goals": "this is EXPLAIN, not a query",
    "SELECT STDDEV(points) AS x FROM goals": "unknown function STDDEV\n.*\n.*\n.*\n.*\n  hint: write it in Python",
    # An unknown function has the name that the query gives it, and no suggestion that is something else.
    "SELECT STRING_AGG(team, ',') AS x FROM goals": "unknown function STRING_AGG.*hint: write it in Python",
    "SELECT LISTAGG(team) AS x FROM goals": "unknown function LISTAGG.*hint: write it in Python",
    "SELECT MAX_BY(team, points) AS x FROM goals GROUP BY at": "unknown function MAX_BY.*hint: write it in Python",
    "SELECT MAX_BY(team, points) OVER (ORDER BY at) AS x FROM goals": r"MAX_BY\(\) OVER is not supported",
    "SELECT PERCENTILE(points, 0.5) AS x FROM goals": "unknown function PERCENTILE.*hint: write it in Python",
    "SELECT CAST(team AS DATE FORMAT 'yyyy') AS x FROM goals": "CAST with FORMAT is not supported",
    "SELECT CAST(team AS TIMESTAMP FORMAT 'yyyy') AS x FROM goals": "CAST with FORMAT is not supported",
    "SELECT CAST(at AS STRING FORMAT 'yyyy') AS x FROM goals": "CAST with FORMAT is not supported",
    "SELECT DATE_FORMAT(at, 'yyyy') AS x FROM goals": "unknown function DATE_FORMAT.*hint: write it in Python",
    "SELECT RAND() AS x FROM goals": "unknown function RAND.*hint: write it in Python",
    "SELECT MODE(points) AS x FROM goals": "unknown function MODE.*hint: write it in Python",
    "SELECT LCAS(team) AS x FROM goals": r"unknown function LCAS.*hint: did you mean LCASE\?",
    "SELECT CAST(points AS DECIMAL(39)) AS x FROM goals": r"DECIMAL\(39, 0\) has other digits .* at most 38",
    "SELECT CAST(points AS FLOAT) AS x FROM goals": "CAST to FLOAT is not supported.*hint: write DOUBLE",
    "SELECT CAST(INTERVAL '1' DAY AS STRING) AS x FROM goals": "no CAST from INTERVAL.*depends on its units",
    "SELECT DATEADD(DAY, 1, at) AS x FROM goals": "DATEADD with a unit of time.*hint: write time [+] INTERVAL",
    "SELECT DATEDIFF(HOUR, at, at) AS x FROM goals": r"DATEDIFF with a unit of time.*write DATEDIFF\(end, start\)",
    "SELECT COUNT(DISTINCT team, points) AS x FROM goals": "COUNT takes one argument, not 2.*over SELECT DISTINCT",
    "SELECT INTERVAL '1 month 2 days' AS x FROM goals": "a length of time belongs here.*months have no fixed length",
    "SELECT INTERVAL '1 25:00' DAY TO MINUTE AS x FROM goals": "a length of time belongs here",
    # What the parser takes, and would be lost.
    "SELECT * FROM goals PIVOT (SUM(points) FOR team IN ('red'))": "PIVOT is not supported",
    "SELECT * FROM (SELECT team FROM goals) PIVOT (COUNT(*) FOR team IN ('red'))": "PIVOT is not supported",
    "SELECT * FROM goals UNPIVOT (v FOR n IN (points))": "^UNPIVOT is not supported",
    "SELECT * FROM (SELECT team, points FROM goals) UNPIVOT (v FOR n IN (points))": "^UNPIVOT is not supported",
    "SELECT * FROM goals TABLESAMPLE (10 PERCENT)": "TABLESAMPLE is not supported",
    "SELECT * FROM (SELECT team FROM goals) TABLESAMPLE (1 ROWS)": "TABLESAMPLE is not supported",
    "SELECT team, points FROM goals UNION ALL BY NAME SELECT points, team FROM goals": "BY NAME is not supported",
    "SELECT team FROM goals ORDER BY points FETCH FIRST 2 ROWS WITH TIES": "WITH TIES is not supported",
    "SELECT team FROM goals ORDER BY points FETCH FIRST 50 PERCENT ROWS ONLY": "PERCENT is not supported",
    "SELECT team FROM goals ORDER BY points LIMIT 1 BY team": r"LIMIT \.\.\. BY is not supported",
    "SELECT team INTO winners FROM goals": "INTO is not supported",
    "SELECT team FROM goals FOR UPDATE": "FOR UPDATE is not supported",
    "SELECT team FROM goals VERSION AS OF 3": "VERSION AS OF is not supported here",
    "SELECT team FROM goals FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01'": "AS OF is not supported here",
    "SELECT team FROM goals WHERE points BETWEEN SYMMETRIC 5 AND 1": "SYMMETRIC is not supported",
    "SELECT team FROM goals WHERE points IN UNNEST(ARRAY(1))": "IN UNNEST is not supported",
    "SELECT COUNT(DISTINCT *) AS n FROM goals": r"COUNT\(DISTINCT \*\) is not supported",
}


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
    with pytest.raises(ValueError, match="there is a view 'BIG' already"):
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
