"""Builds the pipelines of a job: one for all statements that insert, and one for each query that is printed.

Labels of steps come from the names of tables and views, so that they stay the same when other statements change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.checks.similar_names import find_nearest
from penstock.construction.pipeline import Pipeline
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.elements.row import Row
from penstock.error import split_hint
from penstock.sql.errors import SqlError, call_text
from penstock.sql.jobs.bound import BoundInsert, BoundQuery, copy_catalog
from penstock.sql.jobs.columns_to_fill import select_from
from penstock.sql.language.dialect import parse_query
from penstock.sql.names import names_read
from penstock.sql.tables.table import Table, expand_variables, make_absolute
from penstock.sql.tables.transforms import (
    REJECT_COLUMNS,
    ReadTable,
    WriteRejected,
    WriteTable,
    make_reject_folder,
    make_reject_table,
    refuse_as_sql,
)
from penstock.sql.transform import SqlTransform
from penstock.transforms.elements.create import Create

_NOTHING = "no table"
_ERRORS = (ValueError, TypeError, OSError, LookupError, ImportError)


class JobPipeline:
    """A pipeline of a job under construction.

    Args:
        options: The options of the pipeline.
        streams: Whether tables with a watermark are read as streams.
        finds_in_engine: Whether Spark is asked for the columns of data.
        tables: All tables of the job by their names in lower case, among which are those of rejected records.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        streams: bool,
        finds_in_engine: bool,
        tables: Mapping[str, Table],
    ) -> None:
        mode = options.get("mode") or ("streaming" if streams else "batch")
        self.pipeline = Pipeline(**{**options, "mode": mode})
        self._mode = mode
        self._streams = streams and mode != "batch"
        self._tables = tables
        self._read: dict[str, PCollection[Any]] = {}
        self._views: dict[str, PCollection[Any]] = {}
        self._labels: dict[str, int] = {}
        if finds_in_engine:
            self.pipeline.runner.start_engine(self.pipeline.options)

    def label(self, text: str) -> str:
        """Returns a label; with a number if it is there already."""
        self._labels[text] = number = self._labels.get(text, 0) + 1
        return text if number == 1 else f"{text} ({number})"

    def query(self, query: BoundQuery, label: str, text: str | None = None) -> tuple[Any, SqlTransform]:
        """Returns the result of a query, and the transform that computes it."""
        shared = query.shared if self._streams else frozenset()
        catalog = copy_catalog(query.catalog, shared)
        inputs = self._inputs(query, text or query.text, shared)
        transform = SqlTransform(text or query.text, catalog)
        return self._apply(inputs, label, transform, query), transform

    def _apply(
        self, inputs: dict[str, PCollection[Any]], label: str, transform: SqlTransform, query: BoundQuery
    ) -> PCollection[Any]:
        """The result of a transform; its errors name the place of a query."""
        try:
            with query.script.steps_of(query.at):
                result: PCollection[Any] = inputs | label >> transform
            return result
        except _ERRORS as error:
            if isinstance(error, SqlError) and (placed := call_text(error, query.script.name)) is not error:
                raise placed from None
            what, hint = split_hint(str(error))
            query.script.refuse(what.splitlines()[0], query.at, hint)

    def _inputs(self, query: BoundQuery, text: str, shared: frozenset[str]) -> dict[str, Any]:
        """The tables and shared views that a query reads directly, or through views that are not shared."""
        views = {name: each for name, each in query.catalog.views.items() if name.lower() not in shared}
        named = names_read(text, views)
        inputs = {name: self._table(each) for name, each in query.tables.items() if name.lower() in named}
        for name in sorted(shared & named):
            inputs[name] = self._view(name, query)
        if not inputs:
            if _NOTHING not in self._read:
                self._read[_NOTHING] = self.pipeline | "No table" >> Create([Row(nothing=None)])
            inputs[_NOTHING] = self._read[_NOTHING]
        return inputs

    def _table(self, table: Table) -> PCollection[Any]:
        name = table.name.lower()
        if name not in self._read:
            as_stream = self._streams and table.streams
            try:
                with table.script.steps_of(table.declared.at):
                    read = ReadTable(table, as_stream, self._rejects(table))
                    self._read[name] = self.pipeline | f"Table {table.name}" >> read
            except _ERRORS as error:
                refuse_as_sql(error, table)
        return self._read[name]

    def _rejects(self, table: Table) -> WriteRejected | None:
        option = table.rejects
        if option is None:
            return None
        other = self._tables.get(option.value.lower())
        meant = find_nearest(option.value, [each.name for each in self._tables.values()])
        if other is None and meant and "/" not in option.value:
            what = f"there is no table {option.value!r} for what {table.name!r} rejects"
            hint = f"did you mean {meant!r}? a folder of this name is './{option.value}'"
            table.script.refuse(what, option.value_at, hint)
        if other is not None and other.types and not _takes_rejects(other):
            what = f"the table {other.name!r} has different columns than what {table.name!r} rejects"
            known = ", ".join(f"{each.name} {each.type.name}" for each in REJECT_COLUMNS)
            hint = f"write CREATE TABLE {other.name} (source STRING, line BIGINT, reason STRING) WITH (…)"
            hint += f"; it may have these columns: {known}"
            table.script.refuse(what, option.value_at, hint)
        if other is None:
            return make_reject_folder(make_absolute(expand_variables(option, table.script)))
        return make_reject_table(other)

    def _view(self, name: str, query: BoundQuery) -> PCollection[Any]:
        """The changes of a view that is computed once."""
        if name not in self._views:
            views = {each.lower(): text for each, text in query.catalog.views.items()}
            inputs = self._inputs(query, views[name], query.shared - {name})
            catalog = copy_catalog(query.catalog, query.shared)
            transform = SqlTransform(views[name].strip(), catalog)
            # The text begins with the blanks that stand for the statements before it.
            at = len(views[name]) - len(views[name].lstrip())
            self._views[name] = self._apply(inputs, f"View {name}", transform, replace(query, at=at))
        return self._views[name]

    def insert(self, insert: BoundInsert) -> None:
        """Adds the steps of a statement that inserts."""
        name, table = insert.table.name, insert.table
        text, after = insert.query.text, None
        if insert.filling.scalars is not None:
            selected = ", ".join(insert.filling.scalars)
            if _is_plain(text, insert.query):
                text = select_from(text, insert.query.at, "inserted", selected)
            else:
                after = f"SELECT {selected} FROM PCOLLECTION"
        rows, _ = self.query(insert.query, self.label(f"Insert {name}"), text)
        if after is not None:
            with table.script.steps_of(insert.statement.at):
                rows = rows | self.label(f"Columns {name}") >> SqlTransform(after)
        retracts = may_retract(rows, in_rounds=self._mode == "micro_batch")
        if retracts and not table.takes_changes and not table.connector.shows_changes:
            _refuse_changes(insert)
        try:
            with table.script.steps_of(insert.statement.at):
                write = WriteTable(table, insert.filling.columns, insert.statement.overwrite)
                _ = rows | self.label(f"Write {name}") >> write
        except _ERRORS as error:
            refuse_as_sql(error, table)


def _takes_rejects(table: Table) -> bool:
    """True if a table has columns of rejected records, and no others."""
    known = {each.name: each.type.name for each in REJECT_COLUMNS}
    return all(known.get(each.name) == each.type.name for each in table.types)


def _is_plain(text: str, query: BoundQuery) -> bool:
    """True if a query may be a part of another: it has no rendering and no EMIT."""
    return query.rendering is None and parse_query(text).args.get("emit") is None


def _refuse_changes(insert: BoundInsert) -> None:
    table = insert.table
    what = f"the query changes rows that it has emitted, and the table {table.name!r} of {table.system} only adds rows"
    hint = "group by a window and write EMIT AFTER WATERMARK; or select a time and write EMIT WHEN WATERMARK PAST it"
    hint += "; or write SELECT STREAM …, Sys.Undo"
    if table.connector.merges_by_key:
        hint = f"declare PRIMARY KEY (…) NOT ENFORCED in CREATE TABLE {table.name}; or {hint}"
    else:
        hint += "; or write to a table of database, delta, iceberg or kafka with a PRIMARY KEY"
    table.script.refuse(what, insert.statement.at, hint)
