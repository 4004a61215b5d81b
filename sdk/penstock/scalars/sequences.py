"""SEQUENCE: the numbers, the dates or the times from one to another."""

from __future__ import annotations

import datetime
from typing import Any

from penstock.scalars.arrays import LENGTH_MAX
from penstock.scalars.casting import refuse
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.months import add_months
from penstock.scalars.nested_resolving import of
from penstock.scalars.resolving import cast, do_not_fit
from penstock.scalars.times import in_utc
from penstock.scalars.tree import Scalar
from penstock.scalars.types import INT, array_of, find_common_type

_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_TAKES = "two numbers and a step, or two dates or times and an interval"


def _sequence(start: Any, stop: Any, step: Any = None) -> list[Any]:
    if isinstance(start, datetime.datetime) and start.tzinfo:
        start, stop = in_utc(start), in_utc(stop)
    months = isinstance(step, int) and not isinstance(start, int)
    if start == stop:
        return [start]
    if isinstance(start, datetime.datetime) and start > stop:
        # Spark also takes a time that is one microsecond beyond the end, if it counts back.
        stop -= _MICROSECOND
    if step is None:
        step = 1 if isinstance(start, int) else _DAY
        step = step if start < stop else -step
    nothing = datetime.timedelta(0) if isinstance(step, datetime.timedelta) else 0
    if step == nothing or (step > nothing) != (start < stop):
        refuse("SEQUENCE has a step that does not lead to its end", "write a step below 0 to count down")
    if type(start) is datetime.date and isinstance(step, datetime.timedelta) and step % _DAY:
        refuse("SEQUENCE of dates has a step with hours", "CAST the start AS TIMESTAMP")
    if months:
        return _by_months(start, stop, step)
    count = (stop - start) // step + 1
    if count > LENGTH_MAX:
        refuse("SEQUENCE has more than ten million elements", "write a wider step")
    return [start + step * number for number in range(count)]


def _by_months(start: datetime.date, stop: datetime.date, months: int) -> list[datetime.date]:
    found: list[datetime.date] = []
    here = start
    while here <= stop if months > 0 else here >= stop:
        found.append(here)
        here = add_months(start, months * len(found))
    return found


def _sequence_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) not in (2, 3):
        raise do_not_fit(function, arguments, _TAKES)
    bounds, steps = arguments[:2], arguments[2:]
    found = find_common_type(each.type for each in bounds)
    if found is None or found.name not in ("BIGINT", "NULL", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        raise do_not_fit(function, arguments, _TAKES)
    kind = INT if found.name == "NULL" else found
    if kind.name == "BIGINT":
        if any(each.type.name not in ("BIGINT", "NULL") for each in steps):
            raise do_not_fit(function, arguments, _TAKES)
        kind = find_common_type([kind, *(each.type for each in steps)]) or kind
        steps = tuple(cast(each, kind) for each in steps)
    elif any(each.type.name not in ("INTERVAL", "MONTHS") for each in steps):
        raise do_not_fit(function, arguments, _TAKES)
    parts = (*(cast(each, kind) for each in bounds), *steps)
    return of(function, parts, array_of(kind.or_null(False), False))


FUNCTIONS = (
    ScalarFunction(
        name="SEQUENCE",
        resolve=_sequence_of,
        python=choose_always(_sequence),
        spark="sequence({all})",
    ),
)
"""The records."""
