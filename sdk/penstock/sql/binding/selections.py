"""SELECT: the columns of a query, and the order in which LIMIT takes its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import STRING
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.orders import order_of
from penstock.sql.binding.scopes import Grouping, Scope
from penstock.sql.binding.statement import Statement, text_of
from penstock.sql.plan.relations import Order

SYSTEM = {"undo": "Undo", "emittime": "EmitTime", "emittiming": "EmitTiming", "emitindex": "EmitIndex"}
Item = tuple[str, Scalar | str]
"""A selected column: its name and its value, or the name of a column of the system."""
ShownColumns = list[tuple[str, int | str]]
"""The columns of a result: names, and places in a row or names of columns of the system."""


@dataclass(frozen=True)
class SelectionBinder:
    """Binds the columns of a SELECT.

    Attributes:
        statement: The query.
        expressions: Binds expressions of its rows, or of its groups.
        scope: The rows, or the result of their grouping.
        generated: The columns that generators make, by the ids of the parts of the tree.
    """

    statement: Statement
    expressions: ExpressionBinder
    scope: Scope | Grouping
    generated: Mapping[int, list[tuple[str, Scalar]]] = field(default_factory=dict)

    def items(self, tree: exp.Expression, takes_system: bool) -> list[Item]:
        """Returns the selected columns; without `takes_system`, columns of the system are refused."""
        items: list[Item] = []
        for node in tree.expressions:
            if id(node) in self.generated:
                items += self.generated[id(node)]
                continue
            inner = node.unalias()
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                items += self._star(inner)
                continue
            alias = node.alias if isinstance(node, exp.Alias) else ""
            if system := system_column(inner):
                if not takes_system:
                    what = f"{system} belongs to the outermost SELECT STREAM"
                    self.statement.refuse(inner, what, "select it there")
                items.append((alias or system.removeprefix("Sys."), system.removeprefix("Sys.")))
                continue
            name = alias or (inner.name if isinstance(inner, exp.Column) else f"column_{len(items) + 1}")
            items.append((name, self.expressions.column(inner)))
        if not items:
            self.statement.refuse(tree, "SELECT names no column", "write SELECT * or the names of columns")
        return items

    def _star(self, node: exp.Expression) -> list[Item]:
        scope = self.scope.inner if isinstance(self.scope, Grouping) else self.scope
        star = node.this if isinstance(node, exp.Column) else node
        qualifier = text_of(node.args.get("table")) or None if isinstance(node, exp.Column) else None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        found = list(scope.star(qualifier))
        if qualifier is not None and not found:
            if scope.has(None, qualifier):
                return self._fields(node, scope, qualifier, left_out)
            known = [str(each.qualifier) for each in scope.visible]
            what = f"there is no table {qualifier!r} here"
            self.statement.refuse(node, what, hint_at_name(qualifier, known))
        shown = [(each.name, each.scalar) for each in found if each.name.lower() not in left_out]
        return [(name, self._key(node, name, scalar)) for name, scalar in shown]

    def _key(self, node: exp.Expression, name: str, scalar: Scalar) -> Scalar:
        """The value of a column that ``*`` shows; in a query that groups, it is a key."""
        if not isinstance(self.scope, Grouping):
            return scalar
        key = self.scope.key(scalar)
        if key is None:
            what = f"* has the column {name!r}, which is neither a key of the grouping nor aggregated"
            self.statement.refuse(node, what, "name the keys and the aggregates")
        return key

    def _fields(self, node: exp.Expression, scope: Scope, name: str, left_out: set[str]) -> list[Item]:
        """The fields of a column that is a struct, each as a column."""
        held = self._key(node, name, scope.find(None, name, self.statement.at(node)))
        if held.type.name != "STRUCT":
            what = f"{name!r} is {held.type.or_null()}, and not a table or a STRUCT"
            self.statement.refuse(node, what, "name the columns")
        text = STRING.or_null(False)
        return [
            (field, self.statement.call(node, "FIELD", [held, Literal(field, text)]))
            for field, _ in held.type.fields
            if field.lower() not in left_out
        ]

    def order_scalar(self, node: exp.Expression, items: Sequence[Item]) -> Scalar:
        """Returns what ORDER BY orders rows by: a selected column, or a value."""
        found = self._order_scalar(node, items)
        if found.type.has("MAP"):
            self.statement.refuse(node, "maps have no order", "order by SORT_ARRAY(MAP_ENTRIES(map))")
        return found

    def _order_scalar(self, node: exp.Expression, items: Sequence[Item]) -> Scalar:
        selected = [(name, value) for name, value in items if not isinstance(value, str)]
        if isinstance(node, exp.Literal) and not node.is_string:
            return find_ordinal(self.statement, node, [value for _, value in selected])
        if isinstance(node, exp.Column) and not node.table:
            for name, value in selected:
                if name.lower() == node.name.lower():
                    return value
        return self.expressions.scalar(node)


def find_ordinal(statement: Statement, node: exp.Expression, values: Sequence[Scalar]) -> Scalar:
    """Returns the selected column that ORDER BY names by its number."""
    at = int(node.name) if node.name.isdigit() else 0
    if not 1 <= at <= len(values):
        what = f"ORDER BY {node.name} names no column of the result"
        statement.refuse(node, what, f"there are {len(values)}")
    return values[at - 1]


def orders_of(order: exp.Expression | None, scalar_of: Callable[[Any], Scalar]) -> tuple[Order, ...]:
    """Returns the orders of ORDER BY; none without it."""
    if order is None:
        return ()
    return tuple(order_of(each, scalar_of(each.this)) for each in order.expressions)


def aliases_of(tree: exp.Expression) -> Mapping[str, Any]:
    """Returns the selected expressions by their names behind AS, in small letters."""
    return {each.alias.lower(): each.this for each in tree.expressions if isinstance(each, exp.Alias)}


def system_column(node: exp.Expression) -> str | None:
    """Returns the column of the system that a selected expression is; None if it is another."""
    if isinstance(node, exp.Column) and node.table.lower() == "sys" and node.name.lower() in SYSTEM:
        return f"Sys.{SYSTEM[node.name.lower()]}"
    if isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "CURRENT_TIMESTAMP"
    ):
        return "Sys.EmitTime"
    return None
