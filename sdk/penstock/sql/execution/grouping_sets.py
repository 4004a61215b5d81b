"""Rows once for each grouping set: with the keys of the set, and NULL in place of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.scalars.row_functions import Projection
from penstock.sql.plan.relations import Expand


class InSets:
    """Emits a row once for each set of a grouping.

    Args:
        relation: The keys and the sets.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> from penstock.sql.plan.relations import Values
    >>> team = Column(0, "team", BIGINT)
    >>> list(InSets(Expand(Values((), ()), (team,), ((0,), ()), ((0,), (1,)), ()))((7,)))
    [(7, 7, 0), (7, None, 1)]
    """

    def __init__(self, relation: Expand) -> None:
        self._keys = Projection(relation.keys)
        places = range(len(relation.keys))
        self._sets = [
            (tuple(place in own for place in places), tail)
            for own, tail in zip(relation.sets, relation.tails, strict=True)
        ]

    def __call__(self, row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        keys = self._keys.function(row)
        for own, tail in self._sets:
            values = (key if is_own else None for key, is_own in zip(keys, own, strict=True))
            yield (*row, *values, *tail)
