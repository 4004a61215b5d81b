"""Moments in event time and lengths of time, both as whole microseconds.

Floats lose precision when added up, so both types hold a Python integer. Names and arithmetic are Beam's;
its precisions other than microseconds are refused by name.
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable
from operator import index
from typing import Any, NoReturn, Self, TypeAlias, Union, overload

from penstock.error import three_parts

TimestampTypes: TypeAlias = Union[int, float, "Timestamp"]
DurationTypes: TypeAlias = Union[int, float, "Duration"]
TimestampDurationTypes: TypeAlias = Union[int, float, "Duration", "Timestamp"]

_MICROS_PER_SECOND = 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONG_FRACTION = re.compile(r"[0-9]{2}[.,][0-9]{6}([0-9]+)")


def _micros_of(number: Any, unit_micros: int, noun: str) -> int:
    """A number of units as microseconds; a fraction of a microsecond is cut off towards zero, as in Beam."""
    if isinstance(number, (int, float)):
        return int(number * unit_micros)
    try:
        return index(number) * unit_micros
    except TypeError:
        raise TypeError(
            three_parts(
                f"cannot interpret a {type(number).__name__} as {noun}", hint="give an int or a float"
            )
        ) from None


class _Micros:
    """An immutable number of microseconds: what `Timestamp` and `Duration` share."""

    __slots__ = ("micros",)
    micros: int

    @classmethod
    def from_micros(cls, micros: int) -> Self:
        """The value of that many microseconds: the fast constructor, which checks nothing (penstock's own).

        >>> Timestamp.from_micros(1_500_000), Duration.from_micros(-1)
        (Timestamp(1.5), Duration(-0.000001))
        """
        value = _new(cls)
        _set_micros(value, micros)
        return value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            three_parts(f"{type(self).__name__} is immutable", hint="make a new one by arithmetic")
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return type(self).from_micros, (self.micros,)

    def __hash__(self) -> int:
        # A Timestamp and a Duration that compare equal hash equal; numbers do not, as in Beam.
        return hash(self.micros)

    def __eq__(self, other: object) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.micros == micros

    def __lt__(self, other: TimestampDurationTypes) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.micros < micros

    def __le__(self, other: TimestampDurationTypes) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.micros <= micros

    def __gt__(self, other: TimestampDurationTypes) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.micros > micros

    def __ge__(self, other: TimestampDurationTypes) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.micros >= micros

    def __float__(self) -> float:
        return self.micros / _MICROS_PER_SECOND

    def __int__(self) -> int:
        return self.micros // _MICROS_PER_SECOND

    def __repr__(self) -> str:
        seconds, fraction = divmod(abs(self.micros), _MICROS_PER_SECOND)
        sign = "-" if self.micros < 0 else ""
        digits = f".{fraction:06d}".rstrip("0") if fraction else ""
        return f"{type(self).__name__}({sign}{seconds}{digits})"


_new = object.__new__
_set_micros: Callable[[_Micros, int], None] = _Micros.__dict__["micros"].__set__


def _comparable(other: object) -> int | None:
    """The microseconds that a comparison sees in `other`; None if it is neither time nor number."""
    if isinstance(other, _Micros):
        return other.micros
    if isinstance(other, (int, float)):
        return int(other * _MICROS_PER_SECOND)
    return None


class Timestamp(_Micros):
    """A moment: microseconds since the Unix epoch (Beam's ``Timestamp``).

    Any size is held exactly; windows, not timestamps, stop at `MIN_TIMESTAMP` and `MAX_TIMESTAMP`.

    Args:
        seconds: Seconds since the epoch; what a float has below a microsecond is cut off towards zero.
        subseconds: Microseconds to add.
        precision: Decimal digits of a second; only 6.
        micros: Another name for `subseconds`.

    Raises:
        TypeError: An argument is no number.
        ValueError: The precision is not 6, or both `subseconds` and `micros` are given.

    >>> Timestamp(1.5) + 2, Timestamp(10) - Timestamp(4), Timestamp(-1) % 60
    (Timestamp(3.5), Duration(6), Duration(59))
    >>> Timestamp(5) < 5.5 and Timestamp(5) == 5
    True
    """

    __slots__ = ()
    MICROS_PRECISION = 6
    NANOS_PRECISION = 9

    def __init__(
        self,
        seconds: int | float = 0,
        subseconds: int | float = 0,
        precision: int = MICROS_PRECISION,
        *,
        micros: int | float | None = None,
    ) -> None:
        if precision != 6 or not isinstance(precision, int):
            _refuse_precision(precision)
        if micros is not None:
            if subseconds:
                raise ValueError(
                    three_parts(
                        f"micros={micros!r} and subseconds={subseconds!r} are both given",
                        hint="they mean the same; give one",
                    )
                )
            subseconds = micros
        whole = _micros_of(seconds, _MICROS_PER_SECOND, "seconds")
        _set_micros(self, whole + _micros_of(subseconds, 1, "microseconds") if subseconds != 0 else whole)

    @staticmethod
    def of(seconds: TimestampTypes | datetime.datetime) -> Timestamp:
        """The moment a number of seconds after the epoch, or of an aware UTC ``datetime``.

        A Timestamp stays itself.

        Raises:
            TypeError: `seconds` is of another type, such as a `Duration`.

        >>> Timestamp.of(3)
        Timestamp(3)
        """
        if isinstance(seconds, Timestamp):
            return seconds
        if isinstance(seconds, datetime.datetime):
            return Timestamp.from_utc_datetime(seconds)
        return Timestamp.from_micros(_micros_of(seconds, _MICROS_PER_SECOND, "a Timestamp"))

    @staticmethod
    def now() -> Timestamp:
        """The time of the machine's clock.

        >>> Timestamp.now() > Timestamp.from_rfc3339("2020-01-01T00:00:00Z")
        True
        """
        return Timestamp(time.time())

    @classmethod
    def from_utc_datetime(cls, dt: datetime.datetime) -> Timestamp:
        """The moment of an aware ``datetime`` whose zone is UTC.

        Raises:
            ValueError: `dt` has no zone, or its zone is not UTC.

        >>> Timestamp.from_utc_datetime(datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc))
        Timestamp(86400)
        """
        if dt.tzinfo is None:
            what = "dt has no timezone info"
            raise ValueError(three_parts(what, hint="add tzinfo=datetime.timezone.utc if it is in UTC"))
        if dt.tzname() != "UTC" or dt.utcoffset():
            hint = "convert it with dt.astimezone(datetime.timezone.utc)"
            raise ValueError(three_parts("dt not in UTC", hint=hint))
        return cls.from_micros((dt - _EPOCH) // datetime.timedelta(microseconds=1))

    @classmethod
    def from_rfc3339(cls, rfc3339: str) -> Timestamp:
        """The moment that an RFC 3339 string names, whatever its offset from UTC.

        Raises:
            ValueError: The string is no such string, lacks an offset (Beam would silently take the machine's
                own zone), or is finer than a microsecond.

        >>> Timestamp.from_rfc3339("1970-01-01T01:00:00.25+01:00")
        Timestamp(0.25)
        """
        try:
            moment = datetime.datetime.fromisoformat(rfc3339)
        except ValueError:
            # The string is data, mostly, and Python's own text shows it.
            what = f"could not parse the RFC 3339 string of {len(rfc3339)} characters"
            raise ValueError(three_parts(what, hint="write it like 2009-02-13T23:31:30Z")) from None
        if moment.tzinfo is None:
            what = (
                f"could not parse the RFC 3339 string of {len(rfc3339)} characters: it has no offset from UTC"
            )
            raise ValueError(three_parts(what, hint="end it with Z or an offset such as +01:00"))
        finer = _LONG_FRACTION.search(rfc3339)
        if finer and finer[1].strip("0"):
            what = f"could not parse the RFC 3339 string of {len(rfc3339)} characters: it is finer than a microsecond"
            raise ValueError(three_parts(what, hint="cut the fraction to six digits"))
        return cls.from_utc_datetime(moment.astimezone(datetime.UTC))

    def seconds(self) -> int:
        """Whole seconds since the epoch, rounded down.

        >>> Timestamp(-1.5).seconds(), Timestamp(-1.5).subseconds()
        (-2, 500000)
        """
        return self.micros // _MICROS_PER_SECOND

    def subseconds(self) -> int:
        """Microseconds since the last whole second: 0 to 999999."""
        return self.micros % _MICROS_PER_SECOND

    def precision(self) -> int:
        """The decimal digits of a second that are held: always 6."""
        return self.MICROS_PRECISION

    @property
    def nanos(self) -> int:
        """Nanoseconds since the epoch."""
        return self.micros * 1000

    def to_precision(self, precision: int, allow_lossy_conversion: bool = False) -> Timestamp:
        """This moment, if `precision` is 6.

        Raises:
            ValueError: Another precision is asked for.
        """
        if precision != self.MICROS_PRECISION:
            _refuse_precision(precision)
        return self

    def predecessor(self) -> Timestamp:
        """The moment a microsecond earlier.

        >>> Timestamp(1).predecessor(), Timestamp(1).successor()
        (Timestamp(0.999999), Timestamp(1.000001))
        """
        return Timestamp.from_micros(self.micros - 1)

    def successor(self) -> Timestamp:
        """The moment a microsecond later."""
        return Timestamp.from_micros(self.micros + 1)

    def to_utc_datetime(
        self, has_tz: bool = False, allow_lossy_conversion: bool = False
    ) -> datetime.datetime:
        """The ``datetime`` of this moment in UTC; aware if `has_tz`, else naive as Beam's default is.

        Raises:
            OverflowError: The year is not between 1 and 9999.

        >>> Timestamp(0.5).to_utc_datetime(has_tz=True).isoformat()
        '1970-01-01T00:00:00.500000+00:00'
        """
        moment = _EPOCH + datetime.timedelta(microseconds=self.micros)
        return moment if has_tz else moment.replace(tzinfo=None)

    def to_rfc3339(self) -> str:
        """The RFC 3339 string of this moment, in UTC.

        Raises:
            OverflowError: The year is not between 1 and 9999.

        >>> Timestamp(1234567890).to_rfc3339()
        '2009-02-13T23:31:30Z'
        """
        return self.to_utc_datetime().isoformat() + "Z"

    def __add__(self, other: DurationTypes) -> Timestamp:
        if type(other) is int:
            return Timestamp.from_micros(self.micros + other * _MICROS_PER_SECOND)
        return Timestamp.from_micros(self.micros + Duration.of(other).micros)

    __radd__ = __add__

    @overload
    def __sub__(self, other: Timestamp) -> Duration: ...
    @overload
    def __sub__(self, other: DurationTypes) -> Timestamp: ...
    def __sub__(self, other: TimestampDurationTypes) -> Duration | Timestamp:
        if isinstance(other, Timestamp):
            return Duration.from_micros(self.micros - other.micros)
        return Timestamp.from_micros(self.micros - Duration.of(other).micros)

    def __mod__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros % Duration.of(other).micros)


class Duration(_Micros):
    """A length of time in microseconds, of either sign (Beam's ``Duration``).

    Args:
        seconds: Seconds; what a float has below a microsecond is cut off towards zero.
        micros: Microseconds to add.

    Raises:
        TypeError: An argument is no number.

    >>> Duration(90) - 30, Duration(2) * 1.5, -Duration(micros=250_000), Duration(7) % 4
    (Duration(60), Duration(3), Duration(-0.25), Duration(3))
    """

    __slots__ = ()

    def __init__(self, seconds: int | float = 0, micros: int | float = 0) -> None:
        whole = _micros_of(seconds, _MICROS_PER_SECOND, "seconds")
        _set_micros(self, whole + _micros_of(micros, 1, "microseconds"))

    @staticmethod
    def of(seconds: DurationTypes) -> Duration:
        """The length of a number of seconds; a Duration stays itself.

        Raises:
            TypeError: `seconds` is of another type, such as a `Timestamp`.

        >>> Duration.of(0.5)
        Duration(0.5)
        """
        if isinstance(seconds, Duration):
            return seconds
        return Duration.from_micros(_micros_of(seconds, _MICROS_PER_SECOND, "a Duration"))

    def __neg__(self) -> Duration:
        return Duration.from_micros(-self.micros)

    def __add__(self, other: DurationTypes) -> Duration:
        if isinstance(other, Timestamp):
            return NotImplemented
        return Duration.from_micros(self.micros + Duration.of(other).micros)

    __radd__ = __add__

    def __sub__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros - Duration.of(other).micros)

    def __rsub__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(Duration.of(other).micros - self.micros)

    def __mul__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros * Duration.of(other).micros // _MICROS_PER_SECOND)

    __rmul__ = __mul__

    def __mod__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros % Duration.of(other).micros)


def _refuse_precision(precision: object) -> NoReturn:
    if not isinstance(precision, int):
        raise TypeError(three_parts(f"cannot interpret {precision!r} as precision", hint="give 6 or nothing"))
    raise ValueError(
        three_parts(
            f"Timestamp precision {precision} is not supported: penstock keeps microseconds",
            hint="leave precision out, and carry finer digits in the element",
        )
    )


MIN_TIMESTAMP = Timestamp(micros=-9223372036854775 * 1000)
MAX_TIMESTAMP = Timestamp(micros=9223372036854775 * 1000)
TIME_GRANULARITY = Duration(micros=1)
