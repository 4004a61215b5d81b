"""Java's patterns of times, such as ``yyyy-MM-dd``: times as text, and text as times."""

from __future__ import annotations

import calendar
import datetime
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from penstock.scalars.casting import refuse

Show = Callable[[datetime.datetime], str]
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_PARTS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z'\[\]{}#]+", re.DOTALL)


def _split(pattern: str) -> list[tuple[str, int]]:
    """Returns the parts of a pattern: letters with their number, and other characters with 0."""
    parts = []
    place = 0
    while place < len(pattern):
        found = _PARTS.match(pattern, place)
        if found is None:
            _refuse(pattern, f"has {pattern[place]} at a place where it means nothing")
        place, text = found.end(), found.group()
        if found[2]:
            parts.append((found[2], len(text)))
        else:
            parts.append(
                (("'" if text == "''" else found[1].replace("''", "'")) if found[1] is not None else text, 0)
            )
    return parts


def _refuse(pattern: str, what: str) -> NoReturn:
    letters = " ".join(sorted({*_SHOWN}, key=str.lower))
    refuse(
        f"the datetime pattern '{pattern}' {what}",
        f"use {letters}, and put anything else between single quotes",
    )


# Times as text: each letter is a field of a formatted string of Python

_Field = Callable[[int], str]


def _number(value: str) -> _Field:
    return lambda count: f"{value}:0{count}d"


def _year(count: int) -> str:
    return "time.year % 100:02d" if count == 2 else f"time.year:0{count}d"


def _month(count: int) -> str:
    if count < 3:
        return f"time.month:0{count}d"
    return f"{'SHORT_MONTHS' if count == 3 else 'MONTHS'}[time.month - 1]"


def _quarter(count: int) -> str:
    if count < 3:
        return f"(time.month + 2) // 3:0{count}d"
    return f"{'SHORT_QUARTERS' if count == 3 else 'QUARTERS'}[(time.month - 1) // 3]"


def _always(*shown: str) -> _Field:
    """A letter that shows the same for all times in UTC, by the number of letters."""
    return lambda count: repr(shown[count - 1])


_NAMES = {
    "MONTHS": _MONTHS,
    "SHORT_MONTHS": tuple(each[:3] for each in _MONTHS),
    "DAYS": _DAYS,
    "SHORT_DAYS": tuple(each[:3] for each in _DAYS),
    "QUARTERS": _QUARTERS,
    "SHORT_QUARTERS": ("Q1", "Q2", "Q3", "Q4"),
}
_SHOWN: Mapping[str, tuple[tuple[int, ...], _Field]] = {
    "G": ((1, 2, 3, 4), _always("AD", "AD", "AD", "Anno Domini")),
    "y": ((1, 2, 3, 4, 5, 6), _year),
    "M": ((1, 2, 3, 4), _month),
    "L": ((1, 2, 3, 4), _month),
    "Q": ((1, 2, 3, 4), _quarter),
    "q": ((1, 2, 3, 4), _quarter),
    "d": ((1, 2), _number("time.day")),
    "D": ((1, 2, 3), _number("time.timetuple().tm_yday")),
    "E": ((1, 2, 3, 4), lambda count: f"{'DAYS' if count == 4 else 'SHORT_DAYS'}[time.weekday()]"),
    "a": ((1,), lambda count: "'AM' if time.hour < 12 else 'PM'"),
    "H": ((1, 2), _number("time.hour")),
    "k": ((1, 2), _number("(time.hour or 24)")),
    "h": ((1, 2), _number("(time.hour % 12 or 12)")),
    "K": ((1, 2), _number("time.hour % 12")),
    "m": ((1, 2), _number("time.minute")),
    "s": ((1, 2), _number("time.second")),
    "S": (tuple(range(1, 10)), lambda count: f"format(time.microsecond * 1000, '09d')[:{count}]"),
    "V": ((2,), _always("", "UTC")),
    "z": ((1, 2, 3, 4), _always("UTC", "UTC", "UTC", "Coordinated Universal Time")),
    "O": ((1, 4), _always("GMT", "", "", "GMT")),
    "X": ((1, 2, 3, 4, 5), _always("Z", "Z", "Z", "Z", "Z")),
    "x": ((1, 2, 3, 4, 5), _always("+00", "+0000", "+00:00", "+0000", "+00:00")),
    "Z": ((1, 2, 3, 4, 5), _always("+0000", "+0000", "+0000", "GMT", "Z")),
}
"""The letters, how many of each may stand together, and what they show of a time in UTC."""


@functools.lru_cache(256)
def compile_format(pattern: str) -> Show:
    """Returns the function that shows a time, which is in UTC or has no zone, by a pattern.

    Raises:
        ArithmeticError: The pattern has a letter that is not supported.

    >>> show = compile_format("yyyy-MM-dd'T'HH:mm EEE")
    >>> show(datetime.datetime(2024, 2, 29, 12, 5))
    '2024-02-29T12:05 Thu'
    """
    parts = []
    for letter, count in _split(pattern):
        if not count:
            parts.append(repr(letter))
            continue
        counts, field = _SHOWN.get(letter, ((), None))
        if field is None or count not in counts:
            _refuse(pattern, f"has {letter * count}, which is not supported")
        parts.append(f'f"{{{field(count)}}}"')
    show: Show = eval(f"lambda time: {' '.join(parts) or repr('')}", dict(_NAMES))
    return show


