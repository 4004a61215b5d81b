"""Window functions whose rows are emitted when the watermark has passed: their results need never change.

The rows wait for the watermark before the functions see them, not behind them. So the rows of a partition come in the
order of their times, and a function sees a row when no row before it can come any more.
"""

from __future__ import annotations

import datetime
from dataclasses import replace

from penstock.scalars import functions
from penstock.scalars.tree import Column, Literal, Scalar
from penstock.scalars.types import INTERVAL
from penstock.sql.language.dialect import Emit
from penstock.sql.plan.frames import is_negative
from penstock.sql.plan.relations import Emitted, Over, OverCall, Relation, origin_of, skip_projections

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
_OF_ALL = frozenset(["percent_rank", "cume_dist", "ntile"])
_INSTANT = Literal(datetime.timedelta(microseconds=1), INTERVAL.or_null(False))


def time_of_order(relation: Relation) -> Scalar | None:
    """Returns the time by which window functions order rows, as a column below them; None if there is none."""
    overs, _ = _overs_of(relation)
    return _first_time(overs[0]) if overs else None


def list_calls_that_look_ahead(relation: Relation) -> list[OverCall]:
    """Returns the calls whose results depend on rows that come later in their order."""
    overs, _ = _overs_of(relation)
    return [call for over in overs for call in over.calls if _looks_ahead(call)]


def finish_over(relation: Relation, emit: Emit, past: Scalar | None) -> Relation | None:
    """Returns the same rows, each once when the watermark has passed; None where they wait behind the functions.

    Args:
        relation: The rows with results.
        emit: When they are emitted.
        past: What the watermark must pass, as a value of the relation; None for the time of the order.
    """
    overs, base = _overs_of(relation)
    if not overs or not emit.watermark or emit.before is not None or emit.after is not None:
        return None
    time = _first_time(overs[0]) if past is None else origin_of(relation, past)[1]
    if not isinstance(time, Column) or time.index >= len(base.columns):
        return None
    if all(_has_key(over, time) for over in overs):
        waited: Scalar = time
        mode = "at once"
    elif all(_is_ordered_by(over, time) for over in overs):
        # While the watermark is at a time, rows of that time may still come.
        waited, mode = functions.call("+", [time, _INSTANT]), "in order"
    else:
        return None
    keys = {key.index for key in overs[-1].keys if isinstance(key, Column)} | {time.index}
    made: Relation = Emitted(base, replace(emit, past=None), tuple(sorted(keys)), waited)
    for over in reversed(overs):
        made = replace(over, input=made, final=mode)
    for each in reversed(skip_projections(relation)[0]):
        made = replace(each, input=made)
    return made


def _overs_of(relation: Relation) -> tuple[list[Over], Relation]:
    """Returns the window functions below projections and filters, the highest first, and the rows below them."""
    _, inner = skip_projections(relation)
    overs = []
    while isinstance(inner, Over):
        overs.append(inner)
        inner = inner.input
    return overs, inner


def _first_time(over: Over) -> Scalar | None:
    if not over.orders:
        return None
    first = over.orders[0]
    return first.scalar if first.scalar.type.name in _TIMES and not first.descending else None


def _has_key(over: Over, time: Column) -> bool:
    return any(isinstance(key, Column) and key.index == time.index for key in over.keys)


def _is_ordered_by(over: Over, time: Column) -> bool:
    first = _first_time(over)
    return isinstance(first, Column) and first.index == time.index and not any(map(_looks_ahead, over.calls))


def _looks_ahead(call: OverCall) -> bool:
    if call.name in _OF_ALL or (call.name == "lead" and call.count):
        return True
    if call.frame is None:
        return False
    end = call.frame.end
    return end is None or bool(end and not is_negative(end))
