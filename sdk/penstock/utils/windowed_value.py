"""An element together with its timestamp, its windows and its pane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from penstock.error import refusal
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp, TimestampTypes
from penstock.utils.window import BoundedWindow


class PaneInfoTiming:
    """The time of a pane's firing relative to the watermark: before, at or after its window's end (Beam's names)."""

    EARLY = 0
    ON_TIME = 1
    LATE = 2
    UNKNOWN = 3

    @classmethod
    def to_string(cls, value: int) -> str:
        """Returns the name of a timing; KeyError for any other number."""
        return _TIMING_NAMES[value]

    @classmethod
    def from_string(cls, value: str) -> int:
        """Returns the timing of a name; KeyError for any other string."""
        return _TIMINGS[value]


_TIMINGS = {"EARLY": 0, "ON_TIME": 1, "LATE": 2, "UNKNOWN": 3}
_TIMING_NAMES = {timing: name for name, timing in _TIMINGS.items()}


class ValueKind(IntEnum):
    """The effect of an element on its collection: it adds its value, or retracts an earlier element.

    A pane that replaces another one is emitted as two elements: `UPDATE_BEFORE` with the old value and `UPDATE_AFTER`
    with the new one. `DELETE` retracts a value without a new one. (The four names of Flink and of Beam's Java SDK.)
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def is_retraction(self) -> bool:
        """True if the element retracts an earlier one."""
        return self in (ValueKind.UPDATE_BEFORE, ValueKind.DELETE)

    @property
    def sign(self) -> int:
        """1 if the element adds its value to a bag, -1 if it removes it."""
        return -1 if self.is_retraction else 1


@dataclass(frozen=True, slots=True, repr=False)
class PaneInfo:
    """Which firing of its window's trigger an element comes from (Beam's ``PaneInfo``).

    Attributes:
        is_first: Whether it is the first pane of its window and key.
        is_last: Whether it is the last pane of its window and key.
        timing: A constant of `PaneInfoTiming`.
        index: The number of panes fired before; -1 if not known.
        nonspeculative_index: The number of panes fired before that were not early; -1 for an early pane.
        kind: Whether it adds its value or retracts it (penstock's own; Beam's wire format has no place for it).

    >>> PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)
    PaneInfo(first: True, last: False, timing: ON_TIME, index: 0, nonspeculative_index: 0)
    """

    is_first: bool
    is_last: bool
    timing: int
    index: int
    nonspeculative_index: int
    kind: ValueKind = ValueKind.INSERT

    @property
    def encoded_byte(self) -> int:
        """The first three fields in one number: 1 for first, 2 for last, the timing in bit 2 and above."""
        return self.is_first | self.is_last << 1 | self.timing << 2

    @staticmethod
    def from_encoded_byte(encoded_byte: int) -> PaneInfo:
        """Returns the well-known pane of an `encoded_byte`; ValueError if no pane has that byte."""
        if not 0 <= encoded_byte < len(_WELL_KNOWN):
            what = f"no pane is encoded as the byte {encoded_byte}"
            raise refusal(ValueError, what, hint="pass the encoded_byte of a PaneInfo")
        return _WELL_KNOWN[encoded_byte]

    def __reduce__(self) -> tuple[Callable[..., PaneInfo], tuple[int, ...]]:
        # A well-known pane stays one object, and takes a byte.
        if self == _WELL_KNOWN[self.encoded_byte]:
            return PaneInfo.from_encoded_byte, (self.encoded_byte,)
        fields = (self.is_first, self.is_last, self.timing, self.index, self.nonspeculative_index)
        return PaneInfo, (*fields, self.kind) if self.kind else fields

    def __repr__(self) -> str:
        kind = f", kind: {self.kind.name}" if self.kind else ""
        return (
            f"PaneInfo(first: {self.is_first}, last: {self.is_last}, "
            f"timing: {PaneInfoTiming.to_string(self.timing)}, index: {self.index}, "
            f"nonspeculative_index: {self.nonspeculative_index}{kind})"
        )


def _well_known(byte: int) -> PaneInfo:
    """The pane of a byte: the first one has index 0, others an unknown one; only early ones lack the other index."""
    is_first, timing = bool(byte & 1), byte >> 2
    nonspeculative_index = -1 if timing == PaneInfoTiming.EARLY else 0
    return PaneInfo(is_first, bool(byte & 2), timing, 0 if is_first else -1, nonspeculative_index)


_WELL_KNOWN = tuple(_well_known(byte) for byte in range(16))
PANE_INFO_UNKNOWN = _WELL_KNOWN[15]
_UNKNOWN_PANES = (PANE_INFO_UNKNOWN, *(replace(PANE_INFO_UNKNOWN, kind=kind) for kind in ValueKind if kind))


def unknown_pane(kind: ValueKind) -> PaneInfo:
    """Returns the pane of an element of which only the kind is known."""
    return _UNKNOWN_PANES[kind]


class WindowedValue:
    """An element with its timestamp, windows and pane (Beam's ``WindowedValue``).

    A `timestamp` that is a number is in seconds since the epoch.

    >>> WindowedValue("a", 1.5, ()).timestamp_micros
    1500000
    """

    __slots__ = ("_timestamp", "pane_info", "timestamp_micros", "value", "windows")
    _timestamp: Timestamp | None

    def __init__(
        self,
        value: Any,
        timestamp: TimestampTypes,
        windows: tuple[BoundedWindow, ...],
        pane_info: PaneInfo = PANE_INFO_UNKNOWN,
    ) -> None:
        self.value = value
        self._timestamp = Timestamp.of(timestamp)
        self.timestamp_micros = self._timestamp.micros
        self.windows = windows
        self.pane_info = pane_info

    @property
    def timestamp(self) -> Timestamp:
        """The event time; made when first asked for, then kept."""
        if self._timestamp is None:
            self._timestamp = Timestamp.from_micros(self.timestamp_micros)
        return self._timestamp

    def with_value(self, new_value: object) -> WindowedValue:
        """Returns another element with the same timestamp, windows and pane."""
        return create(new_value, self.timestamp_micros, self.windows, self.pane_info)

    def __repr__(self) -> str:
        extremes = {MIN_TIMESTAMP.micros: "MIN_TIMESTAMP", MAX_TIMESTAMP.micros: "MAX_TIMESTAMP"}
        time = extremes.get(self.timestamp_micros, float(self.timestamp))
        return f"({self.value!r}, {time}, {self.windows}, {self.pane_info})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WindowedValue):
            return NotImplemented
        return (
            self.timestamp_micros == other.timestamp_micros
            and bool(self.value == other.value)
            and self.windows == other.windows
            and self.pane_info == other.pane_info
        )

    def __hash__(self) -> int:
        return hash((self.value, self.timestamp_micros, tuple(self.windows), self.pane_info))

    def __reduce__(self) -> tuple[Callable[..., WindowedValue], tuple[Any, ...]]:
        return create, (self.value, self.timestamp_micros, self.windows, self.pane_info)


def create(
    value: Any,
    timestamp_micros: int,
    windows: tuple[BoundedWindow, ...],
    pane_info: PaneInfo = PANE_INFO_UNKNOWN,
) -> WindowedValue:
    """Returns a `WindowedValue` from a timestamp in microseconds: the fast constructor (Beam's name).

    >>> create("a", 1_500_000, ()).timestamp
    Timestamp(1.5)
    """
    windowed_value = WindowedValue.__new__(WindowedValue)
    windowed_value._timestamp = None
    windowed_value.value = value
    windowed_value.timestamp_micros = timestamp_micros
    windowed_value.windows = windows
    windowed_value.pane_info = pane_info
    return windowed_value


class HomogeneousWindowedBatch:
    """A batch whose elements share timestamp, windows and pane: a DoFn may yield one (Beam's name).

    >>> HomogeneousWindowedBatch.of([1, 2], 5, (), PANE_INFO_UNKNOWN).timestamp
    Timestamp(5)
    """

    __slots__ = ("_whole",)

    def __init__(self, wv: WindowedValue) -> None:
        self._whole = wv

    @staticmethod
    def of(
        values: object,
        timestamp: TimestampTypes,
        windows: tuple[BoundedWindow, ...],
        pane_info: PaneInfo = PANE_INFO_UNKNOWN,
    ) -> HomogeneousWindowedBatch:
        """Returns a batch from its parts."""
        return HomogeneousWindowedBatch(WindowedValue(values, timestamp, windows, pane_info))

    @property
    def values(self) -> Any:
        """The batch of elements."""
        return self._whole.value

    @property
    def timestamp(self) -> Timestamp:
        """The event time of every element."""
        return self._whole.timestamp

    @property
    def pane_info(self) -> PaneInfo:
        """The pane of every element."""
        return self._whole.pane_info

    @property
    def windows(self) -> tuple[BoundedWindow, ...]:
        """The windows of every element."""
        return self._whole.windows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HomogeneousWindowedBatch):
            return NotImplemented
        return self._whole == other._whole

    def __hash__(self) -> int:
        return hash(self._whole)
