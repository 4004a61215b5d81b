"""Lengths of time, and what they share with moments: a whole number of microseconds."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, Union

from penstock.error import three_parts

if TYPE_CHECKING:
    # Protobuf is imported where a message is made: a pipeline that has none does not wait for it.
    from fractions import Fraction

    from google.protobuf import duration_pb2

DurationTypes: TypeAlias = Union[int, float, "Duration"]

MICROS_PER_SECOND = 1_000_000


def micros_of(number: Any, unit_micros: int, noun: str) -> int:
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


class Micros:
    """An immutable number of microseconds: what `Timestamp` and `Duration` share."""

    __slots__ = ("micros",)
    micros: int

    @classmethod
    def from_micros(cls, micros: int) -> Self:
        """The value of that many microseconds: the fast constructor, which checks nothing (penstock's own).

        >>> Duration.from_micros(1_500_000), Duration.from_micros(-1)
        (Duration(1.5), Duration(-0.000001))
        """
        value = _new(cls)
        set_micros(value, micros)
        return value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            three_parts(f"{type(self).__name__} is immutable", hint="make a new one by arithmetic")
        )

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
        """Microseconds, with a fraction if a `Timestamp` is finer than they are (penstock's own)."""
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
    """The microseconds that a comparison sees in `other`; None if it is neither time nor number."""
    if isinstance(other, Micros):
        return other.exact_micros()
    if isinstance(other, (int, float)):
        return int(other * MICROS_PER_SECOND)
    return None


class Duration(Micros):
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
        whole = micros_of(seconds, MICROS_PER_SECOND, "seconds")
        set_micros(self, whole + micros_of(micros, 1, "microseconds"))

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
        return Duration.from_micros(micros_of(seconds, MICROS_PER_SECOND, "a Duration"))

    def to_proto(self) -> duration_pb2.Duration:
        """The protocol message ``google.protobuf.Duration`` of this length.

        >>> Duration(-1.5).to_proto().seconds, Duration(-1.5).to_proto().nanos
        (-2, 500000000)
        """
        from google.protobuf import duration_pb2

        seconds, micros = divmod(self.micros, MICROS_PER_SECOND)
        return duration_pb2.Duration(seconds=seconds, nanos=micros * 1000)

    @staticmethod
    def from_proto(duration_proto: duration_pb2.Duration) -> Duration:
        """The length that a protocol message ``google.protobuf.Duration`` holds.

        Raises:
            ValueError: It is finer than a microsecond.
        """
        micros, finer = divmod(duration_proto.nanos, 1000)
        if finer:
            what = "cannot convert a protocol message to a Duration: it is finer than a microsecond"
            raise ValueError(three_parts(what, hint="round its nanos to thousands first"))
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
