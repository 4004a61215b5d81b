"""Reads the changes of a table of PostgreSQL from its logical replication."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.argument_checks import check_column_names
from penstock.io.database import Url, check_database_url, check_table, redact_url
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable
from penstock.typehints import typehints
from penstock.utils.windowed_value import ValueKind

__all__ = ["PostgresChangesSource", "ReadChangesFromPostgres"]

_SLOT = re.compile(r"[a-z0-9_]{1,63}")


@dataclass(frozen=True)
class PostgresChangesSource(Streamable):
    """The changes of a table of PostgreSQL; see `ReadChangesFromPostgres`.

    >>> PostgresChangesSource("postgresql://amy:secret@db/sales", "scores", "penstock", "all_tables").describe()
    'changes of table scores of postgresql://db/sales'
    """

    # It may contain a password, so no text shows it.
    url: Any = field(repr=False)
    table: str
    slot: str
    publication: str
    columns: tuple[str, ...] | None = None
    has_initial_rows: bool = True

    has_fields = True
    reads_files = False
    limits_records = True
    acknowledges = True

    def describe(self) -> str:
        return f"changes of table {self.table} of {redact_url(self.url)}"


class ReadChangesFromPostgres(SourceTransform[Any]):
    """Reads the changes of the rows of a PostgreSQL table (penstock's own; Beam's ``DebeziumIO`` needs Java).

    Elements are pairs of a `ValueKind` and a ``Row``, as `Changelog` emits them and as `WriteToDatabase` takes them
    with ``mode="upsert"``: an INSERT, a DELETE, or an UPDATE_BEFORE with the old row and an UPDATE_AFTER with the new
    one. They are in the order of the commits, and a micro-batch contains whole transactions. Transactions that are
    rolled back are not read.

    The server keeps the changes in a replication slot until they are read. A stream creates the slot when it starts for
    the first time, and releases changes on the server only after their micro-batch is committed. So each change counts
    once after any crash, and **while the stream is stopped, the server keeps all changes, until its disk is full**. Set
    ``max_slot_wal_keep_size`` there, and drop the slot when the stream is no longer needed: ``SELECT
    pg_drop_replication_slot('...')``. Each stream needs its own slot.

    In batch mode, it reads the changes that an existing slot keeps, and leaves them there; pass
    ``initial_rows=False``.

    The server must be PostgreSQL 15 or later with ``wal_level = logical``. The user needs the attribute
    ``REPLICATION``, and for the initial rows the permission to read the table. The old rows must be complete, and the
    changes must be published::

        ALTER TABLE scores REPLICA IDENTITY FULL;
        CREATE PUBLICATION scores_changes FOR TABLE scores;

    Types are those of `ReadFromDatabase`. Install ``penstock[postgres]``.

    Args:
        url: The URL of the database; see `WriteToDatabase`.
        table: The name of the table, ``"scores"`` or ``"schema.scores"``.
        slot: The name of the replication slot: small letters, digits and underscores.
        publication: The name of the publication, which may also publish other tables. It must publish all kinds of
            changes, as it does by default. If it has a condition for the rows, it also applies to the initial rows.
        columns: The columns to read; None reads all that are published.
        initial_rows: Whether a stream begins with the rows that the table has when the slot is created, each as an
            INSERT. All of them are in one micro-batch. If the program or the server dies before that ends, drop the
            slot and begin again: the server does not keep them.

    Raises:
        ValueError: If an argument has an invalid value. Before the run starts: if there is no such table, column or
            publication, if the old rows are not complete, or if the user lacks a permission. When a stream starts for
            the first time: if the slot exists, but the initial rows are requested. While it runs: if the table was
            emptied with TRUNCATE, or its columns have changed.
        TypeError: If an argument has the wrong type.
        LookupError: If changes may be missing: the slot is gone, has lost what it kept, or another client moved it;
            the publication was changed; the table was created again, or is on another server.
        RunnerError: If the database cannot be reached, or returns an error.

    >>> read = ReadChangesFromPostgres("postgresql://amy@db/sales", "scores", slot="totals", publication="all_tables")
    >>> read.source.describe()
    'changes of table scores of postgresql://db/sales'
    >>> ReadChangesFromPostgres("postgresql://amy@db/sales", "scores", slot="My slot", publication="all_tables")
    Traceback (most recent call last):
    ...
    ValueError: 'My slot' cannot be the name of a replication slot
      at ...
      hint: use small letters, digits and underscores, at most 63 of them
    """

    source: PostgresChangesSource

    def __init__(
        self,
        url: Url,
        table: str,
        *,
        slot: str,
        publication: str,
        columns: Iterable[str] | None = None,
        initial_rows: bool = True,
    ) -> None:
        check_database_url(url)
        check_table(table)
        for name, value in (("slot", slot), ("publication", publication)):
            if not isinstance(value, str) or not value:
                what = f"{name} must be a name, but is {value!r}"
                raise refusal(TypeError, what, hint=f'pass {name}="scores_changes"')
        if _SLOT.fullmatch(slot) is None:
            what = f"{slot!r} cannot be the name of a replication slot"
            hint = "use small letters, digits and underscores, at most 63 of them"
            raise refusal(ValueError, what, hint=hint)
        if not isinstance(initial_rows, bool):
            what = f"initial_rows must be True or False, but is {initial_rows!r}"
            raise refusal(TypeError, what, hint="pass False to read only the changes")
        names = None if columns is None else check_column_names("columns", columns)
        super().__init__(PostgresChangesSource(url, table, slot, publication, names, initial_rows))

    def infer_output_type(self, input_type: object) -> object:
        return typehints.Tuple[ValueKind, Row]
