"""The functions of times that a unit, such as MONTH or HOUR, is named for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

from penstock.checks.similar_names import find_nearest
from penstock.scalars.casting import refuse
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_always
from penstock.scalars.months import add_months, months_passed
from penstock.scalars.resolving import SqlTypeError, do_not_fit, takes
from penstock.scalars.times import in_utc, truncated
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import STRING

_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "DAYOFYEAR": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = (*_MICROS, *_MONTHS)
"""The units of TIMESTAMPADD and TIMESTAMPDIFF."""
_NAMES = {each: each for each in UNITS}


def name_unit(literal: Scalar, names: Mapping[str, str], hint: str) -> str:
    """Returns the unit that a text of the query names.

    Raises:
        SqlTypeError: There is no such unit.
    """
    value = literal.value if isinstance(literal, Literal) else None
    if not isinstance(value, str) or value.upper() not in names:
        near = find_nearest(str(value).upper(), names)
        raise SqlTypeError(f"unknown time unit {literal}", f"did you mean {near}?" if near else hint)
    return names[value.upper()]


# Values


def _add_units(unit: str, count: int, time: datetime.datetime) -> datetime.datetime:
    try:
        if unit in _MONTHS:
            return add_months(in_utc(time), count * _MONTHS[unit])
        return in_utc(time) + datetime.timedelta(microseconds=count * _MICROS[unit])
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


def _units_passed(unit: str, start: datetime.datetime, end: datetime.datetime) -> int:
    if unit in _MONTHS:
        return _quotient(months_passed(start, end), _MONTHS[unit])
    return _quotient((end - start) // datetime.timedelta(microseconds=1), _MICROS[unit])


def _quotient(value: int, divisor: int) -> int:
    return -(-value // divisor) if value < 0 else value // divisor


_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEKDAY_NAMES = {name: place for place, day in enumerate(_WEEKDAYS) for name in (day, day[:3], day[:2])}


def _next_day(day: datetime.date, name: str) -> datetime.date:
    wanted = _WEEKDAY_NAMES.get(name.upper())
    if wanted is None:
        refuse("NEXT_DAY names no day of the week", "write a name such as 'MONDAY' or 'MON'")
    try:
        return day + datetime.timedelta(days=(wanted - day.weekday() - 1) % 7 + 1)
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MM", "MON"), "MONTH"),
    "WEEK": "WEEK",
}


def _truncate_date(day: datetime.date, unit: str) -> datetime.date:
    first: datetime.datetime = truncated(unit, datetime.datetime(day.year, day.month, day.day))
    return first.date()


# Types


def _with_unit(names: Mapping[str, str], place: int, signature: str, hint: str) -> Resolve:
    """Takes a signature of which one argument is the name of a unit."""
    typed = takes(signature)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) <= place:
            raise do_not_fit(function, arguments, hint)
        unit = Literal(name_unit(arguments[place], names, hint), STRING.or_null(False))
        return typed(function, (*arguments[:place], unit, *arguments[place + 1 :]))

    return resolve


def _of_times(form: str, hint: str) -> Resolve:
    """Takes a unit and times, which have a zone or have none."""

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        is_local = any(each.type.name == "TIMESTAMP_NTZ" for each in arguments[1:])
        has_zone = any(each.type.name == "TIMESTAMP" for each in arguments[1:])
        kind = "TIMESTAMP_NTZ" if is_local and not has_zone else "TIMESTAMP"
        return _with_unit(_NAMES, 0, form.replace("TIME", kind), hint)(function, arguments)

    return resolve


# Spark


def _with_word(name: str) -> Callable[[Call, Sequence[str], str], str]:
    """The text of a call whose first argument is a word in Spark, and not a text."""

    def write(call: Call, operands: Sequence[str], overflow: str) -> str:
        unit = call.arguments[0]
        assert isinstance(unit, Literal)
        return f"{name}({unit.value}, {', '.join(operands[1:])})"

    return write


# Records

TIMESTAMPADD = ScalarFunction(
    name="TIMESTAMPADD",
    resolve=_of_times("STRING BIGINT TIME -> TIME", "a unit such as DAY, a number of units, and a time"),
    python=choose_always(_add_units),
    spark=_with_word("timestampadd"),
)
TIMESTAMPDIFF = ScalarFunction(
    name="TIMESTAMPDIFF",
    resolve=_of_times("STRING TIME TIME -> BIGINT", "a unit such as DAY, and two times"),
    python=choose_always(_units_passed),
    spark=_with_word("timestampdiff"),
)
WITH_UNITS = {
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), TIMESTAMPADD),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF", "TIMEDIFF"), TIMESTAMPDIFF),
}
"""The functions whose first one of three arguments is a word for a unit of time."""

FUNCTIONS = (
    TIMESTAMPADD,
    TIMESTAMPDIFF,
    ScalarFunction(
        name="NEXT_DAY",
        resolve=takes("DATE STRING -> DATE"),
        python=choose_always(_next_day),
        spark="next_day({all})",
    ),
    ScalarFunction(
        name="TRUNC",
        resolve=_with_unit(_TRUNCATED, 1, "DATE STRING -> DATE", "a date, and YEAR, QUARTER, MONTH or WEEK"),
        python=choose_always(_truncate_date),
        spark="trunc({all})",
    ),
)
"""The records."""
