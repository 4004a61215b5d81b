"""Queries inside of expressions: a value, EXISTS, and IN, each by what is joined to the rows around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from sqlglot import exp

from penstock.scalars import functions, resolving
from penstock.scalars.tree import Column, Literal, Scalar
from penstock.scalars.types import BIGINT, BOOLEAN
from penstock.sql.aggregates.extremes import SubqueryPlace
from penstock.sql.binding.joining import push_semijoin_down
from penstock.sql.binding.scopes import Env, Scope, make_outer, scope_of
from penstock.sql.binding.statement import Statement
from penstock.sql.binding.tuples import equal_parts
from penstock.sql.plan.decorrelation import (
    Correlation,
    NotDecorrelatedError,
    has_one_row,
    has_one_row_at_most,
)
from penstock.sql.plan.relations import (
    Aggregate,
    AggregateCall,
    ColumnDef,
    Emitted,
    Filter,
    Join,
    Project,
    Relation,
    columns_as_scalars,
    distinct,
)

Tree = exp.Expression | exp.Query
"""A part of the tree of a query; the parser has a class of its own for queries."""
_COUNT = AggregateCall("count", None, BIGINT.or_null(False))
_ZERO = Literal(0, BIGINT.or_null(False))


def find_single_column(statement: Statement, tree: Tree, inner: Scope) -> Scalar:
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


def fit_tuple(
    statement: Statement, node: exp.Expression, values: Sequence[Scalar], tree: Tree, inner: Scope
) -> tuple[tuple[Scalar, ...], Project]:
    """Returns values, and the columns of a query that they are compared with, each pair of one type.

    Args:
        statement: The text.
        node: The test.
        values: The values.
        tree: The query's text.
        inner: The query.
    """
    visible = [each.scalar for each in inner.star(None)]
    if len(values) == 1:
        visible = [find_single_column(statement, tree, inner)]
    if len(visible) != len(values):
        what = f"a tuple of {len(values)} values is compared with {len(visible)} columns of a query"
        statement.refuse(tree, what, "select as many")
    pairs = [fit_types(statement, node, mine, other) for mine, other in zip(values, visible, strict=True)]
    others = tuple(other for _, other in pairs)
    columns = tuple(ColumnDef("value" + str(at or ""), other.type) for at, other in enumerate(others))
    return tuple(mine for mine, _ in pairs), Project(inner.relation, others, columns)


def value_of(statement: Statement, node: exp.Expression, env: Env, inner: Scope) -> Scalar:
    """Returns the one value that a query has, or NULL."""
    value = find_single_column(statement, node, inner)
    if has_one_row_at_most(inner.relation):
        rows: Relation = Project(inner.relation, (value,), (ColumnDef("value", value.type),))
    else:
        place = SubqueryPlace(statement.place(node))
        call = AggregateCall("single", value, value.type.or_null(), parameters=(place,))
        rows = Aggregate(inner.relation, (), (call,), (ColumnDef("single", call.type),))
    return _attach(statement, node, env, rows, "inner" if has_one_row(rows) else "left")[0]


def has_rows(statement: Statement, node: exp.Expression, env: Env, inner: Scope) -> Scalar:
    """Returns whether a query has rows."""
    counted = Aggregate(inner.relation, (), (_COUNT,), (ColumnDef("count", _COUNT.type),))
    [count] = _attach(statement, node, env, counted, "inner")
    return statement.call(node, ">", [count, _ZERO])


def is_among(
    statement: Statement, node: exp.Expression, env: Env, inner: Scope, value: Scalar, tree: Tree
) -> Scalar:
    """Returns whether a value is among the rows of a query, with the three truth values of SQL.

    Args:
        statement: The text.
        node: The test.
        env: What names mean there.
        inner: The query.
        value: The value.
        tree: The query's text.
    """
    mine, other = fit_types(statement, node, value, find_single_column(statement, tree, inner))
    rows = Project(inner.relation, (other,), (ColumnDef("value", other.type),))
    column = Column(0, "value", other.type)
    correlation = Correlation(len(env.around))
    all_rows, with_values = _counts(statement, node, env, rows, (), correlation)
    matched = Project(
        distinct(rows),
        (column, Literal(True, BOOLEAN.or_null(False))),
        (ColumnDef("value", other.type), ColumnDef("found", BOOLEAN)),
    )
    _, found = _attach(statement, node, env, matched, "left", (mine,), (column,), correlation)
    call = functions.call
    is_found = call("IS TRUE", [found])
    return _three_valued(mine, all_rows, with_values, is_found, is_true=True)


def is_tuple_among(
    statement: Statement, node: exp.Expression, env: Env, inner: Scope, values: Sequence[Scalar], tree: Tree
) -> Scalar:
    """Returns whether a tuple is among the rows of a query, with the three truth values of SQL.

    Args:
        statement: The text.
        node: The test.
        env: What names mean there.
        inner: The query.
        values: The parts of the tuple.
        tree: The query's text.
    """
    mine, rows = fit_tuple(statement, node, values, tree, inner)
    outer = [make_outer(each, len(env.around)) for each in mine]
    equal = equal_parts(statement, node, outer, columns_as_scalars(rows.columns))
    call = functions.call

    def has(condition: Scalar) -> Scalar:
        return has_rows(statement, node, env, scope_of(Filter(rows, condition), None))

    true, false = (Literal(each, BOOLEAN.or_null(False)) for each in (True, False))
    unknown = has(call("IS NULL", [equal])) if equal.type.nullable else false
    return call("CASE", [has(call("IS TRUE", [equal])), true, unknown, Literal(None, BOOLEAN), false])


def is_comparable(
    statement: Statement,
    node: exp.Expression,
    env: Env,
    inner: Scope,
    value: Scalar,
    tree: Tree,
    is_all: bool,
    compare: Callable[[Scalar, Scalar], Scalar],
    bounds: Sequence[str],
) -> Scalar:
    """Returns whether a value compares so with one, or with all, of the rows of a query.

    Args:
        statement: The text.
        node: The test.
        env: What names mean there.
        inner: The query.
        value: The value.
        tree: The query's text.
        is_all: Whether all rows must compare so.
        compare: The comparison of the value with one of a row.
        bounds: The aggregates whose results decide: ``min``, ``max``, or both.
    """
    mine, other = fit_types(statement, node, value, find_single_column(statement, tree, inner))
    rows = Project(inner.relation, (other,), (ColumnDef("value", other.type),))
    column = Column(0, "value", other.type)
    calls = tuple(AggregateCall(each, column, other.type.or_null()) for each in bounds)
    all_rows, with_values, *found = _counts(statement, node, env, rows, calls, None)
    call = functions.call
    # If the value compares so with all, no result of a comparison with a bound is false; if with one, one is true.
    decides = "IS FALSE" if is_all else "IS TRUE"
    parts = [call(decides, [compare(mine, each)]) for each in found]
    decided = parts[0] if len(parts) == 1 else call("OR", parts)
    return _three_valued(mine, all_rows, with_values, decided, is_true=not is_all)


def _counts(
    statement: Statement,
    node: exp.Expression,
    env: Env,
    rows: Relation,
    calls: tuple[AggregateCall, ...],
    correlation: Correlation | None,
) -> tuple[Column, ...]:
    """The number of rows, that of rows without NULL, and aggregates."""
    column = columns_as_scalars(rows.columns)[0]
    count = AggregateCall("count", column, BIGINT.or_null(False))
    every = (_COUNT, count, *calls)
    columns = tuple(ColumnDef(f"{each.name}{at}", each.type) for at, each in enumerate(every))
    counted = Aggregate(rows, (), every, columns)
    return _attach(statement, node, env, counted, "inner", correlation=correlation)


def _three_valued(
    value: Scalar, all_rows: Scalar, with_values: Scalar, decided: Scalar, is_true: bool
) -> Scalar:
    """The result that one row decides; without one, NULL if a comparison was with NULL, else the opposite."""
    call = functions.call
    unknown = call("OR", [call("IS NULL", [value]), call("<>", [all_rows, with_values])])
    result, opposite = (Literal(each, BOOLEAN.or_null(False)) for each in (is_true, not is_true))
    empty = call("=", [all_rows, _ZERO])
    return call("CASE", [decided, result, empty, opposite, unknown, Literal(None, BOOLEAN), opposite])


def _attach(
    statement: Statement,
    node: exp.Expression,
    env: Env,
    rows: Relation,
    kind: str,
    left_keys: tuple[Scalar, ...] = (),
    right_keys: tuple[Scalar, ...] = (),
    correlation: Correlation | None = None,
) -> tuple[Column, ...]:
    with refused(statement, node):
        return env.attach(rows, kind, left_keys, right_keys, correlation)
    raise AssertionError


# Conditions that must be true


def filter_by_query(
    statement: Statement, test: QueryTest, env: Env, inner: Scope, values: Sequence[Scalar] | None
) -> None:
    """Filters the rows of a scope by EXISTS or IN, which joins answer: of a condition, NULL is as good as FALSE.

    Args:
        statement: The text.
        test: The test.
        env: What names mean there.
        inner: The query.
        values: What IN tests, a value or the parts of a tuple; None for EXISTS.
    """
    scope, correlation = env.scope, Correlation(len(env.around))
    assert isinstance(scope, Scope)
    kind = "left_anti" if test.is_negated else "semi"

    def join(
        rows: Relation,
        lefts: tuple[Scalar, ...] = (),
        rights: tuple[Scalar, ...] = (),
        condition: Scalar | None = None,
    ) -> None:
        with refused(statement, test.node):
            joined = correlation.join(scope.relation, rows, kind, lefts, rights, condition)
        scope.relation = push_semijoin_down(joined) if isinstance(joined, Join) else joined

    if values is None:
        join(inner.relation)
        return
    mine, rows = fit_tuple(statement, test.node, values, test.query, inner)
    others = columns_as_scalars(rows.columns)
    join(rows, mine, others)
    if not test.is_negated:
        return
    # It is neither true of a value if there is NULL among the rows, nor of NULL if there is a row.
    call = functions.call
    open_rows, is_open = _any_null(others), _any_null(mine)
    if len(mine) == 1:
        if open_rows is not None:
            join(Project(Filter(rows, open_rows), (), ()))
        if is_open is not None:
            join(Project(rows, (), ()), condition=is_open)
        return
    # Of tuples with NULL, other parts may differ, and then the NULL does not matter.
    width = len(scope.relation.columns)
    moved = tuple(replace(each, index=each.index + width) for each in others)
    may_equal = call("NOT", [call("IS FALSE", [equal_parts(statement, test.node, mine, moved)])])
    if open_rows is not None:
        join(Filter(rows, open_rows), condition=may_equal)
    if is_open is not None:
        join(rows, condition=call("AND", [is_open, may_equal]))


def _any_null(scalars: Sequence[Scalar]) -> Scalar | None:
    """Returns whether one of some values is NULL; None if none may be."""
    tests = [functions.call("IS NULL", [each]) for each in scalars if each.type.nullable]
    return reduce(lambda left, right: functions.call("OR", [left, right]), tests) if tests else None


class QueryTest(NamedTuple):
    """A condition that a join answers.

    Attributes:
        node: The condition.
        query: The query of EXISTS or IN.
        value: What IN tests; None for EXISTS.
        is_negated: Whether it must not be so.
    """

    node: exp.Expression
    query: Tree
    value: exp.Expression | None
    is_negated: bool


def query_test_of(node: object) -> QueryTest | None:
    """Returns the EXISTS or IN with a query that a condition is; None if it is another."""
    is_negated, inner = False, node
    while isinstance(inner, (exp.Not, exp.Paren)):
        is_negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    match inner:
        case exp.Exists():
            return QueryTest(inner, inner.this, None, is_negated)
        case exp.In() if inner.args.get("query") is not None:
            return QueryTest(inner, inner.args["query"], inner.this, is_negated)
        case exp.EQ(expression=exp.Any(this=query)):
            return QueryTest(inner, query, inner.this, is_negated)
        case exp.NEQ(expression=exp.All(this=query)):
            return QueryTest(inner, query, inner.this, not is_negated)
    return None


@contextmanager
def refused(statement: Statement, node: exp.Expression) -> Iterator[None]:
    """Refuses a query that no join can answer, at a part of the tree."""
    try:
        yield
    except NotDecorrelatedError as error:
        part, hint = error.part, "write a join with that query"
        if part == Emitted.__name__:
            part, hint = (
                "EMIT",
                "write EMIT at the end of that query, or in a view that reads none of its columns",
            )
        what = f"{part} in a subquery reads columns of the outer query, which is not supported"
        statement.refuse(node, what, hint)
