"""The functions of dates, times and intervals."""

from __future__ import annotations

import calendar
import datetime
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from penstock.checks.similar_names import find_nearest
from penstock.scalars.casting import (
    DECIMALS,
    Compute,
    date_of_days,
    moment_of_micros,
    refuse,
    whole_micros,
)
from penstock.scalars.function import Arguments, ScalarFunction, choose_always, write_by_template
from penstock.scalars.months import PARTS_OF_MONTHS, arithmetic_of_months, divided, scaled
from penstock.scalars.resolving import SqlTypeError, cast, do_not_fit, is_any_nullable, takes
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import (
    BIGINT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    decimal_type,
    find_common_type,
)

_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_INTERVAL_MAX = datetime.timedelta(microseconds=(1 << 63) - 1)


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    """Returns an instant in UTC, and a local time unchanged."""
    return moment if moment.tzinfo in (datetime.UTC, None) else moment.astimezone(datetime.UTC)


def _checked(compute: Compute) -> Compute:
    """Adds an error of our own for times that Python cannot hold."""

    @functools.wraps(compute)
    def checked(*values: object) -> object:
        try:
            found = compute(*values)
        except OverflowError:
            refuse(
                "a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times"
            )
        if isinstance(found, datetime.timedelta) and not -_INTERVAL_MAX <= found <= _INTERVAL_MAX:
            refuse("an interval of an SQL expression has more than 64 bits", "use shorter intervals")
        return found

    return checked


# Arithmetic


@_checked
def add_times(left: Any, right: Any) -> Any:
    """Returns a time and an interval, or two intervals, added."""
    if isinstance(left, datetime.timedelta):
        left, right = right, left
    return (in_utc(left) if isinstance(left, datetime.datetime) else left) + right


@_checked
def subtract_times(left: Any, right: Any) -> Any:
    """Returns an earlier time, or the interval between two times."""
    if isinstance(left, datetime.datetime):
        left = in_utc(left)
    return left - right


negate_interval = _checked(lambda value: -value)


