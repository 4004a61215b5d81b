"""Groups rows of a stream only for keys that a table without changes has, where a join drops the other groups."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from penstock.scalars.tree import Column, Scalar, columns_of, replace_scalars, shift_columns
from penstock.sql.plan.pruning import rebuild
from penstock.sql.plan.relations import (
    Aggregate,
    Filter,
    Join,
    Project,
    Relation,
    is_static,
    origin_of,
    skip_projections,
    walk_plan,
)

_DROPS_OTHERS = ("inner", "left", "semi", "left_anti")
"""The joins whose result has no right row without a partner."""


def restrict_groups(relation: Relation, endless: Set[str]) -> Relation:
    """Returns a plan with the same rows and columns that keeps fewer groups.

    A subquery such as ``(SELECT AVG(quantity) FROM items WHERE items.part = parts.part)`` becomes a grouping of all
    items, joined to the rows that ask for it. If these take the part from a table that does not change, and a
    condition leaves few of its rows, a semi join in front of the grouping drops the items of all other parts.

    Args:
        relation: The plan.
        endless: The names of the inputs that do not end.
    """
    restricter = _Restricter(endless, set())
    return rebuild(relation, restricter.restricted, restricter.shared)


@dataclass
class _Restricter:
    """Puts semi joins in front of groupings.

    Attributes:
        endless: The names of the inputs that do not end.
        shared: The ids of the relations that several others read, which do not change.
    """

    endless: Set[str]
    shared: set[int]

    def restricted(self, join: Relation) -> Relation:
        """Returns a join whose right side groups only rows whose keys its left side can have."""
        if not isinstance(join, Join):
            return join
        above, grouping = skip_projections(join.right)
        if not isinstance(grouping, Aggregate) or join.kind not in _DROPS_OTHERS or join.null_safe:
            return join
        if is_static(grouping, self.endless) or any(id(each) in self.shared for each in (*above, grouping)):
            return join
        keys: dict[int, tuple[Relation, list[tuple[Scalar, Scalar]]]] = {}
        for left, right in zip(join.left_keys, join.right_keys, strict=True):
            _, place = origin_of(join.right, right)
            table = self._table_of(join.left, left)
            if isinstance(place, Column) and place.index < len(grouping.keys) and table is not None:
                source, key = table
                keys.setdefault(id(source), (source, []))[1].append((grouping.keys[place.index], key))
        if not keys:
            return join
        source, pairs = max(keys.values(), key=lambda each: len(each[1]))
        lefts, rights = zip(*pairs, strict=True)
        made: Relation = replace(grouping, input=Join(grouping.input, source, "semi", lefts, rights))
        for each in reversed(above):
            made = replace(each, input=made)
        return replace(join, right=made)

    def _table_of(self, relation: Relation, key: Scalar) -> tuple[Relation, Scalar] | None:
        """Returns the table without changes, less some of its rows, that a key comes from, and the key there."""
        if not columns_of(key):
            return None
        if is_static(relation, self.endless):
            drops = any(
                isinstance(each, Filter) or (isinstance(each, Join) and each.kind == "semi")
                for each in walk_plan(relation)
            )
            return (relation, key) if drops else None
        match relation:
            case Filter():
                return self._table_of(relation.input, key)
            case Project():
                return self._table_of(relation.input, replace_scalars(key, relation.scalars))
            case Join(kind="inner" | "left" | "semi" | "left_anti"):
                return self._table_of_side(relation, key)
        return None

    def _table_of_side(self, join: Join, key: Scalar) -> tuple[Relation, Scalar] | None:
        width, columns = len(join.left.columns), columns_of(key)
        if max(columns) < width:
            return self._table_of(join.left, key)
        if min(columns) >= width and join.kind == "inner":
            return self._table_of(join.right, shift_columns(key, {at: at - width for at in columns}))
        return None
