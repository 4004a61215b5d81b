"""Times on an axis: the choice of those with a label, and the text of the label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import pairwise

from penstock.diagrams.markup import MINUS, measure_text

SECOND_MICROS = 1_000_000
MINUTE_MICROS = 60 * SECOND_MICROS
HOUR_MICROS = 60 * MINUTE_MICROS
DAY_MICROS = 24 * HOUR_MICROS

LABEL_SIZE = 11
"""The size of the labels' font."""

_LABEL_GAP = 14.0
_COLUMN_MIN = 46.0
_ROW_MIN = 34.0
"""The minimum distances of labels, in both directions."""

_DAYS_MAX = 700_000
"""The approximate number of days before and after 1970 that have a date."""

_STEPS = (
    *(number * 10**power for power in range(6) for number in (1, 2, 5)),
    *(number * SECOND_MICROS for number in (1, 2, 5, 10, 20, 30)),
    *(number * MINUTE_MICROS for number in (1, 2, 5, 10, 20, 30)),
    *(number * HOUR_MICROS for number in (1, 2, 3, 6, 12)),
    *(number * DAY_MICROS for number in (1, 2, 5)),
)
_STEPS_OF_DAYS = tuple(number * 10**power * DAY_MICROS for power in range(1, 12) for number in (1, 2, 5))
_STEPS_OF_MONTHS = (1, 2, 3, 6, *(12 * number * 10**power for power in range(4) for number in (1, 2, 5)))


class Style(Enum):
    """A way to label times."""

    STEPS = "the number of a step"
    LENGTH = "the length of time since the epoch"
    CLOCK = "the time of day, and the date"
    DAYS = "the number of days, where there are no dates"


def style_of(low_micros: int, high_micros: int) -> Style:
    """Returns the style for the times of a range: a length below an hour, otherwise the time of day.

    >>> style_of(0, 90 * SECOND_MICROS).name, style_of(12 * HOUR_MICROS, 13 * HOUR_MICROS).name
    ('LENGTH', 'CLOCK')
    """
    furthest_micros = max(abs(low_micros), abs(high_micros))
    if furthest_micros < HOUR_MICROS:
        return Style.LENGTH
    return Style.CLOCK if furthest_micros < _DAYS_MAX * DAY_MICROS else Style.DAYS


def format_moment(micros: int, style: Style) -> str:
    """Returns the exact text of a time.

    >>> format_moment(90_500_000, Style.LENGTH), format_moment(12 * HOUR_MICROS + 500_000, Style.CLOCK)
    ('90.5 s', '12:00:00.5')
    >>> format_moment(3_000_000, Style.STEPS)
    'step 3'
    """
    match style:
        case Style.STEPS:
            return f"step {_decimal(micros, SECOND_MICROS)}"
        case Style.LENGTH:
            return f"{_decimal(micros, SECOND_MICROS)} s"
        case Style.CLOCK if abs(micros) < _DAYS_MAX * DAY_MICROS:
            days, of_day = divmod(micros, DAY_MICROS)
            minutes, seconds_micros = divmod(of_day, MINUTE_MICROS)
            seconds = _decimal(seconds_micros, SECOND_MICROS)
            padding = "0" if seconds_micros < 10 * SECOND_MICROS else ""
            date = f"{_date(micros):%Y-%m-%d} " if days else ""
            return f"{date}{minutes // 60:02}:{minutes % 60:02}:{padding}{seconds}"
        case _:
            return f"day {_decimal(micros, DAY_MICROS)}"


def _decimal(micros: int, unit_micros: int) -> str:
    """Returns a number of units, with as many decimals as necessary."""
    whole, rest = divmod(abs(micros), unit_micros)
    fraction = f"{rest * 10**6 // unit_micros:06}".rstrip("0")
    return f"{MINUS if micros < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _date(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=micros // DAY_MICROS)


@dataclass(frozen=True)
class Labels:
    """The labels of an axis."""

    ticks: tuple[tuple[int, str], ...]  # Times, in microseconds since the epoch, and their labels.
    unit: str  # The unit of the labels, to stand after the axis's name; may be empty.


