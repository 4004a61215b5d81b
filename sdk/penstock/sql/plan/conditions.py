"""Rewrites conditions: what all branches of an OR have in common, and which conditions are never true of NULL."""

from __future__ import annotations

from collections.abc import Iterable, Set

from penstock.scalars import functions
from penstock.scalars.tree import Call, Column, Literal, Scalar, split_conjuncts
from penstock.sql.plan.relations import Filter, Relation

_COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">="])
_STRICT = frozenset([*_COMPARISONS, "+", "-", "*", "/", "%", "DIV", "NEGATIVE", "CAST", "LIKE"])
"""Functions that return NULL if an argument is NULL."""
_BOUNDS = frozenset([*_COMPARISONS, "IN", "LIKE"])
"""Functions that compare a value with constants."""


def conjoin(parts: Iterable[Scalar]) -> Scalar | None:
    """Returns the condition that all parts hold; None if there is no part."""
    first: Scalar | None = None
    for part in parts:
        first = part if first is None else functions.call("AND", [first, part])
    return first


def filter_rows(relation: Relation, parts: Iterable[Scalar]) -> Relation:
    """Returns the rows for which all parts of a condition are true."""
    condition = conjoin(parts)
    return relation if condition is None else Filter(relation, condition)


def split_and_factor(condition: Scalar | None) -> list[Scalar]:
    """Returns the parts of a condition that must all hold, also those that each branch of an OR repeats.

    ``(a = b AND x) OR (a = b AND y)`` is ``a = b AND (x OR y)``, with SQL's three truth values as well.

    >>> from penstock.scalars.types import BOOLEAN
    >>> a, x, y = (Column(at, name, BOOLEAN) for at, name in enumerate("axy"))
    >>> both = functions.call("OR", [functions.call("AND", [a, x]), functions.call("AND", [a, y])])
    >>> print(*split_and_factor(both), sep=", ")
    a, (x OR y)
    """
    return [part for each in split_conjuncts(condition) for part in _factored(each)]


def _factored(part: Scalar) -> list[Scalar]:
    disjuncts = _split_disjuncts(part)
    if len(disjuncts) < 2:
        return [part]
    branches = [split_and_factor(each) for each in disjuncts]
    first, *others = branches
    common = [each for each in dict.fromkeys(first) if all(each in other for other in others)]
    if not common:
        return [part]
    rests = [conjoin([each for each in branch if each not in common]) for branch in branches]
    if any(rest is None for rest in rests):
        # A branch that only says what all say holds whenever the others do.
        return common
    left: Scalar | None = None
    for rest in rests:
        assert rest is not None
        left = rest if left is None else functions.call("OR", [left, rest])
    assert left is not None
    return [*common, left]


def find_implied(part: Scalar, columns: Set[int]) -> Scalar | None:
    """Returns what a part of a condition implies of some columns: what the branches of an OR compare with constants.

    None if a branch says nothing of them. Only comparisons that cannot fail are taken, because they will also act on
    rows that the condition never sees.

    >>> from penstock.scalars.types import STRING
    >>> a, b, x, y = Column(0, "a", STRING), Column(1, "b", STRING), Literal("x", STRING), Literal("y", STRING)
    >>> def both(one, other):
    ...     return functions.call("AND", [functions.call("=", [a, one]), functions.call("=", [b, other])])
    >>> print(find_implied(functions.call("OR", [both(x, y), both(y, x)]), {0}))
    ((a = 'x') OR (a = 'y'))
    """
    disjuncts = _split_disjuncts(part)
    if len(disjuncts) < 2:
        return None
    found: Scalar | None = None
    for branch in disjuncts:
        own = conjoin(each for each in split_and_factor(branch) if _is_bound(each, columns))
        if own is None:
            return None
        found = own if found is None else functions.call("OR", [found, own])
    return found


def _is_bound(part: Scalar, columns: Set[int]) -> bool:
    """True if a part compares one of some columns with constants."""
    if not isinstance(part, Call) or part.name not in _BOUNDS:
        return False
    read = [each.index for each in part.arguments if isinstance(each, Column)]
    constants = [each for each in part.arguments if isinstance(each, Literal)]
    return len(read) == 1 and read[0] in columns and len(constants) == len(part.arguments) - 1


def _split_disjuncts(condition: Scalar) -> list[Scalar]:
    if isinstance(condition, Call) and condition.name == "OR":
        return [part for each in condition.arguments for part in _split_disjuncts(each)]
    return [condition]


def rejects_null(condition: Scalar, columns: Set[int]) -> bool:
    """True if a condition is never true where all these columns are NULL."""
    if not isinstance(condition, Call):
        return False
    if condition.name in _COMPARISONS:
        return any(_is_null_of(each, columns) for each in condition.arguments)
    return condition.name == "IS NOT NULL" and _is_null_of(condition.arguments[0], columns)


def _is_null_of(scalar: Scalar, columns: Set[int]) -> bool:
    """True if a value is surely NULL where all these columns are NULL."""
    if isinstance(scalar, Column):
        return scalar.index in columns
    strict = isinstance(scalar, Call) and scalar.name in _STRICT
    return strict and any(_is_null_of(each, columns) for each in scalar.arguments)  # type: ignore[union-attr]
