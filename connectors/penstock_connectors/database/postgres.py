"""PostgreSQL: tasks copy their rows into tables of their own, and the driver merges these in one transaction.

A task with few rows hands them to the driver instead, so that a small micro-batch needs no other connection.

The tables of tasks are not logged, so a crash of the server empties them; the driver therefore counts their rows. They
carry the name of the driver, which holds a lock of that name for as long as it is connected: another driver that finds
tables without the lock deletes them. A crash of the server also takes the lock, so another driver may be quicker; what
it has deleted counts as lost with the crash, and the tasks make it again.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from psycopg import sql
from psycopg.rows import tuple_row
from pyspark import TaskContext
from sqlalchemy import make_url

from penstock.utils import clock
from penstock.values.types import BINARY, DURATION
from penstock_connectors.database.address import CONNECT_TIMEOUT_SECONDS, Address
from penstock_connectors.database.columns import is_nested, postgres_type
from penstock_connectors.database.commits import COMMITS, begin_batch, make_displaced_error
from penstock_connectors.database.errors import make_rows_lost_error, may_succeed_again, to_step_error
from penstock_connectors.database.layout import CHANGE, ORDER, PARTITION_SHIFT, Layout, json_of
from penstock_connectors.database.pages import NOTHING, Page, page_row
from penstock_connectors.database.postgres_values import fix_settings, format_interval
from penstock_spark.connecting.tables import (
    BEFORE_ALL,
    RetryCommit,
    digest_stream,
    is_committed,
    retry_commits,
)
from penstock_spark.connecting.values import value_of
from penstock_spark.connecting.writing import Encoder, MicroBatch

INLINE_BYTES = 256 << 10
"""So many bytes a task hands to the driver; the driver copies them as fast as the task would."""

CHUNK_BYTES = 8 << 20
_LOOK_SECONDS = 0.2
_LOST = ("08", "57P01", "57P02", "57P03", "57P05")
_STAGED = "penstock_staged_"
_Result = TypeVar("_Result")


def connect(address: Address, **more: object) -> psycopg.Connection[Any]:
    """A connection of its own, in the mode where each statement is a transaction; `more` settings for the server."""
    url = make_url(address.parse())
    _, arguments = url.get_dialect()().create_connect_args(url)
    settings: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": "penstock",
        **arguments,
        "autocommit": True,
        "row_factory": tuple_row,
        **more,
    }
    connection = psycopg.Connection.connect(**settings)
    if "replication" not in more:
        fix_settings(connection)
    return connection


def _persisting(address: Address, work: Callable[[], _Result], again: Callable[[Any], bool]) -> _Result:
    """The result of some work that has no effect if it fails; while `again` says so, it is tried again."""

    def attempt(_: int) -> _Result:
        try:
            return work()
        except psycopg.Error as error:
            failure = to_step_error(error, address)
            raise (RetryCommit(failure) if again(error) else failure) from None

    return retry_commits(attempt)


def is_lost(error: psycopg.Error) -> bool:
    """True if the connection is lost, and not if the database refuses."""
    state = error.sqlstate
    is_cut = state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return is_cut or bool(state and state.startswith(_LOST))


def _is_passing(error: psycopg.Error) -> bool:
    return is_lost(error) or may_succeed_again(error)


# --- In a task.


@dataclass
class StagedRows(Encoder):
    """Rows as text for ``COPY``: in one page, or in a table of the task's own if there are many."""

    address: Address
    layout: Layout
    driver: str  # The name of the driver.
    rows: int = 0
    _chunks: list[bytes] = field(default_factory=list)
    _size: int = 0
    _staged: int = 0  # How many rows are in the table.
    _table: str | None = None
    _connection: psycopg.Connection[Any] | None = None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        batch = self.layout.rows(values, _first_order() + self.rows)
        text = to_csv(batch, self.layout.where)
        self.rows += batch.num_rows
        self._chunks.append(text)
        self._size += len(text)
        if self._size > (INLINE_BYTES if self._table is None else CHUNK_BYTES):
            self._flush()
        return NOTHING

    def finish(self) -> pa.RecordBatch | None:
        if self._table is None:
            return page_row(Page(self.rows, b"".join(self._chunks))) if self.rows else None
        self._flush()
        self._disconnect()
        return page_row(Page(self.rows, table=self._table))

    def _flush(self) -> None:
        """Puts the rows so far into the table; they are there once even if the connection is lost in between."""
        if not self._chunks:
            return
        text = b"".join(self._chunks)
        if self._table is None:
            self._table = f"{_STAGED}{self.driver}_{secrets.token_hex(8)}"

        try:
            _persisting(self.address, lambda: self._copy(text), _is_passing)
        except BaseException:
            self._disconnect()
            raise
        self._staged = self.rows
        self._chunks, self._size = [], 0

    def _copy(self, text: bytes) -> None:
        assert self._table is not None
        table = identify_beside(self.address, self._table)
        if self._connection is None or self._connection.broken:
            self._disconnect()
            self._connection = connect(self.address)
            if self._staged == 0:
                make_staged(self._connection, self.address, self.layout, table)
            if (found := count_staged(self._connection, self.address, table)) == self.rows:
                return  # The answer was lost, and not the rows.
            if found != self._staged:
                raise make_rows_lost_error(self.address)
        try:
            copy_rows(self._connection, table, self.layout.staged_names, text)
        except psycopg.errors.UndefinedTable:
            raise make_rows_lost_error(self.address) from None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _first_order() -> int:
    context = TaskContext.get()
    return (context.partitionId() if context is not None else 0) << PARTITION_SHIFT


