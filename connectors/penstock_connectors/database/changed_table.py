"""The objects behind a stream of changes, as the server has them now: a table, its publication and its slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from penstock.error import RunnerError, UnsupportedByRunner, refusal
from penstock.io.postgres_changes import PostgresChangesSource
from penstock_connectors.database.address import Address
from penstock_connectors.database.pgoutput import FULL_IDENTITY, lsn_of, lsn_text
from penstock_connectors.database.postgres import connect, is_lost, target_of

_OLDEST_VERSION = 150_000
_SLOT_IS_ACTIVE = "55006"
_SLOT_HINT = "drop the slot, and start with a new checkpoint"

_SAID: dict[str, tuple[str, str]] = {
    "42501": (
        "the database user lacks the permission",
        "ALTER USER ... REPLICATION, and GRANT SELECT on the table",
    ),
    "53400": (
        "all replication slots of the server are in use",
        "raise max_replication_slots, or drop a slot",
    ),
    "57014": ("the server has cancelled the statement", "raise statement_timeout for the database user"),
}

_PUBLISHED = """
    SELECT t.attnames::text[], t.rowfilter, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate,
        concat_ws(' ', p.oid, p.xmin, r.oid, r.xmin, n.oid)
    FROM pg_publication p
    LEFT JOIN pg_class c ON c.oid = %(oid)s
    LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid
    LEFT JOIN pg_publication_namespace n ON n.pnpubid = p.oid AND n.pnnspid = c.relnamespace
    LEFT JOIN pg_publication_tables t ON t.pubname = p.pubname AND t.tablename = c.relname
        AND t.schemaname = (SELECT nspname FROM pg_namespace WHERE oid = c.relnamespace)
    WHERE p.pubname = %(publication)s
"""


@dataclass(frozen=True)
class Table:
    """The table when the pipeline starts."""

    oid: int
    has_blocks: bool  # Whether it keeps its rows itself, and not in partitions.
    types: Mapping[str, int]  # The numbers of the types of the columns to read.
    row_filter: str | None  # The condition on rows of the publication.

    @staticmethod
    def of(connection: psycopg.Connection[Any], source: PostgresChangesSource, address: Address) -> Table:
        """Looks at everything that would make a stream fail later, or miss changes."""
        _check_server(connection, address)
        oid, has_blocks = _oid(connection, source, address)
        _check_identity(connection, oid, source.table, address.where)
        published = PublishedTable.of(connection, source.publication, oid, source.table, address.where)
        types = dict(
            connection.execute(
                "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
                [oid],
            ).fetchall()
        )
        for column in source.columns or ():
            if column not in published.columns:
                what = f"the publication {source.publication} publishes no column {column} of the table {source.table}"
                hint = f"it has {', '.join(published.columns)}"
                raise refusal(ValueError, what, where=address.where, hint=hint)
        chosen = {column: types[column] for column in source.columns or published.columns}
        _check_rights(connection, oid, chosen, source, address)
        return Table(oid, has_blocks, chosen, published.row_filter)


@dataclass(frozen=True)
class PublishedTable:
    """A table in a publication: its columns, its filter, and the publication's version."""

    columns: tuple[str, ...]
    row_filter: str | None
    version: str  # Another one after each change of the publication.

    @staticmethod
    def of(
        connection: psycopg.Connection[Any], name: str, oid: int, table: str, where: str
    ) -> PublishedTable:
        """Returns the table in a publication; ValueError if that does not publish all changes of the table."""
        found = connection.execute(_PUBLISHED, {"oid": oid, "publication": name}).fetchone()
        if found is None:
            hint = f"CREATE PUBLICATION {name} FOR TABLE {table}"
            raise refusal(ValueError, f"there is no publication {name}", where=where, hint=hint)
        columns, row_filter, publishes_all, version = found
        if columns is None:
            what = f"the publication {name} does not publish the table {table}"
            hint = f"ALTER PUBLICATION {name} ADD TABLE {table}; for partitions, SET (publish_via_partition_root)"
            raise refusal(ValueError, what, where=where, hint=hint)
        if not publishes_all:
            what = f"the publication {name} leaves out some kinds of changes"
            hint = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
            raise refusal(ValueError, what, where=where, hint=hint)
        return PublishedTable(tuple(columns), row_filter, version)


def read_published_columns(address: Address, publication: str) -> tuple[str, ...]:
    with connect(address) as connection:
        oid = oid_of(connection, address)
        return PublishedTable.of(connection, publication, oid or 0, address.table, address.where).columns


