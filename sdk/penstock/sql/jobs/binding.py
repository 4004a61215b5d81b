"""Binds the statements of a job, all before any of them has an effect."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from penstock.checks.similar_names import hint_at_name
from penstock.construction.pipeline import Pipeline
from penstock.elements.row import Row
from penstock.error import split_hint
from penstock.io.files.paths import find_missing_of_spark
from penstock.scalars.spark_forms import quote_name
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.console import align_cells
from penstock.sql.errors import SqlError, call_text
from penstock.sql.execution.as_written import is_final
from penstock.sql.jobs.bound import (
    Action,
    BoundInsert,
    BoundQuery,
    ExplainQuery,
    PrintLines,
    PrintQuery,
    RunInserts,
    State,
)
from penstock.sql.jobs.columns_to_fill import fill_columns, select_from
from penstock.sql.jobs.functions import create_function
from penstock.sql.jobs.options import set_option
from penstock.sql.names import names_read
from penstock.sql.plan.late_rows import find_inputs_with_late_rows
from penstock.sql.plan.relations import ColumnDef, Columns, Query
from penstock.sql.statements.forms import (
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    QueryText,
    Select,
    SetOption,
    Show,
    Statement,
)
from penstock.sql.statements.parsing import parse_script
from penstock.sql.statements.words import Script
from penstock.sql.tables.table import Table, make_absolute, make_table
from penstock.sql.tables.transforms import (
    ReadTable,
    columns_of_type,
    find_path_of_spark,
    read_columns,
    refuse_as_sql,
)
from penstock.sql.transform import SqlTransform, allow_deep_calls, result_hint
from penstock.transforms.elements.create import Create

_RESTARTS = frozenset(["checkpoint_location", "take_over", "drop_state"])
"""The options that only a pipeline with a checkpoint has."""


class JobBinder:
    """Binds statements one after another.

    Args:
        script: The text.
        given: Options of pipelines that win over SET.
    """

    def __init__(self, script: Script, given: Mapping[str, Any]) -> None:
        self._script = script
        self._given = given
        self._state = State()
        self._inserts: list[BoundInsert] = []
        self._printed: list[BoundQuery] = []
        self._written_by: dict[str, Insert] = {}
        self._insert_options: dict[str, Any] = {}
        self._all_settings: dict[str, Any] = {}

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables that are declared, by their names in lower case."""
        return self._state.tables

    def bind(self) -> list[Action]:
        """Returns the actions of the job.

        Raises:
            SqlError: A statement is wrong.
        """
        statements = parse_script(self._script)
        self._all_settings = self._fold_settings(statements)
        # A table without columns of its own that the job writes itself is not looked for.
        self._filled = {each.table.lower() for each in statements if isinstance(each, Insert)} | {
            each.name.lower() for each in statements if isinstance(each, CreateTable) and each.query
        }
        self._paths_filled = _paths_of(statements, self._filled)
        actions: list[Action] = []
        inserts_at: int | None = None
        for statement in statements:
            match statement:
                case SetOption():
                    self._set(statement, bool(self._inserts))
                case CreateTable():
                    self._create_table(statement)
                    if statement.query is not None:
                        inserts_at = len(actions) if inserts_at is None else inserts_at
                        self._insert(
                            Insert(statement.name, statement.at, (), statement.query, statement.replace)
                        )
                case CreateView():
                    self._create_view(statement)
                case CreateFunction():
                    create_function(statement, self._script, self._state.catalog)
                case Drop():
                    self._drop(statement)
                case Insert():
                    inserts_at = len(actions) if inserts_at is None else inserts_at
                    self._insert(statement)
                case Select():
                    query = self._query(statement.query)
                    self._check_reads(query, statement.query.at)
                    self._printed.append(query)
                    actions.append(PrintQuery(query, self._options(restarts=False)))
                case Explain(Select(text)):
                    actions.append(ExplainQuery(self._query(text), self._options(restarts=False)))
                case Explain(Insert() as insert):
                    actions.append(ExplainQuery(self._bound_insert(insert), self._options(restarts=False)))
                case Describe():
                    actions.append(PrintLines(tuple(self._describe(statement))))
                case Show():
                    actions.append(PrintLines(tuple(self._show(statement))))
        if inserts_at is not None:
            self._check_tables_written()
            actions.insert(inserts_at, RunInserts(tuple(self._inserts), self._insert_options))
        return actions

    def check_files(self) -> None:
        """Refuses a job whose files are not there, if that is known before Spark starts.

        Raises:
            SqlError: Spark would find nothing at the path of a table that a query reads.
        """
        for query in (*(each.query for each in self._inserts), *self._printed):
            streams = query.streams(self._options(restarts=True))
            for table in query.tables.values():
                self._check_files_of(table, streams and table.streams)

    # Options

    def _options(self, *, restarts: bool) -> dict[str, Any]:
        options = {**self._state.options, **self._given}
        return (
            options if restarts else {name: each for name, each in options.items() if name not in _RESTARTS}
        )

    def _fold_settings(self, statements: Iterable[Statement]) -> dict[str, Any]:
        """The options after all SET statements; a wrong one is refused where it stands."""
        options: dict[str, Any] = {}
        for statement in statements:
            if isinstance(statement, SetOption):
                with contextlib.suppress(SqlError):
                    options = set_option(statement, self._script, options)
        return options

    def _engine_options(self) -> dict[str, Any]:
        """The options of a pipeline that asks the engine while statements are bound.

        The job has the same session, so the settings of the whole text count.
        """
        options = self._options(restarts=False)
        settings = {name: each for name, each in self._all_settings.items() if name not in _RESTARTS}
        found = {**settings, **self._given, "mode": options.get("mode")}
        return {name: each for name, each in found.items() if name not in _RESTARTS and each is not None}

    def _set(self, statement: SetOption, has_inserts: bool) -> None:
        options = set_option(statement, self._script, self._state.options)
        if has_inserts:
            what = f"SET {statement.name} comes after an INSERT, and all statements form one pipeline"
            self._script.refuse(what, statement.at, "move it before the first INSERT or CREATE TABLE … AS")
        self._state.options = options

    # Declarations

    def _create_table(self, statement: CreateTable) -> None:
        name = statement.name.lower()
        if name in self._state.tables or self._state.view(name) is not None:
            if statement.if_absent and name in self._state.tables:
                return
            if not (statement.replace and name in self._state.tables):
                kind = "table" if name in self._state.tables else "view"
                self._refuse_second(kind, statement.name, statement.at)
        self._state.tables[name] = make_table(statement, self._script)
        self._state.written.pop(name, None)

    def _refuse_second(self, kind: str, name: str, at: int) -> None:
        hint = f"choose another name, or write DROP {kind.upper()} {name} first"
        self._script.refuse(f"the {kind} {name!r} already exists", at, hint)

    def _create_view(self, statement: CreateView) -> None:
        name = statement.name.lower()
        if name in self._state.tables:
            self._refuse_second("table", statement.name, statement.at)
        if self._state.view(name) is not None:
            if statement.if_absent:
                return
            if not statement.replace:
                self._refuse_second("view", statement.name, statement.at)
        text = statement.query.text
        if statement.columns:
            text = _with_names(text, statement.query.at, statement.columns)
        with self._named():
            self._state.catalog.create_view(statement.name, text, replace=True)
        self._state.shared.discard(name)
        if statement.materialized:
            self._state.shared.add(name)
        # A wrong view is refused here, and not where it is read.
        self._query(QueryText(f"SELECT * FROM {quote_name(statement.name)}", statement.at))

    def _drop(self, statement: Drop) -> None:
        name, state = statement.name.lower(), self._state
        there: dict[str, str] = {
            "TABLE": {each: each for each in state.tables},
            "VIEW": {each.lower(): each for each in state.catalog.views},
            "FUNCTION": {each.lower(): each for each in state.catalog.functions},
        }[statement.kind]
        if name not in there:
            if statement.if_there:
                return
            kind = statement.kind.lower()
            hint = hint_at_name(statement.name, there, f"write DROP {statement.kind} IF EXISTS")
            self._script.refuse(f"there is no {kind} {statement.name!r}", statement.at, hint)
        if statement.kind == "TABLE":
            del state.tables[name]
        elif statement.kind == "VIEW":
            state.catalog.drop_view(name)
            state.shared.discard(name)
        else:
            del state.catalog.functions[name.upper()]

    # Queries

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors inside name the file, and not the query."""
        try:
            with allow_deep_calls():
                yield
        except SqlError as error:
            raise call_text(error, self._script.name) from None

    def _query(self, query: QueryText) -> BoundQuery:
        state = self._state
        with self._named():
            names = names_read(query.text, state.catalog.views)
        tables = {table.name: table for name, table in state.tables.items() if name in names}
        # Errors suggest the names of all tables.
        columns = {table.name: table.types for table in state.tables.values()}
        columns |= {name: self._columns(table) for name, table in tables.items()}
        tables = {name: state.tables[name.lower()] for name in tables}
        rendering, found = self._bind(query, tables, columns)
        shared = frozenset(state.shared & names)
        return BoundQuery(
            query.text.rstrip(),
            rendering,
            found,
            tables,
            state.copy_catalog(),
            shared,
            self._script,
            query.at,
        )

    def _bind(
        self, query: QueryText, tables: Mapping[str, Table], columns: Mapping[str, Columns]
    ) -> tuple[str | None, Columns]:
        """The rendering of a query, and the columns of its result."""
        catalog = self._state.catalog
        try:
            with self._named():
                plan = bind(query.text, Tables(columns, catalog.views, catalog.functions))
            self._check_watermarks(plan, query, tables)
            return plan.rendering, _columns_of(plan)
        except SqlError as error:
            what, hint = split_hint(str(error))
            if is_final(what.partition("\n")[0], hint, query.text):
                raise
            found = self._asked_columns(query, tables)
            if not found:
                raise
            return None, found

    def _check_watermarks(self, plan: Query, query: QueryText, tables: Mapping[str, Table]) -> None:
        """Refuses a query that drops late rows of streams without a watermark, which goes by the clock then."""
        if self._options(restarts=True).get("mode") == "batch":
            return
        by_name = {name.lower(): table for name, table in tables.items()}
        for names in find_inputs_with_late_rows(plan.relation):
            read = [by_name[name.lower()] for name in sorted(names) if name.lower() in by_name]
            streams = [table for table in read if table.streams]
            if streams and not any(_has_event_times(table) for table in streams):
                table = streams[0]
                time = next((each.name for each in table.types if each.type.name == "TIMESTAMP"), "at")
                what = f"the query waits for the watermark, and the stream {table.name!r} declares none"
                hint = f"write WATERMARK FOR {time} AS {time} - INTERVAL '5' SECONDS among the columns of {table.name}"
                self._script.refuse(what, query.at, f"{hint}; without it, only the clock moves the watermark")

    def _asked_columns(self, query: QueryText, tables: Mapping[str, Table]) -> Columns:
        """The columns of a batch query that only Spark knows; none if Spark does not know it either."""
        options = self._options(restarts=False)
        streams = options.get("mode") != "batch" and any(each.streams for each in tables.values())
        if streams:
            return ()
        try:
            pipeline = Pipeline(**{**self._engine_options(), "mode": "batch"})
            inputs = {
                name: pipeline | f"Table {name}" >> ReadTable(table, as_stream=False)
                for name, table in tables.items()
            }
            inputs = inputs or {"no table": pipeline | "No table" >> Create([Row(nothing=None)])}
            with self._named():
                rows = inputs | "Query" >> SqlTransform(query.text.rstrip(), self._state.copy_catalog())
        except SqlError:
            # It has the place of what Spark refuses, where that says more than what the binder refuses.
            raise
        except (ValueError, TypeError, OSError, LookupError, ImportError):
            return ()
        return columns_of_type(rows.element_type)

    def _columns(self, table: Table) -> Columns:
        """The columns of a table that is read."""
        connector = table.connector
        if connector.read is None:
            hint = "read another table: this connector only writes"
            self._script.refuse(
                f"SQL cannot read the table {table.name!r} of {table.system}", table.declared.at, hint
            )
        if table.name.lower() in self._state.written and not table.types:
            return self._state.written[table.name.lower()]
        told = (
            connector.needs_columns
            or not table.declared.columns
            or (connector.schema == "spark" and connector.finds_in_engine)
        )
        if table.types and (told or table.name.lower() in self._filled):
            return table.types
        found = self._found_columns(table)
        if not found and not table.types:
            path = table.reading.get("path")
            missing = None if path is None else find_missing_of_spark(str(path))
            if missing is not None:
                self._refuse_missing(table, missing, is_stream=False)
            hint = f"declare them: CREATE TABLE {table.name} (team STRING, points BIGINT) WITH (…)"
            self._script.refuse(
                f"the columns of the table {table.name!r} are unknown", table.declared.at, hint
            )
        self._check_found(table, found)
        if not table.types and connector.columns_of is not None:
            # The transform that reads the table does not know them.
            self._state.tables[table.name.lower()] = replace(table, types=found)
        return found or table.types

    def _found_columns(self, table: Table) -> Columns:
        """The columns that the data of a table has."""
        try:
            pipeline = Pipeline(**self._engine_options())
            if table.connector.finds_in_engine:
                self._check_files_of(table, is_stream=False)
                # Only Spark finds the columns of a table in its files.
                pipeline.runner.start_engine(pipeline.options)
            rows = pipeline | f"Table {table.name}" >> read_columns(table)
        except (ValueError, TypeError, OSError, LookupError, ImportError) as error:
            refuse_as_sql(error, table)
        return columns_of_type(rows.element_type)

    def _check_found(self, table: Table, found: Columns) -> None:
        """Refuses declared columns that the data has with other types."""
        by_name = {each.name: each.type for each in found}
        for declared, column in zip(table.declared.columns, table.types, strict=True):
            kind = by_name.get(column.name)
            if kind is None or "ANY" in (kind.name, column.type.name):
                continue
            if (kind.name, kind.precision, kind.scale) != (
                column.type.name,
                column.type.precision,
                column.type.scale,
            ):
                what = f"the column {column.name!r} of {table.name!r} is declared as {column.type.or_null()}"
                what += f", and is {kind.or_null()} in the data"
                hint = "leave out the columns, to use the types of the data, and CAST in a view"
                self._script.refuse(what, declared.at, hint)

    # Statements that insert

    def _insert(self, statement: Insert) -> None:
        bound = self._bound_insert(statement)
        if not self._inserts:
            self._insert_options = self._options(restarts=True)
        self._inserts.append(bound)
        self._written_by.setdefault(statement.table.lower(), statement)
        if not bound.table.types:
            self._state.written[statement.table.lower()] = bound.filling.columns

    def _bound_insert(self, statement: Insert) -> BoundInsert:
        table = self._state.table(statement.table)
        if table is None:
            if self._state.view(statement.table) is not None:
                hint = "insert into a table, which has a connector"
                self._script.refuse(f"{statement.table!r} is a view", statement.at, hint)
            hint = hint_at_name(
                statement.table,
                [each.name for each in self._state.tables.values()],
                f"write CREATE TABLE {statement.table} (…) WITH (…)",
            )
            self._script.refuse(f"there is no table {statement.table!r}", statement.at, hint)
        connector = table.connector
        if connector.write is None:
            self._script.refuse(
                f"SQL cannot write the table {table.name!r} of {table.system}",
                statement.at,
                "insert into a table of another connector",
            )
        if statement.overwrite and connector.overwrites is None:
            self._script.refuse(
                f"a table of {table.system} cannot be overwritten", statement.at, "write INSERT INTO"
            )
        if statement.overwrite and table.declared.key:
            self._script.refuse(
                f"the table {table.name!r} merges rows by its primary key, and is not overwritten",
                statement.at,
                "write INSERT INTO",
            )
        if table.declared.key and not table.takes_changes:
            hint = "leave PRIMARY KEY out; tables of delta, iceberg, database and kafka replace rows by their key"
            self._script.refuse(
                f"a table of {table.system} has no keys, and the table {table.name!r} declares one",
                table.declared.at,
                hint,
            )
        if table.records is not None and table.records.metadata:
            name = table.records.metadata[0][0]
            what = f"the column {name!r} of {table.name!r} has METADATA, which is only read"
            hint = "declare a second table of the topic without it, and insert into that"
            self._script.refuse(what, statement.at, hint)
        query = self._query(statement.query)
        if query.rendering == "TVR":
            hint = "leave TVR out"
            self._script.refuse(
                "a table takes rows, and SELECT TVR makes snapshots", statement.query.at, hint
            )
        filling = fill_columns(statement, table, query.columns, self._script)
        return BoundInsert(statement, table, query, filling)

    def _check_tables_written(self) -> None:
        """Refuses statements of one pipeline that read what others of it write."""
        for insert in self._inserts:
            for name in insert.query.tables:
                writer = self._written_by.get(name.lower())
                if writer is not None:
                    what = f"the table {name!r} is read and written by one pipeline"
                    hint = f"make it a view: CREATE VIEW {name} AS SELECT …; or read it in a separate job"
                    self._script.refuse(what, insert.statement.query.at, hint)

    def _check_reads(self, query: BoundQuery, at: int) -> None:
        """Refuses a query that would wait for the end of a stream that it is to read after."""
        written = [name for name in query.tables if name.lower() in self._written_by]
        streams = [each.query for each in self._inserts if each.query.streams(self._insert_options)]
        if written and not all(each.ends for each in streams):
            what = f"the table {written[0]!r} is written by a stream of this job, and is read when that has ended"
            self._script.refuse(
                what, at, "read it in a separate job; a stream of tables with existing_only = true does end"
            )

    def _check_files_of(self, table: Table, is_stream: bool) -> None:
        path = find_path_of_spark(table)
        # The job may make the folder, perhaps under another name of a table.
        if path is None or any(_overlap(path, each) for each in self._paths_filled):
            return
        missing = find_missing_of_spark(path, is_stream=is_stream)
        if missing is not None and self._reads_this_disk:
            self._refuse_missing(table, missing, is_stream)

    def _refuse_missing(self, table: Table, missing: str, is_stream: bool) -> NoReturn:
        hint = "check the path"
        if is_stream:
            hint = "create the folder before the job starts, or give a pattern such as /logs/*"
        self._script.refuse(f"the table {table.name!r}: {missing}", table.declared.at, hint)

    @functools.cached_property
    def _reads_this_disk(self) -> bool:
        pipeline = Pipeline(**self._engine_options())
        return bool(pipeline.runner.reads_this_disk(pipeline.options))

    # Descriptions

    def _describe(self, statement: Describe) -> Iterable[str]:
        table = self._state.table(statement.name)
        if table is not None:
            columns = table.types or self._columns(table)
        elif self._state.view(statement.name) is not None:
            text = f"SELECT * FROM {quote_name(statement.name)}"
            columns = self._query(QueryText(text, statement.at)).columns
        else:
            names = [each.name for each in self._state.tables.values()] + list(self._state.catalog.views)
            hint = hint_at_name(statement.name, names, "SHOW TABLES and SHOW VIEWS name all")
            self._script.refuse(f"there is no table or view {statement.name!r}", statement.at, hint)
        key = {name.lower() for name in table.declared.key} if table is not None else set()
        mark = table.declared.watermark if table is not None else None
        rows = []
        for column in columns:
            notes = ["primary key"] if column.name.lower() in key else []
            if mark is not None and mark.column.lower() == column.name.lower():
                notes.append(f"watermark {mark.seconds:g} seconds behind")
            rows.append([column.name, str(column.type), ", ".join(notes)])
        return align_cells(["column", "type", "note"], rows)

    def _show(self, statement: Show) -> Iterable[str]:
        state = self._state
        match statement.kind:
            case "TABLES":
                rows = [[each.name, each.system] for each in state.tables.values()]
                return align_cells(["table", "connector"], rows)
            case "VIEWS":
                return align_cells(["view"], [[name] for name in state.catalog.views])
            case "FUNCTIONS":
                kinds = {True: "aggregate", False: "function"}
                rows = [
                    [name, kinds[each.aggregates], str(each.type)]
                    for name, each in state.catalog.functions.items()
                ]
                return align_cells(["function", "kind", "type"], rows)
        table = state.table(statement.name)
        if table is None:
            hint = hint_at_name(
                statement.name, [each.name for each in state.tables.values()], "SHOW TABLES names all"
            )
            self._script.refuse(f"there is no table {statement.name!r}", statement.at, hint)
        return write_create_table(table).splitlines()


def _has_event_times(table: Table) -> bool:
    """True if the watermark of a stream goes by times in its rows, and not by the clock."""
    return table.watermark is not None or "arrival_time" in table.stream_arguments


def _paths_of(statements: Iterable[Statement], names: Collection[str]) -> frozenset[str]:
    """The paths of tables with some names, in lower case."""
    return frozenset(
        make_absolute(option.value).rstrip("/")
        for each in statements
        if isinstance(each, CreateTable) and each.name.lower() in names
        for option in each.options
        if option.name.lower() == "path"
    )


def _overlap(one: str, other: str) -> bool:
    """True if one of two paths is the other one, or is inside of it.

    >>> _overlap("/data/in/day=1/", "/data/in"), _overlap("/data/in", "/data/input")
    (True, False)
    """
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)


def _columns_of(plan: Query) -> Columns:
    """The columns of the result of a query."""
    known = {each.name: each.type for each in columns_of_type(result_hint(plan))}
    types = [each.type for each in plan.relation.columns]
    return tuple(
        ColumnDef(name, types[place] if isinstance(place, int) else known[name]) for name, place in plan.shown
    )


def write_create_table(table: Table) -> str:
    """Returns the statement of a table; values of settings that may be secret are left out."""
    declared = table.declared
    lines = [f"{quote_name(each.name)} {each.text}" for each in declared.columns]
    if declared.watermark is not None:
        name, seconds = quote_name(declared.watermark.column), declared.watermark.seconds
        lines.append(f"WATERMARK FOR {name} AS {name} - INTERVAL '{seconds:g}' SECONDS")
    if declared.key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quote_name, declared.key))}) NOT ENFORCED")
    inside = ",\n  ".join(lines)
    text = f"CREATE TABLE {quote_name(declared.name)}" + (f" (\n  {inside}\n)" if lines else "")
    if declared.partition_by:
        text += f" PARTITIONED BY ({', '.join(map(quote_name, declared.partition_by))})"
    settings = ",\n  ".join(f"'{each.name}' = {_shown(each.name, each.value)}" for each in declared.options)
    return f"{text} WITH (\n  {settings}\n)"


_SHOWN_SETTINGS = frozenset(
    ["connector", "format", "path", "topic", "table", "header", "rejects", "existing_only"]
)


def _shown(name: str, value: str) -> str:
    if name.lower() not in _SHOWN_SETTINGS:
        return "…"
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def _with_names(text: str, at: int, columns: Iterable[str]) -> str:
    """The query of a view that names its columns; errors inside still name their places."""
    return select_from(text, at, f"named ({', '.join(map(quote_name, columns))})", "*")


def bind_job(script: Script, given: Mapping[str, Any]) -> list[Action]:
    """Returns what a text of statements will do; nothing of it has begun.

    Args:
        script: The text.
        given: Options of pipelines that win over SET.

    Raises:
        SqlError: A statement is wrong; the message shows where.

    >>> bind_job(Script("CREATE VIEW one AS SELECT 1 AS n; SHOW VIEWS;"), {})
    [PrintLines(lines=('view', '----', 'one'))]
    """
    return JobBinder(script, given).bind()
