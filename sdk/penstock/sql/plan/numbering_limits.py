"""Limits how many rows of each partition are numbered, when a condition keeps the first ones only."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from penstock.scalars.tree import Call, Column, Literal, Scalar, split_conjuncts
from penstock.sql.plan.relations import Filter, Over, RankLimit, Relation, Top, origin_of, skip_projections

_RANKS = frozenset(["rank", "dense_rank"])
_MIRRORED = {"<=": ">=", "<": ">", "=": "=", ">=": "<=", ">": "<"}


def limit_numbering(relation: Filter) -> Relation:
    """Returns a relation with these rows that does not number rows which no condition lets through.

    The condition stays where it is. Between it and the numbering may be filters and projections, which take each row
    on its own. A number that is at most the limit is the same, whether later rows are numbered or not.
    """
    above, numbering = skip_projections(relation)
    if not _numbers_rows(numbering):
        return relation
    found = _limits_in(relation, len(numbering.columns) - 1)
    if not found:
        return relation
    if isinstance(numbering, Top) and numbering.limit is not None:
        found.append(numbering.limit)
    limit = max(0, min(found))
    made: Relation = Top(
        numbering.input, numbering.keys, numbering.orders, limit, 0, numbering.columns, numbered=True
    )
    for each in reversed(above):
        made = replace(each, input=made)
    return made


def limit_ranks(relation: Relation) -> Relation:
    """Returns a relation with these rows that computes no rank which a condition does not let through.

    As for numbers of rows, the condition stays. Rows of one rank are all there or none of them.
    """
    if not isinstance(relation, Filter):
        return relation
    above, over = skip_projections(relation)
    if not (
        isinstance(over, Over) and not over.final and len(over.calls) == 1 and over.calls[0].name in _RANKS
    ):
        return relation
    found = _limits_in(relation, len(over.columns) - 1)
    if over.limit is not None:
        found.append(over.limit.count)
    if not found:
        return relation
    made: Relation = replace(over, limit=RankLimit(over.calls[0].name, max(0, min(found))))
    for each in reversed(above):
        made = replace(each, input=made)
    return made


def _limits_in(relation: Filter, number: int) -> list[int]:
    """Returns the highest number of a row that each comparison with it lets through."""
    return [
        limit
        for part in split_conjuncts(relation.condition)
        if isinstance(part, Call)
        and part.name in _MIRRORED
        and (limit := _limit_of(part.name, *_below(relation.input, part), number)) is not None
    ]


def _numbers_rows(relation: Relation) -> TypeGuard[Over | Top]:
    if isinstance(relation, Over):
        return [call.name for call in relation.calls] == ["row_number"]
    return isinstance(relation, Top) and relation.numbered


def _below(relation: Relation, comparison: Call) -> tuple[Scalar, Scalar]:
    """The two sides of a comparison, as values of the rows below projections and filters."""
    left, right = (origin_of(relation, each)[1] for each in comparison.arguments)
    return left, right


def _limit_of(name: str, left: Scalar, right: Scalar, number: int) -> int | None:
    """The highest number that a comparison lets through; None if it is of something else or lets all through."""
    if isinstance(left, Literal):
        name, left, right = _MIRRORED[name], right, left
    is_limit = isinstance(left, Column) and left.index == number and name in ("<=", "<", "=")
    if not (is_limit and isinstance(right, Literal) and type(right.value) is int):
        return None
    return right.value - (name == "<")
