"""The names of window functions, and where they are refused."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.scalars.types import DOUBLE, INT
from penstock.sql.binding.statement import Statement

RANKS = {
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK"), INT.or_null(False)),
    **dict.fromkeys(("PERCENT_RANK", "CUME_DIST"), DOUBLE.or_null(False)),
}
VALUES = {
    "FIRST_VALUE": "first_value",
    "FIRST": "first_value",
    "LAST_VALUE": "last_value",
    "LAST": "last_value",
    "NTH_VALUE": "nth_value",
}
NEIGHBOURS = ("LAG", "LEAD")
FUNCTIONS = (*RANKS, "NTILE", *NEIGHBOURS, *VALUES)
"""The names of the functions that only have a meaning with OVER, in capitals."""


def refuse_over(statement: Statement, node: exp.Expression) -> NoReturn:
    """Refuses a window function where there is none."""
    nested = node.find_ancestor(exp.Window) is not None
    name = name_of(call_of(node))
    if nested:
        statement.refuse(node, f"{name}() OVER is inside another OVER", "compute the inner one in a subquery")
    what = f"{name}() OVER is in a place where rows are not complete yet"
    statement.refuse(node, what, "write it in SELECT or QUALIFY, or in a query inside this one")


def call_of(node: exp.Expression) -> exp.Expression:
    """Returns the call before an OVER, without what stands between."""
    call: exp.Expression = node.this
    while isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        call = call.this
    return call


def name_of(call: exp.Expression) -> str:
    """Returns the name of a called function, in capitals."""
    return (
        call.sql_name()
        if isinstance(call, exp.Func) and not isinstance(call, exp.Anonymous)
        else call.name.upper()
    )
