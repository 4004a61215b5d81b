"""Queries inside other ones that read no table, but make rows of the row around them: they need no join.

Such a query is a generator, perhaps of rows that another one has made, with projections and conditions. For each outer
row, its rows follow from that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.scalars import functions
from penstock.scalars.tree import Column, Scalar, replace_scalars
from penstock.sql.plan.conditions import conjoin, filter_rows
from penstock.sql.plan.generating import generate
from penstock.sql.plan.relations import (
    ColumnDef,
    Filter,
    Generate,
    Project,
    Relation,
    Values,
    columns_as_scalars,
)

ReplaceOuter = Callable[[Scalar, Sequence[Scalar]], Scalar]
"""Returns an expression with values in place of the columns of the outer rows."""


def join_local_rows(
    left: Relation,
    right: Relation,
    kind: str,
    keys: tuple[Sequence[Scalar], Sequence[Scalar]],
    condition: Scalar | None,
    replace_outer: ReplaceOuter,
) -> Relation | None:
    """Returns the join of rows with what a query makes of each; None if the query reads tables, or more is needed.

    Args:
        left: The outer rows.
        right: The query.
        kind: ``inner``, ``left``, ``semi`` or ``left_anti``.
        keys: What must be equal of an outer row, and of a row of the query.
        condition: What else must hold, of an outer row and a row of the query in one tuple.
        replace_outer: Puts values in place of the columns of outer rows in an expression.
    """
    chain: list[Project | Filter | Generate] = []
    columns = right.columns
    while isinstance(right, (Project, Filter, Generate)):
        chain.append(right)
        right = right.input
    generators = [each for each in chain if isinstance(each, Generate)]
    if not isinstance(right, Values) or right.columns or len(right.rows) != 1 or not generators:
        return None
    if kind != "inner" and (len(generators) > 1 or not _is_plain(chain)):
        return None
    own = columns_as_scalars(left.columns)
    relation, scalars = left, tuple[Scalar, ...]()
    conditions: list[Scalar] = []

    def value_of(scalar: Scalar, more: Sequence[Scalar] = ()) -> Scalar:
        return replace_outer(replace_scalars(scalar, (*scalars, *more)), own)

    for each in reversed(chain):
        match each:
            case Project():
                scalars = tuple(map(value_of, each.scalars))
            case Filter() if kind == "inner":
                relation = Filter(relation, value_of(each.condition))
            case Filter():
                conditions.append(value_of(each.condition))
            case Generate():
                first = len(relation.columns)
                added = columns_as_scalars(each.generated, first)
                own_condition = None if each.condition is None else value_of(each.condition, added)
                arguments = tuple(map(value_of, each.arguments))
                made = replace(each, input=relation, arguments=arguments, condition=own_condition)
                relation = generate(made) if kind == "inner" else made
                scalars = (*scalars, *columns_as_scalars(made.columns)[first:])
    call = functions.call
    equal = zip(*keys, strict=True)
    conditions += [call("=", [mine, value_of(other)]) for mine, other in equal]
    if condition is not None:
        conditions.append(replace_scalars(condition, (*own, *scalars)))
    if kind == "inner":
        relation = filter_rows(relation, conditions)
    else:
        assert isinstance(relation, Generate)
        if kind == "left" and not all(
            isinstance(each, Column) and each.index >= len(own) for each in scalars
        ):
            return None
        if kind == "left" and not conditions:
            relation = replace(relation, outer=True)
        else:
            relation = replace(relation, kind=kind, condition=conjoin(conditions))
        if kind != "left":
            return relation
    shown = columns_as_scalars(relation.columns)
    every = (*own, *(shown[each.index] if isinstance(each, Column) else each for each in scalars))
    named = zip((*left.columns, *columns), every, strict=True)
    return Project(relation, every, tuple(ColumnDef(each.name, scalar.type) for each, scalar in named))


def _is_plain(chain: Sequence[Relation]) -> bool:
    """True if only projections and conditions follow a generator that has no condition of its own."""
    *above, last = [each for each in chain if not isinstance(each, Project)]
    return (
        isinstance(last, Generate)
        and last.kind == "inner"
        and not any(isinstance(each, Generate) for each in above)
    )
