"""Plays suites of other projects: what penstock makes of their queries, and how many of their results it has.

Usage, for a folder of files of sqllogictest, such as a clone of the suite::

    python -m tests.sql.suites.play sqlite /tmp/sqllogictest/test/select1.test --limit 300
    python -m tests.sql.suites.play risingwave /tmp/risingwave/e2e_test/streaming/time_window.slt
    python -m tests.sql.suites.play duckdb /tmp/duckdb/test/sql/subquery --spark

A query is played in a batch, and in a stream in which rows arrive in parts, and others are taken back. Its result is
equal, or it is refused with a reason, or it differs. `--spark` asks Spark what it makes of the texts that differ: some
mean something else in Spark, whose language penstock has.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import json
import logging
import math
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb

import penstock as beam
from penstock.elements.row import Row
from penstock.io import WriteToMemory
from penstock.runners.runner import PipelineRunner
from penstock.scalars.types import SqlType, to_hint
from penstock.sql.errors import SqlError
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import Catalog, SqlTransform
from penstock.typehints.row_type import RowTypeConstraint
from penstock.utils.windowed_value import ValueKind, WindowedValue, unknown_pane
from tests.runner.plain_runner import Settings, collect, run_plain
from tests.shards.toy_query import ToyQuery
from tests.sql.suites.logic_files import LogicQuery, Statement, records_of

# What an engine keeps


@dataclass(frozen=True)
class Table:
    """A table: the names and types of its columns, and its rows."""

    columns: tuple[tuple[str, SqlType], ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def row_type(self) -> RowTypeConstraint:
        return RowTypeConstraint.from_fields([(name, to_hint(kind)) for name, kind in self.columns])

    @property
    def made(self) -> list[Any]:
        names = [name for name, _ in self.columns]
        return [Row(**dict(zip(names, row, strict=True))) for row in self.rows]


_UNKNOWN = "the engine does not know a statement before it"


class NotPlayed(Exception):
    """A query that is not for penstock: what it reads, or its form, is that of another engine."""


class Engine:
    """The tables of a file, in an engine that knows its dialect.

    Args:
        dialect: ``sqlite``, ``duckdb`` or ``risingwave``.
    """

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._known: dict[str, Table] = {}
        self.views: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self._connection: Any
        if dialect == "sqlite":
            self._connection = sqlite3.connect(":memory:")
        else:
            self._connection = duckdb.connect()
            self._connection.execute("SET threads = 1; SET TimeZone = 'UTC'")

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str) -> None:
        """Makes a change; a view is kept as its text."""
        text = statement.strip()
        made = re.match(
            r"create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:materialized\s+)?view\s+(?:if\s+not\s+exists\s+)?"
            r"\"?(\w+)\"?\s*(\([^)]*\))?\s+(?:with\s*\([^)]*\)\s*)?as\s+(.*)",
            text,
            re.I | re.S,
        )
        if made:
            name, columns, query = made.groups()
            self.views[name.lower()] = (
                query if not columns else f"WITH w{columns} AS ({query}) SELECT * FROM w"
            )
            return
        dropped = re.match(r"drop\s+(?:materialized\s+)?view\s+(?:if\s+exists\s+)?\"?(\w+)", text, re.I)
        if dropped:
            self.views.pop(dropped[1].lower(), None)
            return
        if re.match(
            r"(flush|set|pragma|create\s+(unique\s+)?index|drop\s+index|reindex|analyze|checkpoint)\b",
            text,
            re.I,
        ):
            return
        named = re.match(
            r"(?:create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?table(?:\s+if\s+not\s+exists)?|drop\s+table(?:\s+if\s+exists)?"
            r"|insert\s+into|delete\s+from|update)\s+\"?(\w+)",
            text,
            re.I,
        )
        if self._dialect == "risingwave":
            text = (
                re.sub(r",?\s*watermark\s+for\s+.*", ")", text, flags=re.I | re.S)
                if text.lower().startswith("create")
                else text
            )
            text = re.sub(r"\)\s*append\s+only.*", ")", text, flags=re.I | re.S)
        self._known.clear()
        try:
            self._connection.execute(text)
        except (duckdb.Error, sqlite3.Error) as error:
            if named:
                self.unknown[named[1].lower()] = _UNKNOWN
            raise NotPlayed(_UNKNOWN) from error

    def tables(self) -> dict[str, Table]:
        """The tables by their names."""
        if not self._known:
            for name in self._names():
                try:
                    self._known[name] = self._table(name)
                except NotPlayed as error:
                    self.unknown[name.lower()] = str(error)
        return self._known

    def _names(self) -> list[str]:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        if self._dialect != "sqlite":
            query = "SELECT table_name FROM duckdb_tables()"
        return [name for (name,) in self._connection.execute(query).fetchall()]

    def _table(self, name: str) -> Table:
        try:
            [(count,)] = self._connection.execute(f'SELECT COUNT(*) FROM "{name}"').fetchall()
        except (duckdb.Error, sqlite3.Error) as error:
            raise NotPlayed("a table in another schema") from error
        if count > _MOST_ROWS:
            raise NotPlayed("a large table")
        if self._dialect == "sqlite":
            columns = [
                (each[1], each[2])
                for each in self._connection.execute(f"PRAGMA table_info({name})").fetchall()
            ]
        else:
            columns = [
                (each[0], each[1]) for each in self._connection.execute(f'DESCRIBE "{name}"').fetchall()
            ]
        kinds = [(column, type_of(kind)) for column, kind in columns]
        rows = self._connection.execute(f'SELECT * FROM "{name}"').fetchall()
        return Table(tuple(kinds), tuple(tuple(map(value_of, kinds, row)) for row in rows))

    def rows_of(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query by the engine itself."""
        try:
            return list(self._connection.execute(query).fetchall())
        except (duckdb.Error, sqlite3.Error) as error:
            raise NotPlayed("the engine does not know the query") from error


