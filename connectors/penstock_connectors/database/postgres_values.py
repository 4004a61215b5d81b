"""The settings with which our connections read PostgreSQL's values, and which values Python has no place for."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from penstock.error import refusal
from penstock.typehints.column_types import LOCAL_DATETIME

_SETTINGS = (
    "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false), "
    "set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false)"
)
"""The server writes values as text, which must say all of them, whatever the settings of the role are."""

_INTERVAL = re.compile(
    rb"(?:([-+]?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?"
    rb"(?:([-+])?(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
)
_DAY_MICROS = 86_400_000_000
_CLASSES: dict[str, tuple[Any, ...]] = {
    "date": (datetime.date,),
    "time": (datetime.time,),
    "timestamp": (datetime.datetime, LOCAL_DATETIME),
}


class UnrepresentableValue(psycopg.DataError):
    """A value that its column's Python class cannot hold; the text describes it."""


class IntervalLoader(Loader):
    """Reads an interval as a timedelta, which has days and microseconds, and no months."""

    def load(self, data: Buffer) -> datetime.timedelta:
        found = _INTERVAL.fullmatch(data)
        if found is None:
            is_infinite = bytes(data) in (b"infinity", b"-infinity")
            raise UnrepresentableValue(
                "an interval that is infinite" if is_infinite else "an interval in an unknown format"
            )
        years, months, days, sign, hours, minutes, seconds, fraction = found.groups()
        if int(years or 0) * 12 + int(months or 0):
            raise UnrepresentableValue("an interval with months, which have no fixed length")
        micros = 0
        if hours is not None:
            whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            micros = whole * 1_000_000 + int((fraction or b"").ljust(6, b"0"))
        try:
            return datetime.timedelta(int(days or 0), 0, -micros if sign == b"-" else micros)
        except OverflowError:
            raise UnrepresentableValue("an interval of more than 999999999 days") from None


def fix_settings(connection: psycopg.Connection[Any]) -> None:
    """Makes a connection read all values in the same way; the text of intervals is read here."""
    connection.adapters.register_loader("interval", IntervalLoader)
    connection.execute(_SETTINGS)
    if not connection.autocommit:
        connection.commit()


def format_interval(micros: int) -> str:
    """Returns a number of microseconds as the text of an interval, in days and the rest of a day.

    >>> format_interval(93_600_000_000), format_interval(-1)
    ('1 days 7200000000 microseconds', '0 days -1 microseconds')
    """
    days, rest = divmod(abs(micros), _DAY_MICROS)
    sign = -1 if micros < 0 else 1
    return f"{sign * days} days {sign * rest} microseconds"


def make_unrepresentable_error(
    error: BaseException, hints: Mapping[str, Any], whose: str, where: str
) -> ValueError | None:
    """Returns the refusal of a value that psycopg could not make; None for another error.

    Args:
        error: What was raised.
        hints: The types in Python of the columns, by their names.
        whose: What has the columns, such as ``the table scores``.
        where: The step.
    """
    if not isinstance(error, psycopg.DataError | OverflowError) or getattr(error, "sqlstate", None):
        return None
    classes, what = _describe_value(error)
    names = [
        name
        for name, hint in hints.items()
        if any(each in classes for each in (hint, *getattr(hint, "union_types", ())))
    ]
    column = f"the column {names[0]}" if len(names) == 1 else f"one of the columns {', '.join(names)}"
    if not names:
        column = "a column"
    hint = (
        f"cast it in a query, such as {names[0] if names else 'it'}::text, or leave it out with columns=[...]"
    )
    return refusal(ValueError, f"{column} of {whose} has {what}", where=where, hint=hint)


def _describe_value(error: BaseException) -> tuple[tuple[Any, ...], str]:
    """Returns the Python classes that the column may have, and a description of the value."""
    if isinstance(error, UnrepresentableValue):
        return (datetime.timedelta,), str(error)
    # psycopg names the type, and ends with the value, which no message may show.
    text = str(error)
    found = re.search(r"\b(date|timestamp|time)", text)
    kind = "" if found is None else found[1]
    classes = _CLASSES.get(kind, tuple(chain.from_iterable(_CLASSES.values())))
    if "infinity" in text:
        return classes, "the value infinity or -infinity, which Python's times lack"
    if "too large" in text or "too small" in text or isinstance(error, OverflowError):
        return classes, "a time outside of the years 1 to 9999"
    return classes, f"a value that Python cannot read as {kind or 'its type'}"