def to_csv(batch: pa.RecordBatch, where: str) -> bytes:
    """Rows as PostgreSQL reads them as CSV: nothing between commas is null, and two quotes are an empty text."""
    columns = [
        _plain(column, batch.schema.field(place).name, where) for place, column in enumerate(batch.columns)
    ]
    text = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False)
    pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), text, options)
    return text.getvalue()


def _plain(column: pa.Array, name: str, where: str) -> pa.Array:
    kind = column.type
    if value_of(kind) is BINARY:
        return pa.array(
            [None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string()
        )
    if value_of(kind) is DURATION:
        micros = pc.cast(pc.cast(column, pa.duration("us")), pa.int64()).to_pylist()
        return pa.array([None if each is None else format_interval(each) for each in micros], pa.string())
    return pa.array(json_of(column, where, name), pa.string()) if is_nested(kind) else column


# --- In both.


def identify_beside(address: Address, name: str) -> sql.Identifier:
    """A table beside the one that is written."""
    return sql.Identifier(*address.beside(name))


def target_of(address: Address) -> sql.Identifier:
    return identify_beside(address, address.parts[1])


def names_of(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def count_rows(connection: psycopg.Connection[Any], table: sql.Identifier) -> int:
    [[found]] = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchall()
    return int(found)


def count_staged(connection: psycopg.Connection[Any], address: Address, table: sql.Identifier) -> int:
    """The rows in the table of a task; RowsLost if it is gone."""
    try:
        return count_rows(connection, table)
    except psycopg.errors.UndefinedTable:
        raise make_rows_lost_error(address) from None


def copy_rows(
    connection: psycopg.Connection[Any], table: sql.Identifier, names: Sequence[str], text: bytes
) -> None:
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(table, names_of(names))
    with connection.cursor() as cursor, cursor.copy(statement) as copying:
        copying.write(text)


def make_staged(
    connection: psycopg.Connection[Any],
    address: Address,
    layout: Layout,
    table: sql.Identifier,
    kind: str = "UNLOGGED",
    end: str = "",
) -> None:
    """Makes a table with the types of the target, so that what does not fit fails on its way there."""
    target = target_of(address)
    own = {ORDER: "bigint", CHANGE: "smallint"}
    marks = [name for name in layout.staged_names if name in own]
    [[exists]] = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", [target.as_string(connection)]
    ).fetchall()
    made: sql.SQL
    parts: tuple[Any, ...]
    if exists:
        extra = sql.SQL("").join(
            sql.SQL(", NULL::{} AS {}").format(sql.SQL(own[name]), sql.Identifier(name)) for name in marks
        )
        made = sql.SQL("CREATE {} TABLE IF NOT EXISTS {} {} AS SELECT {}{} FROM {} WITH NO DATA")
        parts = (sql.SQL(kind), table, sql.SQL(end), names_of(layout.names), extra, target)
    else:
        types = {each.name: postgres_type(each.type) for each in layout.schema} | {
            name: own[name] for name in marks
        }
        made = sql.SQL("CREATE {} TABLE IF NOT EXISTS {} ({}) {}")
        parts = (sql.SQL(kind), table, _columns(types), sql.SQL(end))
    connection.execute(made.format(*parts))


def _columns(types: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in types.items()
    )


# --- On the driver.


@dataclass
class PostgresWriter:
    """Commits the micro-batches of one sink in one run."""

    address: Address
    layout: Layout
    create: bool
    driver: str
    stream: str = ""  # Set with the first micro-batch of a stream.
    _is_tidy: bool = False  # Whether the tasks of the last micro-batch have certainly left no tables.
    _has_left: bool = False  # Whether tables of an earlier one could not be deleted.
    _connection: psycopg.Connection[Any] | None = None

    def begin(self, stream: str, number: int) -> None:
        """Connects, and takes over the stream from an earlier driver, before any task writes."""
        self._is_tidy = False
        if self._connection is not None and stream == self.stream:
            return
        self.stream = stream
        _persisting(self.address, lambda: self._begin(number), is_lost)

    def _begin(self, number: int) -> None:
        connection = self._connected()
        for name in _list_staged_tables(connection, self.address, _STAGED):
            other = name.removeprefix(_STAGED).partition("_")[0]
            if other != self.driver and _try_lock(connection, other):
                _drop_quietly(connection, self.address, [name])
                connection.execute("SELECT pg_advisory_unlock(%s)", [_lock(other)])
        if self.stream:
            claim_stream(connection, self.address, self.stream, self.driver, number)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.broken or self._connection.closed:
            self._disconnect()
            self._connection = connect(self.address)
            self._connection.execute("SET client_min_messages = warning")
            _try_lock(self._connection, self.driver)
        return self._connection

    def commit(self, pages: list[Page], batch: MicroBatch) -> None:
        """Merges the rows of a micro-batch into the table, unless they are in it."""
        self._is_tidy = not any(page.table for page in pages)
        transactions: list[str] = []

        def work() -> None:
            connection = self._connected()
            if transactions and _is_committed(connection, transactions[-1]):
                return
            with connection.transaction():
                if batch.stream:
                    if not self._begin_batch(connection, batch):
                        return
                else:
                    # A batch has no number, but the server knows what became of a transaction.
                    [[number]] = connection.execute("SELECT pg_current_xact_id()::text").fetchall()
                    transactions.append(number)
                self._merge(connection, pages)

        _persisting(self.address, work, _is_passing)

    def _begin_batch(self, connection: psycopg.Connection[Any], batch: MicroBatch) -> bool:
        """Begins a micro-batch of a stream, as `begin_batch` of the commits does."""
        commits, name = identify_beside(self.address, COMMITS), digest_stream(batch.stream)
        look = sql.SQL("SELECT batch, driver FROM {} WHERE stream = %s").format(commits)
        known = connection.execute(look, [name]).fetchall()
        update = sql.SQL(
            "UPDATE {} SET batch = %s, written = now() WHERE stream = %s AND batch = %s AND driver = %s"
        ).format(commits)

        def note(last: int) -> int:
            return connection.execute(update, [batch.number, name, last, self.driver]).rowcount

        return begin_batch(known, note, self.driver, batch, self.address)

    def _merge(self, connection: psycopg.Connection[Any], pages: list[Page]) -> None:
        if self.create:
            create_table(connection, self.address, self.layout)
        tables = []
        for page in pages:
            if page.table is not None:
                table = identify_beside(self.address, page.table)
                if count_staged(connection, self.address, table) != page.rows:
                    raise make_rows_lost_error(self.address)
                tables.append(table)
        merge(connection, self.address, self.layout, tables, [page.data for page in pages if page.data])
        _drop(connection, tables)

    def is_committed(self, batch: MicroBatch) -> bool:
        """True if the micro-batch of a stream, or a later one, is in the table."""
        return _persisting(
            self.address, lambda: is_committed(self._last(batch.stream), batch.number), is_lost
        )

    def _last(self, stream: str) -> int | None:
        query = sql.SQL("SELECT batch FROM {} WHERE stream = %s").format(
            identify_beside(self.address, COMMITS)
        )
        try:
            found = self._connected().execute(query, [digest_stream(stream)]).fetchall()
        except psycopg.errors.UndefinedTable:
            return None
        return next((int(batch) for (batch,) in found), None)

    def tidy(self) -> None:
        """Deletes the tables of tasks that have failed, or of a micro-batch that has; often there are none."""
        if self._is_tidy and not self._has_left:
            return
        try:
            connection = self._connected()
            _drop_quietly(
                connection,
                self.address,
                _list_staged_tables(connection, self.address, f"{_STAGED}{self.driver}_"),
            )
            self._has_left = False
        except psycopg.Error:
            # The next micro-batch tries again, or the end; or another driver will find them: the lock goes with the
            # connection.
            self._has_left = True

    def close(self) -> None:
        if self._has_left:
            self.tidy()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def claim_stream(
    connection: psycopg.Connection[Any], address: Address, stream: str, driver: str, number: int
) -> None:
    """Makes a driver the only one that may commit a stream, unless one with a higher number has it by now."""
    commits = identify_beside(address, COMMITS)
    statement = sql.SQL(
        "INSERT INTO {} AS known (stream, batch, driver, claim, target) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (stream) DO UPDATE SET driver = excluded.driver, claim = excluded.claim"
        " WHERE known.claim <= excluded.claim"
    ).format(commits)
    values = [digest_stream(stream), BEFORE_ALL, driver, number, address.table]
    try:
        found = connection.execute(statement, values)
    except psycopg.errors.UndefinedTable:
        make = sql.SQL(
            "CREATE TABLE IF NOT EXISTS {} (stream text PRIMARY KEY, batch bigint NOT NULL, driver text NOT NULL,"
            " claim bigint NOT NULL, target text NOT NULL, written timestamptz)"
        ).format(commits)
        _make_once(connection, make)
        found = connection.execute(statement, values)
    if not found.rowcount:
        raise make_displaced_error(address, True)


def _make_once(connection: psycopg.Connection[Any], statement: sql.Composed) -> None:
    """Makes a table that another connection may be making now: IF NOT EXISTS does not wait for it."""
    try:
        with connection.transaction():
            connection.execute(statement)
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
        connection.execute(statement)


def create_table(connection: psycopg.Connection[Any], address: Address, layout: Layout) -> None:
    target = target_of(address)
    [[exists]] = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", [target.as_string(connection)]
    ).fetchall()
    if exists:
        return
    columns = [
        sql.SQL("{} {}{}").format(
            sql.Identifier(each.name),
            sql.SQL(postgres_type(each.type)),
            sql.SQL("" if each.nullable else " NOT NULL"),
        )
        for each in layout.schema
    ]
    if layout.key:
        columns.append(sql.SQL("PRIMARY KEY ({})").format(names_of(layout.key)))
    make = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(target, sql.SQL(", ").join(columns))
    _make_once(connection, make)


