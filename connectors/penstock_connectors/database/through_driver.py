"""Databases other than PostgreSQL: the rows of a micro-batch pass through the driver, to one transaction of it."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection, Engine, Table, event
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NoSuchTableError, SQLAlchemyError

from penstock.error import refusal
from penstock.utils import clock
from penstock.values.types import FLOAT, INSTANT
from penstock_connectors.database.address import Address
from penstock_connectors.database.columns import is_nested
from penstock_connectors.database.commits import COMMITS, begin_batch, make_displaced_error
from penstock_connectors.database.errors import make_write_error
from penstock_connectors.database.layout import CHANGE, ORDER, Layout, json_of
from penstock_connectors.database.pages import Page, page_row
from penstock_connectors.database.types import choose_type
from penstock_spark.connecting.running import current_reporting
from penstock_spark.connecting.tables import (
    BEFORE_ALL,
    RetryCommit,
    digest_stream,
    is_committed,
    retry_commits,
)
from penstock_spark.connecting.values import value_of
from penstock_spark.connecting.writing import Encoder, MicroBatch

if TYPE_CHECKING:
    import sqlite3

ROWS_AT_ONCE = 10_000
_WITHOUT_ZONES = ("sqlite", "mysql", "mariadb")

Row = dict[str, Any]


@dataclass
class ArrowRows(Encoder):
    """Rows for the driver, as Arrow."""

    layout: Layout

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        batch = self.layout.rows(values, 0)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        return page_row(Page(batch.num_rows, stream.getvalue().to_pybytes()))


@dataclass
class DriverWriter:
    """Commits the micro-batches of one sink in one run."""

    address: Address
    layout: Layout
    create: bool
    driver: str
    stream: str | None = None

    def begin(self, stream: str, number: int) -> None:
        """Takes over the stream from an earlier driver, before any task writes."""
        if stream != self.stream and stream:
            self._persisting(lambda connection: self._claim(connection, stream, number), is_safe=lambda: True)
        self.stream = stream

    def commit(self, pages: list[Page], batch: MicroBatch) -> None:
        is_sent = [False]

        def work(connection: Connection) -> None:
            is_sent[0] = False
            if not batch.stream or self._begin_batch(connection, batch):
                self._merge(connection, pages)
            is_sent[0] = True

        # A batch cannot know whether the database received its last statements; a stream looks for its number.
        self._persisting(work, is_safe=lambda: bool(batch.stream) or not is_sent[0])

    def is_committed(self, batch: MicroBatch) -> bool:
        """True if the micro-batch of a stream, or a later one, is in the table."""
        commits, found = self._commits(), list[int]()

        def look(connection: Connection) -> None:
            if sa.inspect(connection).has_table(commits.name, commits.schema):
                of_stream = commits.c.stream == digest_stream(batch.stream)
                found[:] = connection.execute(sa.select(commits.c.batch).where(of_stream)).scalars()

        self._persisting(look, is_safe=lambda: True)
        return is_committed(next(iter(found), None), batch.number)

    def tidy(self) -> None:
        """Tasks leave nothing behind."""

    def close(self) -> None:
        """No connection stays open."""

    def _persisting(self, work: Callable[[Connection], None], is_safe: Callable[[], bool]) -> None:
        engine = self.address.engine()

        def attempt(_: int) -> None:
            try:
                with open_transaction(engine) as connection:
                    work(connection)
            except SQLAlchemyError as error:
                is_lost = isinstance(error, DBAPIError) and (
                    error.connection_invalidated or _is_locked(error)
                )
                failure = to_step_error(error, self.address, engine.dialect.name)
                raise (RetryCommit(failure) if is_lost and is_safe() else failure) from None

        try:
            retry_commits(attempt)
        finally:
            engine.dispose()

    def _commits(self) -> Table:
        schema, _ = self.address.parts
        return sa.Table(
            COMMITS,
            sa.MetaData(),
            sa.Column("stream", sa.String(64), primary_key=True),
            sa.Column("batch", sa.BigInteger, nullable=False),
            sa.Column("driver", sa.String(32), nullable=False),
            sa.Column("claim", sa.BigInteger, nullable=False),
            sa.Column("target", sa.String(255), nullable=False),
            sa.Column("written", sa.DateTime),
            schema=schema,
        )

    def _claim(self, connection: Connection, stream: str, number: int) -> None:
        commits = self._commits()
        commits.create(connection, checkfirst=True)
        of_stream = commits.c.stream == digest_stream(stream)
        mine = sa.update(commits).where(of_stream, commits.c.claim <= number)
        if not connection.execute(mine.values(driver=self.driver, claim=number)).rowcount:
            if connection.execute(sa.select(commits.c.claim).where(of_stream)).all():
                raise make_displaced_error(self.address, True)
            first = {
                "stream": digest_stream(stream),
                "batch": BEFORE_ALL,
                "driver": self.driver,
                "claim": number,
                "target": self.address.table,
            }
            connection.execute(sa.insert(commits), first)

    def _begin_batch(self, connection: Connection, batch: MicroBatch) -> bool:
        """Begins a micro-batch of a stream, as `begin_batch` of the commits does."""
        commits = self._commits()
        of_stream = commits.c.stream == digest_stream(batch.stream)
        known = connection.execute(sa.select(commits.c.batch, commits.c.driver).where(of_stream)).all()

        def note(last: int) -> int:
            same = (commits.c.batch == last, commits.c.driver == self.driver)
            now = datetime.datetime.fromtimestamp(clock.seconds(), datetime.UTC).replace(tzinfo=None)
            update = sa.update(commits).where(of_stream, *same).values(batch=batch.number, written=now)
            return connection.execute(update).rowcount

        return begin_batch(known, note, self.driver, batch, self.address)

    def _merge(self, connection: Connection, pages: list[Page]) -> None:
        schema, name = self.address.parts
        if self.create:
            define_table(self.address, self.layout).create(connection, checkfirst=True)
        pages = [page for page in pages if page.rows]
        if not pages:
            return
        table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
        lost = [each for each in self.layout.names if each not in table.c]
        if lost:
            # SQLAlchemy may leave out the values of columns that it does not know.
            said = f"the table has lost the column {lost[0]}"
            raise make_write_error(self.address, said, "compare the table with the rows, and start again")
        rows = rows_of(pages, self.layout, table, connection.dialect.name)
        if self.layout.mode == "insert":
            for some in _cut(rows):
                connection.execute(sa.insert(table), some)
            return
        keep = _net if self.layout.elements == "changes" else _last
        gone, come = keep(rows, self.layout, self.address)
        if gone:
            names = self.layout.names if self.layout.elements == "changes" else self.layout.key
            for row in gone:
                connection.execute(
                    sa.delete(table).where(*(_same(table.c[each], row[each]) for each in names))
                )
        for some in _cut(come):
            upsert(connection, table, self.layout, some)


def _same(column: sa.ColumnElement[Any], value: object) -> sa.ColumnElement[bool]:
    return column.is_(None) if value is None else column == value


def open_transaction(engine: Engine) -> AbstractContextManager[Connection]:
    """A transaction that includes the creation of tables, and that has SQLite's only writer from the beginning."""
    if engine.dialect.name == "sqlite" and not event.contains(engine, "begin", _begin_writing):
        # Else Python's module begins one with the first change, and creates tables outside.
        event.listen(engine, "connect", _begin_nothing)
        event.listen(engine, "begin", _begin_writing)
    return engine.begin()


