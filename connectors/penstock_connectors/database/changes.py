"""Opens the changes of a table of PostgreSQL; what needs psycopg is imported when a run starts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from penstock.error import refusal
from penstock.io.custom.ranges import RangesOfSource
from penstock.io.database import DatabaseSource
from penstock.io.postgres_changes import PostgresChangesSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.typehints import typehints
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database.address import Address
from penstock_connectors.database.reader import type_of_database
from penstock_spark.connecting.reading import Scan, StreamScan, open_range_stream, open_ranges

if TYPE_CHECKING:
    from penstock_connectors.database.changed_rows import ChangedRows


def open_changes(source: PostgresChangesSource, spark: SparkSession, where: str) -> Scan:
    """Opens the changes that the slot keeps now; the slot continues to keep them."""
    if source.has_initial_rows:
        what = "a batch cannot begin with the rows of the table and continue with its changes"
        hint = "read the rows with ReadFromDatabase, or pass initial_rows=False to read what the slot keeps"
        raise refusal(ValueError, what, where=where, hint=hint)
    changed = _make_changed_rows(source, where)
    if not changed.has_slot:
        what = f"there is no replication slot {source.slot}"
        raise refusal(ValueError, what, where=where, hint="run it as a stream, which creates the slot")
    return open_ranges(RangesOfSource(changed), spark, where)


def open_changes_stream(
    source: PostgresChangesSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    return open_range_stream(RangesOfSource(_make_changed_rows(source, where)), stream, spark, where)


def type_of_changes(source: PostgresChangesSource, spark: SparkSession | None, where: str) -> object:
    """Returns the type of pairs of a kind and a row of the published columns; None if the database cannot answer."""
    address = _address(source, where)
    columns = source.columns
    if columns is None:
        with contextlib.suppress(Exception):
            from penstock_connectors.database.changed_table import read_published_columns

            columns = read_published_columns(address, source.publication)
    row = type_of_database(DatabaseSource(source.url, source.table, columns=columns), spark, where)
    return None if row is None else typehints.Tuple[ValueKind, row]


def _make_changed_rows(source: PostgresChangesSource, where: str) -> ChangedRows:
    address = _address(source, where)
    from penstock_connectors.database.changed_rows import ChangedRows

    return ChangedRows.of(source, address)


def _address(source: PostgresChangesSource, where: str) -> Address:
    """Returns the address of the table; refuses another kind of database, and a missing package."""
    address = Address(source.url, source.table, source.describe(), where)
    if not address.is_postgres:
        what = "ReadChangesFromPostgres reads databases of PostgreSQL only"
        raise refusal(ValueError, what, where=where, hint="write the url as postgresql://...")
    return address
