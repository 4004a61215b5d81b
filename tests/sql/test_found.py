"""Queries that once broke the law of the relation, and what a query is refused for instead of a wrong result."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as beam
from penstock.scalars.types import BIGINT
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan.relations import ColumnDef, Join, skip_projections
from penstock.transforms.sql import SqlTransform
from penstock_spark.reports.failure import StepFailure
from tests.runner.plain_runner import collect, run_plain
from tests.sql.law import check_emitted, check_text
from tests.sql.random_queries import validity
from tests.sql.relations import Advance, Change, Input, changes, random_input

INPUTS = (0, 3)
"""An input in which rows only come, and one in which some are taken back."""

FOUND = [
    # A condition that neither belongs to one side nor is an equality was pushed down for ever.
    "SELECT a.k, b.w FROM a CROSS JOIN b WHERE a.v < b.w OR a.k IS NULL",
    "SELECT a.k, b.w FROM a CROSS JOIN b",
    # The column of USING was ambiguous with the columns that it stands for.
    "SELECT k, s, a.v, b.w FROM a FULL JOIN b USING (k, s) WHERE k > 0",
    "SELECT k, a.v FROM a RIGHT JOIN b USING (k)",
    # A time without a zone was never equal to the start of a window.
    "SELECT k, COUNT(*) AS n FROM (SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b) AS t GROUP BY k, ts",
    # An aggregate in a subquery made the query around it a grouped one.
    "SELECT k, (SELECT MAX(w) FROM b) AS m FROM a",
    # A subquery beside an aggregate became a key, so that there was no group without rows.
    "SELECT (SELECT MAX(v) FROM a) AS m, COUNT(*) AS n FROM b",
    "SELECT COUNT(*) AS n, (SELECT MAX(v) FROM a) AS m FROM b",
    "SELECT k, COUNT(*) + (SELECT MAX(v) FROM a) AS n FROM b GROUP BY k HAVING EXISTS (SELECT k FROM a WHERE v > 2)",
    "SELECT k, SUM(w) AS n FROM b GROUP BY k HAVING SUM(w) >= (SELECT MIN(v) FROM a)",
    # Newer parsers mark a LIKE as negated, and the mark was not read.
    "SELECT k, s NOT LIKE 'x%' AS n FROM a",
    "SELECT k FROM a WHERE s NOT LIKE 'y' AND k NOT IN (2)",
    "SELECT k FROM a WHERE s NOT ILIKE 'Y'",
    "SELECT k, s NOT LIKE '!%' ESCAPE '!' AS n FROM a",
    # The tree has a class of its own for this comparison, and that was unknown.
    "SELECT k, k IS DISTINCT FROM v AS n, k IS NOT DISTINCT FROM v AS m FROM a",
    # A quote that is written twice was lost.
    "SELECT s || 'it''s' AS n, '''' AS m, '''x''' AS o FROM a",
]


@pytest.mark.parametrize("query", FOUND)
def test_a_query_that_broke_the_law_keeps_it(query: str) -> None:
    for seed in INPUTS:
        check_text(query, seed)


_SAFE = "NULLIF(a.k, 2) IS NOT DISTINCT FROM NULLIF(b.k, 2)"
NULL_SAFE = [
    *(
        f"SELECT a.k, a.s, b.k AS o, b.w FROM a {kind} JOIN b ON {_SAFE}"
        for kind in ("", "LEFT", "RIGHT", "FULL")
    ),
    *(f"SELECT a.k, a.s FROM a {kind} JOIN b ON {_SAFE}" for kind in ("LEFT SEMI", "LEFT ANTI")),
    # NULL equals NULL in one of the keys only.
    f"SELECT a.k, a.s, b.w FROM a FULL JOIN b ON a.s = b.s AND {_SAFE}",
    f"SELECT a.k, b.w FROM a LEFT JOIN b ON b.s = a.s AND {_SAFE} AND b.w > 1",
    f"SELECT a.k, a.s, b.w FROM a CROSS JOIN b WHERE {_SAFE} AND a.s = b.s",
    # One side is never NULL, or both are.
    "SELECT a.k, c.n FROM a LEFT JOIN (SELECT COUNT(*) AS n FROM b) AS c ON a.k IS NOT DISTINCT FROM c.n",
    "SELECT a.k, c.n FROM a JOIN (SELECT NULL AS n, MAX(w) AS w FROM b) AS c ON a.k IS NOT DISTINCT FROM c.n",
]


@pytest.mark.parametrize("query", NULL_SAFE)
def test_null_equals_null_in_a_null_safe_join(query: str) -> None:
    for seed in INPUTS:
        check_text(query, seed, query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"))


def test_a_null_safe_equality_is_a_key_of_the_join() -> None:
    k = ColumnDef("k", BIGINT)
    tables = Tables({"a": (k,), "b": (k,)}, {}, {})
    relation = bind(f"SELECT a.k FROM a CROSS JOIN b WHERE {_SAFE} AND a.k = b.k", tables).relation
    _, join = skip_projections(relation)
    assert isinstance(join, Join)
    assert (len(join.left_keys), join.null_safe) == (2, (0,))


_RATES = "(SELECT k, ts, MAX(w) AS w FROM b GROUP BY k, ts)"
_TEXTS = "(SELECT ts, MAX(s) AS s FROM b GROUP BY ts)"
_LEFT_OF_WINDOWS = "SELECT a.k, {} FROM a LEFT JOIN {} AS r ON a.k = r.k"
_IN_WINDOW = "a.k = r.k AND r.window_start <= a.ts AND a.ts < r.window_end"
_FULL = f"SELECT a.k, a.v, r.k AS rk, r.w, r.window_start FROM a FULL JOIN {{}} AS r ON {_IN_WINDOW}"
FOUND_WITH_VALIDITY = [
    # NULL equalled NULL.
    (f"SELECT a.k, a.v, r.w FROM a ASOF JOIN {_RATES} AS r ON a.k = r.k AND a.ts >= r.ts", None),
    # A row whose time is NULL was lost, where it had to come without a partner.
    (f"SELECT a.k, a.v, r.w FROM a ASOF LEFT JOIN {_RATES} AS r ON a.k = r.k AND a.ts >= r.ts", None),
    (
        _FULL.format(f"VALIDITY_WINDOW(TABLE {_RATES} PARTITION BY k, DESCRIPTOR(ts))"),
        _FULL.format(validity(_RATES, ["k"])),
    ),
    # Windows in FROM without PARTITION BY became those of GROUP BY, so that each time had a group of its own.
    (
        f"SELECT s, COUNT(*) AS n FROM VALIDITY_WINDOW(TABLE {_TEXTS}, DESCRIPTOR(ts)) AS t GROUP BY s",
        f"SELECT s, COUNT(*) AS n FROM {_TEXTS} AS t WHERE ts IS NOT NULL GROUP BY s",
    ),
    # A bound of a window that is NULL was an error.
    (
        _LEFT_OF_WINDOWS.format(
            "WINDOW_START(r.w) AS e",
            "(SELECT k, VALIDITY_WINDOW(ts) AS w FROM b GROUP BY k, VALIDITY_WINDOW(ts))",
        ),
        _LEFT_OF_WINDOWS.format("r.ts", "(SELECT DISTINCT k, ts FROM b WHERE ts IS NOT NULL)"),
    ),
]


@pytest.mark.parametrize("query", FOUND_WITH_VALIDITY)
def test_a_query_with_validity_that_broke_the_law_keeps_it(query: tuple[str, str | None]) -> None:
    own, other = query
    for seed in (0, 3, 9):
        check_text(own, seed, other)


def test_a_time_without_a_zone_is_in_utc_as_windows_are() -> None:
    query = """
        SELECT window_start FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' SECOND)
        GROUP BY window_start, window_end HAVING MIN(ts) <> window_start OR MIN(ts) IS NULL
    """
    assert not [
        row for seed in range(3) for each in changes(query, random_input(seed)) for row in each.changes
    ]


_EVEN, _ODD = (f"(SELECT COUNT(*) AS n FROM a HAVING COUNT(*) % 2 = {rest})" for rest in (0, 1))


@pytest.mark.parametrize("sides", [(_EVEN, _ODD), (_ODD, _EVEN)])
def test_a_subquery_may_have_two_rows_as_long_as_an_instant_lasts(sides: tuple[str, str]) -> None:
    one, other = sides
    query = f"SELECT (SELECT n FROM ({one} UNION ALL {other}) AS u) AS x, k FROM b"
    for seed in INPUTS:
        check_text(query, seed)


@pytest.mark.parametrize("query", ["SELECT k FROM a", "SELECT COUNT(*) AS n FROM a GROUP BY ts"])
def test_a_subquery_with_two_rows_fails(query: str) -> None:
    with pytest.raises(StepFailure, match="ValueError"):
        list(changes(f"SELECT ({query}) AS x, k FROM b", random_input(402)))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, Sys.MTime AS t FROM PCOLLECTION",
        "SELECT STREAM k, Sys.EmitTime AS t FROM PCOLLECTION",
        "SELECT k, Sys.MTime AS t FROM PCOLLECTION AS OF SYSTEM TIME '2026-01-01'",
    ],
)
def test_the_clock_of_a_batch_stands_before_all_times(query: str) -> None:
    first = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    assert rows_of(query, beam.Row(k=1), beam.Row(k=1)) == [(1, first), (1, first)]


def emitted_of_three_rows(query: str) -> dict[int, list[Any]]:
    """What a query over the rows 2, 3 and 4, which come in seconds 0, 4 and 10, emits in which second."""
    rows = [Change("a", ((1, (1, "x", value, None)),)) for value in (2, 3, 4)]
    events = (
        rows[0],
        Advance(None, 4),
        rows[1],
        Advance(None, 2),
        Advance(None, 4),
        rows[2],
        Advance(None, 6),
    )
    seconds = (0, 0, 4, 4, 6, 10, 10, 16)
    found = changes(f"{query} SECONDS", Input(events, retracts=False))
    emitted: dict[int, list[Any]] = {}
    for second, each in zip(seconds, found, strict=False):
        emitted.setdefault(second, []).extend((sign, *row) for sign, row in each.changes)
    return {second: rows for second, rows in emitted.items() if rows}


TOTALS = [(1, 5)], [(-1, 5), (1, 9)]


@pytest.mark.parametrize("keys", ["", "GROUP BY k"])
def test_a_delay_counts_from_the_first_change_of_a_group_even_of_the_group_of_all_rows(keys: str) -> None:
    found = emitted_of_three_rows(f"SELECT SUM(v) AS t FROM a {keys} EMIT AFTER DELAY 6")
    assert found == dict(zip((6, 16), TOTALS, strict=True))


def test_an_aligned_delay_ends_at_once_for_a_row_that_comes_at_a_multiple() -> None:
    grouped = emitted_of_three_rows("SELECT v FROM a GROUP BY v EMIT AFTER ALIGNED DELAY 10")
    assert grouped == {0: [(1, 2)], 10: [(1, 3), (1, 4)]}
    assert emitted_of_three_rows("SELECT v FROM a EMIT AFTER ALIGNED DELAY 10") == grouped


def test_distinct_rows_of_windows_are_emitted_as_groups_are() -> None:
    table, clause = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECONDS)", "EMIT AFTER WATERMARK"
    for seed in range(8):
        given = random_input(seed, retracts=False)
        distinct, grouped = (
            [[each.changes, each.dropped] for each in changes(f"{query} {clause}", given)]
            for query in (
                f"SELECT DISTINCT k, window_end FROM {table}",
                f"SELECT k, window_end FROM {table} GROUP BY k, window_start, window_end",
            )
        )
        assert distinct == grouped


def test_a_window_may_end_in_two_columns_of_what_is_emitted_at_its_end() -> None:
    check_emitted(103)


def rows_of(query: str, *rows: Any) -> list[Any]:
    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(rows) | SqlTransform(query))
    run_plain(pipeline)
    return [tuple(row) for row in found]


def test_a_query_in_parentheses_has_sessions_for_each_part() -> None:
    text = """
        SELECT k, window_start, window_end, COUNT(*) AS n
        FROM SESSION(TABLE {} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND)
        GROUP BY k, window_start, window_end
    """
    for seed in range(3):
        given = random_input(seed)
        [of_query, of_table] = [
            [each.changes for each in changes(text.format(rows), given)]
            for rows in ("(SELECT * FROM a)", "a")
        ]
        assert of_query == of_table