def oid_of(connection: psycopg.Connection[Any], address: Address) -> int | None:
    """Returns the number of the table that has the name now; None if none has."""
    [[oid]] = connection.execute(
        "SELECT to_regclass(%s)::oid", [target_of(address).as_string(connection)]
    ).fetchall()
    found: int | None = oid
    return found


def system_of(connection: psycopg.Connection[Any]) -> str:
    """Returns the number of the server's data, which no other server has unless it is a copy."""
    [[system]] = connection.execute("SELECT system_identifier::text FROM pg_control_system()").fetchall()
    return str(system)


def _check_server(connection: psycopg.Connection[Any], address: Address) -> None:
    [[version, level, is_standby]] = connection.execute(
        "SELECT current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery()"
    ).fetchall()
    if version < _OLDEST_VERSION:
        what = "the server is older than PostgreSQL 15"
        raise UnsupportedByRunner(what, where=address.where, hint="use a later server")
    if level != "logical":
        what = f"the server does not keep changes: its wal_level is {level}"
        hint = "set wal_level = logical in postgresql.conf, and restart the server"
        raise refusal(ValueError, what, where=address.where, hint=hint)
    if is_standby:
        what = "the server is a standby, which follows another server"
        raise UnsupportedByRunner(what, where=address.where, hint="connect to the primary server")


def _oid(
    connection: psycopg.Connection[Any], source: PostgresChangesSource, address: Address
) -> tuple[int, bool]:
    """Returns the number of the table, and whether it keeps its rows itself."""
    oid = oid_of(connection, address)
    found = connection.execute(
        "SELECT relkind, EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid) FROM pg_class c WHERE oid = %s",
        [oid],
    ).fetchone()
    if oid is None or found is None or found[0] not in ("r", "p"):
        what = f"there is no table {source.table} in {address.shown.rpartition(' of ')[2]}"
        raise refusal(ValueError, what, where=address.where, hint="check its name and its schema")
    kind, has_children = found
    if kind == "r" and has_children:
        what = f"other tables inherit from the table {source.table}, and their changes are not its own"
        raise refusal(
            ValueError, what, where=address.where, hint="use partitions, or read each table on its own"
        )
    return oid, kind == "r"


def _check_identity(connection: psycopg.Connection[Any], oid: int, table: str, where: str) -> None:
    """Refuses changes without the complete old rows; a partition does not take this setting from its table."""
    query = (
        "SELECT oid::regclass::text FROM pg_class WHERE relreplident <> %s AND "
        "(oid = %s OR oid IN (SELECT relid FROM pg_partition_tree(%s::oid::regclass) WHERE isleaf)) ORDER BY oid"
    )
    found = connection.execute(query, [FULL_IDENTITY, oid, oid]).fetchone()
    if found is not None:
        what = f"the changes of the table {table} do not contain the complete old rows"
        raise refusal(ValueError, what, where=where, hint=f"ALTER TABLE {found[0]} REPLICA IDENTITY FULL")


def _check_rights(
    connection: psycopg.Connection[Any],
    oid: int,
    columns: Mapping[str, int],
    source: PostgresChangesSource,
    address: Address,
) -> None:
    try:
        # The server looks at the rights before it looks for the slot, and no slot has this name.
        connection.execute("SELECT FROM pg_logical_slot_peek_binary_changes('', NULL, NULL)")
    except psycopg.errors.InsufficientPrivilege:
        what = "the database user lacks the permission to use replication slots"
        raise refusal(ValueError, what, where=address.where, hint="ALTER USER ... REPLICATION") from None
    except psycopg.errors.UndefinedObject:
        pass
    if source.has_initial_rows:
        query = "SELECT bool_and(has_column_privilege(%s::oid, name, 'SELECT')) FROM unnest(%s::text[]) name"
        [[may_read]] = connection.execute(query, [oid, list(columns)]).fetchall()
        if not may_read:
            what = f"the database user lacks the permission to read the table {source.table}"
            hint = f"GRANT SELECT ON {source.table} TO ..., or pass initial_rows=False"
            raise refusal(ValueError, what, where=address.where, hint=hint)


