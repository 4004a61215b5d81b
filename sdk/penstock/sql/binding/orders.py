"""ORDER BY: what one of its parts orders rows by."""

from __future__ import annotations

from sqlglot import exp

from penstock.scalars.tree import Scalar
from penstock.sql.plan.relations import Order


def order_of(node: exp.Expression, scalar: Scalar) -> Order:
    """Returns one order of ORDER BY."""
    descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    return Order(scalar, descending, (not descending) if nulls_first is None else bool(nulls_first))


def list_orders(order: exp.Expression, columns: int) -> list[exp.Expression]:
    """Returns the parts of ORDER BY; of ORDER BY ALL, one for each selected column, by its number."""
    parts: list[exp.Expression] = list(order.expressions)
    if len(parts) != 1 or not isinstance(parts[0].this, exp.Var) or parts[0].this.name.upper() != "ALL":
        return parts
    found = []
    for place in range(1, columns + 1):
        part = parts[0].copy()
        part.set("this", exp.Literal.number(place))
        found.append(part)
    return found
