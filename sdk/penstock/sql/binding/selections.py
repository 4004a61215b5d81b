"""SELECT: the columns of a query, the numbers of its rows, and the order in which LIMIT takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from penstock.scalars.tree import Column, Scalar
from penstock.scalars.types import BIGINT
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.joining import push_filter_down
from penstock.sql.binding.scopes import Grouping, Scope, Visible, suggest
from penstock.sql.binding.statement import Statement, text_of, walk_own_parts
from penstock.sql.plan.relations import ColumnDef, Filter, Order, Relation, Top

SYSTEM = {"undo": "Undo", "emittime": "EmitTime", "emittiming": "EmitTiming", "emitindex": "EmitIndex"}
Item = tuple[str, Scalar | str | None]
"""A selected column: its name and its value; the name of a column of the system, or None for the row's number."""
ShownColumns = list[tuple[str, int | str]]
"""The columns of a result: names, and places in a row or names of columns of the system."""


@dataclass(frozen=True)
class Numbering:
    """A way to number rows: the keys of partitions, and the order in each."""

    keys: tuple[Scalar, ...]
    orders: tuple[Order, ...]

    def placed(self, place: Callable[[Scalar], Scalar]) -> Numbering:
        """Returns the same over the result of a grouping."""
        orders = tuple(replace(each, scalar=place(each.scalar)) for each in self.orders)
        return Numbering(tuple(map(place, self.keys)), orders)


@dataclass(frozen=True)
class SelectionBinder:
    """Binds the columns of a SELECT.

    Attributes:
        statement: The query.
        expressions: Binds expressions of its rows, or of its groups.
        scope: The rows, or the result of their grouping.
    """

    statement: Statement
    expressions: ExpressionBinder
    scope: Scope | Grouping

    def items(self, tree: exp.Expression, takes_system: bool) -> list[Item]:
        """Returns the selected columns; without `takes_system`, columns of the system are refused."""
        items: list[Item] = []
        for node in tree.expressions:
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
            is_number = isinstance(inner, exp.Window)
            items.append((name, None if is_number else self.expressions.column(inner)))
        if not items:
            self.statement.refuse(tree, "SELECT names no column", "write SELECT * or the names of columns")
        return items

    def _star(self, node: exp.Expression) -> list[Item]:
        if isinstance(self.scope, Grouping):
            self.statement.refuse(node, "* is in a query that groups", "name the keys and the aggregates")
        star = node.this if isinstance(node, exp.Column) else node
        qualifier = text_of(node.args.get("table")) or None if isinstance(node, exp.Column) else None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        found = list(self.scope.star(qualifier))
        if qualifier is not None and not found:
            known = [str(each.qualifier) for each in self.scope.visible]
            what = f"there is no table {qualifier!r} here"
            self.statement.refuse(node, what, suggest(qualifier, known))
        return [(each.name, each.scalar) for each in found if each.name.lower() not in left_out]

    def order_scalar(self, node: exp.Expression, items: Sequence[Item]) -> Scalar:
        """Returns what ORDER BY orders rows by: a selected column, or a value."""
        selected = [
            (name, value) for name, value in items if value is not None and not isinstance(value, str)
        ]
        if isinstance(node, exp.Literal) and not node.is_string:
            return find_ordinal(self.statement, node, [value for _, value in selected])
        if isinstance(node, exp.Column) and not node.table:
            for name, value in selected:
                if name.lower() == node.name.lower():
                    return value
        return self.expressions.scalar(node)

    def numbers(self, tree: exp.Expression) -> Any:
        """Returns the call of ROW_NUMBER() of a query; None if it has none."""
        found = [
            each
            for item in [*tree.expressions, tree.args.get("qualify")]
            if item
            for each in walk_own_parts(item)
            if isinstance(each, exp.Window)
        ]
        for each in found:
            name = each.this.name.upper() if isinstance(each.this, exp.Anonymous) else each.this.key.upper()
            if name != "ROW_NUMBER" or each.args.get("spec"):
                hint = "use ROW_NUMBER() OVER (...) with QUALIFY, or join with a grouped query"
                self.statement.refuse(each, f"{name}() OVER is not supported", hint)
        if len({each.sql() for each in found}) > 1:
            what = "a query has two kinds of ROW_NUMBER()"
            self.statement.refuse(found[1], what, "number the rows of a subquery")
        return found[0] if found else None

    def numbering(self, node: exp.Expression) -> Numbering:
        """Returns how a call of ROW_NUMBER() numbers rows."""
        keys = tuple(map(self.expressions.scalar, node.args.get("partition_by") or ()))
        return Numbering(keys, orders_of(node.args.get("order"), self.expressions.scalar))


def number_rows(
    relation: Relation,
    items: list[Item],
    numbering: Numbering,
    others: Sequence[Visible],
    qualify: Callable[[Scope, Scalar], Scalar] | None,
) -> tuple[Relation, list[Item]]:
    """Returns rows with their numbers, and the selected columns; of the rows, those that QUALIFY wants.

    Args:
        relation: The rows.
        items: The selected columns.
        numbering: How the rows are numbered.
        others: The names that QUALIFY may use besides the selected ones.
        qualify: Binds the condition of QUALIFY over a scope with a row's number; None without one.
    """
    number = Column(len(relation.columns), "row_number", BIGINT.or_null(False))
    columns = (*relation.columns, ColumnDef("row_number", number.type))
    top: Relation = Top(relation, numbering.keys, numbering.orders, None, 0, columns, numbered=True)
    shown: list[Item] = [(name, number if value is None else value) for name, value in items]
    if qualify is not None:
        names = [
            Visible(None, name, value)
            for name, value in shown
            if not isinstance(value, str) and value is not None
        ]
        known = {each.name.lower() for each in names}
        unknown = [each for each in others if each.name.lower() not in known]
        top = push_filter_down(Filter(top, qualify(Scope(top, names + unknown), number)))
    return top, shown


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


def order_of(node: exp.Expression, scalar: Scalar) -> Order:
    """Returns one order of ORDER BY."""
    descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    return Order(scalar, descending, (not descending) if nulls_first is None else bool(nulls_first))


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
