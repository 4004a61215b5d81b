"""Which queries may go to Spark as they are written, and which tables and views they read there."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.query_source import QuerySource, QueryTable, RowsOfStep
from penstock.scalars.spark_forms import NotForSpark
from penstock.sql.execution.as_written import ComputeQuery, is_final, read_as_written
from penstock_spark.supported import check

VIEWS = {
    "Best": "SELECT TABLE * FROM ranked -- the first one",
    "ranked": "SELECT * FROM goals",
    "own": "SELECT f(a) FROM b",
}
SENT = {
    "SELECT TABLE a, b FROM goals": ("SELECT       a, b FROM goals", ["goals"], []),
    "SELECT table FROM goals": ("SELECT table FROM goals", ["goals"], []),
    "select /* EMIT STREAM */ stream, 'TUMBLE(', \"Sys.Undo\" FROM `the ``goals`": (
        None,
        ["the `goals"],
        [],
    ),
    "SELECT * FROM best b LEFT ANTI JOIN rates ON b.a = rates.a -- AS OF SYSTEM TIME": (
        None,
        ["goals", "rates"],
        [("ranked", VIEWS["ranked"]), ("Best", "SELECT       * FROM ranked -- the first one")],
    ),
    "SELECT t.session, hop, f AS emit, x.tumble (1) FROM goals emit": (None, ["goals"], []),
    "SELECT a EMIT FROM goals": (None, ["goals"], []),
    "SELECT 1 FROM rates JOIN goals AS emit ON emit.a = rates.a": (None, ["goals", "rates"], []),
    "FROM goals |> WHERE a > 1": (None, ["goals"], []),
}
KEPT = [
    "SELECT a FROM goals EMIT AFTER WATERMARK",
    "SELECT STREAM a FROM goals",
    "SELECT TVR * FROM goals",
    "SELECT a FROM goals AS OF SYSTEM TIME '12:00'",
    "SELECT a FROM goals JOIN rates FOR SYSTEM_TIME AS OF goals.at ON goals.a = rates.a",
    "SELECT Sys.MTime FROM goals",
    "SELECT a FROM goals ANTI JOIN rates ON goals.a = rates.a",
    "SELECT TUMBLE(at, INTERVAL '1' MINUTE) AS w FROM goals",
    "SELECT F (a) FROM goals",
    "SELECT a FROM OWN",
]


@pytest.mark.parametrize("query", SENT)
def test_a_query_is_sent_with_what_it_reads(query: str) -> None:
    text, tables, views = SENT[query]
    found = read_as_written(query, ["goals", "rates", "the `goals"], VIEWS, {"F"})
    assert (found.text, list(found.tables), list(found.views)) == (text or query, tables, views)
    assert len(found.text) == len(query)


@pytest.mark.parametrize("query", KEPT)
def test_a_query_with_what_spark_has_not_is_kept(query: str) -> None:
    with pytest.raises(NotForSpark):
        read_as_written(query, ["goals", "rates"], VIEWS, {"F"})


def test_views_that_read_each_other_end() -> None:
    found = read_as_written(
        "SELECT * FROM a", ["goals"], {"a": "SELECT * FROM b", "b": "SELECT * FROM a"}, ()
    )
    assert [name for name, _ in found.views] == ["b", "a"]


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_a_query_over_rows_of_steps_is_refused_in_a_stream(mode: str) -> None:
    pipeline = beam.Pipeline()
    rows = pipeline | beam.Create([beam.Row(a=1)])
    table = QueryTable("rows", RowsOfStep(rows.element_type))
    source = QuerySource("SELECT a", "SELECT a FROM rows", (table,), schema="a BIGINT")
    _ = (rows,) | ComputeQuery(source, "Query", beam.Row)
    check(pipeline.to_graph(), "batch")
    with pytest.raises(UnsupportedByRunner, match="which only a batch does"):
        check(pipeline.to_graph(), mode)


def test_only_mistakes_that_are_certain_are_not_asked_of_spark() -> None:
    def asked(what: str, hint: str = "", query: str = "SELECT x FROM goals") -> bool:
        return not is_final(what, hint, query)

    assert not asked("there is no table 'gaols'")
    assert not asked("this is DROP, not a query")
    assert not asked("there is no column 'x'", "did you mean 'x1'?")
    assert asked("there is no table 'g' here")
    assert asked("there is no column 'x'", "the columns are a, b and c")
    assert asked("there is no column 'x'", "did you mean 'x1'?", "SELECT a AS x, x + 1 FROM goals")
    assert asked("RANK() OVER is not supported")
