"""The statements of a job, each as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class QueryText:
    """A query.

    Attributes:
        text: Its text, at its place: all before it in the file is blank.
        at: The offset at which it begins.
    """

    text: str
    at: int


@dataclass(frozen=True)
class TypedColumn:
    """A column that a statement declares.

    Attributes:
        name: Its name.
        type: Its type in Spark's SQL, such as ``DECIMAL(10, 2)``.
        nullable: Whether it may be NULL.
        at: Where it is declared.
        metadata: What it has of the record around the value, such as ``timestamp``; None for an ordinary column.
    """

    name: str
    type: str
    nullable: bool
    at: int
    metadata: str | None = None

    @property
    def text(self) -> str:
        """The type as declared."""
        more = "" if self.metadata is None else f" METADATA FROM '{self.metadata}'"
        return f"{self.type}{'' if self.nullable else ' NOT NULL'}{more}"


@dataclass(frozen=True)
class Watermark:
    """``WATERMARK FOR column AS column - INTERVAL …``.

    Attributes:
        column: The column with the event time.
        seconds: How far event times may be out of order.
        at: Where it is declared.
    """

    column: str
    seconds: float
    at: int


@dataclass(frozen=True)
class TableOption:
    """A setting of ``WITH (…)``.

    Attributes:
        name: Its name.
        value: Its value as text.
        at: Where the name stands.
        value_at: Where the value stands.
    """

    name: str
    value: str
    at: int
    value_at: int


@dataclass(frozen=True)
class CreateTable:
    """``CREATE TABLE``.

    Attributes:
        name: The name of the table.
        at: Where the name stands.
        columns: The columns; empty if they are found in the data, or in the query.
        watermark: When events happened; None if the statement does not say.
        key: The columns of the primary key.
        partition_by: The columns by whose values files are kept apart.
        options: The settings.
        query: What fills it; None without ``AS``.
        replace: Whether it takes the place of a table that has the name.
        if_absent: Whether it has no effect if there is such a table.
    """

    name: str
    at: int
    columns: tuple[TypedColumn, ...] = ()
    watermark: Watermark | None = None
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: tuple[TableOption, ...] = ()
    query: QueryText | None = None
    replace: bool = False
    if_absent: bool = False


@dataclass(frozen=True)
class CreateView:
    """``CREATE VIEW``.

    Attributes:
        name: The name of the view.
        at: Where the name stands.
        columns: Names for its columns; empty takes the names of the query.
        query: What it shows.
        replace: Whether it takes the place of a view that has the name.
        if_absent: Whether it has no effect if there is such a view.
        materialized: Whether it is computed once for all that read it.
    """

    name: str
    at: int
    columns: tuple[str, ...]
    query: QueryText
    replace: bool = False
    if_absent: bool = False
    materialized: bool = False


@dataclass(frozen=True)
class CreateFunction:
    """``CREATE FUNCTION name AS 'module:function'``.

    Attributes:
        name: The name in queries.
        at: Where the name stands.
        path: The module and the function.
        path_at: Where they stand.
        replace: Whether it takes the place of a function that has the name.
    """

    name: str
    at: int
    path: str
    path_at: int
    replace: bool = False


@dataclass(frozen=True)
class Drop:
    """``DROP TABLE``, ``DROP VIEW`` or ``DROP FUNCTION``.

    Attributes:
        kind: What is forgotten, in capitals.
        name: Its name.
        at: Where the name stands.
        if_there: Whether a missing one is allowed.
    """

    kind: str
    name: str
    at: int
    if_there: bool = False


@dataclass(frozen=True)
class SetOption:
    """``SET name = value``.

    Attributes:
        name: The name of an option of pipelines, or of Spark.
        value: Its value as text.
        at: Where the name stands.
        value_at: Where the value stands.
    """

    name: str
    value: str
    at: int
    value_at: int


@dataclass(frozen=True)
class Insert:
    """``INSERT INTO``.

    Attributes:
        table: The name of the table.
        at: Where the name stands.
        columns: The columns that the query fills, in its order; empty for all in the order of the table.
        query: What is inserted.
        overwrite: Whether it replaces the rows that are there.
        by_name: Whether columns are matched by their names.
    """

    table: str
    at: int
    columns: tuple[str, ...]
    query: QueryText
    overwrite: bool = False
    by_name: bool = False


@dataclass(frozen=True)
class Select:
    """A query whose result is printed.

    Attributes:
        query: The query.
    """

    query: QueryText


@dataclass(frozen=True)
class Explain:
    """``EXPLAIN``.

    Attributes:
        what: What is explained.
    """

    what: Select | Insert


@dataclass(frozen=True)
class Describe:
    """``DESCRIBE``.

    Attributes:
        name: The name of a table or a view.
        at: Where it stands.
    """

    name: str
    at: int


@dataclass(frozen=True)
class Show:
    """``SHOW``.

    Attributes:
        kind: ``TABLES``, ``VIEWS``, ``FUNCTIONS`` or ``CREATE TABLE``.
        name: The name of the table.
        at: Where the statement names what is shown.
    """

    kind: str
    name: str
    at: int


Statement: TypeAlias = (
    CreateTable | CreateView | CreateFunction | Drop | SetOption | Insert | Select | Explain | Describe | Show
)