@_checked
def multiply_interval(interval: datetime.timedelta, factor: float | Decimal) -> datetime.timedelta:
    """Returns an interval that is longer by a factor, rounded half up to microseconds."""
    return scaled(interval // _MICROSECOND, factor) * _MICROSECOND


@_checked
def divide_interval(interval: datetime.timedelta, divisor: float | Decimal) -> datetime.timedelta:
    """Returns an interval divided by a number, rounded half up to microseconds."""
    return divided(interval // _MICROSECOND, divisor) * _MICROSECOND


def arithmetic_of_times(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """Returns the call of an operator of which an operand is a time or an interval."""
    left, right = arguments
    if "MONTHS" in (left.type.name, right.type.name):
        return arithmetic_of_months(function, arguments)
    name, may_be_null = function.name, is_any_nullable(arguments)
    if (
        name == "+"
        and (right.type.is_time or right.type.name in ("INTERVAL", "NULL"))
        and not left.type.is_time
    ):
        left, right = (right, left) if right.type.is_time else (left, right)
    elif name == "*" and right.type.name == "INTERVAL":
        left, right = right, left
    kinds = left.type.name, right.type.name
    if name in ("+", "-"):
        if left.type.is_time and right.type.name in ("BIGINT", "INT") and left.type.name == "DATE":
            return (DATE_ADD if name == "+" else DATE_SUB)(left, right)
        if name == "-" and kinds == ("TIMESTAMP_NTZ", "NULL"):
            return function.of((left, cast(right, left.type)), INTERVAL)
        if left.type.is_time and right.type.name in ("INTERVAL", "NULL"):
            right = cast(right, INTERVAL)
            if left.type.name == "DATE" and not _has_whole_days(right):
                left = cast(left, TIMESTAMP)
            return function.of((left, right), left.type.or_null(may_be_null))
        if set(kinds) <= {"INTERVAL", "NULL"}:
            return function.of((cast(left, INTERVAL), cast(right, INTERVAL)), INTERVAL.or_null(may_be_null))
        found = find_common_type((left.type, right.type))
        if name == "-" and found is not None and found.is_time:
            return function.of((cast(left, found), cast(right, found)), INTERVAL.or_null(may_be_null))
    elif (
        name in ("*", "/")
        and left.type.name == "INTERVAL"
        and (right.type.is_number or right.type.name == "NULL")
    ):
        factor = cast(right, BIGINT) if right.type.name == "NULL" else right
        return function.of((left, factor), INTERVAL.or_null(may_be_null))
    raise do_not_fit(function, arguments)


def _has_whole_days(scalar: Scalar) -> bool:
    """True if an interval is a number of days, so that a date stays a date."""
    return (
        isinstance(scalar, Literal)
        and isinstance(scalar.value, datetime.timedelta)
        and not scalar.value % datetime.timedelta(days=1)
    )


def dates_text(call: Call, operands: Sequence[str]) -> str | None:
    """Returns the text in Spark's SQL of a sum or a difference of dates; None if the call is of other values."""
    left, right = call.arguments
    if call.type.name == "DATE" and isinstance(right, Literal):
        days = right.value.days
        return f"date_add({operands[0]}, {days if call.name == '+' else -days})"
    if left.type.name == right.type.name == "DATE":
        return f"CAST(({operands[0]} {call.name} {operands[1]}) AS INTERVAL DAY TO SECOND)"
    return None


# Parts of times

_Read = Callable[[Any], Any]


def _of_utc(read: _Read) -> Compute:
    return lambda time: read(in_utc(time) if isinstance(time, datetime.datetime) else time)


def _seconds_with_fraction(time: datetime.datetime) -> Decimal:
    return DECIMALS.scaleb(Decimal(time.second * 1_000_000 + time.microsecond), -6)


_TRUNCATIONS: dict[str, Compute] = {
    "YEAR": lambda time: _midnight(time).replace(month=1, day=1),
    "QUARTER": lambda time: _midnight(time).replace(month=(time.month - 1) // 3 * 3 + 1, day=1),
    "MONTH": lambda time: _midnight(time).replace(day=1),
    "WEEK": lambda time: _midnight(time) - time.weekday() * _DAY,
    "DAY": lambda time: _midnight(time),
    "HOUR": lambda time: time.replace(minute=0, second=0, microsecond=0),
    "MINUTE": lambda time: time.replace(second=0, microsecond=0),
    "SECOND": lambda time: time.replace(microsecond=0),
    "MILLISECOND": lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000),
    "MICROSECOND": lambda time: time,
}
"""The beginning of each unit of time."""


def _midnight(time: datetime.datetime) -> datetime.datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


@_checked
def truncated(unit: str, time: datetime.datetime) -> datetime.datetime:
    """Returns the beginning of a unit of time, in UTC."""
    found: datetime.datetime = _TRUNCATIONS[unit](in_utc(time))
    return found


# Dates


def _date_add(day: datetime.date, days: int) -> datetime.date:
    return date_of_days(day.toordinal() + days)


# Instants


def _date_bin(width: datetime.timedelta, time: datetime.datetime) -> datetime.datetime:
    if width <= datetime.timedelta(0):
        refuse("the interval of DATE_BIN is not above 0", "write an interval such as INTERVAL '5' MINUTE")
    micros = whole_micros(time)
    size = width // _MICROSECOND
    return moment_of_micros(micros // size * size, time.tzinfo)


def _timestamp_seconds(seconds: float | int | Decimal) -> datetime.datetime | None:
    if not math.isfinite(seconds):
        return None
    micros = DECIMALS.scaleb(seconds, 6) if isinstance(seconds, Decimal) else seconds * 1_000_000
    if isinstance(micros, Decimal) and micros % 1:
        refuse("TIMESTAMP_SECONDS has a part of a microsecond", "write ROUND(seconds, 6)")
    return moment_of_micros(math.trunc(micros))


# Types

_UNITS = dict(zip(_TRUNCATIONS, _TRUNCATIONS, strict=True)) | {
    "YYYY": "YEAR",
    "YY": "YEAR",
    "MON": "MONTH",
    "MM": "MONTH",
    "DD": "DAY",
}
"""The units of time as DATE_TRUNC names them."""


def _extract(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "a part of time, and a time")
    name = _named(arguments[0], _PART_NAMES, "part of a time")
    of_interval = {"INTERVAL": PARTS_OF_INTERVAL, "MONTHS": PARTS_OF_MONTHS}.get(arguments[1].type.name)
    if of_interval is None:
        return _PARTS[name](arguments[1])
    unit = name.removeprefix("EXTRACT ")
    if unit not in of_interval:
        raise SqlTypeError(f"this interval has no part {unit}", f"write one of {', '.join(of_interval)}")
    return of_interval[unit](arguments[1])


def _named(literal: Scalar, names: dict[str, str], what: str) -> str:
    value = literal.value if isinstance(literal, Literal) else None
    if not isinstance(value, str) or value.upper() not in names:
        near = find_nearest(str(value), names)
        raise SqlTypeError(
            f"unknown {what} {literal}", f"did you mean {near}?" if near else "write DAY or HOUR"
        )
    return names[value.upper()]


def _date_trunc_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "a unit of time, and a time")
    unit = Literal(_named(arguments[0], _UNITS, "unit of time"), STRING.or_null(False))
    return takes("STRING TIMESTAMP -> TIMESTAMP")(function, (unit, arguments[1]))


# Spark


def _date_bin_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    width, time = call.arguments
    if not isinstance(width, Literal) or width.value is None or time.type.name != "TIMESTAMP":
        raise NotForSpark("DATE_BIN is not a function of Spark")
    micros = width.value // datetime.timedelta(microseconds=1)
    if micros <= 0:
        raise NotForSpark("the interval of DATE_BIN is not above 0")
    since = f"unix_micros({operands[1]})"
    return f"timestamp_micros({since} - pmod({since}, {micros}L))"


# Records

_OF_DAY = ("DATE -> BIGINT", "TIMESTAMP -> BIGINT", "TIMESTAMP_NTZ -> BIGINT")
_OF_CLOCK = ("TIMESTAMP -> BIGINT", "TIMESTAMP_NTZ -> BIGINT")


def _part(
    name: str, read: _Read, *others: str, of: tuple[str, ...] = _OF_DAY, spark: str = ""
) -> tuple[ScalarFunction, tuple[str, ...]]:
    """The record of a part of a time; EXTRACT also knows it by `others`."""
    return ScalarFunction(
        name=name,
        resolve=takes(*of, decimals=lambda arguments: decimal_type(8, 6)),
        spellings=("DAYOFMONTH",) if name == "DAY" else (),
        python=choose_always(_of_utc(read)),
        inline=write_by_template(dict.fromkeys(("DATE", "TIMESTAMP_NTZ"), f"{{0}}.{name.lower()}"))
        if name.lower() in _ATTRIBUTES
        else None,
        spark=spark or f"{name.lower()}({{0}})",
        whole="INT",
    ), (*others,) if name == "WEEKDAY" else (name, *others)


_ATTRIBUTES = frozenset(["year", "month", "day", "hour", "minute", "second"])
_NAMED_PARTS = (
    _part("YEAR", lambda time: time.year, "Y", "YEARS", "YR", "YRS"),
    _part("QUARTER", lambda time: (time.month + 2) // 3, "QTR"),
    _part("MONTH", lambda time: time.month, "MON", "MONS", "MONTHS"),
    _part("WEEKOFYEAR", lambda time: time.isocalendar().week, "WEEK", "W", "WEEKS"),
    _part("YEAROFWEEK", lambda time: time.isocalendar().year, spark="extract(YEAROFWEEK FROM {0})"),
    _part("DAY", lambda time: time.day, "D", "DAYS", "DAYOFMONTH"),
    _part("DAYOFWEEK", lambda time: time.isoweekday() % 7 + 1, "DOW"),
    _part(
        "DAYOFWEEK_ISO",
        lambda time: time.isoweekday(),
        "DOW_ISO",
        spark="extract(DAYOFWEEK_ISO FROM {0})",
    ),
    _part("WEEKDAY", lambda time: time.weekday()),
    _part("DAYOFYEAR", lambda time: time.timetuple().tm_yday, "DOY"),
    _part("HOUR", lambda time: time.hour, "H", "HOURS", "HR", "HRS", of=_OF_CLOCK),
    _part("MINUTE", lambda time: time.minute, "M", "MIN", "MINS", "MINUTES", of=_OF_CLOCK),
    _part("SECOND", lambda time: time.second, of=_OF_CLOCK),
    _part(
        "EXTRACT SECOND",
        _seconds_with_fraction,
        *("SECOND", "S", "SEC", "SECS", "SECONDS"),
        of=("TIMESTAMP -> DECIMAL", "TIMESTAMP_NTZ -> DECIMAL"),
        spark="extract(SECOND FROM {0})",
    ),
)
_PARTS = {function.name: function for function, _ in _NAMED_PARTS}
_PART_NAMES = {name: function.name for function, names in _NAMED_PARTS for name in names}
"""The parts of a time as EXTRACT names them."""


def _part_of_interval(name: str, length: int, whole: int) -> ScalarFunction:
    """The record of a part of an interval: how many units are in what is left of a longer unit."""

    def read(interval: datetime.timedelta) -> int:
        micros = interval // _MICROSECOND
        found = abs(micros) % whole // length
        return -found if micros < 0 else found

    return ScalarFunction(
        name=f"{name} OF INTERVAL",
        resolve=takes("INTERVAL -> BIGINT"),
        python=choose_always(read),
        spark=f"extract({name} FROM {{0}})",
        whole="INT" if name == "DAY" else "TINYINT",
    )


def _seconds_of_interval(interval: datetime.timedelta) -> Decimal:
    micros = interval // _MICROSECOND
    rest = abs(micros) % 60_000_000
    return DECIMALS.scaleb(Decimal(-rest if micros < 0 else rest), -6)


PARTS_OF_INTERVAL = {
    "DAY": _part_of_interval("DAY", 86_400_000_000, 1 << 64),
    "HOUR": _part_of_interval("HOUR", 3_600_000_000, 86_400_000_000),
    "MINUTE": _part_of_interval("MINUTE", 60_000_000, 3_600_000_000),
    "SECOND": ScalarFunction(
        name="SECOND OF INTERVAL",
        resolve=takes("INTERVAL -> DECIMAL", decimals=lambda arguments: decimal_type(8, 6)),
        python=choose_always(_seconds_of_interval),
        spark="extract(SECOND FROM {0})",
    ),
}
"""The parts of an interval of days and less, by the names that EXTRACT has for them."""


def _name_part(name: str, names: tuple[str, ...], read: _Read) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes("DATE -> STRING"),
        python=choose_always(lambda day: names[read(day)]),
        spark=f"{name.lower()}({{0}})",
    )


DATE_ADD = ScalarFunction(
    name="DATE_ADD",
    resolve=takes("DATE INT -> DATE"),
    spellings=("DATEADD",),
    python=choose_always(_date_add),
    spark="date_add({all})",
)
DATE_SUB = ScalarFunction(
    name="DATE_SUB",
    resolve=takes("DATE INT -> DATE"),
    python=choose_always(lambda day, days: _date_add(day, -days)),
    spark="date_sub({all})",
)

FUNCTIONS = (
    *_PARTS.values(),
    *PARTS_OF_INTERVAL.values(),
    ScalarFunction(name="EXTRACT", resolve=_extract, spellings=("DATE_PART", "DATEPART")),
    _name_part("DAYNAME", ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), lambda day: day.weekday()),
    _name_part("MONTHNAME", tuple(calendar.month_abbr), lambda day: day.month),
    ScalarFunction(
        name="DATE_TRUNC",
        resolve=_date_trunc_of,
        python=choose_always(truncated),
        spark="date_trunc({0}, {1})",
    ),
    DATE_ADD,
    DATE_SUB,
    ScalarFunction(
        name="DATEDIFF",
        resolve=takes("DATE DATE -> BIGINT"),
        spellings=("DATE_DIFF",),
        python=choose_always(lambda end, start: end.toordinal() - start.toordinal()),
        spark="datediff({0}, {1})",
        whole="INT",
    ),
    ScalarFunction(
        name="DATE_BIN",
        resolve=takes("INTERVAL TIMESTAMP -> TIMESTAMP", "INTERVAL TIMESTAMP_NTZ -> TIMESTAMP_NTZ"),
        python=choose_always(_date_bin),
        spark=_date_bin_text,
    ),
    ScalarFunction(
        name="UNIX_SECONDS",
        resolve=takes("TIMESTAMP -> BIGINT"),
        python=choose_always(lambda moment: whole_micros(moment) // 1_000_000),
        spark="unix_seconds({0})",
    ),
    ScalarFunction(
        name="UNIX_MILLIS",
        resolve=takes("TIMESTAMP -> BIGINT"),
        python=choose_always(lambda moment: whole_micros(moment) // 1_000),
        spark="unix_millis({0})",
    ),
    ScalarFunction(
        name="UNIX_MICROS",
        resolve=takes("TIMESTAMP -> BIGINT"),
        python=choose_always(whole_micros),
        spark="unix_micros({0})",
    ),
    ScalarFunction(
        name="TIMESTAMP_SECONDS",
        resolve=takes("BIGINT -> TIMESTAMP", "DECIMAL -> TIMESTAMP", "DOUBLE -> TIMESTAMP?"),
        python=choose_always(_timestamp_seconds),
        spark="timestamp_seconds({0})",
    ),
    ScalarFunction(
        name="TIMESTAMP_MILLIS",
        resolve=takes("BIGINT -> TIMESTAMP"),
        python=choose_always(lambda millis: moment_of_micros(millis * 1000)),
        spark="timestamp_millis({0})",
    ),
    ScalarFunction(
        name="TIMESTAMP_MICROS",
        resolve=takes("BIGINT -> TIMESTAMP"),
        python=choose_always(lambda micros: moment_of_micros(micros)),
        spark="timestamp_micros({0})",
    ),
)
"""The records."""
