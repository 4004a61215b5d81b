"""Plays sources that follow the clock, such as a `PeriodicImpulse`: it computes when their elements arrive.

A player of such a source asks for one interval of time after the other. The answers depend only on the arguments, so
that an interval can be played again after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from penstock.elements.bounded_window import TimestampedValue

__all__ = ["Schedule", "ScheduledSource", "find_next_due_micros", "is_over", "list_due_elements"]


@dataclass(frozen=True)
class Schedule:
    """Times at equal distances, each rounded up to a whole microsecond, numbered from 0.

    >>> schedule = Schedule(0, 1_000_000, per_period=3)
    >>> [schedule.due_micros(number) for number in range(4)]
    [0, 333334, 666667, 1000000]
    >>> schedule.count_before(333_334), schedule.count_before(333_335)
    (1, 2)
    """

    first_micros: int
    period_micros: int
    per_period: int = 1  # The number of times in a period.
    count: int | None = None  # The total number of times; None if they never end.

    def due_micros(self, number: int) -> int:
        """Returns the time of that number."""
        return self.first_micros - (-number * self.period_micros // self.per_period)

    def count_before(self, micros: int) -> int:
        """Returns the number of earlier times."""
        passed_micros = micros - self.first_micros - 1
        if passed_micros < 0:
            return 0
        count = passed_micros * self.per_period // self.period_micros + 1
        return count if self.count is None else min(count, self.count)


class ScheduledSource(Protocol):
    """A source whose elements are due at the times of a schedule."""

    def schedule_from(self, started_micros: int) -> Schedule:
        """Returns the schedule for a pipeline that starts at that time."""

    def element(self, number: int, due_micros: int) -> TimestampedValue[Any]:
        """Returns the element of a number, which is due at that time."""


def list_due_elements(
    source: ScheduledSource, started_micros: int, from_micros: int, until_micros: int
) -> list[TimestampedValue[Any]]:
    """Returns the elements that arrive from one time until just before another, in order.

    Elements that are due before the pipeline starts arrive at its start, and keep their event time. Consecutive
    intervals contain each element once; the first one must contain the start.

    >>> from penstock.io.streaming.periodic_sequence import PeriodicSource
    >>> letters = PeriodicSource(0, 100, 10, data=("a", "b", "c"))
    >>> [each.value for each in list_due_elements(letters, 25, 20, 30)]
    ['a', 'b', 'c']
    >>> [each.value for each in list_due_elements(letters, 25, 30, 50)]
    ['a', 'b']
    """
    schedule = source.schedule_from(started_micros)
    first = _count_until(schedule, started_micros, from_micros)
    return [
        source.element(number, schedule.due_micros(number))
        for number in range(first, _count_until(schedule, started_micros, until_micros))
    ]


def find_next_due_micros(source: ScheduledSource, started_micros: int, from_micros: int) -> int | None:
    """Returns when the first element arrives at `from_micros` or later; None without such an element.

    >>> from penstock.io.streaming.periodic_sequence import PeriodicSource
    >>> ticks = PeriodicSource(0, 100, 10)
    >>> find_next_due_micros(ticks, 25, 20), find_next_due_micros(ticks, 25, 31), find_next_due_micros(ticks, 25, 91)
    (25, 40, None)
    """
    schedule = source.schedule_from(started_micros)
    number = _count_until(schedule, started_micros, from_micros)
    if schedule.count is not None and number >= schedule.count:
        return None
    return max(schedule.due_micros(number), started_micros)


def is_over(source: ScheduledSource, started_micros: int, until_micros: int) -> bool:
    """True if all elements arrive before `until_micros`.

    >>> from penstock.io.streaming.periodic_sequence import PeriodicSource
    >>> is_over(PeriodicSource(0, 100, 10), 25, 90), is_over(PeriodicSource(0, 100, 10), 25, 91)
    (False, True)
    """
    return find_next_due_micros(source, started_micros, until_micros) is None


def _count_until(schedule: Schedule, started_micros: int, until_micros: int) -> int:
    """The number of elements that arrive before a time: none before the pipeline starts."""
    return schedule.count_before(until_micros) if until_micros > started_micros else 0
