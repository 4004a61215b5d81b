"""Joins tables that do not change with each other first, so that rows of a stream meet them in one join."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from penstock.scalars.tree import Column, Scalar, columns_of, replace_scalars, shift_columns
from penstock.sql.plan.pruning import rebuild
from penstock.sql.plan.relations import (
    Filter,
    Join,
    Project,
    Relation,
    columns_as_scalars,
    is_static,
)

Keys = tuple[Scalar, ...]


def join_static_first(relation: Relation, endless: Set[str]) -> Relation:
    """Returns a plan with the same rows and columns that joins endless tables later.

    Inner joins may be done in any order. A table that does not change, and is joined to a column of another one that
    does not change either, is joined to that table itself: each join that follows a join of a stream would be one more
    level of it, for rows that no micro-batch touches.

    Args:
        relation: The plan.
        endless: The names of the inputs that do not end.
    """
    mover = _Mover(endless, set())
    return rebuild(relation, mover.moved, mover.shared)


@dataclass
class _Mover:
    """Moves joins with tables that do not change.

    Attributes:
        endless: The names of the inputs that do not end.
        shared: The ids of the relations that several others read, which nothing enters.
    """

    endless: Set[str]
    shared: set[int]

    def moved(self, relation: Relation) -> Relation:
        """Returns a relation, whose right table may be joined to a table inside the left side."""
        if not (isinstance(relation, Join) and relation.kind == "inner" and relation.left_keys):
            return relation
        if relation.condition is not None or relation.null_safe:
            return relation
        if not is_static(relation.right, self.endless) or is_static(relation.left, self.endless):
            return relation
        return self._attached(relation.left, relation, relation.left_keys) or relation

    def _attached(self, relation: Relation, join: Join, keys: Keys) -> Relation | None:
        """Returns a relation with the columns of a join's right side behind its own; None if it cannot.

        Args:
            relation: The relation.
            join: The join.
            keys: What must equal the right keys of the join, of a row of the relation.
        """
        if not all(isinstance(each, Column) for each in keys) or id(relation) in self.shared:
            return None
        if is_static(relation, self.endless):
            return replace(join, left=relation, left_keys=keys)
        added = join.right.columns
        match relation:
            case Filter():
                inner = self._attached(relation.input, join, keys)
                return None if inner is None else Filter(inner, relation.condition)
            case Project():
                below = tuple(replace_scalars(each, relation.scalars) for each in keys)
                inner = self._attached(relation.input, join, below)
                if inner is None:
                    return None
                others = columns_as_scalars(added, len(relation.input.columns))
                return Project(inner, (*relation.scalars, *others), (*relation.columns, *added))
            case Join(kind="inner" | "semi" | "left_anti"):
                return self._attached_to_side(relation, join, keys)
        return None

    def _attached_to_side(self, relation: Join, join: Join, keys: Keys) -> Relation | None:
        width, more = len(relation.left.columns), len(join.right.columns)
        rights = range(width, width + len(relation.right.columns))
        read = {at for each in keys for at in columns_of(each)}
        if read <= {*rights}:
            own = tuple(shift_columns(each, {at: at - width for at in rights}) for each in keys)
            right = self._attached(relation.right, join, own)
            return None if right is None else replace(relation, right=right)
        left = self._attached(relation.left, join, keys) if read.isdisjoint(rights) else None
        if left is None:
            return None
        condition = relation.condition
        if condition is not None:
            condition = shift_columns(
                condition, {at: at if at < width else at + more for at in columns_of(condition)}
            )
        made = replace(relation, left=left, condition=condition)
        if relation.kind != "inner":
            return made
        # The new columns stand between those of both sides.
        scalars = columns_as_scalars(made.columns)
        places = (*range(width), *range(width + more, len(scalars)), *range(width, width + more))
        return Project(made, tuple(scalars[at] for at in places), tuple(made.columns[at] for at in places))
