"""Finds rows that are compared with one changing value: only rows between two of its values change."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from penstock.scalars import functions
from penstock.scalars.tree import Call, Literal, Scalar, columns_of, shift_columns, split_conjuncts
from penstock.sql.plan.conditions import filter_rows
from penstock.sql.plan.decorrelation import has_one_row
from penstock.sql.plan.pruning import columns_needed, inputs_first, with_inputs
from penstock.sql.plan.relations import (
    Border,
    Filter,
    Join,
    Project,
    Relation,
    columns_as_scalars,
    inputs_of,
    origin_of,
    skip_projections,
)

_MIRRORED = {"<": ">", "<=": ">=", ">=": "<=", ">": "<"}
_NUMBERS = frozenset(["BIGINT", "DECIMAL"])
_COMPARED = frozenset(["DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", *_NUMBERS])


def find_borders(relation: Relation) -> Relation:
    """Returns a plan with the same rows in which comparisons with a query of one row are borders.

    The comparison is a join with that row, and each change of the row would change all pairs with it. Where nothing
    above reads the row itself, only those rows change that one of its values lets through and the other does not.
    """
    needs, done = columns_needed(relation), dict[int, Relation]()
    for each in inputs_first(relation):
        made = with_inputs(each, [done[id(below)] for below in inputs_of(each)])
        if isinstance(each, Filter) and (found := _compared(each, needs[id(each)])) is not None:
            made = found.relation(each, done)
        done[id(each)] = made
    return done[id(relation)]


@dataclass(frozen=True)
class _Compared:
    """Rows that are compared with one row.

    Attributes:
        rows: The rows.
        one: The relation of one row.
        own: The conditions of the rows themselves.
        value: What is compared, of a row.
        comparison: How.
        bound: What it is compared with, of the one row.
        scalars: The columns of the result, as expressions over a row; NULL where nothing reads it.
    """

    rows: Relation
    one: Relation
    own: tuple[Scalar, ...]
    value: Scalar
    comparison: str
    bound: Scalar
    scalars: tuple[Scalar, ...]

    def relation(self, place: Relation, done: dict[int, Relation]) -> Relation:
        """Returns the relation that replaces another one, with inputs that are done."""
        own = self.own
        if self.value.type.nullable:
            own = (*own, functions.call("IS NOT NULL", [self.value]))
        rows = filter_rows(done[id(self.rows)], own)
        border = Border(rows, done[id(self.one)], self.value, self.comparison, self.bound)
        return Project(border, self.scalars, place.columns)


def _compared(relation: Filter, needed: Set[int]) -> _Compared | None:
    """Returns how rows are compared with one row; None if they are not, or if something reads the one row."""
    above, join = skip_projections(relation)
    if not (isinstance(join, Join) and join.kind == "inner" and not join.left_keys):
        return None
    sides = has_one_row(join.left), has_one_row(join.right)
    if sides[0] == sides[1]:
        return None
    width = len(join.left.columns)
    places = tuple(range(width)), tuple(range(width, len(join.columns)))
    rows, one = (join.right, join.left) if sides[0] else (join.left, join.right)
    of_rows, of_one = places[::-1] if sides[0] else places
    parts = list(split_conjuncts(join.condition)) if join.condition is not None else []
    for each in above:
        if isinstance(each, Filter):
            condition = origin_of(each.input, each.condition)[1]
            parts += split_conjuncts(condition)
    own = [part for part in parts if columns_of(part) <= {*of_rows}]
    others = [part for part in parts if part not in own]
    scalars = tuple(
        origin_of(relation, each)[1] if at in needed else Literal(None, each.type.or_null())
        for at, each in enumerate(columns_as_scalars(relation.columns))
    )
    if len(others) != 1 or any(columns_of(each) & {*of_one} for each in scalars):
        return None
    if (found := _sides_of(others[0], {*of_rows}, {*of_one})) is None:
        return None
    value, comparison, bound = found

    def moved(scalar: Scalar, places: Sequence[int]) -> Scalar:
        return shift_columns(scalar, {at: new for new, at in enumerate(places)})

    return _Compared(
        rows,
        one,
        tuple(moved(each, of_rows) for each in own),
        moved(value, of_rows),
        comparison,
        moved(bound, of_one),
        tuple(moved(each, of_rows) for each in scalars),
    )


def _sides_of(part: Scalar, of_rows: Set[int], of_one: Set[int]) -> tuple[Scalar, str, Scalar] | None:
    """A comparison as a value of rows, how it is compared, and a value of the one row; None if it is none."""
    if not (isinstance(part, Call) and part.name in _MIRRORED):
        return None
    value, bound = part.arguments
    name = part.name
    if columns_of(value) <= of_one:
        value, name, bound = bound, _MIRRORED[name], value
    if not (columns_of(value) <= of_rows and columns_of(bound) <= of_one):
        return None
    kinds = {value.type.name, bound.type.name}
    return (value, name, bound) if kinds <= _NUMBERS or (len(kinds) == 1 and kinds <= _COMPARED) else None