# Text as times

_READ: Mapping[str, Mapping[int, str]] = {
    "y": {1: "[0-9]{1,19}", 2: "[0-9]{2}", 4: "[0-9]{4}"},
    "M": {1: "[0-9]{1,19}", 2: "[0-9]{2}", 3: "|".join(each[:3] for each in _MONTHS), 4: "|".join(_MONTHS)},
    "d": {1: "[0-9]{1,19}", 2: "[0-9]{2}"},
    "a": {1: "AM|PM"},
    **{letter: {1: "[0-9]{1,19}", 2: "[0-9]{2}"} for letter in "HhKkms"},
    "S": {count: f"[0-9]{{1,{count}}}" for count in range(1, 10)},
    "X": {
        1: "Z|[+-][0-9]{2}(?:[0-9]{2})?",
        2: "Z|[+-][0-9]{4}",
        3: "Z|[+-][0-9]{2}:[0-9]{2}",
    },
    "x": {
        1: "[+-][0-9]{2}(?:[0-9]{2})?",
        2: "[+-][0-9]{4}",
        3: "[+-][0-9]{2}:[0-9]{2}",
    },
    "Z": dict.fromkeys((1, 2, 3), "[+-][0-9]{4}"),
}
"""The letters that text is read by, and how it looks for each number of them."""
_LIMITS = {"H": (0, 23), "h": (1, 12), "K": (0, 11), "k": (1, 24), "m": (0, 59), "s": (0, 59)}


@dataclass(frozen=True)
class Reading:
    """Reads times of text by a pattern.

    Attributes:
        shape: The regular expression of the whole text.
        letters: The letter of each of its groups, with their number.
    """

    shape: re.Pattern[str]
    letters: tuple[tuple[str, int], ...]

    def __call__(self, text: str) -> datetime.datetime:
        """Returns the time, with a zone if the pattern has one.

        Raises:
            ArithmeticError: The text has another format, or is not a time of the calendar.
        """
        found = self.shape.fullmatch(text)
        if found is None:
            _refuse_text()
        parts: dict[str, int] = {}
        zone: datetime.tzinfo | None = None
        for (letter, count), part in zip(self.letters, found.groups(), strict=True):
            if letter in "XxZ":
                zone = _zone(part)
                continue
            value = _value(letter, count, part)
            if parts.setdefault(letter, value) != value:
                _refuse_text()
        return _time(parts, zone)


def _value(letter: str, count: int, part: str) -> int:
    match letter:
        case "S":
            return int(part.ljust(6, "0")[:6])
        case "a":
            return int(part.upper() == "PM")
        case "M" if count > 2:
            return [each[: len(part)].upper() for each in _MONTHS].index(part.upper()) + 1
        case "y" if count == 2:
            return 2000 + int(part)
    return int(part)


def _zone(part: str) -> datetime.tzinfo:
    if part in ("Z", "z"):
        return datetime.UTC
    digits = part[1:].replace(":", "").ljust(4, "0")
    offset = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if int(digits[2:]) > 59 or offset > datetime.timedelta(hours=18):
        _refuse_text()
    return datetime.timezone(-offset if part[0] == "-" else offset)


def _time(parts: Mapping[str, int], zone: datetime.tzinfo | None) -> datetime.datetime:
    for letter, (least, most) in _LIMITS.items():
        if not least <= parts.get(letter, least) <= most:
            _refuse_text()
    half = parts.get("a")
    hours = {parts[letter] % 24 for letter in "Hk" if letter in parts}
    hours |= {parts[letter] % 12 + 12 * (half or 0) for letter in "hK" if letter in parts}
    hour = hours.pop() if hours else 0
    year, month, day = (parts.get(letter, usual) for letter, usual in (("y", 1970), ("M", 1), ("d", 1)))
    is_day = 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]
    is_half = half is None or "H" not in parts or hour // 12 == half
    if hours or not is_day or not is_half:
        _refuse_text()
    return datetime.datetime(
        year, month, day, hour, parts.get("m", 0), parts.get("s", 0), parts.get("S", 0), zone
    )


def _refuse_text() -> NoReturn:
    refuse(
        "a string of an SQL expression does not match its datetime pattern",
        "TRY_TO_TIMESTAMP and TRY_TO_DATE return NULL instead",
    )


@functools.lru_cache(256)
def compile_reading(pattern: str) -> Reading:
    """Returns what reads times of text by a pattern; what the pattern lacks is that of 1970-01-01 00:00:00.

    Raises:
        ArithmeticError: The pattern has a letter that is not supported for reading.

    >>> compile_reading("dd/MM/yyyy")("29/02/2024")
    datetime.datetime(2024, 2, 29, 0, 0)
    """
    shape, letters = "", []
    open_ended = False
    for letter, count in _split(pattern):
        if not count:
            shape += re.escape(letter)
            open_ended = open_ended and not letter
            continue
        form = _READ.get(letter, {}).get(count)
        if form is None:
            _refuse(pattern, f"has {letter * count}, which is not supported for reading")
        is_number = form.startswith("[0-9]")
        if open_ended and is_number:
            _refuse(pattern, f"has {letter * count} behind digits without a fixed number")
        open_ended = is_number and "," in form
        shape += f"({form})"
        letters.append((letter, count))
    return Reading(re.compile(shape, re.IGNORECASE), tuple(letters))
