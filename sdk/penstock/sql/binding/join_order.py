"""Joins the tables of FROM in an order that follows the equalities of WHERE, so that none meets all rows of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.scalars import functions
from penstock.scalars.tree import Call, Column, Scalar, columns_of, map_leaves
from penstock.sql.binding.joining import push_parts_down, split_below_generator
from penstock.sql.binding.scopes import move_to_right
from penstock.sql.plan.conditions import filter_rows, find_implied, split_and_factor
from penstock.sql.plan.relations import Filter, Generate, Join, Project, Relation, columns_as_scalars


@dataclass(frozen=True)
class _Table:
    """One of the tables that are joined.

    Attributes:
        relation: Its rows.
        first: The place of its first column among the columns of all tables.
    """

    relation: Relation
    first: int

    @property
    def places(self) -> range:
        """The places of its columns."""
        return range(self.first, self.first + len(self.relation.columns))


class _Part(NamedTuple):
    """A condition of columns of all tables, and the columns that it reads."""

    scalar: Scalar
    columns: frozenset[int]


def arrange_joins(relation: Relation, conditions: Iterable[Scalar]) -> Relation:
    """Returns the rows for which conditions hold, with the columns of a relation in their order.

    Tables of inner joins are joined in the order of FROM, but one that no equality connects with those before comes
    after one that does. What reads one table only acts on it before.

    Args:
        relation: The rows.
        conditions: What must hold.
    """
    parts = [part for each in conditions for part in split_and_factor(each)]
    if isinstance(relation, Generate):
        below, rest = split_below_generator(relation, parts)
        return filter_rows(replace(relation, input=arrange_joins(relation.input, below)), rest)
    tables: list[_Table] = []
    found: list[Scalar] = []
    _flatten(relation, 0, tables, found)
    if len(tables) < 2:
        return push_parts_down(relation, parts)
    every = [_Part(each, columns_of(each)) for each in dict.fromkeys([*found, *parts])]
    tables = [_filtered(table, every) for table in tables]
    open_parts = [
        part
        for part in every
        if not part.columns or not any(part.columns <= {*table.places} for table in tables)
    ]
    return _joined(tables, open_parts, len(relation.columns))


def _flatten(relation: Relation, first: int, tables: list[_Table], parts: list[Scalar]) -> None:
    """Adds the tables of inner joins, and what the joins say of them."""
    if isinstance(relation, Filter) and _is_inner_join(relation.input):
        parts += [move_to_right(each, first) for each in split_and_factor(relation.condition)]
        relation = relation.input
    if not (isinstance(relation, Join) and _is_inner_join(relation)):
        tables.append(_Table(relation, first))
        return
    middle = first + len(relation.left.columns)
    _flatten(relation.left, first, tables, parts)
    _flatten(relation.right, middle, tables, parts)
    for at, (mine, other) in enumerate(zip(relation.left_keys, relation.right_keys, strict=True)):
        sides = [move_to_right(mine, first), move_to_right(other, middle)]
        parts.append(functions.call("<=>" if at in relation.null_safe else "=", sides))
    if relation.condition is not None:
        parts += [move_to_right(each, first) for each in split_and_factor(relation.condition)]


def _is_inner_join(relation: Relation) -> bool:
    while isinstance(relation, Filter):
        relation = relation.input
    return isinstance(relation, Join) and relation.kind == "inner"


def _filtered(table: _Table, parts: Iterable[_Part]) -> _Table:
    """A table with what reads it alone, and with what a condition of several tables implies of it."""
    places = frozenset(table.places)
    own: list[Scalar] = []
    for part in parts:
        if part.columns <= places:
            own += [part.scalar] if part.columns else []
        elif (implied := find_implied(part.scalar, places)) is not None:
            own.append(implied)
    return replace(
        table, relation=push_parts_down(table.relation, [move_to_right(each, -table.first) for each in own])
    )


def _joined(tables: Sequence[_Table], parts: list[_Part], width: int) -> Relation:
    """The join of all tables, with the columns in the order of the tables."""
    waiting = list(tables[1:])
    relation = tables[0].relation
    # The place of each column in the rows so far, by its place among all.
    places = {at: at for at in tables[0].places}
    constant = [part.scalar for part in parts if not part.columns]
    parts = [part for part in parts if part.columns]
    while waiting:
        table = next((each for each in waiting if _connects(each, places.keys(), parts)), waiting[0])
        waiting.remove(table)
        equal = [part for part in parts if _sides_of(part, table, places.keys()) is not None]
        sides = [_sides_of(part, table, places.keys()) for part in equal]
        first = len(places)
        joined = Join(
            relation,
            table.relation,
            "inner",
            tuple(_placed(mine, places) for mine, _ in filter(None, sides)),
            tuple(move_to_right(other, -table.first) for _, other in filter(None, sides)),
            null_safe=tuple(at for at, part in enumerate(equal) if _is_null_safe(part.scalar)),
        )
        places.update({at: first + number for number, at in enumerate(table.places)})
        done = [part for part in parts if part.columns <= places.keys() and part not in equal]
        parts = [part for part in parts if not part.columns <= places.keys()]
        relation = filter_rows(joined, [_placed(part.scalar, places) for part in done])
    relation = filter_rows(relation, constant)
    if all(at == place for at, place in places.items()):
        return relation
    columns = columns_as_scalars(relation.columns)
    order = [places[at] for at in range(width)]
    shown = tuple(columns[place] for place in order)
    return Project(relation, shown, tuple(relation.columns[place] for place in order))


def _connects(table: _Table, known: Iterable[int], parts: Iterable[_Part]) -> bool:
    return any(_sides_of(part, table, known) is not None for part in parts)


def _sides_of(part: _Part, table: _Table, known: Iterable[int]) -> tuple[Scalar, Scalar] | None:
    """Returns the values of known columns and of a table that must be equal; None if a condition is another."""
    scalar = part.scalar
    if not isinstance(scalar, Call) or scalar.name not in ("=", "<=>"):
        return None
    for mine, other in (scalar.arguments, scalar.arguments[::-1]):
        lefts, rights = columns_of(mine), columns_of(other)
        if lefts and rights and lefts <= {*known} and rights <= {*table.places}:
            return mine, other
    return None


def _is_null_safe(scalar: Scalar) -> bool:
    assert isinstance(scalar, Call)
    return scalar.name == "<=>" and all(each.type.nullable for each in scalar.arguments)


def _placed(scalar: Scalar, places: dict[int, int]) -> Scalar:
    return map_leaves(
        scalar, lambda leaf: replace(leaf, index=places[leaf.index]) if isinstance(leaf, Column) else leaf
    )
