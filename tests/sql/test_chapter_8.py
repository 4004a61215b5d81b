"""*Streaming Systems*, chapter 8, as queries: each listing, row by row, and what the chapter says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import penstock as beam
from penstock.construction.retractions import may_retract
from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan.relations import Aggregate, ColumnDef, Filter, Project, Relation, Scan
from penstock.sql.plan.relations import inputs_of as below
from penstock.transforms.sql import SqlError, SqlTransform
from tests.sql.book_chapter_8 import FOR_SESSIONS, LISTINGS, NINE, SMALL, WATERMARK
from tests.sql.listings import Arrival, Listing, at, inputs_of, stream_of
from tests.sql.playing import played

BY_NAME = {listing.name: listing for listing in LISTINGS}


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.name)
def test_the_listings_of_chapter_8(listing: Listing) -> None:
    assert played(listing) == listing.rows


def left(rows: Iterable[Sequence[str]], until: str) -> list[tuple[str, ...]]:
    """The rows that are left of a stream at a time: its last two columns are the time and what is undone."""
    counts: Counter[tuple[str, ...]] = Counter()
    for *row, clock, undone in rows:
        if at(clock) <= at(until):
            counts[tuple(row)] += -1 if undone else 1
    assert min(counts.values(), default=0) >= 0
    return sorted(counts.elements())


def test_a_stream_that_loses_nothing_tells_all_snapshots() -> None:
    query = "SELECT {} Name, SUM(Score) AS Total{} FROM UserScores GROUP BY Name"
    stream = Listing("stream", query.format("STREAM", ", Sys.EmitTime, Sys.Undo"), "", SMALL)
    snapshots = played(Listing("snapshots", query.format("TVR", ""), "", SMALL))
    changes = played(stream)
    assert [clock for clock, _ in snapshots] == ["12:01", "12:03", "12:07"]
    assert all(left(changes, clock) == rows for clock, rows in snapshots)


def test_a_query_at_any_time_is_the_query_over_the_rows_so_far() -> None:
    sums = "SELECT {} Team, SUM(Score) AS Total FROM UserScores GROUP BY Team"
    for clock, rows in played(Listing("all", sums.format("TVR"), "", NINE)):
        so_far = [each for each in NINE["UserScores"] if at(each.at) <= at(clock)]
        assert rows == [("TeamX", str(sum(each.row.Score for each in so_far)))]


def test_a_grouping_of_groups_counts_no_group_twice() -> None:
    query = """SELECT STREAM Scores, COUNT(*) AS Names, Sys.EmitTime, Sys.Undo
        FROM (SELECT Name, COUNT(*) AS Scores FROM UserScores GROUP BY Name) GROUP BY Scores"""
    assert left(played(Listing("chained", query, "", SMALL)), "12:10") == [("1", "1"), ("3", "1")]


def test_the_index_of_a_session_is_one_more_than_the_highest_of_those_that_merged() -> None:
    session = "SESSION(EventTime, INTERVAL '1' MINUTE)"
    query = f"SELECT STREAM SUM(Score), Sys.EmitIndex FROM UserScores GROUP BY Team, {session}"
    found = played(Listing("indexes", query, "", FOR_SESSIONS))
    assert [index for total, index in found if total in ("7", "22", "36")] == ["0", "1", "2", "3"]


def test_what_is_left_of_the_sessions_in_a_store_of_keys_and_values() -> None:
    store: dict[str, str] = {}
    for total, window, _, undone in played(BY_NAME["S8-17"]):
        if undone:
            assert store.pop(window) == total
        else:
            store[window] = total
    assert sorted(store.values()) == ["12", "36"]


def test_a_row_after_the_watermark_is_dropped_where_nothing_comes_after_it() -> None:
    late = Listing(
        "late", BY_NAME["S8-12"].query.replace("STREAM", "STREAM Sys.Undo,"), "", NINE, watermark=WATERMARK
    )
    assert [row[1] for row in played(late)] == ["5", "18", "4", "12"]
    assert not any(row[0] for row in played(late))


def test_the_end_of_a_window_need_not_be_selected_to_be_waited_for() -> None:
    window = "TUMBLE(EventTime, INTERVAL '2' MINUTES)"
    query = f"SELECT STREAM SUM(Score) FROM UserScores GROUP BY Team, {window} EMIT AFTER WATERMARK"
    listing = Listing("hidden", query, "", NINE, watermark=WATERMARK)
    assert played(listing) == [("5",), ("18",), ("4",), ("12",)]
    outer = f"SELECT STREAM Total, Sys.EmitTime FROM ({query.replace('STREAM SUM(Score)', 'SUM(Score) AS Total')})"
    assert [total for total, _ in played(replace(listing, query=outer))] == ["5", "18", "4", "12"]


def plan(query: str, views: dict[str, str]) -> list[type]:
    """The kinds of relations that a query is made of, from the result down to the table."""
    columns = tuple(ColumnDef(name, from_hint(hint)) for name, hint in (("Team", str), ("Score", int)))
    relation: Relation = bind(query, Tables({"UserScores": columns}, views, {})).relation
    found: list[type] = []
    while True:
        found.append(type(relation))
        if not (inner := list(below(relation))):
            return found
        [relation] = inner


def test_the_plans_of_tables_scan_and_group_through_views_too() -> None:
    views = BY_NAME["S8-08 large teams"].views
    without = [each for each in plan(BY_NAME["S8-08 in one query"].query, {}) if each is not Project]
    through = [each for each in plan("SELECT * FROM TeamTotals", dict(views)) if each is not Project]
    large = [each for each in plan("SELECT * FROM LargeTeamTotalsView", dict(views)) if each is not Project]
    assert without == through == [Aggregate, Scan]
    assert large == [Filter, Aggregate, Scan]


def applied(query: str, rows: Any) -> Any:
    return {"UserScores": rows} | SqlTransform(query)


def test_tables_give_a_table_and_streams_a_stream_where_nothing_is_said() -> None:
    sums = "SELECT Name, SUM(Score) AS Total FROM UserScores GROUP BY Name"
    pipeline = beam.Pipeline()
    table = pipeline | beam.Create([arrival.row for arrival in SMALL["UserScores"]])
    assert not may_retract(applied(sums, table))
    listing = Listing("stream", sums, "", SMALL)
    streams = inputs_of(listing, beam.Pipeline() | stream_of(listing))
    assert may_retract(streams | SqlTransform(sums))


def test_a_condition_on_values_is_no_trigger() -> None:
    rows = beam.Pipeline() | beam.Create([arrival.row for arrival in SMALL["UserScores"]])
    query = "SELECT Name, SUM(Score) AS Total FROM UserScores GROUP BY Name EMIT WHEN Total > 10"
    with pytest.raises(SqlError, match="a condition on values belongs in HAVING"):
        applied(query, rows)


def test_a_view_over_a_view_changes_as_the_table_does() -> None:
    views = {
        "Totals": "SELECT Name, SUM(Score) AS Total FROM UserScores GROUP BY Name",
        "Large": "SELECT * FROM Totals WHERE Total > 7",
    }
    query = "SELECT STREAM Name, Total, Sys.EmitTime, Sys.Undo FROM Large"
    assert played(Listing("views", query, "", SMALL, views=views)) == [
        ("Julie", "8", "12:03", ""),
        ("Julie", "8", "12:07", "undo"),
        ("Julie", "12", "12:07", ""),
    ]


def test_the_time_of_arrival_may_be_the_time_of_windows() -> None:
    window = "TUMBLE(Sys.MTime, INTERVAL '2' MINUTES)"
    query = f"SELECT TABLE SUM(Score), WINDOW_START({window}) FROM UserScores GROUP BY Team, {window}"
    found = played(Listing("ingress", query, "", NINE))
    assert found == [("12", "12:04"), ("18", "12:06"), ("18", "12:08")]


def test_a_row_that_is_taken_back_has_the_time_of_its_arrival() -> None:
    first = SMALL["UserScores"][0]
    tables = {"UserScores": [first, Arrival("12:05", first.row, undone=True)]}
    query = "SELECT STREAM Score, Sys.MTime, Sys.EmitTime, Sys.Undo FROM UserScores"
    assert played(Listing("gone", query, "", tables)) == [
        ("7", "12:01", "12:01", ""),
        ("7", "12:01", "12:05", "undo"),
    ]
