"""Lists what a query over endless input keeps forever, and how to bound it."""

from __future__ import annotations

from collections.abc import Iterator, Set

from penstock.sql.execution.lowering import remove_windows
from penstock.sql.plan.relations import (
    Aggregate,
    Emitted,
    Join,
    Over,
    RankLimit,
    Relation,
    Scan,
    SetOperation,
    Top,
    inputs_of,
    skip_projections,
    walk_plan,
)


def list_kept_state(
    relation: Relation,
    endless: Set[str],
    is_kept_for_late_rows: bool = False,
    seen: set[tuple[int, bool]] | None = None,
) -> Iterator[str]:
    """Yields a sentence for each part of a plan that keeps more and more.

    Args:
        relation: The plan.
        endless: The names of the inputs that do not end.
        is_kept_for_late_rows: Whether the windows of a grouping would end if late rows were not to come.
        seen: The parts that are listed already, which several others may read.
    """
    seen = set() if seen is None else seen
    place = id(relation), is_kept_for_late_rows
    if place in seen or not _reads(relation, endless):
        return
    seen.add(place)
    match relation:
        case Aggregate() if relation.keys:
            keys = ", ".join(map(str, relation.keys))
            what = f"GROUP BY or DISTINCT ({keys}) keeps each group forever"
            if is_kept_for_late_rows:
                yield f"{what}, for late rows; leave out AND THEN, to keep open windows only"
            else:
                yield f"{what}; group by windows, and write EMIT AFTER WATERMARK, to keep open windows only"
        case Join():
            yield "a join keeps all rows of its endless sides; group them by windows first, to keep fewer"
        case SetOperation():
            yield "EXCEPT or INTERSECT keeps all rows of both sides"
        case Over(final="in order") if relation.keys:
            yield f"{_names(relation)} OVER keeps what later rows may see of each partition"
        case Over(final="", limit=RankLimit()):
            if relation.keys:
                yield f"{_names(relation)} keeps rows of each partition forever"
        case Over(final=""):
            yield f"{_names(relation)} OVER keeps all rows of each partition forever; {_bound_of(relation)}"
        case Top() if relation.keys:
            yield "ROW_NUMBER keeps rows of each partition forever"
    late = is_kept_for_late_rows and not isinstance(relation, Aggregate)
    if isinstance(relation, Emitted) and (windowed := _grouping_by_windows(relation)) is not None:
        if relation.emit.after is None:
            relation = windowed  # It forgets each window at its end.
        else:
            late = True
    for each in inputs_of(relation):
        yield from list_kept_state(each, endless, late, seen)


def _names(over: Over) -> str:
    names = (call.name if call.aggregate is None else call.aggregate.name for call in over.calls)
    return ", ".join(dict.fromkeys(name.upper() for name in names))


def _bound_of(over: Over) -> str:
    match [call.name for call in over.calls]:
        case ["row_number" | "rank" | "dense_rank" as name]:
            return f"add a condition such as {name.upper()}() ... <= 10"
    return "partition by a window of time too, or order by the time and write EMIT AFTER WATERMARK"


def _grouping_by_windows(emitted: Emitted) -> Aggregate | None:
    """The grouping by windows whose rows are emitted when the watermark passes; None without one."""
    _, inner = skip_projections(emitted.input)
    if emitted.emit.watermark and isinstance(inner, Aggregate) and remove_windows(inner) is not None:
        return inner
    return None


def _reads(relation: Relation, names: Set[str]) -> bool:
    return any(isinstance(each, Scan) and each.name in names for each in walk_plan(relation))
