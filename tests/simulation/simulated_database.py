"""A PostgreSQL in memory, behind the connections that the writer of databases opens.

It knows the statements of that writer, and no others. What is committed stays. Tables that are not logged lose their
rows if the server crashes, and locks go with the connection that holds them. A statement whose connection breaks was
executed, or was not: whoever has sent it does not know.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import psycopg

from penstock_connectors.database import check, postgres, writer
from penstock_spark.sinks import stream_commits
from tests.simulation.simulated_world import Process, World

URL = "postgresql://sim/db"
INLINE_BYTES, CHUNK_BYTES = 20, 30
"""A task with more text than a few lines writes to a table of its own, in several pieces."""

_FAULTS_MAX = 3
"""So often something breaks in a program: the writer tries often enough for that."""

_NAME = r'"([^"]*)"'


@dataclass(eq=False)
class Table:
    """The rows of a table, each with the number of the micro-batch that its transaction has noted."""

    is_logged: bool
    maker: Process | None  # The process that has made it.
    is_of_straggler: bool
    breaks_before: int  # How often something had broken when it was made.
    rows: list[tuple[int | None, str]] = field(default_factory=list)


@dataclass(eq=False)
class Committed:
    """A row of the table of commits."""

    batch: int
    driver: str
    claim: int


class Result:
    """What a statement answers."""

    def __init__(self, rows: Sequence[tuple[Any, ...]] = (), rowcount: int = 0) -> None:
        self._rows, self.rowcount = list(rows), rowcount

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class Server:
    """The database."""

    def __init__(self, world: World, seed: int, faults: float) -> None:
        self.world = world
        self.random = Random(f"database {seed}")
        self.tables: dict[str, Table] = {}
        self.commits: dict[str, Committed] | None = None
        self.connections: list[Connection] = []
        self._faults, self._left = faults, _FAULTS_MAX
        self._away_until = 0
        self._crashes_left = 2

    def connect(self, address: Any, **more: Any) -> Connection:
        """Stands in for `penstock_connectors.database.postgres.connect`."""
        return self.world.change("connect to the database", self._connected)  # type: ignore[no-any-return]

    def _connected(self) -> Connection:
        if self.world.now_micros < self._away_until:
            raise psycopg.OperationalError("connection refused")
        self.connections.append(Connection(self))
        return self.connections[-1]

    def fate(self, is_commit: bool) -> str:
        """What happens to a statement: nothing, mostly."""
        chance = self._faults * (4 if is_commit else 1)
        if not self._left or self.random.random() >= chance:
            return ""
        self._left -= 1
        fate = self.random.choice(("before", "after", "after", "crash"))
        if fate == "crash":
            self._crashes_left -= 1
            # After the third one, the writer would give up.
            return fate if self._crashes_left >= 0 else "before"
        return fate

    @property
    def breaks(self) -> int:
        return _FAULTS_MAX - self._left

    def crash(self) -> None:
        """The server ends, and is there again soon."""
        self.world.note("the database crashes")
        for connection in [*self.connections]:
            connection.end()
        for table in self.tables.values():
            if not table.is_logged:
                table.rows.clear()
        self._away_until = self.world.now_micros + self.random.randrange(500_000)

    def bury(self) -> None:
        """Ends the connections of processes that have ended."""
        for connection in [*self.connections]:
            if connection.process is not None and connection.process.is_dead:
                connection.end()

    def stand_ins(self) -> list[tuple[Any, str, Any]]:
        """What it replaces."""
        names = self.world.names
        tokens = SimpleNamespace(token_hex=lambda size: f"{names.getrandbits(8 * size):0{2 * size}x}")
        return [
            (postgres, "connect", self.connect),
            (postgres, "secrets", tokens),
            (stream_commits, "random", SimpleNamespace(uniform=self.random.uniform)),
            (postgres, "INLINE_BYTES", INLINE_BYTES),
            (postgres, "CHUNK_BYTES", CHUNK_BYTES),
            (writer, "secrets", tokens),
            (check, "check_table", lambda address, layout, create: None),
        ]


class Connection:
    """A connection of psycopg's in the mode where each statement is a transaction."""

    adapters, connection = psycopg.adapters, None  # By these, names are quoted as without a connection.

    def __init__(self, server: Server) -> None:
        self._server, self._world = server, server.world
        self.process = server.world.current.process
        self._is_of_straggler = server.world.current.name == "straggler"
        self.broken = self.closed = False
        self.advisory: set[int] = set()
        self.held: set[str] = set()  # The rows of the table of commits that it has locked.
        self.reading: set[str] = set()  # The tables that nobody may drop until its transaction has ended.
        self._pending: list[Callable[[], None]] | None = None  # What its transaction changes.
        self._batch: int | None = None  # The number that its transaction notes.

    # What the writer calls.

    def execute(self, statement: Any, parameters: Sequence[Any] = ()) -> Result:
        text = statement if isinstance(statement, str) else statement.as_string(None)
        result: Result = self._asked(text, lambda: self._answer(text, parameters))
        return result

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._pending is not None:
            kept = len(self._pending)
            try:
                yield
            except psycopg.Error:
                if self._pending is not None:
                    del self._pending[kept:]
                raise
            return
        self._asked("BEGIN", self._begin)
        try:
            yield
        except Exception:
            self._forget()
            raise
        self._asked("COMMIT", self._commit)

    def cursor(self) -> Any:
        @contextmanager
        def cursor() -> Iterator[Any]:
            yield SimpleNamespace(copy=self._copying)

        return cursor()

    def close(self) -> None:
        self.closed = True
        self._leave()

    # What becomes of it.

    def end(self) -> None:
        """It is cut; its program finds out later."""
        self.broken = True
        self._leave()

    def _leave(self) -> None:
        self._forget()
        self.advisory.clear()
        if self in self._server.connections:
            self._server.connections.remove(self)

    def _asked(self, text: str, act: Callable[[], Any]) -> Any:
        server = self._server
        server.bury()
        self._check()
        fate = server.fate(text == "COMMIT")
        if fate == "before":
            self._cut(text, "before")
        if fate == "crash":
            server.crash()
            self._check()

        def checked() -> Any:
            self._check()
            return act()

        try:
            answer = self._world.change(f"database: {text[:80]}", checked)
        except OSError as error:
            self._forget()
            raise psycopg.errors.DiskFull("could not extend file: No space left on device") from error
        if fate == "after":
            self._cut(text, "after")
        return answer

    def _cut(self, text: str, when: str) -> None:
        self._world.note(f"a connection breaks {when}: {text[:80]}")
        self.end()
        self._check()

    def _check(self) -> None:
        if self.broken or self.closed:
            self.broken = True
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    # Transactions.

    def _begin(self) -> None:
        self._pending = []

    def _commit(self) -> None:
        pending, self._pending = self._pending or [], None
        for change in pending:
            change()
        self._forget()

    def _forget(self) -> None:
        self._pending, self._batch = None, None
        self.held.clear()
        self.reading.clear()

    def _change(self, change: Callable[[], None]) -> None:
        """Now, or at the end of the transaction."""
        if self._pending is None:
            change()
        else:
            self._pending.append(change)

    def _wait_for(self, is_in_use: Callable[[Connection], bool]) -> None:
        """Waits until no other transaction uses something."""

        def is_free() -> bool:
            self._server.bury()
            return not any(is_in_use(other) for other in self._server.connections if other is not self)

        while not is_free():
            self._world.wait(None, lambda: is_free() or self.broken)
            self._check()

    def _lock(self, stream: str) -> None:
        """Takes the row of a stream in the table of commits."""
        self._wait_for(lambda other: stream in other.held)
        if self._pending is not None:
            self.held.add(stream)

    # Statements.

    def _answer(self, text: str, parameters: Sequence[Any]) -> Result:
        for pattern, statement in _STATEMENTS.items():
            if found := re.match(pattern, text):
                answer: Result | None = statement(self, found, parameters)
                return answer or Result()
        raise AssertionError(f"the database does not know {text!r}")

    def _table(self, name: str) -> Table:
        found = self._server.tables.get(name)
        if found is None:
            raise psycopg.errors.UndefinedTable(f'relation "{name}" does not exist')
        return found

    def _known(self) -> dict[str, Committed]:
        if self._server.commits is None:
            raise psycopg.errors.UndefinedTable('relation "penstock_commits" does not exist')
        return self._server.commits

    def _nothing(self, found: re.Match[str], parameters: Sequence[Any]) -> None:
        """A setting."""

    def _try_lock(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        (number,) = parameters
        others = [each for each in self._server.connections if each is not self]
        if any(number in each.advisory for each in others):
            return Result([(False,)])
        self.advisory.add(number)
        return Result([(True,)])

    def _unlock(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        self.advisory.discard(parameters[0])
        return Result([(True,)])

    def _names(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        return Result([(name,) for name in sorted(self._server.tables) if name.startswith(parameters[1])])

    def _exists(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        return Result([(parameters[0].strip('"') in self._server.tables,)])

    def _count(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        rows = len(self._table(found[1]).rows)
        if self._pending is not None:
            self.reading.add(found[1])
        return Result([(rows,)])

    def _make(self, found: re.Match[str], parameters: Sequence[Any]) -> None:
        name = found[2]
        table = Table(not found[1], self.process, self._is_of_straggler, self._server.breaks)
        self._change(lambda: self._server.tables.setdefault(name, table) and None)

    def _make_commits(self, found: re.Match[str], parameters: Sequence[Any]) -> None:
        server = self._server

        def make() -> None:
            server.commits = server.commits or {}

        self._change(make)

    def _claim(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        stream, before_all, driver, number, _ = parameters
        self._known()
        self._lock(stream)
        known = self._known()
        row = known.get(stream)
        if row is not None and row.claim > number and "known.claim <= excluded.claim" in found.string:
            return Result()

        def claim() -> None:
            row = known.setdefault(stream, Committed(before_all, driver, number))
            row.driver, row.claim = driver, number

        self._change(claim)
        return Result(rowcount=1)

    def _note(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        number, stream, before, driver = parameters
        self._known()
        self._lock(stream)
        row = self._known().get(stream)
        if row is None or (row.batch, row.driver) != (before, driver):
            return Result()

        def note() -> None:
            row.batch = number

        self._batch = number
        self._change(note)
        return Result(rowcount=1)

    def _known_of(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        row = self._known().get(parameters[0])
        return Result([] if row is None else [(row.batch, row.driver)])

    def _batch_of(self, found: re.Match[str], parameters: Sequence[Any]) -> Result:
        row = self._known().get(parameters[0])
        return Result([] if row is None else [(row.batch,)])

    def _insert(self, found: re.Match[str], parameters: Sequence[Any]) -> None:
        self._put(found[1], [line for _, line in self._table(found[2]).rows])

    def _drop(self, found: re.Match[str], parameters: Sequence[Any]) -> None:
        for name in re.findall(_NAME, found[2]):
            self._wait_for(lambda other, name=name: name in other.reading)  # type: ignore[misc]
            if not found[1]:
                self._table(name)
            self._change(lambda name=name: self._server.tables.pop(name, None) and None)  # type: ignore[misc]

    def _put(self, name: str, lines: Sequence[str]) -> None:
        batch = self._batch

        def put() -> None:
            self._table(name).rows += [(batch, line) for line in lines]

        self._change(put)

    @contextmanager
    def _copying(self, statement: Any) -> Iterator[Any]:
        text = statement.as_string(None)
        name = re.match(f"COPY {_NAME}", text)
        assert name is not None, text
        pieces: list[bytes] = []
        yield SimpleNamespace(write=pieces.append)
        content = io.StringIO(b"".join(pieces).decode())
        self._asked(text, lambda: self._put(name[1], [row[0] for row in csv.reader(content)]))


_STATEMENTS: dict[str, Callable[[Connection, re.Match[str], Sequence[Any]], Result | None]] = {
    r"SET ": Connection._nothing,
    r"SELECT pg_try_advisory_lock": Connection._try_lock,
    r"SELECT pg_advisory_unlock": Connection._unlock,
    r"SELECT relname FROM pg_class": Connection._names,
    r"SELECT to_regclass": Connection._exists,
    rf"SELECT count\(\*\) FROM {_NAME}": Connection._count,
    r'CREATE TABLE IF NOT EXISTS "penstock_commits"': Connection._make_commits,
    rf"CREATE (UNLOGGED )?TABLE IF NOT EXISTS {_NAME}": Connection._make,
    r'INSERT INTO "penstock_commits"': Connection._claim,
    r'UPDATE "penstock_commits" SET batch': Connection._note,
    r'SELECT batch, driver FROM "penstock_commits"': Connection._known_of,
    r'SELECT batch FROM "penstock_commits"': Connection._batch_of,
    rf"INSERT INTO {_NAME} \(.*\) SELECT .* FROM {_NAME}": Connection._insert,
    r"DROP TABLE (IF EXISTS )?(.*)": Connection._drop,
}
