"""The scale of the watermark that Spark keeps: its zero is the year 1, because Spark takes all before zero for late."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.error import refusal
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

SHIFT_MICROS = (_EPOCH - datetime(1, 1, 1, tzinfo=UTC)) // _MICROSECOND
"""The number to add to an event time for a time on Spark's scale."""

END_MICROS = MAX_TIMESTAMP.micros
"""The end of time on Spark's scale."""

LATENESS_MICROS_MAX = END_MICROS // 2
"""A window that accepts elements for this time, or longer, accepts them until the end of time."""

FIRST_MICROS = -SHIFT_MICROS
LAST_MICROS = END_MICROS - LATENESS_MICROS_MAX - SHIFT_MICROS
"""The ends of the event times whose windows have an end on Spark's scale, whatever their allowed lateness."""

AHEAD_METRIC = "penstock_ahead"
"""The metric with the number of elements too far ahead of the clock to move the watermark."""

ROWS_METRIC = "penstock_rows"
"""The metric with the number of rows of a source, if Spark also reads what are none."""

WRITTEN_METRIC = "penstock_written"
"""The metric with the number of rows that Spark makes for the sink."""

_END_YEAR = 200_000
"""A year behind all event times: a later watermark is the end of time."""

_CYCLE_YEARS = 400
_CYCLE_MICROS = 146_097 * 86_400_000_000
_MOMENT = re.compile(r"\+?(\d+)(-.*)Z")


def make_unsupported_by_spark_error() -> ValueError:
    """Returns the error about an event time that is not on Spark's scale."""
    what = "the event time of an element is before the year 1, or near the end of time, where Spark has no watermark"
    hint = "pass --without=native_streams and another checkpoint_location"
    return refusal(ValueError, what, where="", hint=hint)


def watermark_micros(told: str | None) -> int:
    """Converts Spark's report of a watermark to event time in microseconds; None if Spark keeps none yet.

    >>> watermark_micros("1970-01-01T00:00:00.000Z") == MIN_TIMESTAMP.micros
    True
    >>> watermark_micros("3939-01-01T00:00:01.500Z")
    1500000
    >>> watermark_micros("+294247-01-09T04:00:44.775Z") == MAX_TIMESTAMP.micros
    True
    """
    found = _MOMENT.fullmatch(told or "")
    if found is None:
        return MIN_TIMESTAMP.micros
    year = int(found[1])
    if year > _END_YEAR:
        return MAX_TIMESTAMP.micros
    # Python has no years after 9999, but the calendar begins again after 400 years.
    cycles = max(0, year - 2_000) // _CYCLE_YEARS
    moment = datetime.fromisoformat(f"{year - cycles * _CYCLE_YEARS:04}{found[2]}+00:00")
    micros = (moment - _EPOCH) // _MICROSECOND + cycles * _CYCLE_MICROS
    return micros - SHIFT_MICROS if micros else MIN_TIMESTAMP.micros