_MOST_ROWS = 2_000
_NAMES = {
    **dict.fromkeys(("BIGINT", "INTEGER", "INT", "SMALLINT", "TINYINT"), "BIGINT"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), "DOUBLE"),
    **dict.fromkeys(("VARCHAR", "TEXT"), "STRING"),
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "BLOB": "BINARY",
}


def type_of(kind: str) -> SqlType:
    """The type of penstock for a type of an engine.

    Raises:
        NotPlayed: There is none.
    """
    found = re.fullmatch(r"(?:DECIMAL|NUMERIC)\((\d+),\s*(\d+)\)", kind.upper())
    if found:
        return SqlType("DECIMAL", precision=int(found[1]), scale=int(found[2]))
    name = re.sub(r"\(\d+\)", "", kind.upper())
    if name not in _NAMES:
        raise NotPlayed(f"a table with the type {kind}")
    return SqlType(_NAMES[name])


def value_of(column: tuple[str, SqlType], value: Any) -> Any:
    kind = column[1].name
    if value is None:
        return None
    if kind == "BIGINT" and not isinstance(value, int):
        raise NotPlayed("a table of values of other types than those declared")
    if kind == "TIMESTAMP":
        return value.astimezone(datetime.UTC)
    if kind == "DATE" and not isinstance(value, datetime.date):
        raise NotPlayed("a date beyond those of Python")
    return float(value) if kind == "DOUBLE" else value


# Dialects


def in_our_language(query: str, dialect: str) -> str:
    """The text of a query in Spark's language, where only the spelling differs."""
    if dialect == "sqlite":
        query = re.sub(r"\bAS SIGNED\b|\bAS INTEGER\b", "AS BIGINT", query, flags=re.I)
        return re.sub(r"\bAS REAL\b", "AS DOUBLE", query, flags=re.I)
    query = re.sub(r'"(\w+)"', r"`\1`", query)
    query = re.sub(r"::\s*(int8|int4|int2|integer)\b", "::bigint", query, flags=re.I)
    query = re.sub(r"::\s*(varchar|text)\b", "::string", query, flags=re.I)
    query = re.sub(r"\bas\s+(varchar|text)\s*\)", "as string)", query, flags=re.I)
    query = re.sub(r"::\s*(float8|real|float4|double precision|float)\b", "::double", query, flags=re.I)
    if dialect == "risingwave":
        query = re.sub(
            r"\b(tumble|hop)\s*\(\s*(\w+)\s*,\s*(\w+)\s*,\s*([^()]*)\)",
            r"\1(TABLE \2, DESCRIPTOR(\3), \4)",
            query,
            flags=re.I,
        )
        query = re.sub(r"\bemit\s+on\s+window\s+close\b", "EMIT ON WINDOW CLOSE", query, flags=re.I)
    return query


