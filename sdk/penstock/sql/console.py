"""Statements that a person types: tables from files, views, and queries whose results are printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlglot import exp

from penstock.construction.pipeline import Pipeline
from penstock.io.each_batch import ForEachBatch, WriteToMemory
from penstock.io.sparkio import ReadFromSpark
from penstock.io.watermarks import BoundedDisorder
from penstock.relations.changelog import Changelog
from penstock.scalars.spark_forms import quote_name
from penstock.sql.catalog import Catalog
from penstock.sql.errors import make_sql_error
from penstock.sql.language.dialect import (
    find_outermost_select,
    micros_of,
    parse_query,
    rendering_of,
    split_statements,
)
from penstock.sql.transform import SqlTransform

_TIMES = frozenset(["event_time", "arrival_time", "watermark"])


@dataclass(frozen=True)
class Table:
    """A table of files, as CREATE TABLE describes it.

    Attributes:
        format: The name of a Spark format, such as ``csv``, ``json`` or ``parquet``.
        path: Where the files are.
        schema: The columns in Spark's SQL; None takes them from the files.
        options: Options for Spark's reader.
        event_time: The column with the event time; with it, the table is a stream, which ends with its files.
        arrival_time: The column with the time of arrival, by which a recorded log is replayed.
        watermark_seconds: How far the event times of rows may be out of order.
    """

    format: str
    path: str
    schema: str | None
    options: tuple[tuple[str, str], ...]
    event_time: str | None = None
    arrival_time: str | None = None
    watermark_seconds: float = 0

    def read(self) -> Any:
        """The transform that reads it."""
        read = ReadFromSpark(self.format, self.path, schema=self.schema, **dict(self.options))
        if self.event_time is None:
            return read
        disorder = BoundedDisorder(self.watermark_seconds)
        return read.as_stream(self.event_time, disorder, arrival_time=self.arrival_time, ends=True)


class Console:
    """Runs statements one after another.

    Args:
        show: Prints a line.
        options: Options of the pipelines that it runs.

    >>> lines = []
    >>> Console(lines.append).run("CREATE VIEW totals AS SELECT team, SUM(points) AS total FROM goals GROUP BY team")
    >>> lines
    ['created view totals']
    """

    def __init__(self, show: Callable[[str], Any], **options: Any) -> None:
        self._show = show
        self._options = options
        self._tables: dict[str, Table] = {}
        self._catalog = Catalog()

    def run(self, text: str) -> None:
        """Runs the statements of a text.

        Raises:
            SqlError: A statement is wrong; those before it have run.
        """
        for statement in split_statements(text):
            tree = parse_query(statement)
            if isinstance(tree, exp.Create) and tree.kind == "TABLE":
                self._create_table(statement, tree)
            elif isinstance(tree, exp.Create) and tree.kind == "VIEW":
                self._create_view(statement, tree)
            else:
                self._select(statement, tree)

    def _create_table(self, statement: str, tree: exp.Expression) -> None:
        name, named = _name_and_columns(tree)
        given = {}
        for each in tree.args["properties"].expressions if tree.args.get("properties") else ():
            key = "format" if isinstance(each, exp.FileFormatProperty) else each.name.lower()
            given[key] = (each.this if key == "format" else each.args["value"]).name
        if missing := [each for each in ("format", "path") if each not in given]:
            hint = (
                "write CREATE TABLE t (a BIGINT) WITH (format = 'csv', path = '/data/t.csv', header = 'true')"
            )
            raise make_sql_error(f"CREATE TABLE {name} has no {' and no '.join(missing)}", statement, 0, hint)
        columns = ", ".join(
            f"{quote_name(each.name)} {each.args['kind'].sql(dialect='spark')}" for each in named
        )
        options = tuple(
            (key, value) for key, value in given.items() if key not in {"format", "path"} | _TIMES
        )
        self._tables[name] = Table(
            given["format"],
            given["path"],
            columns or None,
            options,
            given.get("event_time"),
            given.get("arrival_time"),
            _seconds(given.get("watermark", "0 seconds"), statement),
        )
        self._show(f"created table {name}")

    def _create_view(self, statement: str, tree: exp.Expression) -> None:
        found = re.match(r"(?is)\s*CREATE\s.*?\bVIEW\s.*?\bAS\b(.*)", statement)
        assert found is not None
        query = found[1].strip()
        name, named = _name_and_columns(tree)
        if named:
            query = (
                f"SELECT * FROM ({query}\n) AS named ({', '.join(quote_name(each.name) for each in named)})"
            )
        self._catalog.create_view(name, query, replace=bool(tree.args.get("replace")))
        self._show(f"created view {name}")

    def _names_read(self, tree: object) -> set[str]:
        """The names that a query may read, itself or through views."""
        views = {name.lower(): text for name, text in self._catalog.views.items()}
        found: set[str] = set()
        waiting = _names_in(tree)
        while waiting:
            name = waiting.pop()
            found.add(name)
            if name in views:
                waiting |= _names_in(parse_query(views[name])) - found
        return found

    def _select(self, statement: str, tree: exp.Expression) -> None:
        named = self._names_read(tree)
        tables = {name: table for name, table in self._tables.items() if name.lower() in named}
        if not tables:
            raise make_sql_error(
                "the query reads no table", statement, 0, "CREATE TABLE one, and name it in FROM"
            )
        streams = any(table.event_time is not None for table in tables.values())
        mode = "streaming" if streams else "batch"
        pipeline = Pipeline(mode=mode, **self._options)
        if any(table.schema is None for table in tables.values()):
            # Only the engine finds the columns of a table in its files.
            pipeline.runner.start_engine(pipeline.options)
        inputs = {name: pipeline | f"Table {name}" >> table.read() for name, table in tables.items()}
        query = SqlTransform(statement, self._catalog)
        result = inputs | "Query" >> query
        rendering = rendering_of(find_outermost_select(tree))
        if not streams or rendering == "TABLE":
            rows: list[Any] = []
            _ = result | "Keep" >> WriteToMemory(rows)
            pipeline.run().wait_until_finish()
            for line in format_table(rows, query.order):
                self._show(line)
            return
        if rendering is None:
            result |= Changelog()

        def show_changes(changes: list[Any], number: int) -> None:
            for change in changes:
                self._show(format_change(change))

        _ = result | "Show" >> ForEachBatch(show_changes)
        pipeline.run().wait_until_finish()


def _names_in(tree: Any) -> set[str]:
    """The names of the tables and views that a query may read, in lower case.

    The arguments of window functions look like columns.
    """
    named = [*tree.find_all(exp.Table)]
    for call in tree.find_all(exp.Anonymous):
        named += call.find_all(exp.Column)
    return {each.name.lower() for each in named}


def _name_and_columns(tree: exp.Expression) -> tuple[str, list[Any]]:
    """The name of what a statement creates, and its columns if the statement names them."""
    if isinstance(tree.this, exp.Schema):
        return tree.this.this.name, tree.this.expressions
    return tree.this.name, []


def _seconds(text: str, statement: str) -> float:
    micros = micros_of(text.split())
    if micros is None:
        raise make_sql_error(
            f"the watermark {text!r} is not a length of time", statement, 0, "write '5 seconds'"
        )
    return micros / 1_000_000


def format_change(change: Any) -> str:
    """A change as a line: a row that is undone begins with a minus.

    >>> from penstock.elements.row import Row
    >>> format_change(Row(team="blue", total=3, Undo="undo"))
    '- blue | 3'
    """
    undone = False
    if isinstance(change, tuple) and len(change) == 2 and hasattr(change[0], "is_retraction"):
        undone, change = change[0].is_retraction, change[1]
    values = change.as_dict() if hasattr(change, "as_dict") else change._asdict()
    undone = undone or any(values.pop(name, "") == "undo" for name in ("Undo", "undo"))
    return f"{'-' if undone else '+'} {' | '.join(map(format_cell, values.values()))}"


def format_table(rows: Iterable[Any], order: tuple[tuple[str, bool, bool], ...] = ()) -> Iterator[str]:
    r"""Rows as an aligned table.

    Args:
        rows: The rows.
        order: As `penstock.sql.transform.listing_order` tells it; rows that are equal in it are ordered by their cells.

    >>> from penstock.elements.row import Row
    >>> print("\n".join(format_table([Row(team="red", n=12), Row(team="blue", n=None)])))
    team | n
    -----+-----
    blue | NULL
    red  | 12
    (2 rows)
    """
    dicts = [row.as_dict() if hasattr(row, "as_dict") else row._asdict() for row in rows]
    if not dicts:
        yield "(0 rows)"
        return
    names = list(dicts[0])
    dicts.sort(key=lambda row: [format_cell(row[name]) for name in names])
    for name, descending, nulls_first in reversed(order):
        known = sorted(
            (row for row in dicts if row[name] is not None), key=itemgetter(name), reverse=descending
        )
        unknown = [row for row in dicts if row[name] is None]
        dicts = unknown + known if nulls_first else known + unknown
    cells = [[format_cell(each[name]) for name in names] for each in dicts]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    yield _aligned(names, widths)
    yield "-+-".join("-" * width for width in widths)
    for line in cells:
        yield _aligned(line, widths)
    yield f"({len(cells)} row{'s' * (len(cells) != 1)})"


def _aligned(cells: list[str], widths: list[int]) -> str:
    return " | ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()


def format_cell(value: object) -> str:
    """A value as the console prints it.

    >>> format_cell(None), format_cell(1.5), format_cell(True)
    ('NULL', '1.5', 'true')
    """
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