def make_labels(low_micros: int, high_micros: int, length: float, style: Style, is_upright: bool) -> Labels:
    """Returns the labels of an axis of a length: at round times, and so few that they do not touch.

    Labels of an upright axis need less room.

    >>> make_labels(0, 10 * MINUTE_MICROS, 600, Style.LENGTH, is_upright=False).ticks[:2]
    ((0, '0'), (60000000, '1'))
    """
    found = Labels((), "")
    for found in _candidates(low_micros, high_micros, length, style):
        room = length * _spacing(found.ticks) / max(high_micros - low_micros, 1)
        widest = max((measure_text(label, LABEL_SIZE) for _, label in found.ticks), default=0)
        if room >= (_ROW_MIN if is_upright else max(widest + _LABEL_GAP, _COLUMN_MIN)):
            break
    return found


def _spacing(ticks: tuple[tuple[int, str], ...]) -> float:
    """Returns the smallest distance between two times; a single one has all the room."""
    times = [micros for micros, _ in ticks]
    return min((later - before for before, later in pairwise(times)), default=10**30)


def _candidates(low_micros: int, high_micros: int, length: float, style: Style) -> Iterator[Labels]:
    """Labels at ever longer steps, except for steps that cannot fit."""
    least_micros = (high_micros - low_micros) * 1.5 * LABEL_SIZE / length
    for step in _STEPS if style is not Style.DAYS else ():
        if step >= least_micros and (style is not Style.STEPS or step >= SECOND_MICROS):
            yield _at_steps(low_micros, high_micros, step, style)
    if style is Style.CLOCK:
        for months in _STEPS_OF_MONTHS:
            if months * 30 * DAY_MICROS >= least_micros:
                yield _at_months(low_micros, high_micros, months)
    for step in _STEPS_OF_DAYS:
        if step >= least_micros:
            yield _at_steps(low_micros, high_micros, step, style)


def _at_steps(low_micros: int, high_micros: int, step: int, style: Style) -> Labels:
    first = -(-low_micros // step) * step
    moments = range(first, high_micros + 1, step)
    match style:
        case Style.STEPS:
            return Labels(tuple((micros, _decimal(micros, SECOND_MICROS)) for micros in moments), "")
        case Style.LENGTH:
            unit, name = (MINUTE_MICROS, "min") if step >= MINUTE_MICROS else (SECOND_MICROS, "s")
            return Labels(tuple((micros, _decimal(micros, unit)) for micros in moments), name)
        case Style.DAYS:
            return Labels(tuple((micros, _decimal(micros, DAY_MICROS)) for micros in moments), "days")
        case Style.CLOCK:
            return _at_times_of_day(tuple(moments), low_micros, high_micros, step)


def _at_times_of_day(moments: tuple[int, ...], low_micros: int, high_micros: int, step: int) -> Labels:
    """Returns times of day; each of several days begins with its date, and the date of a single day is the unit."""
    is_one_day = low_micros // DAY_MICROS == high_micros // DAY_MICROS
    digits = 5 if step >= MINUTE_MICROS else 8 if step >= SECOND_MICROS else 15
    ticks = []
    for micros in moments:
        if micros % DAY_MICROS == 0 and not is_one_day:
            ticks.append((micros, f"{_date(micros):%Y-%m-%d}"))
        else:
            of_day = format_moment(micros % DAY_MICROS, Style.CLOCK)
            ticks.append((micros, of_day[:digits]))
    has_date = is_one_day and low_micros // DAY_MICROS != 0
    return Labels(tuple(ticks), f"{_date(low_micros):%Y-%m-%d}" if has_date else "")


def _at_months(low_micros: int, high_micros: int, months: int) -> Labels:
    """Returns the first days of months or of years."""
    low, high = _date(low_micros), _date(high_micros)
    first, last = low.year * 12 + low.month - 1, high.year * 12 + high.month - 1
    ticks = []
    for month in range(-(-first // months) * months, last + 1, months):
        if month // 12 in range(1, 10_000):
            begin = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
            micros = (begin - datetime(1970, 1, 1, tzinfo=UTC)).days * DAY_MICROS
            if low_micros <= micros <= high_micros:
                ticks.append((micros, f"{begin:%Y-%m}" if months < 12 else f"{begin:%Y}"))
    return Labels(tuple(ticks), "")