# Results


def cell(value: Any, letter: str = "T") -> str:
    """A value as suites write it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal() if letter == "I" and math.isfinite(value):
            return str(int(value))
        case int() | float() | Decimal() if letter == "R" and math.isfinite(value):
            return f"{float(value):.3f}"
        case datetime.datetime():
            return str(value.replace(tzinfo=None))
        case float() if not math.isfinite(value):
            return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        case "":
            return "(empty)"
    return str(value)


def is_equal(mine: str, theirs: str) -> bool:
    """True if two cells are one value.

    >>> is_equal("4.2", "4.200000"), is_equal("true", "t"), is_equal("1", "2")
    (True, True, False)
    """
    if mine == theirs:
        return True
    truths = {"true": 1, "t": 1, "1": 1, "false": 0, "f": 0, "0": 0}
    if mine in ("true", "false"):
        return truths[mine] == truths.get(theirs.lower(), 2)
    try:
        return math.isclose(float(mine), float(theirs), rel_tol=1e-6, abs_tol=1e-9)
    except ValueError:
        return _plain_time(mine) == _plain_time(theirs)


def _plain_time(cell: str) -> str:
    return cell.removesuffix("+00:00").removesuffix("+00").removesuffix(" 00:00:00")


class Verdict(NamedTuple):
    """What became of a query: ``equal``, ``refused``, ``not played``, ``fails`` or ``differs``; and why."""

    kind: str
    reason: str = ""


def compared(rows: list[tuple[Any, ...]], query: LogicQuery, wanted: list[tuple[Any, ...]] | None) -> Verdict:
    """Compares rows with the result of a file, or with those of the engine if the file has their digest."""
    mine = [[cell(value) for value in row] for row in rows]
    width = len(mine[0]) if mine else max(1, len(query.types))
    if wanted is not None:
        theirs = [[cell(value) for value in row] for row in wanted]
    elif all(line.count("\t") == width - 1 for line in query.lines):
        theirs = [line.split("\t") for line in query.lines]
    elif len(query.lines) == len(rows) * width:
        theirs = [list(query.lines[at : at + width]) for at in range(0, len(query.lines), width)]
    else:
        theirs = [line.split() for line in query.lines]
        mine = [[word for each in row for word in each.split()] for row in mine]
    if query.sort == "valuesort":
        mine, theirs = ([[each] for row in side for each in row] for side in (mine, theirs))
    mine, theirs = ([[" ".join(each.split()) for each in row] for row in side] for side in (mine, theirs))
    mine.sort()
    theirs.sort()
    # Rows whose cells are written in other ways may be in another order.
    rest = list(theirs)
    for row in mine:
        found = next((each for each in rest if len(each) == len(row) and all(map(is_equal, row, each))), None)
        if found is None:
            break
        rest.remove(found)
    if len(mine) == len(theirs) and not rest:
        return Verdict("equal")
    return Verdict("differs", f"{mine[:6]} here, {theirs[:6]} there")


def digest_of(rows: list[tuple[Any, ...]], query: LogicQuery) -> tuple[int, str]:
    """The number of values of a result, and their MD5."""
    cells = [[cell(value, query.types[at : at + 1]) for at, value in enumerate(row)] for row in rows]
    if query.sort == "rowsort":
        cells.sort()
    flat = [each for row in cells for each in row]
    if query.sort == "valuesort":
        flat.sort()
    text = "".join(f"{each}\n" for each in flat)
    return len(flat), hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# What plays


def read_views(words: set[str], views: dict[str, str]) -> dict[str, str]:
    """The views that a text with some words names, also by other views; its words become those of all of them."""
    reached: dict[str, str] = {}
    while more := {name: text for name, text in views.items() if name in words and name not in reached}:
        reached |= more
        words |= set(re.findall(r"\w+", " ".join(more.values()).lower()))
    return {name: views[name] for name in views if name in reached}


def read_tables(query: str, tables: dict[str, Table], views: dict[str, str]) -> dict[str, Table]:
    """The tables that a query reads, also by its views."""
    words = set(re.findall(r"\w+", query.lower()))
    read_views(words, views)
    return {name: table for name, table in tables.items() if name.lower() in words} or {"nothing": _NOTHING}


_NOTHING = Table((("nothing", SqlType("BIGINT")),), ((1,),))


def in_batch(query: str, tables: dict[str, Table], catalog: Catalog) -> list[tuple[Any, ...]]:
    """The rows of a query by the transforms."""
    pipeline = beam.Pipeline(runner=PipelineRunner())
    inputs = {
        name: pipeline
        | f"Table {name}" >> beam.Create(table.made, reshuffle=False).with_output_types(table.row_type)
        for name, table in tables.items()
    }
    found = collect(inputs | SqlTransform(query, catalog))
    run_plain(pipeline, Settings())
    return [tuple(row) for row in found]


class _Come(beam.DoFn):
    """From what happens to a row to the row, or its retraction."""

    emits_retractions = True

    def process(self, change: Any, seen: Any = beam.DoFn.WindowedValueParam) -> Iterator[Any]:
        sign, row = change
        pane = unknown_pane(ValueKind.INSERT if sign > 0 else ValueKind.DELETE)
        yield WindowedValue(row, seen.timestamp, seen.windows, pane)


def in_stream(
    query: str, tables: dict[str, Table], catalog: Catalog, events: list[tuple[str, list[tuple[int, Any]]]]
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a query over tables that change, after each event: a table, and signs and rows."""
    pipeline = beam.Pipeline()
    stream = TestStream(output_tags=[*tables])
    for name, changes in events:
        stream = stream.add_elements(changes, name)
    for name in tables:
        stream = stream.advance_watermark_to_infinity(name)
    sources = pipeline | stream
    inputs = {
        name: sources[name] | f"Rows of {name}" >> beam.ParDo(_Come()).with_output_types(table.row_type)
        for name, table in tables.items()
    }
    inputs | SqlTransform(query, catalog) | beam.Changelog() | WriteToMemory([])
    toy = ToyQuery(pipeline, "streaming", 2, 1)
    net: Counter[str] = Counter()
    rows: dict[str, tuple[Any, ...]] = {}
    for _ in range(toy.timeline.batches):
        for sink in toy.batch().values():
            for kind, row in sink:
                text = repr(tuple(row))
                rows[text] = tuple(row)
                net[text] += -1 if kind.is_retraction else 1
        assert all(count >= 0 for count in net.values()), net
        yield [rows[text] for text, count in net.items() for _ in range(count)]


