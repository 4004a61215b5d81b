"""Runs the cell of ``%%penstock_sql`` in a notebook: a query over its variables, or a job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from penstock.base.shown import Elements
from penstock.checks.similar_names import hint_at_name
from penstock.construction.pipeline import Pipeline
from penstock.construction.pvalue import PCollection
from penstock.error import refusal, split_hint, three_parts
from penstock.io.sparkio import from_dataframe
from penstock.sql.catalog import Catalog
from penstock.sql.errors import SqlError, call_text
from penstock.sql.jobs.options import read_flags
from penstock.sql.jobs.running import Job
from penstock.sql.names import names_read
from penstock.sql.query import in_order
from penstock.sql.statements.forms import Select
from penstock.sql.statements.parsing import parse_script
from penstock.sql.statements.words import Script
from penstock.sql.transform import SqlTransform

MAGIC = "penstock_sql"
"""The name of the magic."""


def run_cell(line: str, cell: str, names: dict[str, Any], called: str = "the cell") -> object:
    """Runs the cell of ``%%penstock_sql``.

    A single query reads the variables of the notebook as tables: PCollections, DataFrames of Spark or pandas, lists of
    rows, and paths of files. It is computed as a batch. Several statements, or one that is not a query, are a job, as
    for ``penstock sql``, which declares its tables.

    Args:
        line: The rest of the line of the magic: a variable for the rows of a query, and options of the pipeline.
        cell: The statements.
        names: The variables of the notebook.
        called: What errors call the cell.

    Returns:
        The rows of a query, which a notebook shows as a table; None for a job.

    Raises:
        SqlError: A statement is wrong; the message shows where.
        ValueError: An option is wrong, or a variable cannot be read.

    >>> run_cell("", "SELECT 1 AS n", {})  # doctest: +SKIP
    [Row(n=1)]
    """
    given = shlex.split(line)
    target = given.pop(0) if given and not given[0].startswith("-") else None
    if target is not None and not target.isidentifier():
        what = f"{target!r} is not the name of a variable"
        raise refusal(ValueError, what, hint=f"write %%{MAGIC} totals, and options behind it")
    options: Mapping[str, Any] = read_flags(given)
    # The line of the magic is the first one of the cell.
    text = f"\n{cell}"
    statements = parse_script(Script(text, called))
    rows: Elements[Any] | None = None
    match statements:
        case [Select(query)]:
            rows = compute_query(query.text, names, options, called)
    if rows is None and target is not None:
        what = f"%%{MAGIC} {target} keeps the rows of a query, and the cell is not a single query"
        raise refusal(ValueError, what, hint="leave the name out, or write one SELECT")
    if rows is None:
        Job(text, called, **options).run()
        return None
    if target is not None:
        names[target] = rows
    return rows


def compute_query(
    text: str, names: Mapping[str, object], options: Mapping[str, Any], called: str
) -> Elements[Any]:
    """Computes a query over variables, and returns its rows, in the order of ``ORDER BY``.

    It leaves the pipelines of PCollections as they were.
    """
    read = names_read(text, {})
    found = {
        name: value for name, value in names.items() if name.lower() in read and not name.startswith("_")
    }
    inputs = {name: value for name, value in found.items() if isinstance(value, PCollection)}
    catalog = Catalog()
    for name, value in found.items():
        if name not in inputs:
            catalog.create_table(name, from_dataframe(value) if _is_frame_of_spark(value) else value)
    transform = SqlTransform(text, catalog)
    pipeline = next(iter(inputs.values())).pipeline if inputs else Pipeline(**{"mode": "batch", **options})
    with pipeline.draft():
        try:
            result = (inputs or pipeline) | f"Query of {called}" >> transform
        except SqlError as error:
            raise _hint_at_variable(call_text(error, called), names) from None
        if transform.order is None:
            hint = "select what orders them, with a name of its own"
            raise refusal(
                ValueError, "the rows are ordered by something that is not among their columns", hint=hint
            )
        rows = result.collect()
    return Elements(in_order(rows, transform.order))


def _hint_at_variable(error: SqlError, names: Mapping[str, object]) -> SqlError:
    r"""Returns an error with a hint for notebooks if no variable is the table; any other error is returned unchanged.

    >>> said = "there is no table 'gols'\n  line 2, column 15 of cell In[3]\n  hint: pass the table"
    >>> error = SqlError(said, missing_table="gols")
    >>> print(_hint_at_variable(error, {"goals": []}))
    there is no table 'gols'
      line 2, column 15 of cell In[3]
      hint: did you mean 'goals'?
    """
    table = error.missing_table
    if table is None:
        return error
    variables = [name for name in names if not name.startswith("_")]
    otherwise = f"assign it in a cell before, such as {table} = '{table}.csv'"
    what, _ = split_hint(str(error))
    return SqlError(three_parts(what, hint=hint_at_name(table, variables, otherwise)), table)


def _is_frame_of_spark(value: object) -> bool:
    return hasattr(value, "isStreaming") and hasattr(value, "sparkSession")
