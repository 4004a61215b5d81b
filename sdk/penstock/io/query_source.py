"""Describes a query that the engine computes as a whole, over tables that it reads and rows of other steps."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import Source


@dataclass(frozen=True)
class RowsOfStep:
    """The rows of a step of the pipeline, as a table of a query.

    Attributes:
        element_type: The type of the rows, which has their columns.
    """

    element_type: object


@dataclass(frozen=True)
class QueryTable:
    """A table of a query.

    Attributes:
        name: Its name in the text of the query.
        rows: The source that has its rows; or `RowsOfStep`, for the next one of the inputs of the query's step.
    """

    name: str
    rows: object


@dataclass(frozen=True)
class QuerySource(Source):
    """The rows of a query over tables.

    Attributes:
        query: The query as the user wrote it.
        text: The query in Spark's SQL, over the tables and views.
        tables: The tables.
        views: The names of views, and their queries in Spark's SQL; each reads only tables, and views before it.
        schema: The columns of the result: a Spark schema, as an object or as a string.
        instead: The same query as its plan writes it, for an engine that finds other columns in the text, or none.
    """

    query: str
    text: str
    tables: tuple[QueryTable, ...]
    views: tuple[tuple[str, str], ...] = ()
    schema: object = None
    instead: QuerySource | None = None

    has_fields = True
    is_table = True

    def describe(self) -> str:
        """Returns one line for `explain`."""
        return f"sql, computed by Spark: {' '.join(self.query.split())}"


@dataclass(frozen=True)
class ResultColumns:
    """The result of a query as the engine describes it.

    Attributes:
        schema: Its columns, as in a `QuerySource`.
        element_type: The type of its rows.
        order: The names of the columns by which its rows are ordered, whether they descend, and whether NULL is first.
    """

    schema: object
    element_type: object
    order: tuple[tuple[str, bool, bool], ...] = ()


class QueryError(ValueError):
    """The reason why the engine refuses a query.

    Args:
        what: What is wrong, as a short clause.
        offset: The place of the wrong part in characters of the text; None if it is not known.
        view: The view in whose text it is; None for the query itself.
        hint: What the user can do about it.
        is_vague: Whether the engine's message does not say what is wrong.
    """

    def __init__(
        self,
        what: str,
        offset: int | None = None,
        view: str | None = None,
        hint: str = "",
        is_vague: bool = False,
    ) -> None:
        super().__init__(what)
        self.what, self.offset, self.view, self.hint, self.is_vague = what, offset, view, hint, is_vague