def merge(
    connection: psycopg.Connection[Any],
    address: Address,
    layout: Layout,
    tables: Sequence[sql.Identifier],
    contents: Sequence[bytes],
) -> None:
    """Puts rows from tables, and from text in the form of COPY, into the table."""
    if not tables and not contents:
        return
    target, names = target_of(address), names_of(layout.names)
    if layout.mode == "insert":
        for content in contents:
            copy_rows(connection, target, layout.staged_names, content)
        for table in tables:
            connection.execute(
                sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}").format(target, names, names, table)
            )
        return
    sources = list(tables)
    if contents:
        inline = sql.Identifier("pg_temp", "penstock_rows")
        make_staged(connection, address, layout, inline, kind="TEMP", end="ON COMMIT DROP")
        for content in contents:
            copy_rows(connection, inline, layout.staged_names, content)
        sources.append(inline)
    staged = names_of(layout.staged_names)
    union = sql.SQL(" UNION ALL ").join(sql.SQL("SELECT {} FROM {}").format(staged, each) for each in sources)
    keep = _keep_changes if layout.elements == "changes" else _keep_last
    keep(connection, target, layout, union)


def _keep_last(
    connection: psycopg.Connection[Any], target: sql.Identifier, layout: Layout, union: sql.Composed
) -> None:
    """The last change of each key counts."""
    last = sql.SQL(
        "(SELECT DISTINCT ON ({key}) * FROM ({union}) AS staged ORDER BY {key}, {order} DESC)"
    ).format(key=names_of(layout.key), union=union, order=sql.Identifier(ORDER))
    there: object = sql.SQL("true")
    if layout.has_changes:
        there = sql.SQL("last.{} > 0").format(sql.Identifier(CHANGE))
        # First, since a row that comes may have what is unique in one that goes.
        gone = sql.SQL("DELETE FROM {} AS kept USING {} AS last WHERE NOT {} AND {}")
        connection.execute(gone.format(target, last, there, _equal(layout.key, "=")))
    _upsert(connection, target, layout, sql.SQL("{} AS last WHERE {}").format(last, there))


