"""Tables of databases: rows are read in parts and written exactly once, and tables are updated by key."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from penstock.checks.whole_numbers import check_whole_number
from penstock.construction.pvalue import PCollection
from penstock.error import noun_for, refusal
from penstock.graph import Sink
from penstock.io.formats.record_types import field_names, type_of_records
from penstock.io.sink_transforms import SinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable
from penstock.relations.upserts import Upsert
from penstock.transforms.elements.field_checks import check_field_names
from penstock.typehints.typehints import TupleConstraint
from penstock.utils.windowed_value import ValueKind

__all__ = ["DatabaseSink", "DatabaseSource", "ReadFromDatabase", "WriteToDatabase"]

Url: TypeAlias = str | Callable[[], str]

_MODES = ("insert", "upsert")
_RESERVED = "penstock_"
_URL = re.compile(r"(?P<driver>[A-Za-z][\w+]*)://(?P<rest>.*)", re.DOTALL)
_SCHEMA_HINT = "schema=Score with a NamedTuple Score that has the columns of the table"


@dataclass(frozen=True)
class DatabaseSource(Streamable):
    """The rows of a table or a query; see `ReadFromDatabase`.

    >>> DatabaseSource("postgresql://amy:secret@db.example/sales", "scores").describe()
    'table scores of postgresql://db.example/sales'
    """

    # It may contain a password, so no text shows it.
    url: Any = field(repr=False)
    table: str | None = None
    query: str | None = None
    columns: tuple[str, ...] | None = None
    partition_column: str | None = None
    num_partitions: int | None = None
    lower_bound: Any = None
    upper_bound: Any = None
    predicates: tuple[str, ...] = ()
    fetch_size: int = 10_000

    has_fields = True
    reads_files = False

    def describe(self) -> str:
        return f"{self.what} of {redact_url(self.url)}"

    @property
    def what(self) -> str:
        """Names what is read; the text of a query may have values that must stay secret."""
        return "a query" if self.table is None else f"table {self.table}"

    def known_fields(self) -> tuple[str, ...] | None:
        return self.columns

    def why_no_stream(self) -> tuple[str, str] | None:
        what = "a table cannot be read as a stream: reading it again would miss rows that are committed late"
        hint = "read its changes: with ReadChangesFromPostgres, or from a topic of a tool for change data capture"
        return what, hint


@dataclass(frozen=True)
class DatabaseSink(Sink):
    """A table of a database; see `WriteToDatabase`.

    >>> DatabaseSink("postgresql://amy:secret@db.example/sales", "scores")
    DatabaseSink(table='scores', mode='insert', key=(), create=False, schema=None, element_type=None, elements='rows')
    >>> DatabaseSink("postgresql://amy:secret@db.example/sales", "scores").describe()
    'table scores of postgresql://db.example/sales'
    """

    # It may contain a password, so no text shows it.
    url: Any = field(repr=False)
    table: str
    mode: str = "insert"
    key: tuple[str, ...] = ()
    create: bool = False
    schema: Any = None
    element_type: Any = None
    elements: str = "rows"  # Or ``"upserts"``, or ``"changes"``: pairs of a `ValueKind` and a row.

    def describe(self) -> str:
        return f"table {self.table} of {redact_url(self.url)}"


def redact_url(url: object) -> str:
    """Returns what an error may show of a URL: without user, password and options.

    >>> redact_url("postgresql://amy:secret@db.example:5432/sales?sslpassword=x")
    'postgresql://db.example:5432/sales'
    >>> redact_url("postgresql://amy:p@ss?word@db.example:5432/sales")
    'postgresql://...'
    >>> redact_url(lambda: "sqlite:///scores.db")
    'a database'
    """
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        return "a database"
    rest = found["rest"]
    place, _, options = rest.partition("?")
    if not rest.startswith("/"):
        place = place.rpartition("@")[2]
    # It is unknown which part of such a text is the password.
    is_clear = "@" not in options and (rest.startswith("/") or rest.count("@") < 2)
    return f"{found['driver']}://{place if is_clear else '...'}"


class ReadFromDatabase(SourceTransform[Any]):
    """Reads the rows of a table or of a query (penstock's own; Beam's ``ReadFromJdbc`` needs Java).

    With `partition_column` or `predicates`, several tasks read at a time, and each reads its part of the rows. On
    PostgreSQL, all of them see one snapshot of the database. On other databases, each part is read at its own time: a
    row that moves between parts in the meantime may be missing, or be read twice. Leave both arguments out to read one
    snapshot.

    The elements are ``Row`` values. Times with a zone are in UTC, a uuid is a string, and JSON becomes Python values.
    An interval of PostgreSQL is a timedelta; intervals with months, and times that Python lacks, such as ``infinity``,
    are refused. Types are known from the columns of a table, and on PostgreSQL also from a query.

    Args:
        url: The URL of the database; see `WriteToDatabase`.
        table: The name of the table, ``"scores"`` or ``"schema.scores"``; alternatively, pass `query`.
        query: A ``SELECT``, which must not end with a semicolon.
        columns: The columns to read; None reads all.
        partition_column: A column of integers, dates or times, whose values divide the rows. Rows with
            null belong to the first part.
        num_partitions: The number of parts; by default, the number of tasks that run at a time.
        lower_bound: The smallest value of the column, to save the query that finds it; None asks the database. It only
            decides how the rows are divided: smaller values belong to the first part.
        upper_bound: The same for the largest value; larger ones belong to the last part.
        predicates: Instead of a column: a condition in SQL for each part, such as ``"team < 'm'"``. Rows that match
            none of them are not read, and rows that match several are read several times.
        fetch_size: The number of rows that a task fetches from the database at once.

    Raises:
        ValueError: An argument has an invalid value, or two do not fit together. Before the run starts: the table or a
            column does not exist.
        TypeError: An argument has the wrong type.

    >>> read = ReadFromDatabase("postgresql://amy:secret@db/sales", "scores", partition_column="id", num_partitions=8)
    >>> read.source.describe()
    'table scores of postgresql://db/sales'
    """

    source: DatabaseSource

    def __init__(
        self,
        url: Url,
        table: str | None = None,
        *,
        query: str | None = None,
        columns: list[str] | tuple[str, ...] | None = None,
        partition_column: str | None = None,
        num_partitions: int | None = None,
        lower_bound: object = None,
        upper_bound: object = None,
        predicates: list[str] | tuple[str, ...] = (),
        fetch_size: int = 10_000,
    ) -> None:
        check_database_url(url)
        if (table is None) == (query is None):
            hint = 'pass table="scores", or query="SELECT ..."'
            raise refusal(ValueError, "pass either a table or a query", hint=hint)
        if table is not None:
            check_table(table)
        elif not isinstance(query, str) or not query.strip() or query.rstrip().endswith(";"):
            what = "query must be a string with one SELECT, without a semicolon at its end"
            raise refusal(ValueError, what, hint='pass query="SELECT team, points FROM scores"')
        _check_names_in("columns", columns)
        _check_names_in("predicates", predicates)
        for name, number in (("num_partitions", num_partitions), ("fetch_size", fetch_size)):
            if number is None:
                continue
            check_whole_number(name, number)
            if number < 1:
                raise refusal(ValueError, f"{name} is {number}", hint="use one or more")
        _check_partitions(partition_column, num_partitions, (lower_bound, upper_bound), predicates)
        super().__init__(
            DatabaseSource(
                url,
                table,
                query,
                None if columns is None else tuple(columns),
                partition_column,
                num_partitions,
                lower_bound,
                upper_bound,
                tuple(predicates),
                fetch_size,
            )
        )


class WriteToDatabase(SinkTransform):
    """Writes records to a table of a database (penstock's own; Beam's ``WriteToJdbc`` needs Java); no output.

    Each record is written exactly once, even after failures. A batch writes all of its rows in one transaction, or
    none. A stream writes each micro-batch in one transaction, which also records its number in the table
    ``penstock_commits``.

    The elements are rows, NamedTuples, dataclasses or dicts; or, with ``mode="upsert"``, the changes that `Upserts` or
    `Changelog` emits. An `Upsert` fills the columns of `key` with its key: a tuple fills several columns, and a window
    two, with its start and its end. Its value fills the other columns: a record fills them by name, and any other value
    fills the only remaining column. If a key has several changes in one micro-batch, the last one counts.

    The tasks write to PostgreSQL, with ``COPY``; the rows for other databases pass through the program. SQLAlchemy
    connects to the database: ``pip install 'penstock[postgres]'`` for PostgreSQL, ``'penstock[databases]'`` for others.

    Args:
        url: The URL of the database, as in SQLAlchemy, or a function that returns it, which is called whenever the
            program connects. A function keeps the password out of the program's source. Errors never show a password.
        table: The name of the table, ``"scores"`` or ``"schema.scores"``.
        mode: ``"insert"`` adds rows. ``"upsert"`` replaces the row with the same key, or adds one.
        key: The column, or the columns, that distinguish rows; needed for ``"upsert"``, where the table must have a
            primary key or a unique index over exactly these columns.
        create: Whether to create a missing table, with `key` as its primary key.
        schema: The columns: a type with named fields, or a Spark schema, as an object or as a string. By default the
            type of the elements, which does not show the columns of an `Upsert`.

    Raises:
        ValueError: The mode is unknown; ``"upsert"`` has no key; the columns are unknown. Before the run starts: the
            table does not exist, it lacks a column, or a type does not fit.
        TypeError: An argument has the wrong type.

    >>> write = WriteToDatabase("postgresql://amy:secret@db/sales", "totals", mode="upsert", key="team")
    >>> write.sink.describe()
    'table totals of postgresql://db/sales'
    """

    sink: DatabaseSink

    def __init__(
        self,
        url: Url,
        table: str,
        *,
        mode: str = "insert",
        key: str | tuple[str, ...] | list[str] = (),
        create: bool = False,
        schema: object = None,
    ) -> None:
        columns = (key,) if isinstance(key, str) else tuple(key)
        check_database_url(url)
        check_table(table)
        if mode not in _MODES:
            raise refusal(
                ValueError, f"{mode!r} is not a mode of WriteToDatabase", hint="use insert or upsert"
            )
        if mode == "upsert" and not columns:
            hint = 'pass key=("team",), the columns of the primary key'
            raise refusal(ValueError, "an upsert needs the key of the table", hint=hint)
        if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
            what = f"key must be names of different columns, but is {key!r}"
            raise refusal(TypeError, what, hint='pass key=("team", "day")')
        if not isinstance(create, bool):
            what = f"create must be True or False, but is {create!r}"
            raise refusal(TypeError, what, hint="pass create=True to create a missing table")
        super().__init__(DatabaseSink(url, table, mode, columns, create, schema))

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        element_type = pcoll.element_type
        elements, record_type = _elements_of(element_type)
        if elements != "rows" and self.sink.mode != "upsert":
            what = "the output of Upserts and Changelog cannot be inserted: it replaces and deletes rows"
            hint = 'pass mode="upsert" and key=(...)'
            raise refusal(ValueError, what, where=self._where(), hint=hint)
        if self.sink.schema is None and elements == "rows":
            what = "WriteToDatabase does not know the columns"
            record_type = type_of_records(self, pcoll, what, "schema='name string, points int'")
        elif self.sink.schema is None and field_names(record_type) is None:
            whose = "an Upsert" if elements == "upserts" else "a change"
            what = f"WriteToDatabase does not know the columns of {whose}"
            raise refusal(ValueError, what, where=self._where(), hint=f"pass {_SCHEMA_HINT}")
        names = field_names(record_type if self.sink.schema is None else self.sink.schema)
        self._check_names(names, record_type)
        self.sink = replace(self.sink, element_type=record_type, elements=elements)
        return super().expand(pcoll)

    def _check_names(self, names: tuple[str, ...] | None, record_type: object) -> None:
        if self.sink.schema is None:
            check_field_names(self.sink.key, record_type, self._where())
        for name in names or ():
            if name.startswith(_RESERVED):
                what = (
                    f"the name of the field {name} begins with {_RESERVED}, which is for penstock's columns"
                )
                raise refusal(ValueError, what, where=self._where(), hint="give the field another name")


def _check_names_in(argument: str, names: object) -> None:
    """Refuses everything but a list of strings, or None."""
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, list | tuple):
        what = f"{argument} must be a list of strings, but is {names!r}"
        raise refusal(TypeError, what, hint=f"pass {argument}=[...]")
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        what = f"{argument} must be different strings, but is {names!r}"
        raise refusal(TypeError, what, hint=f"pass {argument}=[...]")
    if argument == "columns" and not names:
        raise refusal(ValueError, "columns is empty", hint="leave it out to read all columns")


def _check_partitions(column: object, number: object, bounds: tuple[Any, Any], predicates: object) -> None:
    if column is not None and (not isinstance(column, str) or not column):
        what = f"partition_column must be the name of a column, but is {column!r}"
        raise refusal(TypeError, what, hint='pass partition_column="id"')
    if predicates and (column, number, *bounds) != (None, None, None, None):
        what = "predicates make the parts, and so do partition_column, num_partitions and bounds"
        raise refusal(ValueError, what, hint="pass either the one or the others")
    if column is None and (number, *bounds) != (None, None, None):
        what = "num_partitions, lower_bound and upper_bound need a column by which to divide the rows"
        raise refusal(ValueError, what, hint='pass partition_column="id"')
    for name, bound in zip(("lower_bound", "upper_bound"), bounds, strict=True):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | datetime.date)):
            what = f"{name} must be an integer, a date or a datetime, but is {noun_for(bound)}"
            raise refusal(TypeError, what, hint=f"pass {name}=1_000, or leave it out")
    if None in bounds:
        return
    try:
        is_wrong = bounds[0] > bounds[1]
    except TypeError:
        is_wrong = True
    if is_wrong or type(bounds[0]) is not type(bounds[1]):
        what = f"lower_bound and upper_bound must be in order and of one type, but are {bounds!r}"
        raise refusal(ValueError, what, hint="pass the smaller one as lower_bound")


def _elements_of(element_type: object) -> tuple[str, Any]:
    """Returns what the elements are, and the type of the rows in them."""
    if element_type is Upsert:
        return "upserts", None
    match element_type:
        case TupleConstraint(tuple_types=(kind, row)) if kind is ValueKind:
            return "changes", row
    return "rows", element_type


def check_database_url(url: object) -> None:
    hint = 'pass a URL such as "postgresql://user@host/database", or a function that returns one'
    if not isinstance(url, str) and not callable(url):
        # Its repr may show a password.
        what = f"url must be a string or a function, but is {noun_for(url)}"
        raise refusal(TypeError, what, hint=hint)
    if isinstance(url, str) and _URL.match(url) is None:
        raise refusal(ValueError, "the url of the database has no scheme", hint=hint)


def check_table(table: object) -> None:
    hint = 'pass a name such as "scores" or "schema.scores"'
    if not isinstance(table, str):
        raise refusal(TypeError, f"table must be a string, but is {table!r}", hint=hint)
    if not all(table.split(".")) or table.count(".") > 1 or "\0" in table:
        raise refusal(ValueError, f"{table!r} is not the name of a table", hint=hint)