def _begin_nothing(connection: sqlite3.Connection, record: object) -> None:
    connection.isolation_level = None


def _begin_writing(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def define_table(address: Address, layout: Layout) -> Table:
    schema, name = address.parts
    columns = [
        sa.Column(
            each.name,
            choose_type(each.type, each.name in layout.key),
            primary_key=each.name in layout.key,
            nullable=each.nullable and each.name not in layout.key,
            autoincrement=False,
        )
        for each in layout.schema
    ]
    return sa.Table(name, sa.MetaData(), *columns, schema=schema)


def rows_of(pages: Iterable[Page], layout: Layout, table: Table, dialect: str) -> Iterator[Row]:
    """The rows of pages in the values that SQLAlchemy takes."""
    for page in pages:
        for batch in pa.ipc.open_stream(page.data):
            columns = [
                _values(batch.column(place), field, dialect, layout.where)
                for place, field in enumerate(batch.schema)
            ]
            names = batch.schema.names
            for values in zip(*columns, strict=True):
                row = dict(zip(names, values, strict=True))
                row.pop(ORDER, None)
                yield row


def _values(column: pa.Array, field: pa.Field, dialect: str, where: str) -> list[Any]:
    values: list[Any] = column.to_pylist()
    kind = field.type
    if value_of(kind) is FLOAT and any(value is not None and math.isnan(value) for value in values):
        what = f"a value of the field {field.name} is NaN, which {dialect} cannot store"
        raise refusal(ValueError, what, where=where, hint="replace it with None before the write")
    if value_of(kind) is INSTANT and dialect in _WITHOUT_ZONES:
        return [
            None if value is None else value.astimezone(datetime.UTC).replace(tzinfo=None) for value in values
        ]
    if is_nested(kind):
        return [None if text is None else json.loads(text) for text in json_of(column, where, field.name)]
    return values


def _last(rows: Iterable[Row], layout: Layout, address: Address) -> tuple[list[Row], list[Row]]:
    """The keys that go and the rows that come, if the last change of each key counts."""
    last = {tuple(row[name] for name in layout.key): row for row in rows}
    come: list[Row] = []
    gone: list[Row] = []
    for row in last.values():
        (come if row.pop(CHANGE, 1) > 0 else gone).append(row)
    return gone, come


def _net(rows: Iterable[Row], layout: Layout, address: Address) -> tuple[list[Row], list[Row]]:
    """Returns the rows to delete and to insert, without rows that are inserted and retracted equally often."""
    counts: Counter[str] = Counter()
    kept: dict[str, Row] = {}
    for row in rows:
        change = row.pop(CHANGE)
        # A list or a dict cannot be a key of a dict.
        text = repr(row)
        counts[text] += change
        kept[text] = row
    come = [kept[text] for text in (+counts).elements()]
    if len({tuple(row[name] for name in layout.key) for row in come}) < len(come):
        said, hint = "a key has several rows at once", "add what distinguishes the rows to the key"
        raise make_write_error(address, said, hint)
    return [kept[text] for text in -counts], come


def _cut(rows: Iterable[Row]) -> Iterator[list[Row]]:
    some: list[Row] = []
    for row in rows:
        some.append(row)
        if len(some) == ROWS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def upsert(connection: Connection, table: Table, layout: Layout, rows: list[Row]) -> None:
    """Replaces the rows of keys, or adds them."""
    statement: object
    if connection.dialect.name == "sqlite":
        inserted = sqlite.insert(table)
        changes = {name: inserted.excluded[name] for name in layout.others}
        key = list(layout.key)
        statement = inserted.on_conflict_do_nothing(index_elements=key)
        if changes:
            statement = inserted.on_conflict_do_update(index_elements=key, set_=changes)
        connection.execute(statement, rows)
    elif connection.dialect.name in ("mysql", "mariadb"):
        added = mysql.insert(table)
        names = layout.others or list(layout.key)
        connection.execute(
            added.on_duplicate_key_update({name: added.inserted[name] for name in names}), rows
        )
    else:
        _update_or_insert(connection, table, layout, rows)


def _update_or_insert(connection: Connection, table: Table, layout: Layout, rows: list[Row]) -> None:
    """Row by row, for databases without a known statement for upserts."""
    for row in rows:
        same = [table.c[name] == row[name] for name in layout.key]
        found = connection.execute(sa.select(sa.literal(1)).select_from(table).where(*same)).first()
        if found is None:
            connection.execute(sa.insert(table), row)
        elif layout.others:
            connection.execute(
                sa.update(table).where(*same).values({name: row[name] for name in layout.others})
            )


def _is_locked(error: DBAPIError) -> bool:
    return "database is locked" in str(error.orig)


def to_step_error(error: object, address: Address, dialect: str) -> Exception:
    """An error of SQLAlchemy as one of the step's."""
    original = getattr(error, "orig", None)
    # SQLite's own words have names and no values.
    is_shown = dialect == "sqlite" or current_reporting().show_elements
    shown = str(original) if original is not None and is_shown else ""
    said, hint = (
        f"the database refuses it ({type(original or error).__name__})",
        "see the log of the database",
    )
    if isinstance(error, NoSuchTableError):
        said = "the table no longer exists"
        hint = "create it, or pass create=True, and start again"
    elif isinstance(error, IntegrityError):
        said = "a row breaks a constraint"
        hint = "filter such rows, or pass mode='upsert' if a unique key is broken"
    elif isinstance(error, DataError):
        said, hint = "a value does not fit its column", "compare the types of the rows and of the table"
    elif isinstance(error, DBAPIError) and error.connection_invalidated:
        said = "the connection to the database is lost, perhaps after the end of the transaction"
        hint = "check the table before you run it again"
    elif "full" in shown:
        said, hint = "the disk of the database is full", "free space on it, and start again"
    elif "locked" in shown:
        said, hint = "another program has locked the database for more than a minute", "let it end first"
    return make_write_error(address, said, hint, shown)
