"""Moments in another unit than microseconds: whole numbers of a decimal part of a second."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any, overload

from penstock.error import three_parts
from penstock.utils.duration import MICROS_PER_SECOND, Duration, DurationTypes, micros_of
from penstock.utils.timestamp import Timestamp, TimestampDurationTypes

_POWERS: tuple[int, ...] = tuple(10**digits for digits in range(10))
"""What a second has of each precision."""


class PreciseTimestamp(Timestamp):
    """What ``Timestamp(precision=...)`` makes if the precision is not 6; it has no other constructor.

    What it adds, subtracts and compares is exact. A `Duration` has microseconds, so what is finer is refused.

    >>> Timestamp(1, 999_999_999, precision=9) < Timestamp(2)
    True
    >>> Timestamp(1, 500, precision=3).micros
    1500000
    """

    __slots__ = ("_digits", "_total")
    _total: int
    _digits: int

    def __init__(
        self,
        seconds: int | float = 0,
        subseconds: int | float = 0,
        precision: int = Timestamp.NANOS_PRECISION,
        *,
        micros: int | float | None = None,
    ) -> None:
        if not isinstance(precision, int):
            what = f"cannot interpret {precision!r} as precision"
            raise TypeError(three_parts(what, hint="give a whole number from 0 to 9"))
        if not 0 <= precision <= self.NANOS_PRECISION:
            what = f"the precision of a Timestamp is between 0 and 9, not {precision}"
            raise ValueError(three_parts(what, hint="give 9 for nanoseconds"))
        if micros is not None:
            what = f"micros={micros!r} are given, and precision={precision}"
            raise ValueError(three_parts(what, hint="use subseconds, which are in units of the precision"))
        total = micros_of(seconds, _POWERS[precision], "seconds") + micros_of(subseconds, 1, "subseconds")
        _set_total(self, total)
        _set_digits(self, precision)

    @property
    def micros(self) -> int:  # type: ignore[override]
        """Microseconds since the epoch; ValueError if they would not be exact."""
        return self._whole(self.exact_micros(), f"{self!r}")

    def exact_micros(self) -> int | Fraction:
        """Microseconds since the epoch, with a fraction if there is one."""
        micros = Fraction(self._total * MICROS_PER_SECOND, _POWERS[self._digits])
        return micros.numerator if micros.denominator == 1 else micros

    @staticmethod
    def _whole(micros: int | Fraction, what: str) -> int:
        if micros.denominator == 1:
            return micros.numerator
        raise ValueError(
            three_parts(
                f"{what} is finer than a microsecond",
                hint="cut it with to_precision(6, allow_lossy_conversion=True) first, or use nanos",
            )
        )

    def seconds(self) -> int:
        """Whole seconds since the epoch, rounded down."""
        return self._total // _POWERS[self._digits]

    def subseconds(self) -> int:
        """What is left of a second, in units of the precision."""
        return self._total % _POWERS[self._digits]

    def precision(self) -> int:
        """The decimal digits of a second that are held."""
        return self._digits

    @property
    def nanos(self) -> int:
        """Nanoseconds since the epoch."""
        return self._total * _POWERS[self.NANOS_PRECISION - self._digits]

    def predecessor(self) -> Timestamp:
        """The moment one unit of the precision earlier."""
        return _of_total(self._total - 1, self._digits)

    def successor(self) -> Timestamp:
        """The moment one unit of the precision later."""
        return _of_total(self._total + 1, self._digits)

    def to_utc_datetime(
        self, has_tz: bool = False, allow_lossy_conversion: bool = False
    ) -> datetime.datetime:
        """As for any Timestamp; digits below a microsecond are cut off if that is allowed."""
        micros = self.to_precision(self.MICROS_PRECISION, allow_lossy_conversion)
        return micros.to_utc_datetime(has_tz)

    def to_rfc3339(self) -> str:
        """The RFC 3339 string of this moment, in UTC, with the digits of its precision."""
        if self._digits <= self.MICROS_PRECISION:
            return super().to_rfc3339()
        fraction = f".{self.subseconds():0{self._digits}d}" if self.subseconds() else ""
        return Timestamp(self.seconds()).to_rfc3339()[:-1] + fraction + "Z"

    def __add__(self, other: DurationTypes) -> Timestamp:
        # What is coarser than microseconds becomes microseconds, since a Duration has them.
        digits = max(self._digits, self.MICROS_PRECISION)
        micros = Duration.of(other).micros * _POWERS[digits - self.MICROS_PRECISION]
        return _of_total(self._total * _POWERS[digits - self._digits] + micros, digits)

    __radd__ = __add__

    @overload
    def __sub__(self, other: Timestamp) -> Duration: ...
    @overload
    def __sub__(self, other: DurationTypes) -> Timestamp: ...
    def __sub__(self, other: TimestampDurationTypes) -> Duration | Timestamp:
        return _between(self, other) if isinstance(other, Timestamp) else self + -Duration.of(other)

    def __rsub__(self, other: Timestamp) -> Duration:
        # Python asks a subclass first, so this is also where a Timestamp of microseconds is on the left.
        return _between(other, self) if isinstance(other, Timestamp) else NotImplemented

    def __mod__(self, other: DurationTypes) -> Duration:
        micros = self.exact_micros() % Duration.of(other).micros
        return Duration.from_micros(self._whole(micros, f"what {self!r} is modulo {other!r}"))

    def __float__(self) -> float:
        return self.nanos / _POWERS[self.NANOS_PRECISION]

    def __int__(self) -> int:
        return self.seconds()

    def __repr__(self) -> str:
        seconds, fraction = divmod(abs(self._total), _POWERS[self._digits])
        digits = f".{fraction:0{self._digits}d}" if fraction else ""
        return f"Timestamp({'-' if self._total < 0 else ''}{seconds}{digits})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[int, ...]]:
        return _of_total, (self._total, self._digits)


def _of_total(total: int, precision: int) -> Timestamp:
    return Timestamp(subseconds=total, precision=precision)


def _between(later: Timestamp, earlier: Timestamp) -> Duration:
    micros = later.exact_micros() - earlier.exact_micros()
    return Duration.from_micros(
        PreciseTimestamp._whole(micros, f"the time between {earlier!r} and {later!r}")
    )


# A Timestamp is immutable: its own setters are those of its slots.
_set_total: Callable[[PreciseTimestamp, int], None] = PreciseTimestamp.__dict__["_total"].__set__
_set_digits: Callable[[PreciseTimestamp, int], None] = PreciseTimestamp.__dict__["_digits"].__set__