def events_of(tables: dict[str, Table], chance: Random) -> list[tuple[str, list[tuple[int, Any]]]]:
    """How rows of tables come in parts, while some of them are taken back and come again."""
    events: list[tuple[str, list[tuple[int, Any]]]] = []
    for name, table in tables.items():
        rows = table.made
        parts = [rows[at::3] for at in range(3)]
        for at, part in enumerate(parts):
            if part or at == 0:
                extra = [chance.choice(rows)] if rows else []
                events.append((name, [*((1, row) for row in part), *((1, row) for row in extra)]))
                events.append((name, [(-1, row) for row in extra]))
    chance.shuffle(events)
    # A row is taken back after it has come, whatever the order.
    seen: Counter[tuple[str, str]] = Counter()
    kept, later = [], []
    for name, changes in events:
        if all(sign > 0 or seen[name, repr(row)] for sign, row in changes):
            kept.append((name, changes))
            for sign, row in changes:
                seen[name, repr(row)] += sign
        else:
            later.append((name, changes))
    return [event for event in [*kept, *later] if event[1]]


def in_spark(
    spark: Any, query: str, tables: dict[str, Table], views: dict[str, str]
) -> list[tuple[Any, ...]]:
    """The rows of a query by Spark, of the same text.

    Raises:
        NotPlayed: Spark refuses it, or fails.
    """
    for name, table in tables.items():
        schema = ", ".join(f"`{column}` {kind.or_null()}" for column, kind in table.columns)
        spark.createDataFrame(list(table.rows), schema).createOrReplaceTempView(name)
    try:
        for name, text in views.items():
            spark.sql(text).createOrReplaceTempView(name)
        return [tuple(row) for row in spark.sql(query).collect()]
    except Exception as error:
        raise NotPlayed(str(error).splitlines()[0]) from error
    finally:
        for name in (*tables, *views):
            spark.catalog.dropTempView(name)


