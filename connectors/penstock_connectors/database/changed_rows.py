"""The changes of a table of PostgreSQL by their places in the server's log, which a replication slot keeps.

A transaction lies between two places if the record of its commit begins there. The server drops what lies before the
slot's own place, which follows the micro-batches that are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.adapt import Transformer

from penstock.elements.row import make_row_class
from penstock.error import refusal
from penstock.io.custom.ranges import RangeSource, SourceRange
from penstock.io.postgres_changes import PostgresChangesSource
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database.address import Address
from penstock_connectors.database.changed_table import (
    PublishedTable,
    Slot,
    Table,
    check_same,
    check_slot,
    explain_error,
    system_of,
)
from penstock_connectors.database.changed_values import ChangeDecoder, adapter, unreadable
from penstock_connectors.database.check import make_unreachable_error
from penstock_connectors.database.pgoutput import (
    Begin,
    Change,
    Relation,
    Truncate,
    lsn_of,
    lsn_text,
    message_of,
)
from penstock_connectors.database.postgres import connect, is_lost, target_of
from penstock_connectors.database.reader import WITHOUT_TIME_LIMITS

_PAGE_ROWS = 5_000
_IDLE_BYTES = 16 << 20
"""After so much log without a change of the table, the slot moves on."""

_PART_BLOCKS = 2_000
"""The minimum number of blocks of the first rows for which a task of its own is worth it."""

_PEEK = "pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s::int, 'proto_version', '1', 'publication_names', %s)"
_COMMIT = ord("C")


class ChangedRows(RangeSource[Any]):
    """The first rows of a table, if they are asked for, and then its changes."""

    poll_seconds = 0.5
    # It makes the slot.
    asks_first_position_once = True

    def __init__(self, source: PostgresChangesSource, address: Address, table: Table, has_slot: bool) -> None:
        # The description has the user's URL, which may be a function of the main program; the address has its text.
        self._source = replace(source, url="")
        self._address = address
        self._table = table
        self.has_slot = has_slot
        self._connection: psycopg.Connection[Any] | None = None
        self._snapshot: psycopg.Connection[Any] | None = (
            None  # The connection that holds the snapshot of the first rows.
        )
        self._quiet: tuple[int, int] | None = None  # From where to where nothing is of interest.

    @staticmethod
    def of(source: PostgresChangesSource, address: Address) -> ChangedRows:
        """Looks at everything that would make the stream fail later; ValueError if something does not fit."""
        try:
            with connect(address) as connection:
                table = Table.of(connection, source, address)
                slot = Slot.of(connection, source.slot)
        except psycopg.Error as error:
            raise (make_unreachable_error if is_lost(error) else explain_error)(error, address) from None
        if slot is not None:
            slot.check(address.where)
        return ChangedRows(source, address, table, slot is not None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_connection": None, "_snapshot": None, "_quiet": None}

    def describe(self) -> str:
        return self._address.shown

    # The driver's questions

    def first_position(self) -> dict[str, Any]:
        position: dict[str, Any] = self._asked(self._first)
        return position

    def _first(self, connection: psycopg.Connection[Any]) -> dict[str, Any]:
        name = self._source.slot
        slot = Slot.of(connection, name)
        if self._source.has_initial_rows:
            if slot is not None:
                what = (
                    f"the replication slot {name} exists, but a new stream begins with the rows of the table"
                )
                hint = "drop the slot with pg_drop_replication_slot, or pass initial_rows=False to read what it keeps"
                raise refusal(ValueError, what, where=self._address.where, hint=hint)
            return self._with_rows(connection)
        if slot is not None:
            slot.check(self._address.where)
            return self._position(connection, slot.confirmed)
        made = "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')"
        [[lsn]] = connection.execute(made, [name]).fetchall()
        return self._position(connection, lsn_of(lsn))

    def _with_rows(self, connection: psycopg.Connection[Any]) -> dict[str, Any]:
        """Makes the slot, and holds a snapshot of the time from which on it keeps changes."""
        name = sql.Identifier(self._source.slot)
        holding = connect(self._address)
        with connect(self._address, replication="database") as making:
            make = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'export')")
            [[_, lsn, snapshot, _]] = making.execute(make.format(name)).fetchall()
            try:
                # The transaction has nothing to do until all is read, and the server must not end it for that.
                holding.execute(WITHOUT_TIME_LIMITS)
                _begin(holding, snapshot)
                # Nothing may move the rows until all are read.
                holding.execute(
                    sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(target_of(self._address))
                )
                [[snapshot]] = holding.execute("SELECT pg_export_snapshot()").fetchall()
                position = {**self._position(connection, lsn_of(lsn)), "rows": snapshot}
            except BaseException:
                # Nobody would read it, or drop it.
                making.execute(sql.SQL("DROP_REPLICATION_SLOT {}").format(name))
                holding.close()
                raise
        self._snapshot = holding
        return position

    def _position(self, connection: psycopg.Connection[Any], lsn: int) -> dict[str, Any]:
        source, table = self._source, self._table.oid
        published = PublishedTable.of(
            connection, source.publication, table, source.table, self._address.where
        )
        return {
            "system": system_of(connection),
            "slot": source.slot,
            "table": table,
            "publication": published.version,
            "lsn": lsn_text(lsn),
        }

    def last_position(self, start: Mapping[str, Any], max_records: int | None) -> dict[str, Any]:
        if "rows" in start:
            return {name: value for name, value in start.items() if name != "rows"}
        end = self._asked(lambda connection: self._end(connection, start, max_records))
        return {**start, "lsn": lsn_text(end)}

    def _end(
        self, connection: psycopg.Connection[Any], start: Mapping[str, Any], max_records: int | None
    ) -> int:
        slot = check_same(connection, self._source, start, self._address)
        first = lsn_of(start["lsn"])
        [[text]] = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchall()
        now = lsn_of(text)
        if now < first:
            what = f"the server's log ends at {text}, but the stream has read up to {start['lsn']}"
            hint = "if an older state of the database was restored, drop the slot and start with a new checkpoint"
            raise refusal(LookupError, what, where=self._address.where, hint=hint)
        if self._quiet == (first, now):
            return first
        # Until the slot has moved on, the server also sends changes that have been read.
        read = self._messages(connection, first, None)[0] if slot.confirmed < first else 0
        _, end = self._messages(connection, now, read + (max_records or 1))
        if end > first:
            return now if max_records is None else end
        if now - first > _IDLE_BYTES:
            return now
        self._quiet = first, now
        return first

    def _messages(self, connection: psycopg.Connection[Any], end: int, limit: int | None) -> tuple[int, int]:
        """Returns the number of messages up to a place, or in about `limit` of them, and the last transaction's end."""
        query = (
            f"SELECT count(*), coalesce(max(lsn) FILTER (WHERE get_byte(data, 0) = {_COMMIT}), '0/0')::text "
            f"FROM {_PEEK}"
        )
        arguments = [self._source.slot, lsn_text(end), limit, self._publications()]
        [[count, last]] = connection.execute(query, arguments).fetchall()
        return count, lsn_of(last)

    def _publications(self) -> str:
        """Returns the quoted name of the publication: the server reads a list of names."""
        return sql.Identifier(self._source.publication).as_string(None)

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any], parallelism: int) -> list[SourceRange]:
        if "rows" in start:
            blocks: list[SourceRange] = self._asked(
                lambda connection: self._blocks(connection, start["rows"], parallelism)
            )
            return blocks
        # A micro-batch that runs again has not been asked for its end.
        self._asked(lambda connection: check_same(connection, self._source, start, self._address))
        return [SourceRange("", lsn_of(start["lsn"]), lsn_of(end["lsn"]))]

    def _blocks(
        self, connection: psycopg.Connection[Any], snapshot: str, parallelism: int
    ) -> list[SourceRange]:
        """Divides the rows of the table by their blocks; the last part has no end, as the table may grow."""
        if not self._table.has_blocks:
            return [SourceRange("", (snapshot, 0), None)]
        size = "SELECT pg_relation_size(%s::oid) / current_setting('block_size')::int"
        [[blocks]] = connection.execute(size, [self._table.oid]).fetchall()
        cuts = list(range(0, max(blocks, 1), max(_PART_BLOCKS, -(-blocks // parallelism))))
        return [
            SourceRange("", (snapshot, cut), end) for cut, end in zip(cuts, [*cuts[1:], None], strict=True)
        ]

    def commit(self, position: Mapping[str, Any]) -> None:
        if "rows" in position:
            return
        self._drop_snapshot()
        # If the slot has lost something, the next position is refused, and says why.
        move = (
            "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
            "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn AND wal_status <> 'lost'"
        )
        arguments = [position["lsn"], self._source.slot, position["lsn"]]
        self._asked(lambda connection: connection.execute(move, arguments))

    def close(self) -> None:
        self._drop_snapshot()
        self._disconnect()

    def _drop_snapshot(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    def _asked(self, question: Callable[[Any], Any]) -> Any:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._address)
            return question(self._connection)
        except psycopg.Error as error:
            self._disconnect()
            raise explain_error(error, self._address) from None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Reading, in tasks

    def read(self, piece: SourceRange) -> Iterator[list[Any]]:
        try:
            with connect(self._address) as connection:
                if isinstance(piece.start, tuple):
                    snapshot, first = piece.start
                    yield from self._rows(connection, snapshot, first, piece.end)
                else:
                    yield from self._changes(connection, piece.start, piece.end)
        except psycopg.Error as error:
            raise explain_error(error, self._address) from None

    def _rows(
        self, connection: psycopg.Connection[Any], snapshot: str, first: int, end: int | None
    ) -> Iterator[list[Any]]:
        try:
            _begin(connection, snapshot)
        except (psycopg.errors.UndefinedObject, psycopg.errors.InvalidParameterValue):
            what = (
                "the program or the server has ended before all first rows were read, and they are not kept"
            )
            hint = f"drop the replication slot {self._source.slot}, and start with a new checkpoint"
            raise refusal(LookupError, what, where=self._address.where, hint=hint) from None
        # A table is read twice in the same order only if no other reading shares its way.
        connection.execute("SET LOCAL synchronize_seqscans = off")
        names = tuple(self._table.types)
        adapters = [(name, change) for name, oid in self._table.types.items() if (change := adapter(oid))]
        make = make_row_class(names)
        with connection.cursor("penstock_rows") as cursor:
            try:
                cursor.execute(self._query_of_rows(first, end))
                while page := cursor.fetchmany(_PAGE_ROWS):
                    rows = [dict(zip(names, row, strict=True)) for row in page]
                    for row in rows:
                        row.update(
                            (name, change(row[name])) for name, change in adapters if row[name] is not None
                        )
                    yield [(ValueKind.INSERT, make(**row)) for row in rows]
            except (psycopg.DataError, OverflowError) as error:
                raise unreadable(self._source.table, self._table.types, error, self._address.where) from None

    def _query_of_rows(self, first: int, end: int | None) -> sql.Composed:
        conditions = []
        if self._table.has_blocks:
            conditions.append(sql.SQL("ctid >= {}::tid").format(f"({first},0)"))
        if end is not None:
            conditions.append(sql.SQL("ctid < {}::tid").format(f"({end},0)"))
        if self._table.row_filter is not None:
            # The server itself has written it.
            conditions.append(sql.SQL("({})").format(sql.SQL(self._table.row_filter)))
        query = sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(map(sql.Identifier, self._table.types)), target_of(self._address)
        )
        return query + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions) if conditions else query

    def _changes(self, connection: psycopg.Connection[Any], start: int, end: int) -> Iterator[list[Any]]:
        decoder = ChangeDecoder(self._source, self._table, Transformer(connection), self._address.where)
        arguments = [self._source.slot, lsn_text(end), None, self._publications()]
        is_within = False
        with (
            connection.transaction(),
            connection.cursor("penstock_changes", row_factory=psycopg.rows.scalar_row) as cursor,
        ):
            page = self._first_page(cursor, arguments)
            # The server has collected everything by now: what the slot still has was also there before.
            self._check_slot(start)
            while page:
                elements: list[Any] = []
                for data in page:
                    message = message_of(data)
                    if isinstance(message, Begin):
                        is_within = start <= message.commit_lsn < end
                    elif isinstance(message, Relation):
                        decoder.look_at(message)
                    elif isinstance(message, Change | Truncate) and is_within:
                        elements += decoder.elements(message, data)
                if elements:
                    yield elements
                page = cursor.fetchmany(_PAGE_ROWS)

    def _first_page(self, cursor: psycopg.Cursor[Any], arguments: list[Any]) -> list[bytes]:
        try:
            cursor.execute(f"SELECT data FROM {_PEEK}", arguments, binary=True)
            page: list[bytes] = cursor.fetchmany(_PAGE_ROWS)
        except (psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState):
            # The slot is gone, or has lost what it kept: this says which.
            self._check_slot(0)
            raise
        return page

    def _check_slot(self, start: int) -> None:
        with connect(self._address) as connection:
            check_slot(connection, self._source.slot, start, self._address.where)


def _begin(connection: psycopg.Connection[Any], snapshot: str) -> None:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
