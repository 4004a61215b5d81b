"""Tuples in expressions: comparisons of several values at once, such as ``(team, day) IN (SELECT …)``.

Two tuples are compared as Spark compares structs: NULL equals NULL in them, and is below all values. Against the rows
of a query, they are compared by their parts, so that a part that is NULL leaves the result open.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from sqlglot import exp

from penstock.scalars.tree import Scalar
from penstock.sql.binding.statement import Statement

_COMPARISONS = ("=", "<>", "<=>", "IS DISTINCT FROM", "<", "<=", ">", ">=")


def parts_of_tuple(node: object) -> list[exp.Expression] | None:
    """Returns the parts of a tuple, which may be in parentheses; None for anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Tuple) else None


def compare_tuples(
    statement: Statement, node: exp.Expression, name: str, lefts: Sequence[Scalar], rights: Sequence[Scalar]
) -> Scalar:
    """Returns the comparison of two tuples by an operator.

    Args:
        statement: The text.
        node: The comparison.
        name: The operator.
        lefts: The parts of the left tuple.
        rights: The parts of the right one.
    """
    if name not in _COMPARISONS:
        statement.refuse(node, f"{name} does not take tuples", "compare their parts")
    if len(lefts) != len(rights):
        what = f"a tuple of {len(lefts)} values is compared with one of {len(rights)}"
        statement.refuse(node, what, "compare tuples of one length")
    call = functools.partial(statement.call, node)
    equal = [call("<=>", pair) for pair in zip(lefts, rights, strict=True)]
    if name in ("=", "<=>"):
        return _all(call, equal)
    if name in ("<>", "IS DISTINCT FROM"):
        return call("NOT", [_all(call, equal)])
    found: Scalar | None = call("IS TRUE", [equal[-1]]) if name in ("<=", ">=") else None
    for left, right, same in zip(lefts[::-1], rights[::-1], equal[::-1], strict=True):
        low, high = (left, right) if name[0] == "<" else (right, left)
        is_less = call(
            "OR",
            [
                call("IS TRUE", [call("<", [low, high])]),
                call("AND", [call("IS NULL", [low]), call("IS NOT NULL", [high])]),
            ],
        )
        found = is_less if found is None else call("OR", [is_less, call("AND", [same, found])])
    assert found is not None
    return found


def equal_parts(
    statement: Statement, node: exp.Expression, lefts: Sequence[Scalar], rights: Sequence[Scalar]
) -> Scalar:
    """Returns whether all parts are equal; NULL if a part is NULL and no others differ."""
    return _all(
        functools.partial(statement.call, node),
        [statement.call(node, "=", pair) for pair in zip(lefts, rights, strict=True)],
    )


def _all(call: Callable[[str, Sequence[Scalar]], Scalar], tests: Sequence[Scalar]) -> Scalar:
    return functools.reduce(lambda left, right: call("AND", [left, right]), tests)
