"""Windows in event time, and values with their own timestamp.

Windows are half-open: the start belongs to a window, the end to the next one. All times are whole microseconds.
"""

from __future__ import annotations

from functools import total_ordering
from typing import Any, Generic, Self, SupportsIndex, TypeVar

from penstock.error import refusal
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp, TimestampTypes
from penstock.utils.window import BoundedWindow as BoundedWindow

_MIN_MICROS = MIN_TIMESTAMP.micros
_MAX_MICROS = MAX_TIMESTAMP.micros
V = TypeVar("V")
_PUBLIC = "penstock.transforms.window"


class IntervalWindow(BoundedWindow):
    """The times from `start` up to, not including, `end`; numbers are seconds (Beam's ``IntervalWindow``).

    A start before `MIN_TIMESTAMP` or an end after `MAX_TIMESTAMP` is moved there: for Beam they are equal.

    >>> IntervalWindow(0, 60) < IntervalWindow(30, 90), IntervalWindow(0, 60).union(IntervalWindow(30, 90))
    (True, [0.0, 90.0))
    """

    __slots__ = ("start_micros",)
    start_micros: int

    def __init__(self, start: TimestampTypes, end: TimestampTypes) -> None:
        self.start_micros = max(Timestamp.of(start).micros, _MIN_MICROS)
        self.end_micros = min(Timestamp.of(end).micros, _MAX_MICROS)

    @classmethod
    def from_micros(cls, start_micros: int, end_micros: int) -> Self:
        """Returns the window between two counts of microseconds: the fast constructor (penstock's own)."""
        window = object.__new__(cls)
        window.start_micros = start_micros if start_micros > _MIN_MICROS else _MIN_MICROS
        window.end_micros = end_micros if end_micros < _MAX_MICROS else _MAX_MICROS
        return window

    @property
    def start(self) -> Timestamp:
        return Timestamp.from_micros(self.start_micros)

    def intersects(self, other: IntervalWindow) -> bool:
        """True if the windows overlap; windows that only touch do not."""
        return max(self.start_micros, other.start_micros) < min(self.end_micros, other.end_micros)

    def union(self, other: IntervalWindow) -> IntervalWindow:
        """Returns the smallest window that contains both."""
        return IntervalWindow.from_micros(
            min(self.start_micros, other.start_micros), max(self.end_micros, other.end_micros)
        )

    def _order(self) -> tuple[int, str, int]:
        return self.end_micros, "IntervalWindow", self.start_micros

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return self.start_micros == other.start_micros and self.end_micros == other.end_micros

    def __hash__(self) -> int:
        return hash((self.start_micros, self.end_micros))

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if type(self) is IntervalWindow:
            return IntervalWindow.from_micros, (self.start_micros, self.end_micros)
        # A subclass of the user's may have further attributes.
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"[{float(self.start)}, {float(self.end)})"


class GlobalWindow(BoundedWindow):
    """The window that covers all of time; elements are in it unless windowed otherwise (Beam's ``GlobalWindow``).

    It ends a day before `MAX_TIMESTAMP`, so that results at its end have later timestamps left.
    """

    __slots__ = ()
    start_micros = _MIN_MICROS
    _instance: GlobalWindow | None = None

    def __new__(cls) -> GlobalWindow:
        """The only instance."""
        if GlobalWindow._instance is None:
            GlobalWindow._instance = super().__new__(cls)
        return GlobalWindow._instance

    def __init__(self) -> None:
        self.end_micros = 9223371950454775 * 1000

    @property
    def start(self) -> Timestamp:
        """The earliest of all timestamps."""
        return MIN_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.end_micros)

    def __reduce__(self) -> tuple[type[GlobalWindow], tuple[()]]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


def check_event_times(times_micros: list[int]) -> list[int]:
    """Returns the event times, if windows can contain all of them.

    Raises:
        ValueError: A time is before `MIN_TIMESTAMP` or after `MAX_TIMESTAMP`.
    """
    if times_micros and (min(times_micros) < _MIN_MICROS or max(times_micros) > _MAX_MICROS):
        what = "the event time of an element is beyond the ends of time"
        hint = "pass seconds since 1970, not microseconds or nanoseconds"
        raise refusal(ValueError, what, hint=hint)
    return times_micros


@total_ordering
class TimestampedValue(Generic[V]):
    """A value with a timestamp, which a DoFn yields to set the timestamp of its output (Beam's ``TimestampedValue``).

    A `timestamp` that is a number is in seconds since the epoch.

    >>> TimestampedValue("a", 1.5)
    TimestampedValue('a', Timestamp(1.5))
    """

    __slots__ = ("timestamp_micros", "value")

    def __init__(self, value: V, timestamp: TimestampTypes) -> None:
        self.value = value
        # Many pipelines make one for each element, mostly of whole seconds.
        micros = timestamp * 1_000_000 if type(timestamp) is int else Timestamp.of(timestamp).micros
        self.timestamp_micros = (
            micros if _MIN_MICROS <= micros <= _MAX_MICROS else check_event_times([micros])[0]
        )

    @property
    def timestamp(self) -> Timestamp:
        """Its event time."""
        return Timestamp.from_micros(self.timestamp_micros)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimestampedValue):
            return NotImplemented
        return bool(self.value == other.value) and self.timestamp == other.timestamp

    def __hash__(self) -> int:
        return hash((self.value, self.timestamp))

    def __lt__(self, other: TimestampedValue[Any]) -> bool:
        if not isinstance(other, TimestampedValue):
            return NotImplemented
        return bool((self.value, self.timestamp) < (other.value, other.timestamp))

    def __repr__(self) -> str:
        return f"TimestampedValue({self.value!r}, {self.timestamp})"


# Programs print the classes and import them from there, as in Beam.
for _class in (BoundedWindow, GlobalWindow, IntervalWindow):
    _class.__module__ = _PUBLIC
