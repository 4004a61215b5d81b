"""Generators below windows and conditions, where a grouping above still finds the windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.scalars.tree import Scalar, columns_of, replace_scalars, shift_columns
from penstock.sql.plan.relations import (
    Filter,
    Generate,
    Project,
    Relation,
    Windowed,
    columns_as_scalars,
    skip_projections,
)


def generate(relation: Generate) -> Relation:
    """Returns the same rows, where the generator acts below windows if nothing that it needs reads them.

    So a grouping above them is one in windows of the model.
    """
    if relation.kind == "inner" and relation.condition is not None:
        return Filter(generate(replace(relation, condition=None)), relation.condition)
    above, windows = skip_projections(relation.input)
    # A session is of the rows that the query puts into it, which a generator may leave out or repeat.
    if relation.kind != "inner" or not isinstance(windows, Windowed) or windows.kind == "session":
        return relation
    rows, width, count = windows.input, len(windows.input.columns), len(relation.generated)
    scalars: tuple[Scalar, ...] = columns_as_scalars(windows.columns)
    for each in reversed(above):
        if isinstance(each, Filter):
            condition = replace_scalars(each.condition, scalars)
            if _reads_beyond(width, [condition]):
                return relation
            rows = Filter(rows, condition)
        else:
            scalars = tuple(replace_scalars(scalar, scalars) for scalar in each.scalars)
    arguments = tuple(replace_scalars(each, scalars) for each in relation.arguments)
    if _reads_beyond(width, arguments):
        return relation
    made = generate(replace(relation, input=rows, arguments=arguments))
    again = replace(windows, input=made, columns=(*made.columns, *windows.columns[width:]))
    moved = {at: at + count for at in (width, width + 1)}
    shown = tuple(shift_columns(each, {**{at: at for at in range(width)}, **moved}) for each in scalars)
    generated = columns_as_scalars(made.columns)[width:]
    return Project(again, (*shown, *generated), relation.columns)


def _reads_beyond(width: int, scalars: Iterable[Scalar]) -> bool:
    """True if an expression reads columns after an offset."""
    return any(at >= width for each in scalars for at in columns_of(each))
