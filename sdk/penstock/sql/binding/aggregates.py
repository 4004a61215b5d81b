"""Aggregates in a query: what belongs to a call of one, and the call of the plan that it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from penstock.scalars.tree import Scalar
from penstock.sql.aggregates.function import Asked
from penstock.sql.aggregates.functions import AGGREGATES, REFUSED
from penstock.sql.binding.orders import order_of
from penstock.sql.binding.statement import Statement
from penstock.sql.plan.relations import AggregateCall


class RowBinder(Protocol):
    """The part of the binder of expressions that aggregates use: it binds expressions of the rows that are grouped."""

    def scalar(self, node: object) -> Scalar:
        """Returns the value of an expression."""

    def condition(self, node: exp.Expression, clause: str) -> Scalar:
        """Returns a condition."""


@dataclass(frozen=True)
class CalledAggregate:
    """A call of an aggregate with the clauses after it, as parts of the tree.

    Attributes:
        node: The call itself.
        arguments: Its arguments.
        distinct: Whether DISTINCT precedes them.
        orders: What ORDER BY names, inside the parentheses or in WITHIN GROUP.
        condition: The condition of FILTER, or None.
        nulls: ``IGNORE NULLS``, ``RESPECT NULLS``, or empty.
    """

    node: exp.Expression
    arguments: tuple[Any, ...]
    distinct: bool = False
    orders: tuple[Any, ...] = ()
    condition: exp.Expression | None = None
    nulls: str = ""

    @property
    def name(self) -> str:
        """The name of the aggregate."""
        return str(self.node.name.upper())


def called_aggregate(statement: Statement, node: object) -> CalledAggregate | None:
    """Returns a call of an aggregate with the clauses after it; None if a part of the tree is something else."""
    match node:
        case exp.Filter():
            found = called_aggregate(statement, node.this)
            return None if found is None else replace(found, condition=node.expression.this)
        case exp.WithinGroup():
            found = called_aggregate(statement, node.this)
            return None if found is None else replace(found, orders=tuple(node.expression.expressions))
        case exp.IgnoreNulls() | exp.RespectNulls():
            nulls = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
            found = called_aggregate(statement, node.this)
            return None if found is None else replace(found, nulls=nulls)
    if not statement.is_aggregate(node):
        return None
    assert isinstance(node, exp.Expression)
    *first, last = node.expressions or [None]
    orders: tuple[Any, ...] = ()
    if isinstance(last, exp.Order):
        orders, last = tuple(last.expressions), last.this
    arguments = [*first, *([] if last is None else [last])]
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    return CalledAggregate(node, tuple(arguments), distinct, orders)


def bind_aggregate(statement: Statement, called: CalledAggregate, rows: RowBinder) -> AggregateCall:
    """Returns the call of the plan for a call in the query.

    Raises:
        SqlError: It is refused, or its arguments do not fit.
    """
    node, name = called.node, called.name
    refuse = statement.at(node)
    condition = None if called.condition is None else rows.condition(called.condition, "FILTER")
    own = statement.tables.functions.get(name)
    if own is not None:
        if len(called.arguments) != 1 or called.orders:
            refuse(f"{name} takes one argument, not {len(called.arguments)}", f"write {name}(points)")
        value = rows.scalar(called.arguments[0])
        return AggregateCall(name.lower(), value, own.type, called.distinct, condition, own.fn)
    if name in REFUSED:
        refuse(f"the aggregate {name} is not supported", REFUSED[name])
    arguments = _without_star(called, refuse)
    values = tuple(map(rows.scalar, arguments))
    orders = tuple(order_of(each, rows.scalar(each.this)) for each in called.orders)
    asked = Asked(values, called.distinct, condition, orders, called.nulls)
    found: AggregateCall = statement.typed(node, lambda: AGGREGATES[name](asked))
    return found


def refuse_aggregates_inside(statement: Statement, called: CalledAggregate) -> None:
    """Refuses an aggregate of aggregates: rows are grouped once."""
    for each in (*called.arguments, *called.orders, called.condition):
        if inner := statement.aggregate_in(each):
            what = f"the aggregate {inner.name.upper()} is inside another one"
            statement.refuse(inner, what, "aggregate in a subquery")


def _without_star(called: CalledAggregate, refuse: Callable[..., Any]) -> tuple[Any, ...]:
    """Returns the arguments, which are none for ``COUNT(*)``."""
    stars = [
        each
        for each in called.arguments
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star))
    ]
    if not stars:
        if called.name == "COUNT" and called.distinct and not called.arguments:
            refuse("COUNT(DISTINCT) names no values", "write COUNT(DISTINCT points)")
        return called.arguments
    if called.name != "COUNT" or len(called.arguments) > 1 or not isinstance(stars[0], exp.Star):
        refuse(f"{called.name} does not take *", f"write {called.name}(points)")
    if called.distinct:
        refuse("COUNT(DISTINCT *) is not supported", "count the rows of SELECT DISTINCT *")
    return ()
