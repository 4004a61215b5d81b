"""The inputs and outputs of machines, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.utils.windowed_value import PaneInfo, ValueKind

MIN_MICROS = MIN_TIMESTAMP.micros
MAX_MICROS = MAX_TIMESTAMP.micros


class Times(NamedTuple):
    """The times that a machine knows, in microseconds.

    >>> Times(5, 100).percentile(0.9)
    5
    """

    watermark_micros: int = MIN_MICROS
    clock_micros: int = MIN_MICROS
    # The watermarks of percentiles, such as ``{0.9: ...}``; the watermark itself is used for a missing one.
    percentile_micros: Mapping[float, int] = {}
    # The watermark that decides when windows expire if it is another one: in a micro-batch, the source's.
    expiry_micros: int | None = None
    side_micros: tuple[int, ...] = ()  # The watermarks of the unbounded side inputs, in their order.

    @property
    def horizon_micros(self) -> int:
        """The watermark that decides when windows take no more elements."""
        return self.watermark_micros if self.expiry_micros is None else self.expiry_micros

    def percentile(self, percentile: float) -> int:
        """Returns the watermark of a percentile in (0, 1]."""
        return max(self.percentile_micros.get(percentile, MIN_MICROS), self.watermark_micros)


class Element(NamedTuple):
    """An element of a key, in the windows that the WindowFn assigned."""

    value: Any
    timestamp_micros: int
    windows: tuple[BoundedWindow, ...]
    kind: ValueKind = ValueKind.INSERT


class Together(NamedTuple):
    """The value of one element that stands for several of a key, which arrive together.

    Attributes:
        rows: For each, 1 or -1 if it is a retraction, and its value.
    """

    rows: list[tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class Pane:
    """The output of a window whose trigger fires (paper, section 2.3): a list of values, or the CombineFn's result."""

    value: Any
    window: BoundedWindow
    timestamp_micros: int
    info: PaneInfo

    @property
    def kind(self) -> ValueKind:
        """The kind of the change: the pane adds its value, or retracts it."""
        return self.info.kind


@dataclass(frozen=True, slots=True)
class Arrival:
    """Elements of a key that arrive at one logical time in one window, combined (see `GroupingMachine.arrival`)."""

    window: BoundedWindow  # Sessions that overlap share one window while they are merged.
    # Their values as a list, or the CombineFn's accumulator. The receiver of the arrival may change it.
    held: Any
    count: int
    # Their event times, in order, that the output's may depend on (see `OutputTimes.needed`).
    timestamps: tuple[int, ...] = ()


class DropReason(Enum):
    """The reason why a window no longer takes an element."""

    EXPIRED = "the watermark has passed the end of its window and the allowed lateness"
    FINISHED = "the trigger of its window has fired for the last time"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An element that a window no longer takes: counted, and available as an output."""

    element: Element  # The element, in this one window; of an `Arrival`, what it held.
    reason: DropReason
    count: int = 1  # The number of elements that it stands for.


class MethodOutput(NamedTuple):
    """The results of one call of a stateful DoFn's method."""

    # The values that it returned or yielded, some with their own tags, timestamps or windows.
    results: tuple[Any, ...]
    timestamp_micros: int  # The event time of results without their own.
    window: BoundedWindow  # The window for which it was called.
    info: PaneInfo
    more_windows: tuple[BoundedWindow, ...] = ()  # The other windows, if it was called once for several.


Emitted = Pane | Dropped


@dataclass(frozen=True, slots=True)
class AddElement:
    """An event of a recorded input: an element arrives. The WindowFn sees ``(key, value)``.

    Here and in other events, no `clock_micros` means that processing time does not advance.
    """

    value: Any
    timestamp_micros: int
    clock_micros: int | None = None
    key: Any = None
    kind: ValueKind = ValueKind.INSERT


@dataclass(frozen=True, slots=True)
class AdvanceWatermark:
    """An event of a recorded input: the watermark advances, and with it the watermarks of percentiles."""

    watermark_micros: int
    clock_micros: int | None = None
    percentile_micros: Mapping[float, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """An event of a recorded input: processing time advances."""

    clock_micros: int


@dataclass(frozen=True, slots=True)
class Signal:
    """An event of a recorded input: a named signal arrives from outside."""

    name: str
    clock_micros: int | None = None


@dataclass(frozen=True, slots=True)
class EndMicroBatch:
    """An event of a recorded input: a micro-batch ends; other modes ignore it."""

    clock_micros: int | None = None


Event = AddElement | AdvanceWatermark | AdvanceClock | Signal | EndMicroBatch


@dataclass(frozen=True, slots=True)
class EventOutput:
    """The output at one event of a recorded input."""

    step: int  # The number of the event that caused it; the number of events if the end of the input did.
    clock_micros: int
    key: Any
    emitted: Emitted