@dataclass(frozen=True)
class Slot:
    """A replication slot as the server describes it."""

    name: str
    confirmed: int  # The server may have dropped what lies before.
    misfit: str | None  # Why no stream can use it.
    loss: tuple[str, str] | None  # Why it has lost changes, and what to do.

    @staticmethod
    def of(connection: psycopg.Connection[Any], name: str) -> Slot | None:
        # Not all versions have each column.
        query = (
            "SELECT plugin, slot_type, database = current_database(), confirmed_flush_lsn::text, wal_status, "
            "to_jsonb(s) ->> 'invalidation_reason' FROM pg_replication_slots s WHERE slot_name = %s"
        )
        found = connection.execute(query, [name]).fetchone()
        if found is None:
            return None
        plugin, kind, is_ours, confirmed, status, reason = found
        misfit = loss = None
        if kind != "logical" or plugin != "pgoutput":
            misfit = f"is of another kind: {plugin or kind}, not pgoutput"
        elif not is_ours:
            misfit = "belongs to another database"
        if status == "lost":
            setting = (
                "idle_replication_slot_timeout" if reason == "idle_timeout" else "max_slot_wal_keep_size"
            )
            loss = f"the server has dropped changes that the replication slot {name} kept", f"raise {setting}"
        return Slot(name, lsn_of(confirmed or "0/0"), misfit, loss)

    def check(self, where: str) -> None:
        """Refuses a slot from which nothing can be read."""
        if self.misfit is not None:
            what = f"the replication slot {self.name} {self.misfit}"
            raise refusal(ValueError, what, where=where, hint="use another slot for the stream")
        if self.loss is not None:
            what, hint = self.loss
            raise refusal(LookupError, what, where=where, hint=f"{hint}; {_SLOT_HINT}")

    def check_from(self, start: int, where: str) -> None:
        """Refuses a slot that does not keep everything from a place in the log on."""
        self.check(where)
        if self.confirmed > start:
            what = (
                f"the replication slot {self.name} is at {lsn_text(self.confirmed)}, but the stream has read only "
                f"up to {lsn_text(start)}: another client has moved it"
            )
            hint = "use a separate slot for each stream, and start with a new checkpoint"
            raise refusal(LookupError, what, where=where, hint=hint)


def check_slot(connection: psycopg.Connection[Any], name: str, start: int, where: str) -> Slot:
    """Refuses to read from a place in the log of which the slot does not keep everything."""
    slot = Slot.of(connection, name)
    if slot is None:
        what = f"the replication slot {name} is gone, and the changes that it kept with it"
        raise refusal(LookupError, what, where=where, hint="start with a new checkpoint")
    slot.check_from(start, where)
    return slot


def check_same(
    connection: psycopg.Connection[Any],
    source: PostgresChangesSource,
    start: Mapping[str, Any],
    address: Address,
) -> Slot:
    """Refuses to continue from a position if changes after it may be missing."""
    where = address.where
    if source.slot != start["slot"]:
        what = f"the stream has begun with the replication slot {start['slot']}, and not with {source.slot}"
        raise refusal(ValueError, what, where=where, hint="name that slot, or start with a new checkpoint")
    if system_of(connection) != start["system"]:
        what = "the database is on a different server than before, which numbers its changes differently"
        raise refusal(LookupError, what, where=where, hint=_SLOT_HINT)
    if oid_of(connection, address) != start["table"]:
        what = f"the table {source.table} is not the same as before: it was dropped or renamed"
        raise refusal(LookupError, what, where=where, hint=_SLOT_HINT)
    published = PublishedTable.of(connection, source.publication, start["table"], source.table, where)
    if published.version != start["publication"]:
        what = f"the publication {source.publication} was changed, and perhaps did not publish everything"
        raise refusal(LookupError, what, where=where, hint=_SLOT_HINT)
    return check_slot(connection, start["slot"], lsn_of(start["lsn"]), where)


def explain_error(error: psycopg.Error, address: Address) -> Exception:
    """Explains an error of psycopg; returns a ConnectionError if waiting may help."""
    state = error.sqlstate or ""
    what = f"cannot read {address.shown}"
    if state == _SLOT_IS_ACTIVE:
        what += ": another client reads the replication slot now"
        return refusal(ConnectionError, what, where=address.where, hint="use a separate slot for each stream")
    if is_lost(error):
        what += ": there is no connection to the database"
        hint = "check whether the database runs, and at the url, the user and the password"
        return refusal(ConnectionError, what, where=address.where, hint=hint)
    said, hint = _SAID.get(
        state, (f"the database refuses it ({type(error).__name__} {state})", "see the log of the database")
    )
    return RunnerError(f"{what}: {said}", where=address.where, hint=hint)
