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
