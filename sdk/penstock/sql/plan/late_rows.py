"""Finds the inputs of a query whose late rows it drops: their watermark has to go by the time that the query uses."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.plan.relations import Emitted, Over, Relation, Scan, walk_plan


def find_inputs_with_late_rows(relation: Relation) -> Iterator[frozenset[str]]:
    """Yields, for each part of a plan that drops rows behind the watermark, the names of the inputs that it reads.

    A part that reads the time of arrival, which the watermark of an input without times of its own goes by, is left
    out.
    """
    for part in walk_plan(relation):
        match part:
            case Emitted(emit=emit) if emit.watermark and emit.after is None:
                pass
            case Over(final=final) if final:
                pass
            case _:
                continue
        scans = [each for each in walk_plan(part) if isinstance(each, Scan)]
        if scans and not any(scan.arrival for scan in scans):
            yield frozenset(scan.name for scan in scans)
