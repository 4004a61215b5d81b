"""What goes into a machine and what comes out of it, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from penstock.base.bounded_window import BoundedWindow
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.utils.windowed_value import PaneInfo, ValueKind

MIN_MICROS = MIN_TIMESTAMP.micros
MAX_MICROS = MAX_TIMESTAMP.micros


class Times(NamedTuple):
    """What a machine is told of time, all in microseconds.

    Attributes:
        watermark_micros: No element before it is expected any more.
        clock_micros: Processing time.
        percentile_micros: The watermarks of percentiles, such as ``{0.9: ...}``; where one is missing, the watermark
            itself stands in, which is never ahead of it.
        expiry_micros: The watermark that decides when windows take no more elements, if that is another one: in a
            micro-batch, that of the source.
        side_micros: The watermarks of the side inputs that do not end, in their order.

    >>> Times(5, 100).percentile(0.9)
    5
    """

    watermark_micros: int = MIN_MICROS
    clock_micros: int = MIN_MICROS
    percentile_micros: Mapping[float, int] = {}
    expiry_micros: int | None = None
    side_micros: tuple[int, ...] = ()

    @property
    def horizon_micros(self) -> int:
        """The watermark that decides when windows take no more elements."""
        return self.watermark_micros if self.expiry_micros is None else self.expiry_micros

    def percentile(self, percentile: float) -> int:
        """The watermark of a percentile in (0, 1], in microseconds."""
        return max(self.percentile_micros.get(percentile, MIN_MICROS), self.watermark_micros)


class Element(NamedTuple):
    """An element of a key, in its windows.

    Attributes:
        value: The value.
        timestamp_micros: Its event time.
        windows: The windows that the WindowFn assigned.
        kind: Whether it adds its value or takes it back.
    """

    value: Any
    timestamp_micros: int
    windows: tuple[BoundedWindow, ...]
    kind: ValueKind = ValueKind.INSERT


@dataclass(frozen=True, slots=True)
class Pane:
    """What a window gives when its trigger fires (paper, section 2.3): a list of values, or a combined value.

    Attributes:
        value: The values, or the result of the CombineFn.
        window: The window it is of.
        timestamp_micros: Its event time.
        info: Timing, number and kind.
    """

    value: Any
    window: BoundedWindow
    timestamp_micros: int
    info: PaneInfo

    @property
    def kind(self) -> ValueKind:
        """Whether it adds its value or takes it back."""
        return self.info.kind


@dataclass(frozen=True, slots=True)
class Arrival:
    """Elements of a key that arrive at one moment in one window, combined: one arrival (see `GroupingMachine.arrival`).

    Attributes:
        window: Their window. Sessions that overlap by themselves are one: it is as long as they are together.
        held: What they come to: their values as a list, or the CombineFn's accumulator. Whoever takes the arrival may
            change it.
        count: The number of elements.
        timestamps: Those of their event times, in microseconds and in order, that the output's may depend on (see
            `penstock.machines.program.OutputTimes.needed`).
    """

    window: BoundedWindow
    held: Any
    count: int
    timestamps: tuple[int, ...] = ()


class DropReason(Enum):
    """Why a window no longer takes an element."""

    EXPIRED = "the watermark has passed the end of its window and the allowed lateness"
    FINISHED = "the trigger of its window has fired for the last time"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An element that a window no longer takes: counted, and available as an output.

    Attributes:
        element: The element, in this one window; of an `Arrival`, what it held.
        reason: Why.
        count: The number of elements that it stands for.
    """

    element: Element
    reason: DropReason
    count: int = 1


class Given(NamedTuple):
    """What a method of a stateful DoFn gave.

    Attributes:
        results: What it returned or yielded: values, or values with a tag, a timestamp or windows of their own.
        timestamp_micros: The event time of those that have none of their own.
        window: The window that it was called for.
        info: Likewise, the pane.
    """

    results: tuple[Any, ...]
    timestamp_micros: int
    window: BoundedWindow
    info: PaneInfo


Emitted = Pane | Dropped


@dataclass(frozen=True, slots=True)
class Arrive:
    """A step of a recorded input: an element arrives.

    Attributes:
        value: The value; the WindowFn sees ``(key, value)``, as it does in a keyed PCollection.
        timestamp_micros: Its event time.
        clock_micros: Processing time; None where it stands still.
        key: Its key.
        kind: Whether it adds its value or takes it back.
    """

    value: Any
    timestamp_micros: int
    clock_micros: int | None = None
    key: Any = None
    kind: ValueKind = ValueKind.INSERT


@dataclass(frozen=True, slots=True)
class AdvanceWatermark:
    """A step of a recorded input: the watermark advances.

    Attributes:
        watermark_micros: Where to.
        clock_micros: Processing time; None where it stands still.
        percentile_micros: Where the watermarks of percentiles are by then.
    """

    watermark_micros: int
    clock_micros: int | None = None
    percentile_micros: Mapping[float, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """A step of a recorded input: processing time advances.

    Attributes:
        clock_micros: Where to.
    """

    clock_micros: int


@dataclass(frozen=True, slots=True)
class Signal:
    """A step of a recorded input: a named signal arrives from outside.

    Attributes:
        name: Its name.
        clock_micros: Processing time; None where it stands still.
    """

    name: str
    clock_micros: int | None = None


@dataclass(frozen=True, slots=True)
class EndMicroBatch:
    """A step of a recorded input: here a micro-batch ends; the other modes pass over it.

    Attributes:
        clock_micros: Processing time; None where it stands still.
    """

    clock_micros: int | None = None


Event = Arrive | AdvanceWatermark | AdvanceClock | Signal | EndMicroBatch


@dataclass(frozen=True, slots=True)
class Played:
    """What came out while a recorded input was played.

    Attributes:
        step: The number of the event that caused it; the number of events where the end of the input did.
        clock_micros: Processing time.
        key: The key it is of.
        emitted: The pane, or the element that was dropped.
    """

    step: int
    clock_micros: int
    key: Any
    emitted: Emitted
