"""The actions of a job: its statements, bound to the tables, views and functions that they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.sql.catalog import Catalog
from penstock.sql.jobs.columns_to_fill import Filling
from penstock.sql.plan.relations import Columns
from penstock.sql.statements.forms import Insert
from penstock.sql.statements.words import Script
from penstock.sql.tables.table import Table


@dataclass(frozen=True)
class BoundQuery:
    """A query.

    Attributes:
        text: Its text.
        rendering: Its rendering; None if it has none.
        columns: The columns of its result.
        tables: The tables that it reads, itself or through views, by their names.
        catalog: The views and functions that it may use.
        shared: The views that are computed once for all that read them, by their names in lower case.
        script: The text with the query.
        at: Where the query begins.
    """

    text: str
    rendering: str | None
    columns: Columns
    tables: Mapping[str, Table]
    catalog: Catalog
    shared: frozenset[str]
    script: Script
    at: int

    def streams(self, options: Mapping[str, Any]) -> bool:
        """True if it reads a stream."""
        return options.get("mode") != "batch" and any(each.streams for each in self.tables.values())

    @property
    def ends(self) -> bool:
        """True if all streams that it reads end."""
        return all(
            each.stream_arguments.get("existing_only") for each in self.tables.values() if each.streams
        )


@dataclass(frozen=True)
class BoundInsert:
    """A query whose result is written to a table.

    Attributes:
        statement: The statement.
        table: The table.
        query: The query.
        filling: How the result fills the table.
    """

    statement: Insert
    table: Table
    query: BoundQuery
    filling: Filling


@dataclass(frozen=True)
class PrintLines:
    """Lines that are known before anything runs."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class PrintQuery:
    """A query that runs and is printed."""

    query: BoundQuery
    options: Mapping[str, Any]


@dataclass(frozen=True)
class ExplainQuery:
    """A query, or what inserts its result, that is explained."""

    what: BoundQuery | BoundInsert
    options: Mapping[str, Any]


@dataclass(frozen=True)
class RunInserts:
    """All statements that insert, as one pipeline."""

    inserts: tuple[BoundInsert, ...]
    options: Mapping[str, Any]


Action: TypeAlias = PrintLines | PrintQuery | ExplainQuery | RunInserts


@dataclass
class State:
    """The declarations of the statements so far."""

    tables: dict[str, Table] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    shared: set[str] = field(default_factory=set)
    options: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Columns] = field(default_factory=dict)
    """The columns that statements write to tables whose statements declare none, by name."""

    def table(self, name: str) -> Table | None:
        """Returns the table of a name; None if there is none."""
        return self.tables.get(name.lower())

    def view(self, name: str) -> str | None:
        """Returns the query of a view; None if there is none."""
        views = {each.lower(): query for each, query in self.catalog.views.items()}
        return views.get(name.lower())

    def copy_catalog(self) -> Catalog:
        """Returns the present views and functions."""
        return copy_catalog(self.catalog)


def copy_catalog(catalog: Catalog, without: Iterable[str] = ()) -> Catalog:
    """Returns a copy of a catalog, without some views."""
    copy = Catalog()
    left_out = {name.lower() for name in without}
    copy.views = {name: query for name, query in catalog.views.items() if name.lower() not in left_out}
    copy.functions = dict(catalog.functions)
    return copy
