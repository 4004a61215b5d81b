"""Computes a query in one line, and returns its rows."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from typing_extensions import TypeVar

from penstock.construction.pipeline import Pipeline
from penstock.error import refusal
from penstock.io.each_batch import WriteToMemory
from penstock.sql.catalog import Catalog
from penstock.sql.transform import SqlTransform
from penstock.tracebacks import shortens_tracebacks

RowT = TypeVar("RowT", default=Any)


@shortens_tracebacks
def query(
    text: str,
    /,
    catalog: Catalog | None = None,
    *,
    output: type[RowT] | None = None,
    **tables: object,
) -> list[RowT]:
    """Computes a query in a batch, and returns its rows (penstock's own).

    Args:
        text: The query.
        catalog: Tables, views and functions that it may use.
        output: A NamedTuple or a dataclass whose instances the rows become; by default they are Rows.
        tables: Further tables by their names; see `Catalog.create_table`.

    Returns:
        The rows, in the order of ``ORDER BY``.

    Raises:
        SqlError: The query is wrong; the message shows where.
        ValueError: A table cannot be read, or the rows are ordered by a value that is not selected.

    Example: ``beam.query("SELECT team, SUM(points) AS total FROM goals GROUP BY team", goals="goals.csv")``.
    """
    known = Catalog()
    if catalog is not None:
        known.tables, known.views, known.functions = dict(catalog.tables), catalog.views, catalog.functions
    for name, source in tables.items():
        known.create_table(name, source)
    rows: list[RowT] = []
    pipeline = Pipeline(mode="batch")
    transform = SqlTransform(text, known, output=output)
    _ = pipeline | "Query" >> transform | "Keep" >> WriteToMemory(rows)
    if transform.order is None:
        hint = "select what orders them, under its own name"
        raise refusal(
            ValueError, "the rows are ordered by something that is not among their columns", hint=hint
        )
    pipeline.run().wait_until_finish()
    return in_order(rows, transform.order)


def in_order(rows: list[RowT], order: tuple[tuple[str, bool, bool], ...]) -> list[RowT]:
    """Returns rows in the order of a query: the name of each column, whether it descends, and nulls come first."""
    for name, descending, nulls_first in reversed(order):
        value = attrgetter(name)
        some = sorted((row for row in rows if value(row) is not None), key=value, reverse=descending)
        none = [row for row in rows if value(row) is None]
        rows = none + some if nulls_first else some + none
    return rows
