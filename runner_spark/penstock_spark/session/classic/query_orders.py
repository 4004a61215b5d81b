"""Finds by which columns a query orders its rows, in Spark's plan of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_ORDER_STAYS = frozenset(["GlobalLimit", "LocalLimit", "Offset"])


def order_of(plan: JavaObject, columns: Sequence[str]) -> tuple[tuple[str, bool, bool], ...]:
    """Returns the columns by which the rows of an analysed plan are ordered, as in `Backend.order_of`."""
    while plan.nodeName() in _ORDER_STAYS:
        plan = plan.child()
    if plan.nodeName() != "Sort":
        return ()
    found = []
    orders = plan.order()
    for place in range(orders.size()):
        order = orders.apply(place)
        if order.child().nodeName() != "AttributeReference" or order.child().name() not in columns:
            return ()
        descends, nulls = order.direction().sql() == "DESC", order.nullOrdering().sql()
        found.append((order.child().name(), descends, nulls == "NULLS FIRST"))
    return tuple(found)
