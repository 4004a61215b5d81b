"""Queries inside of expressions: a value, EXISTS, and IN, each by what is joined to the rows around it."""

from __future__ import annotations

from sqlglot import exp

from penstock.scalars import functions, resolving
from penstock.scalars.tree import Column, Literal, Scalar
from penstock.scalars.types import BIGINT, BOOLEAN
from penstock.sql.binding.scopes import Env, Grouping, Scope
from penstock.sql.binding.statement import Statement
from penstock.sql.plan.relations import Aggregate, AggregateCall, ColumnDef, Join, Project, distinct

_COUNT = AggregateCall("count", None, BIGINT.or_null(False))
_ZERO = Literal(0, BIGINT.or_null(False))


def find_single_column(statement: Statement, tree: exp.Expression, inner: Scope) -> Scalar:
    """Returns the only column of a query in an expression."""
    visible = list(inner.star(None))
    if len(visible) != 1:
        what = f"a subquery in an expression has {len(visible)} columns, not one"
        statement.refuse(tree, what, "select one")
    return visible[0].scalar


def fit_types(
    statement: Statement, node: exp.Expression, left: Scalar, right: Scalar
) -> tuple[Scalar, Scalar]:
    """Returns a value and a column of a query as values of one type."""
    common = resolving.common_type([left, right])
    if common is None:
        statement.refuse(
            node, f"{left} is {left.type}, and the query returns {right.type}", "CAST one of them"
        )
    return resolving.cast(left, common), resolving.cast(right, common)


def value_of(statement: Statement, node: exp.Expression, env: Env, inner: Scope) -> Scalar:
    """Returns the one value that a query has, or NULL."""
    value = find_single_column(statement, node, inner)
    call = AggregateCall("single", value, value.type.or_null())
    return env.joined(Aggregate(inner.relation, (), (call,), (ColumnDef("single", call.type),)))[0]


def has_rows(statement: Statement, node: exp.Expression, env: Env, inner: Scope) -> Scalar:
    """Returns whether a query has rows."""
    counted = Aggregate(inner.relation, (), (_COUNT,), (ColumnDef("count", _COUNT.type),))
    return statement.call(node, ">", [env.joined(counted)[0], _ZERO])


def is_among(statement: Statement, node: exp.Expression, env: Env, inner: Scope, value: Scalar) -> Scalar:
    """Returns whether a value is among the rows of a query, with the three truth values of SQL."""
    assert not isinstance(env.scope, Grouping)
    mine, other = fit_types(statement, node, value, find_single_column(statement, node.args["query"], inner))
    rows = Project(inner.relation, (other,), (ColumnDef("value", other.type),))
    counts = Aggregate(
        rows,
        (),
        (_COUNT, AggregateCall("count", Column(0, "value", other.type), BIGINT.or_null(False))),
        (ColumnDef("rows", BIGINT.or_null(False)), ColumnDef("values", BIGINT.or_null(False))),
    )
    all_rows, with_values = env.joined(counts)
    first = len(env.scope.relation.columns)
    matched = Project(
        distinct(rows),
        (Column(0, "value", other.type), Literal(True, BOOLEAN.or_null(False))),
        (ColumnDef("value", other.type), ColumnDef("found", BOOLEAN)),
    )
    env.scope.relation = Join(env.scope.relation, matched, "left", (mine,), (Column(0, "value", other.type),))
    found = Column(first + 1, "found", BOOLEAN)
    call = functions.call
    empty = call("=", [all_rows, _ZERO])
    unknown = call("OR", [call("IS NULL", [mine]), call("<>", [all_rows, with_values])])
    true, false = (Literal(each, BOOLEAN.or_null(False)) for each in (True, False))
    return call(
        "CASE", [call("IS TRUE", [found]), true, empty, false, unknown, Literal(None, BOOLEAN), false]
    )
