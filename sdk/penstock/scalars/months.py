"""Intervals of months, whose values are numbers of months, and the functions of dates that count in months."""

from __future__ import annotations

import calendar
import datetime
import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, TypeVar

from penstock.scalars.casting import divide_by_zero, refuse, whole_micros
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import cast, do_not_fit, is_any_nullable, takes
from penstock.scalars.tree import Scalar
from penstock.scalars.types import BIGINT, MONTHS

_Day = TypeVar("_Day", bound=datetime.date)
_DAY_SECONDS = 86_400

# Values


def checked_months(months: int) -> int:
    """Returns a number of months that an interval may have; another one is refused."""
    if not -(1 << 31) <= months < 1 << 31:
        _refuse_length()
    return months


def days_of_month(year: int, month: int) -> int:
    """Returns the number of days of a month.

    >>> days_of_month(2024, 2)
    29
    """
    return calendar.monthrange(year, month)[1]


def add_months(day: _Day, months: int) -> _Day:
    """Returns the day with the same number in another month, or the last day of that month, at the same time of day.

    >>> add_months(datetime.date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")
    return day.replace(year=year, month=month + 1, day=min(day.day, days_of_month(year, month + 1)))


def _in_utc(time: _Day) -> _Day:
    return time.astimezone(datetime.UTC) if isinstance(time, datetime.datetime) and time.tzinfo else time


def scaled(count: int, factor: float | Decimal) -> int:
    """Returns a number of months or microseconds times a factor, rounded half up.

    >>> scaled(5, 0.5), scaled(-5, 0.5)
    (3, -3)
    """
    if not isinstance(factor, float):
        return _half_up(count * Fraction(factor))
    product = count * factor
    return _half_up(Fraction(product)) if math.isfinite(product) else _refuse_length()


def divided(count: int, divisor: float | Decimal) -> int:
    """Returns a number of months or microseconds divided by a number, rounded half up.

    >>> divided(7, 2), divided(-7, 2.0)
    (4, -4)
    """
    if not divisor:
        divide_by_zero()
    if not isinstance(divisor, float):
        return _half_up(count / Fraction(divisor))
    quotient = count / divisor
    return _half_up(Fraction(quotient)) if math.isfinite(quotient) else _refuse_length()


def _refuse_length() -> NoReturn:
    refuse("an interval of an SQL expression is too long", "use shorter intervals")


def _half_up(value: Fraction) -> int:
    rounded = int(abs(value) + Fraction(1, 2))
    return -rounded if value < 0 else rounded


def months_passed(start: datetime.datetime, end: datetime.datetime) -> int:
    """Returns the number of whole months from one time to another.

    >>> months_passed(datetime.datetime(2024, 1, 31), datetime.datetime(2024, 3, 30))
    1
    """
    start, end = _in_utc(start), _in_utc(end)
    last = end.date()
    if last > start.date() and end.time() < start.time():
        last -= datetime.timedelta(days=1)
    elif last < start.date() and end.time() > start.time():
        last += datetime.timedelta(days=1)
    # Days count as parts of months of 32 days.
    days = _days_of_32(last) - _days_of_32(start)
    return -(-days // 32) if days < 0 else days // 32


def _days_of_32(day: datetime.date) -> int:
    return (day.year * 12 + day.month) * 32 + day.day


def _months_between(later: datetime.datetime, earlier: datetime.datetime, is_rounded: bool = True) -> float:
    later, earlier = _in_utc(later), _in_utc(earlier)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    are_last = all(each.day == days_of_month(each.year, each.month) for each in (later, earlier))
    if later.day == earlier.day or are_last:
        return float(months)
    clocks = [whole_micros(each) // 1_000_000 % _DAY_SECONDS for each in (later, earlier)]
    seconds = (later.day - earlier.day) * _DAY_SECONDS + clocks[0] - clocks[1]
    found = months + seconds / (31.0 * _DAY_SECONDS)
    return _round_half_up(found * 1e8) / 1e8 if is_rounded else found


def _round_half_up(value: float) -> int:
    return int(Decimal(value + 0.5).to_integral_value(decimal.ROUND_FLOOR))


def _make_months(years: int = 0, months: int = 0) -> int:
    return checked_months(12 * years + months)


# Arithmetic


def arithmetic_of_months(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """Returns the call of an operator of which an operand is an interval of months.

    Raises:
        SqlTypeError: The other operand does not fit.
    """
    left, right = arguments
    nullable = is_any_nullable(arguments)
    if function.name in ("+", "-") and "NULL" in (left.type.name, right.type.name):
        left, right = (cast(each, MONTHS) if each.type.name == "NULL" else each for each in (left, right))
    match function.name, left.type.name, right.type.name:
        case "+", "MONTHS", "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ":
            return arithmetic_of_months(function, (right, left))
        case (("+" | "-"), "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ", "MONTHS"):
            months = right if function.name == "+" else _NEGATED.of((right,), right.type)
            return _MOVED.of((left, months), left.type.or_null(nullable))
        case (("+" | "-"), "MONTHS", "MONTHS"):
            sign = _SUM if function.name == "+" else _DIFFERENCE
            return sign.of((left, right), MONTHS.or_null(nullable))
        case "*", _, "MONTHS":
            return arithmetic_of_months(function, (right, left))
        case (("*" | "/"), "MONTHS", "BIGINT" | "DOUBLE" | "DECIMAL"):
            scaled = _SCALED if function.name == "*" else _DIVIDED
            return scaled.of((left, right), MONTHS.or_null(nullable))
        case (("*" | "/"), "MONTHS", "NULL"):
            return _SCALED.of((left, cast(right, BIGINT)), MONTHS)
    raise do_not_fit(function, arguments)


# Records


def _of_months(name: str, compute: Callable[..., int], spark: str) -> ScalarFunction:
    return ScalarFunction(name=name, python=choose_always(compute), spark=spark)


_MOVED = ScalarFunction(
    name="+ MONTHS",
    python=choose_always(lambda time, months: add_months(_in_utc(time), months)),
    spark="({0} + {1})",
)
_NEGATED = _of_months("- MONTHS", lambda months: checked_months(-months), "(- {0})")
_SUM = _of_months("MONTHS + MONTHS", lambda left, right: checked_months(left + right), "({0} + {1})")
_DIFFERENCE = _of_months("MONTHS - MONTHS", lambda left, right: checked_months(left - right), "({0} - {1})")
_SCALED = _of_months(
    "MONTHS * NUMBER", lambda months, factor: checked_months(scaled(months, factor)), "({0} * {1})"
)
_DIVIDED = _of_months(
    "MONTHS / NUMBER", lambda months, divisor: checked_months(divided(months, divisor)), "({0} / {1})"
)


def _years_of(months: int) -> int:
    return int(months / 12)


def _rest_of(months: int) -> int:
    return -(-months % 12) if months < 0 else months % 12


PARTS_OF_MONTHS = {
    "YEAR": ScalarFunction(
        name="YEAR OF MONTHS",
        resolve=takes("MONTHS -> BIGINT"),
        python=choose_always(_years_of),
        spark="extract(YEAR FROM {0})",
        whole="INT",
    ),
    "MONTH": ScalarFunction(
        name="MONTH OF MONTHS",
        resolve=takes("MONTHS -> BIGINT"),
        python=choose_always(_rest_of),
        spark="extract(MONTH FROM {0})",
        whole="TINYINT",
    ),
}
"""The parts of an interval of months, by the names that EXTRACT has for them."""

FUNCTIONS = (
    *(_MOVED, _NEGATED, _SUM, _DIFFERENCE, _SCALED, _DIVIDED),
    *PARTS_OF_MONTHS.values(),
    ScalarFunction(
        name="ADD_MONTHS",
        resolve=takes("DATE INT -> DATE"),
        python=choose_always(add_months),
        spark="add_months({all})",
    ),
    ScalarFunction(
        name="LAST_DAY",
        resolve=takes("DATE -> DATE"),
        python=choose_always(lambda day: day.replace(day=days_of_month(day.year, day.month))),
        spark="last_day({0})",
    ),
    ScalarFunction(
        name="MONTHS_BETWEEN",
        resolve=takes("TIMESTAMP TIMESTAMP [BOOLEAN] -> DOUBLE"),
        python=choose_always(_months_between),
        spark="months_between({all})",
    ),
    ScalarFunction(
        name="MAKE_YM_INTERVAL",
        resolve=takes("[INT] [INT] -> MONTHS"),
        python=choose_always(_make_months),
        spark="make_ym_interval({all})",
    ),
)
"""The records."""
