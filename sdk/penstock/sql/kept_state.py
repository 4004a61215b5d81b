"""What a query over input that does not end keeps for ever, and how to bound it."""

from __future__ import annotations

from collections.abc import Iterator, Set

from penstock.sql.lowering import without_windows
from penstock.sql.relations import (
    Aggregate,
    Counted,
    Emitted,
    Join,
    Relation,
    Scan,
    Top,
    below_projections,
    inputs_of,
)


def kept_for_ever(relation: Relation, endless: Set[str]) -> Iterator[str]:
    """A sentence for each part of a plan that keeps more and more.

    Args:
        relation: The plan.
        endless: The names of the inputs that do not end.
    """
    if not _reads(relation, endless):
        return
    match relation:
        case Aggregate() if relation.keys:
            keys = ", ".join(map(str, relation.keys))
            yield (
                f"GROUP BY or DISTINCT ({keys}) keeps each group for ever; "
                "group by windows, and write EMIT AFTER WATERMARK, to keep open windows only"
            )
        case Join():
            yield "a join keeps all rows of its endless sides; group them by windows before it, to keep fewer"
        case Counted():
            yield "EXCEPT or INTERSECT keeps all rows of both sides"
        case Top() if relation.limit is None:
            yield "ROW_NUMBER without a limit keeps all rows; add a condition such as ROW_NUMBER() ... <= 10"
        case Top() if relation.keys:
            yield "ROW_NUMBER keeps rows of each partition for ever"
    for each in inputs_of(_below_windows_that_end(relation)):
        yield from kept_for_ever(each, endless)


def _below_windows_that_end(relation: Relation) -> Relation:
    """The relation itself; or, where a grouping forgets each window at its end, that grouping."""
    if isinstance(relation, Emitted) and relation.emit.watermark and relation.emit.after is None:
        _, inner = below_projections(relation.input)
        if isinstance(inner, Aggregate) and without_windows(inner) is not None:
            return inner
    return relation


def _reads(relation: Relation, names: Set[str]) -> bool:
    if isinstance(relation, Scan):
        return relation.name in names
    return any(_reads(each, names) for each in inputs_of(relation))
