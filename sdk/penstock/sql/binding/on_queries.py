"""Conditions with queries in the ON of an outer join: each becomes a column of the side that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from penstock.scalars.tree import Column, Scalar
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.scopes import Scope, Visible, move_to_right
from penstock.sql.binding.statement import Statement
from penstock.sql.errors import SqlError
from penstock.sql.plan.conditions import conjoin
from penstock.sql.plan.relations import ColumnDef, Join, Project, Relation, columns_as_scalars


@dataclass(frozen=True)
class OnCondition:
    """A condition of ON, and the two sides that it is of.

    Attributes:
        left: The left rows, perhaps with more columns at their end.
        right: The right rows, also.
        condition: The condition, of both in one tuple.
        own: The columns of the sides themselves, of joined rows.
    """

    left: Relation
    right: Relation
    condition: Scalar | None
    own: tuple[Column, ...]


def bind_on_with_queries(
    statement: Statement,
    expressions: Callable[[Scope], ExpressionBinder],
    on: exp.Expression,
    left: Scope,
    right: Scope,
) -> OnCondition:
    """Returns a condition with queries, each of which reads columns of one side only.

    Args:
        statement: The text.
        expressions: Makes what binds expressions of the rows of a scope.
        on: The condition.
        left: The left rows.
        right: The right rows.

    Raises:
        SqlError: A query reads columns of both sides.
    """
    sides = Scope(left.relation, left.visible), Scope(right.relation, right.visible)
    found: tuple[list[Scalar], list[Scalar]] = [], []
    plain = []
    for part in _conjuncts(on):
        if part.find(exp.Query) is None:
            plain.append(part)
            continue
        _check_names(expressions, part, left, right)
        at = 0 if (condition := _condition(expressions, part, sides[0], right)) is not None else 1
        condition = condition or _condition(expressions, part, sides[1], left)
        if condition is None:
            what = "a condition with a subquery in ON of an outer join reads columns of both tables"
            statement.refuse(part, what, "join the query in FROM first, or write an inner JOIN")
        found[at].append(condition)
    lefts = _with_columns(left.relation, sides[0].relation, found[0])
    rights = _with_columns(right.relation, sides[1].relation, found[1])
    width = len(lefts.columns)
    own_columns = [len(side.relation.columns) for side in (left, right)]
    visible = [
        *left.visible,
        *(Visible(each.qualifier, each.name, move_to_right(each.scalar, width)) for each in right.visible),
    ]
    binder = expressions(Scope(left.relation, visible))
    conditions = [binder.condition(part, "ON") for part in plain]
    places = columns_as_scalars(Join(lefts, rights, "left", (), ()).columns)
    conditions += places[own_columns[0] : width]
    conditions += places[width + own_columns[1] :]
    own = (*places[: own_columns[0]], *places[width : width + own_columns[1]])
    return OnCondition(lefts, rights, conjoin(conditions), own)


def _conjuncts(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
        return _conjuncts(node.this)
    if not isinstance(node, exp.And):
        return [node]
    return [*_conjuncts(node.args["this"]), *_conjuncts(node.args["expression"])]


def _check_names(
    expressions: Callable[[Scope], ExpressionBinder], part: exp.Expression, left: Scope, right: Scope
) -> None:
    """Refuses a condition that has no meaning for the rows of both sides, such as an ambiguous name."""
    width = len(left.relation.columns)
    visible = [
        *left.visible,
        *(Visible(each.qualifier, each.name, move_to_right(each.scalar, width)) for each in right.visible),
    ]
    expressions(Scope(Join(left.relation, right.relation, "inner", (), ()), visible)).condition(part, "ON")


def _condition(
    expressions: Callable[[Scope], ExpressionBinder], part: exp.Expression, side: Scope, other: Scope
) -> Scalar | None:
    """The condition of the rows of one side, whose relation gets more columns; None if it reads the other side."""
    # A query around this one may have columns with the names of the other side.
    names = {(each.table or None, each.name) for each in part.find_all(exp.Column)}
    if any(other.has(*each) and not side.has(*each) and _is_free(part, each) for each in names):
        return None
    tried = Scope(side.relation, side.visible)
    try:
        condition = expressions(tried).condition(part, "ON")
    except SqlError:
        return None
    side.relation = tried.relation
    return condition


def _is_free(part: exp.Expression, name: tuple[str | None, str]) -> bool:
    """True if a name stands in a condition outside of its queries, so that it is not a name of their tables."""
    return any(
        (each.table or None, each.name) == name
        and each.find_ancestor(exp.Query) is part.find_ancestor(exp.Query)
        for each in part.find_all(exp.Column)
    )


def _with_columns(side: Relation, attached: Relation, conditions: list[Scalar]) -> Relation:
    """The rows of a side with conditions at their end, which are values of rows with the results of queries."""
    if not conditions:
        return side
    columns = (*side.columns, *(ColumnDef("on", each.type) for each in conditions))
    return Project(attached, (*columns_as_scalars(side.columns), *conditions), columns)
