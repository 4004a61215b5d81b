"""Cycles of days and of months: on which days of the calendar windows start.

Here a day is a date, as on a wall calendar. When it begins, in some time zone, is told in `time_zones`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date
from typing import Self

_EPOCH = date(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()


class CalendarCycle(ABC):
    """Divides the calendar into cycles, numbered; cycle 0 is the first that starts after 1969."""

    @abstractmethod
    def number_at(self, day: date) -> int:
        """The number of the cycle that a day is in."""

    @abstractmethod
    def number_from(self, day: date) -> int:
        """The number of the first cycle that starts on a day or after it."""

    @abstractmethod
    def first_day(self, number: int) -> date:
        """The first day of a cycle.

        Raises:
            ValueError: It is not in the years 1 to 9999.
            OverflowError: The same.
        """

    @abstractmethod
    def times(self, count: int, starting: date) -> Self:
        """Cycles of `count` of these each; one of them starts with the first of these on or after a day."""


@dataclass(frozen=True)
class DayCycle(CalendarCycle):
    """Cycles of so many days each.

    Attributes:
        days: How many.
        offset_days: How many days after the first of January 1970 cycle 0 starts; fewer than `days`.

    >>> weeks = DayCycle(7, offset_days=4)
    >>> weeks.number_at(date(1970, 1, 4)), weeks.first_day(-1).isoformat()
    (-1, '1969-12-29')
    """

    days: int
    offset_days: int = 0

    def number_at(self, day: date) -> int:
        """The number of the cycle that a day is in."""
        return (day.toordinal() - _EPOCH_ORDINAL - self.offset_days) // self.days

    def number_from(self, day: date) -> int:
        """The number of the first cycle that starts on a day or after it."""
        return -((_EPOCH_ORDINAL + self.offset_days - day.toordinal()) // self.days)

    def first_day(self, number: int) -> date:
        """The first day of a cycle."""
        return date.fromordinal(_EPOCH_ORDINAL + self.offset_days + number * self.days)

    def times(self, count: int, starting: date) -> DayCycle:
        """Cycles of `count` of these each; one of them starts with the first of these on or after a day."""
        return DayCycle(count * self.days, self.offset_days + self.number_from(starting) % count * self.days)


@dataclass(frozen=True)
class MonthCycle(CalendarCycle):
    """Cycles of so many months each, which all start on the same day of the month.

    Attributes:
        months: How many.
        offset_months: How many months after January 1970 cycle 0 starts; fewer than `months`.
        day: The day of the month: one that all months in which a cycle starts have.

    >>> years = MonthCycle(12, offset_months=3, day=6)
    >>> years.number_at(date(1971, 4, 5)), years.first_day(1).isoformat()
    (0, '1971-04-06')
    """

    months: int
    offset_months: int = 0
    day: int = 1

    def number_at(self, day: date) -> int:
        """The number of the cycle that a day is in."""
        months = _months_since_epoch(day) - (day.day < self.day)
        return (months - self.offset_months) // self.months

    def number_from(self, day: date) -> int:
        """The number of the first cycle that starts on a day or after it."""
        months = _months_since_epoch(day) + (day.day > self.day)
        return -((self.offset_months - months) // self.months)

    def first_day(self, number: int) -> date:
        """The first day of a cycle."""
        years, month = divmod(self.offset_months + number * self.months, 12)
        return date(_EPOCH.year + years, month + 1, self.day)

    def times(self, count: int, starting: date) -> MonthCycle:
        """Cycles of `count` of these each; one of them starts with the first of these on or after a day."""
        offset_months = self.offset_months + self.number_from(starting) % count * self.months
        return MonthCycle(count * self.months, offset_months, self.day)


def _months_since_epoch(day: date) -> int:
    return (day.year - _EPOCH.year) * 12 + day.month - 1
