"""Times and durations as whole microseconds, with Beam's names and arithmetic.

Floats lose precision when added up, so a Timestamp holds an integer.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, Union, cast, overload

from penstock.error import noun_for, refusal
from penstock.utils import clock

# Protobuf is imported when a message is made, so that other pipelines do not wait for it.
if TYPE_CHECKING:
    from google.protobuf import duration_pb2, timestamp_pb2


DurationTypes: TypeAlias = Union[int, float, "Duration"]

MICROS_PER_SECOND = 1_000_000


def micros_of(number: Any, unit_micros: int, noun: str) -> int:
    """Returns a number of units as microseconds; a fraction of a microsecond is truncated towards zero, as in Beam."""
    if isinstance(number, (int, float)):
        try:
            return int(number * unit_micros)
        except (ValueError, OverflowError):
            what = f"a time cannot be {number}"
            raise refusal(ValueError, what, hint="pass a finite number of seconds") from None
    try:
        return index(number) * unit_micros
    except TypeError:
        what = f"cannot interpret {noun_for(number)} as {noun}"
        raise refusal(TypeError, what, hint="pass seconds, as an int or a float") from None


class Micros:
    """An immutable number of microseconds, the base of `Timestamp` and `Duration`."""

    __slots__ = ("micros",)
    micros: int

    @classmethod
    def from_micros(cls, micros: int) -> Self:
        """Returns the value of that many microseconds: the fast constructor, which checks nothing (penstock's own).

        >>> Duration.from_micros(1_500_000), Duration.from_micros(-1)
        (Duration(1.5), Duration(-0.000001))
        """
        value = _new(cls)
        set_micros(value, micros)
        return value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        what = f"{type(self).__name__} is immutable"
        raise refusal(AttributeError, what, hint="make a new one by arithmetic")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[int, ...]]:
        return type(self).from_micros, (self.micros,)

    def __hash__(self) -> int:
        # A Timestamp and a Duration that compare equal hash equal; numbers do not, as in Beam.
        return hash(self.exact_micros())

    def __eq__(self, other: object) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.exact_micros() == micros

    def __lt__(self, other: int | float | Micros) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.exact_micros() < micros

    def __le__(self, other: int | float | Micros) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.exact_micros() <= micros

    def __gt__(self, other: int | float | Micros) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.exact_micros() > micros

    def __ge__(self, other: int | float | Micros) -> bool:
        micros = _comparable(other)
        return NotImplemented if micros is None else self.exact_micros() >= micros

    def exact_micros(self) -> int | Fraction:
        """Microseconds, with a fraction if a `Timestamp` is finer than that (penstock's own)."""
        return self.micros

    def __float__(self) -> float:
        return self.micros / MICROS_PER_SECOND

    def __int__(self) -> int:
        return self.micros // MICROS_PER_SECOND

    def __repr__(self) -> str:
        seconds, fraction = divmod(abs(self.micros), MICROS_PER_SECOND)
        sign = "-" if self.micros < 0 else ""
        digits = f".{fraction:06d}".rstrip("0") if fraction else ""
        return f"{type(self).__name__}({sign}{seconds}{digits})"


_new = object.__new__
set_micros: Callable[[Micros, int], None] = Micros.__dict__["micros"].__set__


def _comparable(other: object) -> int | Fraction | None:
    """The microseconds of `other` in a comparison; None if it is neither time nor number."""
    if isinstance(other, Micros):
        return other.exact_micros()
    if isinstance(other, (int, float)):
        return int(other * MICROS_PER_SECOND)
    return None


class Duration(Micros):
    """A duration in microseconds, positive or negative (Beam's ``Duration``).

    Args:
        seconds: Seconds; a fraction of a microsecond is truncated towards zero.
        micros: Microseconds to add.

    >>> Duration(90) - 30, Duration(2) * 1.5, -Duration(micros=250_000), Duration(7) % 4
    (Duration(60), Duration(3), Duration(-0.25), Duration(3))
    """

    __slots__ = ()

    def __init__(self, seconds: int | float = 0, micros: int | float = 0) -> None:
        whole = micros_of(seconds, MICROS_PER_SECOND, "seconds")
        set_micros(self, whole + micros_of(micros, 1, "microseconds"))

    @staticmethod
    def of(seconds: DurationTypes) -> Duration:
        """Returns the duration of a number of seconds, or a Duration itself; TypeError for a `Timestamp`."""
        if isinstance(seconds, Duration):
            return seconds
        return Duration.from_micros(micros_of(seconds, MICROS_PER_SECOND, "a Duration"))

    def to_proto(self) -> duration_pb2.Duration:
        """Returns the protocol message ``google.protobuf.Duration`` of this duration."""
        from google.protobuf import duration_pb2

        seconds, micros = divmod(self.micros, MICROS_PER_SECOND)
        return duration_pb2.Duration(seconds=seconds, nanos=micros * 1000)

    @staticmethod
    def from_proto(duration_proto: duration_pb2.Duration) -> Duration:
        """Returns the duration of a ``google.protobuf.Duration``; ValueError if it is finer than a microsecond."""
        micros, finer = divmod(duration_proto.nanos, 1000)
        if finer:
            what = "cannot convert a protocol message to a Duration: it is finer than a microsecond"
            raise refusal(ValueError, what, hint="round its nanos to thousands first")
        return Duration.from_micros(duration_proto.seconds * MICROS_PER_SECOND + micros)

    def __neg__(self) -> Duration:
        return Duration.from_micros(-self.micros)

    def __add__(self, other: DurationTypes) -> Duration:
        if isinstance(other, Micros) and not isinstance(other, Duration):
            return NotImplemented
        return Duration.from_micros(self.micros + Duration.of(other).micros)

    __radd__ = __add__

    def __sub__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros - Duration.of(other).micros)

    def __rsub__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(Duration.of(other).micros - self.micros)

    def __mul__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros * Duration.of(other).micros // MICROS_PER_SECOND)

    __rmul__ = __mul__

    def __mod__(self, other: DurationTypes) -> Duration:
        return Duration.from_micros(self.micros % Duration.of(other).micros)


TIME_GRANULARITY = Duration(micros=1)


TimestampTypes: TypeAlias = Union[int, float, "Timestamp"]
TimestampDurationTypes: TypeAlias = Union[int, float, "Duration", "Timestamp"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONG_FRACTION = re.compile(r"[0-9]{2}[.,][0-9]{6}([0-9]+)")


class Timestamp(Micros):
    """A point in time: microseconds since the Unix epoch, or another decimal part of a second (Beam's ``Timestamp``).

    A Timestamp of any size is exact; `MIN_TIMESTAMP` and `MAX_TIMESTAMP` limit windows, not timestamps. The times of
    elements are microseconds: a Timestamp that is finer can be a value or a key, but has no `micros`.

    Args:
        seconds: Seconds since the epoch; a float is truncated towards zero, to the precision.
        subseconds: Parts of a second to add, in units of the precision: microseconds by default.
        precision: Decimal digits of a second, 0 to 9.
        micros: Another name for `subseconds`, if the precision is 6.

    >>> Timestamp(1.5) + 2, Timestamp(10) - Timestamp(4), Timestamp(-1) % 60
    (Timestamp(3.5), Duration(6), Duration(59))
    >>> Timestamp(5) < 5.5 and Timestamp(5) == 5
    True
    >>> Timestamp(1, 5, precision=9)
    Timestamp(1.000000005)
    """

    __slots__ = ()
    MICROS_PRECISION = 6
    NANOS_PRECISION = 9

    def __new__(
        cls,
        seconds: int | float = 0,
        subseconds: int | float = 0,
        precision: int = MICROS_PRECISION,
        *,
        micros: int | float | None = None,
    ) -> Timestamp:
        """A Timestamp, or a `PreciseTimestamp` if the precision is not microseconds."""
        if precision == 6 and isinstance(precision, int):
            return object.__new__(cls)
        return object.__new__(PreciseTimestamp)

    def __init__(
        self,
        seconds: int | float = 0,
        subseconds: int | float = 0,
        precision: int = MICROS_PRECISION,
        *,
        micros: int | float | None = None,
    ) -> None:
        if micros is not None:
            if subseconds:
                what = f"micros={micros!r} and subseconds={subseconds!r} are both given"
                raise refusal(ValueError, what, hint="they mean the same; give one")
            subseconds = micros
        whole = micros_of(seconds, MICROS_PER_SECOND, "seconds")
        set_micros(self, whole + micros_of(subseconds, 1, "microseconds") if subseconds != 0 else whole)

    @staticmethod
    def of(seconds: TimestampTypes | datetime.datetime) -> Timestamp:
        """Returns the time of seconds since the epoch, or of an aware UTC ``datetime``, or the Timestamp itself."""
        if isinstance(seconds, Timestamp):
            return seconds
        if isinstance(seconds, datetime.datetime):
            return Timestamp.from_utc_datetime(seconds)
        return Timestamp.from_micros(micros_of(seconds, MICROS_PER_SECOND, "a Timestamp"))

    @staticmethod
    def now() -> Timestamp:
        """Returns the time of the machine's clock."""
        return Timestamp(clock.seconds())

    @classmethod
    def from_utc_datetime(cls, dt: datetime.datetime) -> Timestamp:
        """Returns the time of an aware ``datetime`` whose zone is UTC; ValueError for any other zone."""
        if dt.tzinfo is None:
            what = "dt has no timezone info"
            raise refusal(ValueError, what, hint="add tzinfo=datetime.timezone.utc if it is in UTC")
        if dt.tzname() != "UTC" or dt.utcoffset():
            hint = "convert it with dt.astimezone(datetime.timezone.utc)"
            raise refusal(ValueError, "dt not in UTC", hint=hint)
        return cls.from_micros((dt - _EPOCH) // datetime.timedelta(microseconds=1))

    @classmethod
    def from_rfc3339(cls, rfc3339: str) -> Timestamp:
        """Returns the time of an RFC 3339 string, with any offset from UTC.

        A fraction of seven to nine digits makes a Timestamp of that precision, any other one microseconds.

        Raises:
            ValueError: The string has a different format, lacks an offset (Beam would silently use the machine's own
                zone), or is finer than a nanosecond.

        >>> Timestamp.from_rfc3339("1970-01-01T01:00:00.25+01:00")
        Timestamp(0.25)
        >>> Timestamp.from_rfc3339("1970-01-01T00:00:00.123456789Z").precision()
        9
        """
        try:
            # The Z may be small, which Python's own reader does not know.
            moment = datetime.datetime.fromisoformat(re.sub("z$", "Z", rfc3339))
        except ValueError:
            why = "it has a different format, or there is no such date"
            raise _unreadable(rfc3339, why, "write it like 2009-02-13T23:31:30Z") from None
        if moment.tzinfo is None:
            raise _unreadable(
                rfc3339, "it has no offset from UTC", "end it with Z or an offset such as +01:00"
            )
        # The offset may lead out of the years that a datetime has, but not out of the times that a Timestamp has.
        since = moment.replace(tzinfo=datetime.UTC) - _EPOCH - cast(datetime.timedelta, moment.utcoffset())
        timestamp = cls.from_micros(since // datetime.timedelta(microseconds=1))
        finer = _LONG_FRACTION.search(rfc3339)
        if not finer:
            return timestamp
        # Python reads the first six digits of the fraction; the others are added to them.
        precision = cls.MICROS_PRECISION + len(finer[1])
        if precision > cls.NANOS_PRECISION:
            raise _unreadable(rfc3339, "it is finer than a nanosecond", "cut the fraction to nine digits")
        return cls(subseconds=timestamp.micros * 10 ** len(finer[1]) + int(finer[1]), precision=precision)

    def seconds(self) -> int:
        """Returns the whole seconds since the epoch, rounded down.

        >>> Timestamp(-1.5).seconds(), Timestamp(-1.5).subseconds()
        (-2, 500000)
        """
        return self.micros // MICROS_PER_SECOND

    def subseconds(self) -> int:
        """Returns the microseconds since the last whole second, 0 to 999999, or other units by the `precision`."""
        return self.micros % MICROS_PER_SECOND

    def precision(self) -> int:
        """Returns the number of decimal digits of a second: by default 6."""
        return self.MICROS_PRECISION

    @property
    def nanos(self) -> int:
        """Returns the nanoseconds since the epoch."""
        return self.micros * 1000

    def to_precision(self, precision: int, allow_lossy_conversion: bool = False) -> Timestamp:
        """Returns this time with a different number of decimal digits of a second.

        Args:
            precision: The number of digits, 0 to 9.
            allow_lossy_conversion: Whether further digits may be truncated, towards the past.

        Raises:
            ValueError: Digits would be lost, or the precision is not 0 to 9.

        >>> Timestamp(1.5).to_precision(9), Timestamp(1.5).to_precision(0, allow_lossy_conversion=True)
        (Timestamp(1.500000000), Timestamp(1))
        """
        if precision == self.precision():
            return self
        unit = 10 ** max(0, self.NANOS_PRECISION - precision)
        if self.nanos % unit and not allow_lossy_conversion:
            what = f"{self!r} has more digits than a Timestamp of precision {precision} holds"
            raise refusal(ValueError, what, hint="pass allow_lossy_conversion=True to cut them off")
        return Timestamp(subseconds=self.nanos // unit, precision=precision)

    def predecessor(self) -> Timestamp:
        """Returns the time one unit of the `precision` earlier: by default a microsecond."""
        return Timestamp.from_micros(self.micros - 1)

    def successor(self) -> Timestamp:
        """Returns the time one unit of the `precision` later: by default a microsecond."""
        return Timestamp.from_micros(self.micros + 1)

    def to_utc_datetime(
        self, has_tz: bool = False, allow_lossy_conversion: bool = False
    ) -> datetime.datetime:
        """Returns the ``datetime`` of this time in UTC; aware if `has_tz`, otherwise naive, which is Beam's default.

        Raises:
            ValueError: The time has digits below a microsecond, and `allow_lossy_conversion` is not set.
            OverflowError: The year is not between 1 and 9999.
        """
        try:
            moment = _EPOCH + datetime.timedelta(microseconds=self.micros)
        except OverflowError:
            what = f"{self!r} is not in the years 1 to 9999, which a date needs"
            hint = "times are in seconds since 1970: divide milliseconds by 1,000"
            raise refusal(OverflowError, what, hint=hint) from None
        return moment if has_tz else moment.replace(tzinfo=None)

    def to_rfc3339(self) -> str:
        """Returns the RFC 3339 string of this time, in UTC; OverflowError if the year is not between 1 and 9999."""
        return self.to_utc_datetime().isoformat() + "Z"

    def to_proto(self) -> timestamp_pb2.Timestamp:
        """Returns the protocol message ``google.protobuf.Timestamp`` of this time."""
        from google.protobuf import timestamp_pb2

        return timestamp_pb2.Timestamp(seconds=self.seconds(), nanos=self.nanos % 1_000_000_000)

    @staticmethod
    def from_proto(timestamp_proto: timestamp_pb2.Timestamp) -> Timestamp:
        """Returns the time of a ``google.protobuf.Timestamp``, in microseconds, or nanoseconds if it is finer."""
        micros, finer = divmod(timestamp_proto.nanos, 1000)
        if finer:
            return Timestamp(timestamp_proto.seconds, timestamp_proto.nanos, Timestamp.NANOS_PRECISION)
        return Timestamp.from_micros(timestamp_proto.seconds * MICROS_PER_SECOND + micros)

    def __add__(self, other: DurationTypes) -> Timestamp:
        if type(other) is int:
            return Timestamp.from_micros(self.micros + other * MICROS_PER_SECOND)
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


def format_time(time: Timestamp) -> str:
    """Formats a time for people: as an RFC 3339 string, or in seconds if it is beyond the calendar.

    >>> format_time(Timestamp(0)), format_time(Timestamp(10**12))
    ('1970-01-01T00:00:00Z', 'Timestamp(1000000000000)')
    """
    try:
        return time.to_rfc3339()
    except OverflowError:
        return str(time)


def _unreadable(rfc3339: str, why: str, hint: str) -> ValueError:
    # The string is mostly data, so it is not shown.
    what = f"could not parse the RFC 3339 string of {len(rfc3339)} characters: {why}"
    return refusal(ValueError, what, hint=hint)


MIN_TIMESTAMP = Timestamp(micros=-9223372036854775 * 1000)
MAX_TIMESTAMP = Timestamp(micros=9223372036854775 * 1000)


_POWERS: tuple[int, ...] = tuple(10**digits for digits in range(10))
"""The number of units in a second, by precision."""


class PreciseTimestamp(Timestamp):
    """A ``Timestamp(precision=...)`` whose precision is not 6; it has no other constructor.

    Its sums, differences and comparisons are exact. A `Duration` has microseconds, so a finer difference is refused.

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
            raise refusal(TypeError, what, hint="pass an integer from 0 to 9")
        if not 0 <= precision <= self.NANOS_PRECISION:
            what = f"the precision of a Timestamp is between 0 and 9, not {precision}"
            raise refusal(ValueError, what, hint="give 9 for nanoseconds")
        if micros is not None:
            what = f"micros={micros!r} are given, and precision={precision}"
            raise refusal(ValueError, what, hint="use subseconds, which are in units of the precision")
        total = micros_of(seconds, _POWERS[precision], "seconds") + micros_of(subseconds, 1, "subseconds")
        _set_total(self, total)
        _set_digits(self, precision)

    @property
    def micros(self) -> int:  # type: ignore[override]
        """Microseconds since the epoch; ValueError if they would not be exact."""
        return self._whole(self.exact_micros(), f"{self!r}")

    def exact_micros(self) -> int | Fraction:
        micros = Fraction(self._total * MICROS_PER_SECOND, _POWERS[self._digits])
        return micros.numerator if micros.denominator == 1 else micros

    @staticmethod
    def _whole(micros: int | Fraction, what: str) -> int:
        if micros.denominator == 1:
            return micros.numerator
        hint = "truncate it with to_precision(6, allow_lossy_conversion=True) first, or use nanos"
        raise refusal(ValueError, f"{what} is finer than a microsecond", hint=hint)

    def seconds(self) -> int:
        return self._total // _POWERS[self._digits]

    def subseconds(self) -> int:
        return self._total % _POWERS[self._digits]

    def precision(self) -> int:
        return self._digits

    @property
    def nanos(self) -> int:
        return self._total * _POWERS[self.NANOS_PRECISION - self._digits]

    def predecessor(self) -> Timestamp:
        return _of_total(self._total - 1, self._digits)

    def successor(self) -> Timestamp:
        return _of_total(self._total + 1, self._digits)

    def to_utc_datetime(
        self, has_tz: bool = False, allow_lossy_conversion: bool = False
    ) -> datetime.datetime:
        micros = self.to_precision(self.MICROS_PRECISION, allow_lossy_conversion)
        return micros.to_utc_datetime(has_tz)

    def to_rfc3339(self) -> str:
        if self._digits <= self.MICROS_PRECISION:
            return super().to_rfc3339()
        fraction = f".{self.subseconds():0{self._digits}d}" if self.subseconds() else ""
        return Timestamp(self.seconds()).to_rfc3339()[:-1] + fraction + "Z"

    def __add__(self, other: DurationTypes) -> Timestamp:
        # A coarser time becomes microseconds, since a Duration has them.
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
        # Python asks a subclass first, so a Timestamp of microseconds may also be on the left.
        return _between(other, self) if isinstance(other, Timestamp) else NotImplemented

    def __mod__(self, other: DurationTypes) -> Duration:
        micros = self.exact_micros() % Duration.of(other).micros
        return Duration.from_micros(self._whole(micros, f"{self!r} modulo {other!r}"))

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


# A Timestamp is immutable: its slots are set through their own descriptors.
_set_total: Callable[[PreciseTimestamp, int], None] = PreciseTimestamp.__dict__["_total"].__set__
_set_digits: Callable[[PreciseTimestamp, int], None] = PreciseTimestamp.__dict__["_digits"].__set__
