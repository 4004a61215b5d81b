"""Windows of days, weeks, months and years in the calendar of a time zone."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Self

from penstock.checks.time_zones import find_time_zone, local_date, start_of_day
from penstock.elements.bounded_window import IntervalWindow
from penstock.error import refusal
from penstock.utils.timestamp import Timestamp
from penstock.windows.window_fn import ByTimestamp, NonMergingWindowFn

_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()


class CalendarCycle(ABC):
    """Divides the calendar into numbered cycles; cycle 0 is the first that starts after 1969."""

    @abstractmethod
    def number_at(self, day: datetime.date) -> int:
        """Returns the number of the cycle that contains a day."""

    @abstractmethod
    def number_from(self, day: datetime.date) -> int:
        """Returns the number of the first cycle that starts on a day or after it."""

    @abstractmethod
    def first_day(self, number: int) -> datetime.date:
        """Returns the first day of a cycle; a ValueError or OverflowError outside the years 1 to 9999."""

    @abstractmethod
    def times(self, count: int, starting: datetime.date) -> Self:
        """Cycles of `count` of these; one of them starts with the first of these on or after a day."""


@dataclass(frozen=True)
class DayCycle(CalendarCycle):
    """Cycles of some days; cycle 0 starts `offset_days`, fewer than `days`, after the first of January 1970.

    >>> weeks = DayCycle(7, offset_days=4)
    >>> weeks.number_at(datetime.date(1970, 1, 4)), weeks.first_day(-1).isoformat()
    (-1, '1969-12-29')
    """

    days: int
    offset_days: int = 0

    def number_at(self, day: datetime.date) -> int:
        return (day.toordinal() - _EPOCH_ORDINAL - self.offset_days) // self.days

    def number_from(self, day: datetime.date) -> int:
        return -((_EPOCH_ORDINAL + self.offset_days - day.toordinal()) // self.days)

    def first_day(self, number: int) -> datetime.date:
        return datetime.date.fromordinal(_EPOCH_ORDINAL + self.offset_days + number * self.days)

    def times(self, count: int, starting: datetime.date) -> DayCycle:
        return DayCycle(count * self.days, self.offset_days + self.number_from(starting) % count * self.days)


@dataclass(frozen=True)
class MonthCycle(CalendarCycle):
    """Cycles of some months; cycle 0 starts `offset_months`, fewer than `months`, after January 1970.

    All cycles start on the same `day` of the month, which every month in which one starts must have.

    >>> years = MonthCycle(12, offset_months=3, day=6)
    >>> years.number_at(datetime.date(1971, 4, 5)), years.first_day(1).isoformat()
    (0, '1971-04-06')
    """

    months: int
    offset_months: int = 0
    day: int = 1

    def number_at(self, day: datetime.date) -> int:
        months = _months_since_epoch(day) - (day.day < self.day)
        return (months - self.offset_months) // self.months

    def number_from(self, day: datetime.date) -> int:
        months = _months_since_epoch(day) + (day.day > self.day)
        return -((self.offset_months - months) // self.months)

    def first_day(self, number: int) -> datetime.date:
        years, month = divmod(self.offset_months + number * self.months, 12)
        return datetime.date(_EPOCH.year + years, month + 1, self.day)

    def times(self, count: int, starting: datetime.date) -> MonthCycle:
        offset_months = self.offset_months + self.number_from(starting) % count * self.months
        return MonthCycle(count * self.months, offset_months, self.day)


def _months_since_epoch(day: datetime.date) -> int:
    return (day.year - _EPOCH.year) * 12 + day.month - 1


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_SECONDS = 86_400
_SECOND_MICROS = 1_000_000
_DAY_MICROS = _DAY_SECONDS * _SECOND_MICROS
_YEARS_MAX = 1000


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CalendarWindows(ByTimestamp, NonMergingWindowFn):
    """Assigns elements to windows of calendar time, made by `days`, `weeks`, `months` and `years` (Beam Java's name).

    A window begins with its first day in a time zone of the IANA database, and ends where the next one begins: a day
    on which clocks are set forward has 23 hours. If a zone skips midnight, the day begins with its first instant; if
    midnight comes twice, with the first one.

    Windows lie in the years 1 to 9999. An element outside of them raises a ValueError; usually it has no timestamp, and
    so is at `MIN_TIMESTAMP`.

    >>> from penstock.transforms.window import WindowFn
    >>> noon = Timestamp.from_rfc3339("2024-03-31T12:00:00Z")
    >>> (window,) = CalendarWindows.days(time_zone="Europe/Berlin").assign(WindowFn.AssignContext(noon))
    >>> window.start.to_rfc3339(), window.end - window.start
    ('2024-03-30T23:00:00Z', Duration(82800))
    """

    cycle: CalendarCycle
    time_zone: str

    def __init__(self, cycle: CalendarCycle, time_zone: str = "UTC") -> None:
        if not isinstance(cycle, CalendarCycle):
            what = f"CalendarWindows takes a cycle of the calendar, not {cycle!r}"
            hint = "use CalendarWindows.days(1), or .weeks, .months or .years"
            raise refusal(TypeError, what, hint=hint)
        find_time_zone(time_zone)
        vars(self).update(cycle=cycle, time_zone=time_zone)

    @classmethod
    def days(
        cls, number: int = 1, *, starting: datetime.date = datetime.date(1970, 1, 1), time_zone: str = "UTC"
    ) -> CalendarWindows:
        """Returns windows of several days.

        Args:
            number: The number of days.
            starting: The first day of one of the windows.
            time_zone: The zone of the days, such as "Europe/Berlin".

        >>> CalendarWindows.days(time_zone="Asia/Tokyo").assign_micros(0)
        ([-32400.0, 54000.0),)
        """
        count = _checked("number of days", number, 365 * _YEARS_MAX)
        return cls(DayCycle(1).times(count, _date(starting)), time_zone)

    @classmethod
    def weeks(
        cls,
        number: int = 1,
        first_day: int | str = 0,
        *,
        starting: datetime.date = datetime.date(1970, 1, 1),
        time_zone: str = "UTC",
    ) -> CalendarWindows:
        """Returns windows of several weeks.

        Args:
            number: The number of weeks.
            first_day: The first day of a week: its name, or its number from 0 for Monday to 6 for Sunday.
            starting: One of the windows starts with the first such day on or after this one.
            time_zone: The zone of the days.

        >>> CalendarWindows.weeks(first_day="sunday").assign_micros(0)
        ([-345600.0, 259200.0),)
        """
        count = _checked("number of weeks", number, 52 * _YEARS_MAX)
        week = DayCycle(7, (_weekday(first_day) - _EPOCH.weekday()) % 7)
        return cls(week.times(count, _date(starting)), time_zone)

    @classmethod
    def months(
        cls,
        number: int = 1,
        first_day_of_month: int = 1,
        *,
        starting: datetime.date = datetime.date(1970, 1, 1),
        time_zone: str = "UTC",
    ) -> CalendarWindows:
        """Returns windows of several months.

        Args:
            number: The number of months.
            first_day_of_month: The day of the month on which windows start, from 1 to 28.
            starting: One of the windows starts with the first such day on or after this one.
            time_zone: The zone of the days.

        >>> CalendarWindows.months(3).assign_micros(0)
        ([0.0, 7776000.0),)
        """
        count = _checked("number of months", number, 12 * _YEARS_MAX)
        # Not every month has the days 29 to 31.
        month = MonthCycle(1, 0, _checked("first_day_of_month parameter", first_day_of_month, 28))
        return cls(month.times(count, _date(starting)), time_zone)

    @classmethod
    def years(
        cls,
        number: int = 1,
        month: int = 1,
        day: int = 1,
        *,
        starting: datetime.date = datetime.date(1970, 1, 1),
        time_zone: str = "UTC",
    ) -> CalendarWindows:
        """Returns windows of several years.

        Args:
            number: The number of years.
            month: The month in which windows start, from 1 to 12.
            day: The day of that month; not the 29th of February.
            starting: One of the windows starts with the first such day on or after this one.
            time_zone: The zone of the days.

        >>> CalendarWindows.years(month=4, day=6, time_zone="Europe/London")
        CalendarWindows.years(1, month=4, day=6, time_zone='Europe/London')
        """
        count = _checked("number of years", number, _YEARS_MAX)
        first_month, first_day = _checked("month parameter", month, 12), _checked("day parameter", day, 31)
        try:
            datetime.date(_EPOCH.year, first_month, first_day)
        except ValueError:
            what = f"windows cannot start with month={month} and day={day} in every year"
            raise refusal(ValueError, what, hint="pass a day that every year has") from None
        year = MonthCycle(12, first_month - 1, first_day)
        return cls(year.times(count, _date(starting)), time_zone)

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        for window in _windows_on(self.cycle, self.time_zone, timestamp_micros // _DAY_MICROS):
            if timestamp_micros < window[0].end_micros:
                return window
        what = f"timestamp beyond the range of the calendar: {Timestamp.from_micros(timestamp_micros)}"
        hint = "give elements timestamps in the years 1 to 9999, for example with TimestampedValue"
        raise refusal(ValueError, what, where=f"in {self}", hint=hint)

    def __repr__(self) -> str:
        first = self.cycle.first_day(0)
        match self.cycle:
            case DayCycle(days) if days % 7 == 0:
                number, call, start = days // 7, "weeks", f", first_day={_WEEKDAYS[first.weekday()]!r}"
            case DayCycle(days):
                number, call, start = days, "days", ""
            case MonthCycle(months) if months % 12 == 0:
                number, call, start = months // 12, "years", f", month={first.month}, day={first.day}"
            case MonthCycle(months):
                number, call, start = months, "months", f", first_day_of_month={first.day}"
        starting = f", starting={first!r}" if number > 1 else ""
        return f"{type(self).__name__}.{call}({number}{start}{starting}, time_zone={self.time_zone!r})"


@lru_cache(maxsize=40_000)
def _windows_on(cycle: CalendarCycle, time_zone: str, utc_day: int) -> tuple[tuple[IntervalWindow], ...]:
    """Returns the windows that contain times of a day of UTC, numbered from the epoch; in order, each as a tuple.

    The cache makes assigning fast: most elements are on a day that another element was on.
    """
    zone = find_time_zone(time_zone)
    first_second = utc_day * _DAY_SECONDS
    found = []
    try:
        # Clocks that are set back over midnight show the day before again, whose window may be over by then; a zone
        # that skips days leaves windows empty. So some of the windows may contain no time of this day.
        number = cycle.number_at(local_date(first_second, zone))
        start = start_of_day(cycle.first_day(number), zone)
        while start < first_second + _DAY_SECONDS:
            number += 1
            end = start_of_day(cycle.first_day(number), zone)
            found.append((IntervalWindow.from_micros(start * _SECOND_MICROS, end * _SECOND_MICROS),))
            start = end
    except (ValueError, OverflowError):
        pass  # Here the calendar ends.
    return tuple(found)


def _checked(noun: str, number: int, most: int) -> int:
    hint = f"pass an int from 1 to {most}"
    try:
        count = index(number)
    except TypeError:
        what = f"the {noun} must be an int, but is {number!r}"
        raise refusal(TypeError, what, hint=hint) from None
    if not 1 <= count <= most:
        what = f"the {noun} must be from 1 to {most}, but is {number!r}"
        raise refusal(ValueError, what, hint=hint)
    return count


def _weekday(first_day: int | str) -> int:
    match first_day:
        case str() if first_day.lower() in _WEEKDAYS:
            return _WEEKDAYS.index(first_day.lower())
        case int() if 0 <= first_day < len(_WEEKDAYS):
            return first_day
    what = f"the first_day parameter is not a day of the week: {first_day!r}"
    hint = "pass its name, such as 'sunday', or its number from 0 for Monday to 6 for Sunday"
    raise refusal(ValueError, what, hint=hint)


def _date(starting: datetime.date) -> datetime.date:
    if isinstance(starting, datetime.date) and not isinstance(starting, datetime.datetime):
        return starting
    what = f"the starting parameter must be a date without a time, but is {starting!r}"
    raise refusal(TypeError, what, hint="pass a day, such as datetime.date(1970, 1, 1)")
