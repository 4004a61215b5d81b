"""Time zones by their names, and the start of a day in one."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, timedelta, tzinfo

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal, three_parts
from penstock.where import here

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_DAY_SECONDS = 86_400


def find_time_zone(name: str) -> tzinfo:
    """Returns a time zone of the IANA database; UTC works even on a machine without such a database.

    Raises:
        TypeError: The name is not a string.
        ValueError: There is no such zone, or no database.
    """
    if not isinstance(name, str):
        hint = "pass its name as a string, such as 'Europe/Berlin'"
        raise refusal(TypeError, f"the time zone is {name!r}", hint=hint)
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(_not_found(name)) from None


def _not_found(name: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        what = f"no time zone {name!r}: this machine has no database of time zones"
        return three_parts(what, where=here(), hint="install the package tzdata on all machines")
    hint = hint_at_name(name, known, "use a name such as 'Europe/Berlin'")
    return three_parts(f"no time zone {name!r}", where=here(), hint=hint)


def local_date(seconds: int, zone: tzinfo) -> date:
    """Returns the date that the calendars of a zone show at a time, in seconds since the epoch.

    OverflowError if the year is not between 1 and 9999.
    """
    return (_EPOCH + timedelta(seconds=seconds)).astimezone(zone).date()


def start_of_day(day: date, zone: tzinfo) -> int:
    """The first second since the epoch at which the calendars of a zone show a date, or a later one if they skip it.

    That is midnight. If clocks are set forward over midnight, it is the time of that; if they are set back so that
    midnight comes twice, it is the first.

    >>> start_of_day(date(1970, 1, 2), find_time_zone("Asia/Tokyo"))
    54000
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    first, second = (_seconds_of(midnight.replace(fold=fold)) for fold in (0, 1))
    if first <= second:
        return first
    # There is no midnight: clocks are set forward from before it, at a time between these two.
    while first - second > 1:
        middle = (first + second) // 2
        if local_date(middle, zone) < day:
            second = middle
        else:
            first = middle
    return first


def _seconds_of(midnight: datetime) -> int:
    offset = midnight.utcoffset() or timedelta(0)
    days = midnight.toordinal() - _EPOCH_ORDINAL
    return days * _DAY_SECONDS - offset // timedelta(seconds=1)
