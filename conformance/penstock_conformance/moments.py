"""Reads and writes the times and windows of transcripts: seconds, clock times of 1970-01-01, dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from penstock.elements.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock_conformance.malformed import Malformed

TIME_PATTERN = (
    r"[-+]?inf|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[-+]\d\d:\d\d)?)?|\d\d:\d\d:\d\d(?:\.\d+)?|-?\d+(?:\.\d+)?"
)
"""Everything that `micros_of` takes, as a regular expression without groups."""

_WINDOW = re.compile(rf"\[\s*({TIME_PATTERN})\s*,\s*({TIME_PATTERN})\s*\)")
_CLOCK_TIME = re.compile(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)")
_HOUR_MICROS = 3_600_000_000
_DAY_MICROS = 24 * _HOUR_MICROS
_DAYS_MAX = 700_000
"""The approximate number of days before and after 1970 that have a date."""


def micros_of(text: str) -> int:
    """The microseconds since the epoch of a time in a transcript.

    A time is in seconds, ``HH:MM:SS[.f]``, ``YYYY-MM-DD``, ``YYYY-MM-DDTHH:MM+01:00``, ``inf`` or ``-inf``; a date
    without a zone is in UTC.

    >>> micros_of("1.5"), micros_of("00:01:00"), micros_of("1970-01-02") == micros_of("86400")
    (1500000, 60000000, True)
    """
    if text.lstrip("+-") == "inf":
        return MIN_MICROS if text.startswith("-") else MAX_MICROS
    if clock_time := _CLOCK_TIME.fullmatch(text):
        hours, minutes, seconds = clock_time.groups()
        return (int(hours) * 60 + int(minutes)) * 60_000_000 + _decimal_micros(seconds)
    try:
        if "-" in text[1:]:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            length = moment - datetime(1970, 1, 1, tzinfo=UTC)
            return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds
        return _decimal_micros(text)
    except ValueError:
        hint = "write seconds, 12:05:00, 2024-03-31 or 2024-03-31T12:00+02:00"
        raise Malformed(f"{text!r} is not a time", hint=hint) from None


def _decimal_micros(text: str) -> int:
    """Decimal seconds, exactly, which a float could not represent."""
    whole, _, fraction = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return sign * (abs(int(whole)) * 1_000_000 + int(f"{fraction:0<6}"[:6]))


def format_time(micros: int) -> str:
    """A time for people to read: seconds within the first hour, then clock times, then dates.

    >>> format_time(1_500_000), format_time(micros_of("12:05:30.25")), format_time(micros_of("2024-03-31"))
    ('1.5', '12:05:30.25', '2024-03-31T00:00:00Z')
    """
    if micros in (MIN_MICROS, MAX_MICROS):
        return "-inf" if micros == MIN_MICROS else "inf"
    if abs(micros) < _HOUR_MICROS:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        return f"{'-' if micros < 0 else ''}{seconds}{_fraction_text(fraction)}"
    days, within_day = divmod(micros, _DAY_MICROS)
    seconds, fraction = divmod(within_day, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction_text(fraction)}"
    if days == 0:
        return clock
    if not -_DAYS_MAX < days < _DAYS_MAX:
        return f"day {days} at {clock}"
    return f"{datetime.fromtimestamp(days * 86_400, UTC):%Y-%m-%d}T{clock}Z"


def _fraction_text(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


def window_of(text: str) -> BoundedWindow:
    """A window as transcripts write it: ``[start, end)``, or ``global``.

    >>> window_of("[0, 10)"), window_of("global")
    ([0.0, 10.0), GlobalWindow)
    """
    if text == "global":
        return GlobalWindow()
    if match := _WINDOW.fullmatch(text):
        return IntervalWindow.from_micros(*map(micros_of, match.groups()))
    raise Malformed(f"{text!r} is not a window", hint="write [0, 10) or global")


def format_window(window: BoundedWindow) -> str:
    """A window for people to read.

    >>> format_window(window_of("[12:00:00,12:02:00)"))
    '[12:00:00, 12:02:00)'
    """
    if isinstance(window, IntervalWindow):
        return f"[{format_time(window.start_micros)}, {format_time(window.end_micros)})"
    return "global" if window == GlobalWindow() else repr(window)
