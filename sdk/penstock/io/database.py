"""Writing rows to a table of a database, exactly once, and keeping a table by key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from penstock.base.where import here
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.columnar import field_names, type_of_records
from penstock.io.primitive import SinkTransform
from penstock.transforms.field_checks import check_field_names
from penstock.transforms.upserts import Upsert
from penstock.utils.windowed_value import ValueKind

__all__ = ["DatabaseSink", "WriteToDatabase"]

Url: TypeAlias = str | Callable[[], str]

_MODES = ("insert", "upsert")
_RESERVED = "penstock_"
_URL = re.compile(r"(?P<driver>[A-Za-z][\w+]*)://(?P<rest>.*)", re.DOTALL)
_SCHEMA_HINT = "schema=Score with a NamedTuple Score that has the columns of the table"


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
        return f"table {self.table} of {shown_url(self.url)}"


def shown_url(url: Any) -> str:
    """What an error may show of a URL: without user, password and options.

    >>> shown_url("postgresql://amy:secret@db.example:5432/sales?sslpassword=x")
    'postgresql://db.example:5432/sales'
    >>> shown_url("postgresql://amy:p@ss?word@db.example:5432/sales")
    'postgresql://...'
    >>> shown_url(lambda: "sqlite:///scores.db")
    'a database'
    """
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        return "a database"
    rest = found["rest"]
    place, _, options = rest.partition("?")
    if not rest.startswith("/"):
        place = place.rpartition("@")[2]
    # Nobody can tell which part of such a text is the password.
    is_clear = "@" not in options and (rest.startswith("/") or rest.count("@") < 2)
    return f"{found['driver']}://{place if is_clear else '...'}"


class WriteToDatabase(SinkTransform):
    """Writes records to a table of a database (penstock's own; Beam's ``WriteToJdbc`` needs Java); no output.

    Each record is there exactly once, whatever fails. A batch writes all of its rows in one transaction, or none. A
    stream writes each micro-batch in one transaction, which also notes its number in the table ``penstock_commits``.

    The elements are rows, NamedTuples, dataclasses or dicts; or, with ``mode="upsert"``, what `Upserts` or `Changelog`
    gives. An `Upsert` fills the columns of `key` with its key: a tuple fills several, and a window its start and end.
    Its value fills the others: a record by name, anything else the only one that is left. Of several changes of a key
    in one micro-batch the last one counts.

    PostgreSQL is written by the tasks, with ``COPY``; the rows for other databases pass through the program. SQLAlchemy
    knows the database: ``pip install 'penstock[postgres]'`` for PostgreSQL, ``'penstock[databases]'`` for others.

    Args:
        url: The URL of the database, as in SQLAlchemy, or a function that returns it, which is called whenever the
            program connects. A function keeps the password out of the program's text. No error shows a password.
        table: The name of the table, ``"scores"`` or ``"schema.scores"``.
        mode: ``"insert"`` adds rows. ``"upsert"`` replaces the row with the same key, or adds one.
        key: The column, or the columns, that tell rows apart; needed for ``"upsert"``, where the table must have a
            primary key or a unique index over exactly these columns.
        create: Whether to create the table if there is none, with `key` as its primary key.
        schema: The columns: a type with named fields, or a Spark schema, as an object or as text. By default the type
            of the elements, which tells nothing for `Upsert`.

    Raises:
        ValueError: The mode is unknown; ``"upsert"`` has no key; the columns are unknown. Before the run starts: there
            is no such table, it lacks a column, or a type does not fit.
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
        schema: Any = None,
    ) -> None:
        columns = (key,) if isinstance(key, str) else tuple(key)
        _check_url(url)
        _check_table(table)
        if mode not in _MODES:
            raise refusal(
                ValueError,
                f"{mode!r} is not a mode of WriteToDatabase",
                where=here(),
                hint="use insert or upsert",
            )
        if mode == "upsert" and not columns:
            hint = 'pass key=("team",), the columns of the primary key'
            raise refusal(ValueError, "an upsert needs the key of the table", where=here(), hint=hint)
        if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
            what = f"key must be names of different columns, but is {key!r}"
            raise refusal(TypeError, what, where=here(), hint='pass key=("team", "day")')
        if not isinstance(create, bool):
            what = f"create must be True or False, but is {create!r}"
            raise refusal(TypeError, what, where=here(), hint="pass create=True to create a missing table")
        super().__init__(DatabaseSink(url, table, mode, columns, create, schema))

    def expand(self, pcoll: Any) -> PCollection[Any]:
        element_type = getattr(pcoll, "element_type", None)
        elements, record_type = _elements_of(element_type)
        if elements != "rows" and self.sink.mode != "upsert":
            what = "what Upserts and Changelog give cannot be inserted: it replaces and deletes rows"
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
        result: PCollection[Any] = super().expand(pcoll)
        return result

    def _check_names(self, names: tuple[str, ...] | None, record_type: Any) -> None:
        if self.sink.schema is None:
            check_field_names(self.sink.key, record_type, self._where())
        for name in names or ():
            if name.startswith(_RESERVED):
                what = f"the name of the field {name} begins with {_RESERVED}, which is for columns of penstock's own"
                raise refusal(ValueError, what, where=self._where(), hint="give the field another name")


def _elements_of(element_type: Any) -> tuple[str, Any]:
    """What the elements are, and the type of the rows in them."""
    if element_type is Upsert:
        return "upserts", None
    parts = getattr(element_type, "tuple_types", None)
    if parts is not None and len(parts) == 2 and parts[0] is ValueKind:
        return "changes", parts[1]
    return "rows", element_type


def _check_url(url: Any) -> None:
    hint = 'pass a URL such as "postgresql://user@host/database", or a function that returns one'
    if not isinstance(url, str) and not callable(url):
        # Its repr may show a password.
        what = f"url must be a text or a function, but is a {type(url).__name__}"
        raise refusal(TypeError, what, where=here(), hint=hint)
    if isinstance(url, str) and _URL.match(url) is None:
        raise refusal(ValueError, "the url of the database has no scheme", where=here(), hint=hint)


def _check_table(table: Any) -> None:
    hint = 'pass a name such as "scores" or "schema.scores"'
    if not isinstance(table, str):
        raise refusal(TypeError, f"table must be a text, but is {table!r}", where=here(), hint=hint)
    if not all(table.split(".")) or table.count(".") > 1 or "\0" in table:
        raise refusal(ValueError, f"{table!r} is not the name of a table", where=here(), hint=hint)
