"""The functions that make dates, times and intervals of numbers, and numbers of dates."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal

from penstock.scalars.casting import Compute, date_of_days, refuse, try_function, zone_of_name
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_always
from penstock.scalars.months import days_of_month
from penstock.scalars.resolving import cast, takes
from penstock.scalars.spark_forms import ZONES
from penstock.scalars.tree import Call, Scalar
from penstock.scalars.types import SqlType, decimal_type

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()

# Values


def _day(name: str, year: int, month: int, day: int) -> datetime.date:
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")
    if not (1 <= month <= 12 and 1 <= day <= days_of_month(year, month)):
        refuse(f"{name} of an SQL expression has no such month or day", "use a date of the calendar")
    return datetime.date(year, month, day)


def _local_time(
    year: int, month: int, day: int, hour: int, minute: int, seconds: Decimal
) -> datetime.datetime:
    date = _day("MAKE_TIMESTAMP", year, month, day)
    # As in Spark, 60 seconds are a minute.
    is_clock = 0 <= hour < 24 and 0 <= minute < 60 and (0 <= seconds < 60 or seconds == 60)
    if not is_clock:
        refuse("MAKE_TIMESTAMP of an SQL expression has no such time of day", "use at most 23:59:60")
    time = datetime.datetime(date.year, date.month, date.day, hour, minute)
    try:
        return time + datetime.timedelta(microseconds=int(seconds * 1_000_000))
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


def _moment(
    year: int, month: int, day: int, hour: int, minute: int, seconds: Decimal, zone: str = "UTC"
) -> datetime.datetime:
    local = _local_time(year, month, day, hour, minute, seconds)
    try:
        return local.replace(tzinfo=zone_of_name(zone)).astimezone(datetime.UTC)
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


def _interval(
    days: int = 0, hours: int = 0, minutes: int = 0, seconds: Decimal = Decimal(0)
) -> datetime.timedelta:
    micros = ((days * 24 + hours) * 60 + minutes) * 60_000_000 + math.trunc(seconds * 1_000_000)
    if not -(1 << 63) < micros < 1 << 63:
        refuse("an interval of an SQL expression has more than 64 bits", "use shorter intervals")
    return datetime.timedelta(microseconds=micros)


# Types


def _with_seconds(place: int, digits: SqlType, *forms: str) -> Resolve:
    """Takes numbers of which one is a number of seconds with a fraction."""
    typed = takes(*forms)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) > place:
            seconds = arguments[place]
            if seconds.type.is_number or seconds.type.name in ("STRING", "NULL"):
                seconds = cast(seconds, digits.or_null(seconds.type.nullable))
            arguments = (*arguments[:place], seconds, *arguments[place + 1 :])
        found = typed(function, arguments)
        if function.name.startswith("TRY_") and isinstance(found, Call):
            return function.of(found.arguments, found.type.or_null())
        return found

    return resolve


# Records


def _makes(
    name: str, kind: str, compute: Callable[..., datetime.datetime], takes_zone: bool
) -> ScalarFunction:
    made: Compute = try_function(compute) if name.startswith("TRY_") else compute
    zone = "[STRING] " if takes_zone else ""
    return ScalarFunction(
        name=name,
        resolve=_with_seconds(5, decimal_type(16, 6), f"INT INT INT INT INT DECIMAL {zone}-> {kind}"),
        python=choose_always(made),
        spark=f"{name.lower()}({{all}})",
        not_in_spark=ZONES if takes_zone else "",
    )


FUNCTIONS = (
    ScalarFunction(
        name="MAKE_DATE",
        resolve=takes("INT INT INT -> DATE"),
        python=choose_always(lambda *parts: _day("MAKE_DATE", *parts)),
        spark="make_date({all})",
    ),
    _makes("MAKE_TIMESTAMP", "TIMESTAMP", _moment, True),
    _makes("MAKE_TIMESTAMP_LTZ", "TIMESTAMP", _moment, True),
    _makes("MAKE_TIMESTAMP_NTZ", "TIMESTAMP_NTZ", _local_time, False),
    _makes("TRY_MAKE_TIMESTAMP", "TIMESTAMP", _moment, True),
    _makes("TRY_MAKE_TIMESTAMP_LTZ", "TIMESTAMP", _moment, True),
    _makes("TRY_MAKE_TIMESTAMP_NTZ", "TIMESTAMP_NTZ", _local_time, False),
    ScalarFunction(
        name="MAKE_DT_INTERVAL",
        resolve=_with_seconds(3, decimal_type(18, 6), "[INT] [INT] [INT] [DECIMAL] -> INTERVAL"),
        python=choose_always(_interval),
        spark="make_dt_interval({all})",
    ),
    ScalarFunction(
        name="UNIX_DATE",
        resolve=takes("DATE -> BIGINT"),
        python=choose_always(lambda day: day.toordinal() - _EPOCH_DAY),
        spark="unix_date({0})",
        whole="INT",
    ),
    ScalarFunction(
        name="DATE_FROM_UNIX_DATE",
        resolve=takes("INT -> DATE"),
        python=choose_always(lambda days: date_of_days(_EPOCH_DAY + days)),
        spark="date_from_unix_date({0})",
    ),
)
"""The records."""