def _keep_changes(
    connection: psycopg.Connection[Any], target: sql.Identifier, layout: Layout, union: sql.Composed
) -> None:
    """A row that is inserted and retracted equally often has no effect; each other row is inserted or deleted."""
    names, key = names_of(layout.names), names_of(layout.key)
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE penstock_net ON COMMIT DROP AS SELECT {names}, sum({change}) AS {change}"
            " FROM ({union}) AS staged GROUP BY {names} HAVING sum({change}) <> 0"
        ).format(names=names, change=sql.Identifier(CHANGE), union=union)
    )
    come = sql.SQL("pg_temp.penstock_net AS last WHERE last.{} > 0").format(sql.Identifier(CHANGE))
    several = sql.SQL("SELECT 1 FROM {} GROUP BY {} HAVING sum({}) > 1 LIMIT 1")
    if connection.execute(several.format(come, key, sql.Identifier(CHANGE))).fetchall():
        raise psycopg.errors.CardinalityViolation
    gone = sql.SQL(
        "DELETE FROM {} AS kept USING pg_temp.penstock_net AS last WHERE last.{} < 0 AND {} AND {}"
    )
    connection.execute(
        gone.format(
            target,
            sql.Identifier(CHANGE),
            _equal(layout.key, "="),
            _equal(layout.others, "IS NOT DISTINCT FROM"),
        )
    )
    _upsert(connection, target, layout, come)


