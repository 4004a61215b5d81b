"""Makes elements of the changes of one table, as its messages describe them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg.abc import Transformer
from psycopg.pq import Format

from penstock.elements.row import make_row_class
from penstock.error import RunnerError, refusal
from penstock.io.custom.ranges import UnreadableElement
from penstock.io.postgres_changes import PostgresChangesSource
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database.changed_table import Table
from penstock_connectors.database.pgoutput import (
    FULL_IDENTITY,
    Change,
    Relation,
    Truncate,
    Unchanged,
    Values,
)
from penstock_connectors.database.postgres_values import make_unrepresentable_error
from penstock_connectors.database.reader import kind_of_type

_UNREADABLE = (psycopg.Error, ValueError, OverflowError, ArithmeticError)
Load = Callable[[Any], Any]


def adapter(oid: int) -> Load | None:
    """Returns a conversion of values that psycopg has read to those of `ReadFromDatabase`; None if none is needed."""
    types = psycopg.adapters.types
    if oid == types["uuid"].oid:
        return str
    if oid == types["timestamptz"].oid:
        return lambda instant: instant.astimezone(datetime.UTC)
    return None


def unreadable(table: str, types: Mapping[str, int], error: Exception, where: str) -> ValueError:
    """Returns the refusal of a value of a table, whose columns have the types of the server with these numbers."""
    hints = {name: kind_of_type(oid) for name, oid in types.items()}
    found = make_unrepresentable_error(error, hints, f"the table {table}", where)
    if found is not None:
        return found
    what = f"a value of the table {table} cannot be read ({type(error).__name__})"
    hint = "leave its column out with columns=[...], or take such changes with rejects=True"
    return refusal(ValueError, what, where=where, hint=hint)


class ChangeDecoder:
    """Reads the messages of a range, in their order."""

    def __init__(
        self, source: PostgresChangesSource, table: Table, transformer: Transformer, where: str
    ) -> None:
        self._source = source
        self._table = table
        self._transformer = transformer
        self._where = where
        self._make = make_row_class(tuple(table.types))
        self._relation: Relation | None = None
        self._columns: list[tuple[str, int, Load]] | None = None
        self._partial: dict[int, str] = {}  # The partitions that do not log whole old rows now.
        self._is_partition_next = False

    def look_at(self, relation: Relation) -> None:
        """Notes the columns of a table from now on; they are compared when a change follows that is read."""
        is_partition, self._is_partition_next = self._is_partition_next, relation.oid == self._table.oid
        if relation.oid == self._table.oid:
            self._relation, self._columns = relation, None
        elif is_partition:
            # Changes of a partition name its table, and the server describes both just before the first of them.
            self._partial.pop(relation.oid, None)
            if relation.identity != FULL_IDENTITY:
                self._partial[relation.oid] = relation.name

    def elements(self, message: Change | Truncate, data: bytes) -> list[Any]:
        """Returns the elements of a message, whose bytes are `data`."""
        self._is_partition_next = False
        if isinstance(message, Truncate):
            if self._table.oid in message.oids:
                what = f"the table {self._source.table} was emptied with TRUNCATE, which does not name the deleted rows"
                hint = "drop the slot, and start with a new checkpoint; empty the table with DELETE in future"
                raise refusal(ValueError, what, where=self._where, hint=hint)
            return []
        if message.oid != self._table.oid:
            return []
        if self._columns is None:
            self._columns = self._compare_columns()
        is_insert = message.old is None and message.is_whole
        if not message.is_whole or (self._partial and not is_insert):
            name = next(iter(self._partial.values()), self._source.table)
            what = f"a change of the table {name} does not contain the complete old row"
            hint = f"ALTER TABLE {name} REPLICA IDENTITY FULL, drop the slot, and start with a new checkpoint"
            raise refusal(ValueError, what, where=self._where, hint=hint)
        try:
            return self._rows_of(message.old, message.new, self._columns)
        except _UNREADABLE as error:
            return [
                UnreadableElement(data, unreadable(self._source.table, self._table.types, error, self._where))
            ]

    def _rows_of(
        self, old: Values | None, new: Values | None, columns: list[tuple[str, int, Load]]
    ) -> list[Any]:
        before = None if old is None else self._row(old, columns)
        if new is None:
            return [(ValueKind.DELETE, before)]
        if old is None:
            return [(ValueKind.INSERT, self._row(new, columns))]
        whole = [was if value is Unchanged.UNCHANGED else value for was, value in zip(old, new, strict=True)]
        return [(ValueKind.UPDATE_BEFORE, before), (ValueKind.UPDATE_AFTER, self._row(whole, columns))]

    def _row(self, values: Values, columns: list[tuple[str, int, Load]]) -> object:
        return self._make(
            **{name: None if values[at] is None else load(values[at]) for name, at, load in columns}
        )

    def _compare_columns(self) -> list[tuple[str, int, Load]]:
        """Returns the place and the reader of each column; ValueError if the table had other columns at that time."""
        relation = self._relation
        if relation is None:
            what = "a change arrived before the description of its table"
            raise RunnerError(what, where=self._where, hint="report this")
        places = {name: place for place, (name, _) in enumerate(relation.columns)}
        found = []
        for name, planned in self._table.types.items():
            if name not in places:
                raise self._misfit(f"no column {name}", f"without {name}")
            oid = relation.columns[places[name]][1]
            if kind_of_type(oid) != kind_of_type(planned):
                raise self._misfit(f"another type in the column {name}", f"without {name}")
            found.append((name, places[name], self._loader(oid)))
        others = [name for name in places if name not in self._table.types]
        if others and self._source.columns is None:
            raise self._misfit(f"also a column {others[0]}", f"with {', '.join(self._table.types)}")
        return found

    def _loader(self, oid: int) -> Load:
        load, adapt = self._transformer.get_loader(oid, Format.TEXT).load, adapter(oid)
        return load if adapt is None else lambda data: adapt(load(data))

    def _misfit(self, had: str, columns: str) -> ValueError:
        what = f"at the time of a change, the table {self._source.table} had {had}"
        hint = f"pass columns=[...] {columns}, and start again; or drop the slot, and start with a new checkpoint"
        return refusal(ValueError, what, where=self._where, hint=hint)
