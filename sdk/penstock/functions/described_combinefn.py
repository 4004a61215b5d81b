"""A CombineFn that says what its partial results contain, because its class does not."""

from __future__ import annotations

from penstock.functions.combinefn import CombineFn


class DescribedCombineFn(CombineFn):
    """A CombineFn made by penstock, such as for the aggregates of a query.

    Attributes:
        keeps: What its partial results contain: only one that keeps the same can continue with them, from the
            checkpoint of a stream. Empty if only the class says it.
    """

    keeps: str = ""