def _equal(names: Sequence[str], by: str) -> sql.Composed:
    pairs: list[Any] = [
        sql.SQL("kept.{0} {1} last.{0}").format(sql.Identifier(name), sql.SQL(by)) for name in names
    ]
    joined: sql.Composed = sql.SQL(" AND ").join(pairs or [sql.SQL("true")])
    return joined


def _upsert(
    connection: psycopg.Connection[Any], target: sql.Identifier, layout: Layout, rows: sql.Composed
) -> None:
    names = names_of(layout.names)
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in layout.others]
    change = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("NOTHING")
    statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT ({}) DO {}")
    connection.execute(statement.format(target, names, names, rows, names_of(layout.key), change))


def _is_committed(connection: psycopg.Connection[Any], transaction: str) -> bool:
    """True if a transaction whose answer was lost is committed; waits until it has ended."""
    while True:
        [[state]] = connection.execute("SELECT pg_xact_status(%s::xid8)", [transaction]).fetchall()
        if state != "in progress":
            return bool(state == "committed")
        clock.sleep(_LOOK_SECONDS)


def _lock(driver: str) -> int:
    return int(driver, 16)


def _try_lock(connection: psycopg.Connection[Any], driver: str) -> bool:
    try:
        number = _lock(driver)
    except ValueError:
        return False  # Not a table of ours.
    [[has]] = connection.execute("SELECT pg_try_advisory_lock(%s)", [number]).fetchall()
    return bool(has)


def _list_staged_tables(connection: psycopg.Connection[Any], address: Address, prefix: str) -> list[str]:
    schema, _ = address.parts
    found = connection.execute(
        "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " WHERE nspname = coalesce(%s, current_schema()) AND relkind = 'r' AND starts_with(relname, %s)",
        [schema, prefix],
    ).fetchall()
    return [name for (name,) in found]


def _drop(connection: psycopg.Connection[Any], tables: Sequence[sql.Identifier]) -> None:
    if tables:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.SQL(", ").join(tables)))


def _drop_quietly(connection: psycopg.Connection[Any], address: Address, names: Sequence[str]) -> None:
    """Drops tables one by one; it leaves those that another user owns, and ignores those that are gone."""
    for name in names:
        try:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(identify_beside(address, name)))
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
            continue