def with_spark(verdict: Verdict, rows: Verdict, as_here: bool) -> str:
    """What became of a query that is not equal, after Spark was asked.

    Args:
        verdict: What became of it here.
        rows: What Spark made of it.
        as_here: Whether its rows are those of penstock.
    """
    if verdict.kind in ("refused", "fails"):
        kinds = {
            "not played": "in Spark as well",
            "equal": "and Spark has it",
            "differs": "and Spark means something else",
        }
        return f"{verdict.kind}, {kinds[rows.kind]}"
    if as_here:
        return "means something else, as in Spark"
    return {"equal": "wrong", "not played": "differs, and Spark refuses it"}.get(
        rows.kind, "differs, and in Spark as well"
    )


@dataclass
class Report:
    """What became of the queries of a suite."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: list[dict[str, Any]] = field(default_factory=list)

    def add(self, verdict: Verdict, place: str, query: str) -> None:
        self.verdicts[verdict.kind] += 1
        if verdict.kind.startswith(("refused", "not played")):
            self.reasons[verdict.kind, masked(verdict.reason)] += 1
        if not verdict.kind.startswith(("equal", "not played")):
            self.others.append({"place": place, "query": query, "kind": verdict.kind, "why": verdict.reason})


def masked(reason: str) -> str:
    """A reason without what a query names."""
    return re.sub(r"'[^']*'|`[^`]*`|\"[^\"]*\"|\([^)]*\)|\b\d+\b", "…", reason)[:90]


def tried(play: Callable[[], Verdict]) -> Verdict:
    """A verdict; refusals and errors are verdicts as well."""
    try:
        return play()
    except NotPlayed as error:
        return Verdict("not played", str(error))
    except SqlError as error:
        return Verdict("refused", str(error).splitlines()[0])
    except Exception as error:
        lines = str(error).splitlines() or [""]
        return Verdict("fails", f"{type(error).__name__}: {lines[0]}")


def play_file(
    path: Path, dialect: str, report: Report, limit: int = 0, streams: int = 4, spark: Any = None
) -> None:
    """Plays a file.

    Args:
        path: The file.
        dialect: Its dialect.
        report: Where verdicts are added.
        limit: The most queries of it that are played; the first ones are. 0 is no limit.
        streams: One in so many queries that are equal in a batch is played as a stream, too.
        spark: A session that is asked for what is not equal; or None.
    """
    engine, chance, played = Engine(dialect), Random(path.name), 0
    try:
        for record in records_of(
            path.read_text("utf-8", errors="replace"), "mysql" if dialect == "sqlite" else dialect
        ):
            if isinstance(record, str):
                report.reasons["not played", record] += 1
                return
            if isinstance(record, Statement):
                if record.is_ok:
                    with contextlib.suppress(NotPlayed):
                        engine.execute(record.text)
                continue
            if limit and played >= limit:
                return
            played += 1
            place = f"{path.name}:{record.line}"
            own = in_our_language(record.text, dialect)
            tables = read_tables(record.text, engine.tables(), engine.views)
            words = set(re.findall(r"\w+", record.text.lower()))
            views, catalog = read_views(words, engine.views), Catalog()

            own_views = {name: in_our_language(text, dialect) for name, text in views.items()}
            found: list[tuple[Any, ...]] = []

            def batch(
                query: LogicQuery = record,
                own: str = own,
                words: set[str] = words,
                tables: dict[str, Table] = tables,
                views: dict[str, str] = own_views,
                catalog: Catalog = catalog,
                found: list[tuple[Any, ...]] = found,
            ) -> Verdict:
                if unknown := words & engine.unknown.keys():
                    raise NotPlayed(engine.unknown[min(unknown)])
                if any(_EMIT.search(text) for text in (own, *views.values())):
                    raise NotPlayed("EMIT, and a watermark that the file does not show")
                for name, text in views.items():
                    catalog.create_view(name, text)
                found += in_batch(own, tables, catalog)
                return compared(found, query, _wanted(query, engine))

            verdict = tried(batch)
            if spark is not None and verdict.kind in ("refused", "fails", "differs"):
                there: list[tuple[Any, ...]] = []

                def ask(
                    query: LogicQuery = record,
                    own: str = own,
                    tables: dict[str, Table] = tables,
                    views: dict[str, str] = own_views,
                    there: list[tuple[Any, ...]] = there,
                ) -> Verdict:
                    there += in_spark(spark, own, tables, views)
                    return compared(there, query, _wanted(query, engine))

                asked = tried(ask)
                as_here = Counter(map(repr, _plain_rows(there))) == Counter(map(repr, _plain_rows(found)))
                verdict = verdict._replace(kind=with_spark(verdict, asked, as_here))
            report.add(verdict, place, record.text)
            if verdict.kind == "equal" and chance.random() * streams < 1:

                def stream(
                    query: LogicQuery = record,
                    own: str = own,
                    tables: dict[str, Table] = tables,
                    catalog: Catalog = catalog,
                ) -> Verdict:
                    *_, rows = in_stream(own, tables, catalog, events_of(tables, chance))
                    return compared(rows, query, _wanted(query, engine))

                again = tried(stream)
                report.add(again._replace(kind=f"{again.kind} in a stream"), place, record.text)
    finally:
        engine.close()


_EMIT = re.compile(r"\bEMIT\b")


def _plain_rows(rows: list[tuple[Any, ...]]) -> list[list[str]]:
    return [
        [cell(value, "R") if isinstance(value, (float, Decimal)) else cell(value) for value in row]
        for row in rows
    ]


def _wanted(query: LogicQuery, engine: Engine) -> list[tuple[Any, ...]] | None:
    if query.digest is None:
        return None
    rows = engine.rows_of(query.text)
    if digest_of(rows, query) != query.digest:
        raise NotPlayed("the engine has another digest")
    return rows


def session() -> Any:
    """A small session of Spark."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def main() -> None:
    """Plays files, and prints the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dialect", choices=["sqlite", "duckdb", "risingwave"])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="the most queries of each file")
    parser.add_argument("--streams", type=int, default=4, help="one in so many queries is a stream, too")
    parser.add_argument("--differing", type=Path, help="where queries that differ are written")
    parser.add_argument("--spark", action="store_true", help="ask Spark for what is not equal")
    given = parser.parse_args()
    logging.getLogger("penstock").setLevel(logging.ERROR)
    spark = session() if given.spark else None
    report = Report()
    files = [
        file for path in given.paths for file in ([path] if path.is_file() else sorted(path.rglob("*.*t*")))
    ]
    for file in files:
        if file.suffix in (".test", ".slt", ".part"):
            play_file(file, given.dialect, report, given.limit, given.streams, spark)
            print(file.name, dict(report.verdicts), file=sys.stderr, flush=True)
            if given.differing:
                given.differing.write_text("\n".join(map(json.dumps, report.others)))
    for verdict, count in report.verdicts.most_common():
        print(f"{count:6} {verdict}")
    for (verdict, reason), count in report.reasons.most_common():
        print(f"{count:6} {verdict}: {reason}")


if __name__ == "__main__":
    main()
