"""The functions that assign elements to windows in event time, and merge windows.

Seconds go in, as in Beam; inside, all is whole microseconds. The windows themselves are in `bounded_window`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.error import three_parts
from penstock.transforms import timeutil
from penstock.transforms.bounded_window import BoundedWindow as BoundedWindow
from penstock.transforms.bounded_window import GlobalWindow as GlobalWindow
from penstock.transforms.bounded_window import IntervalWindow as IntervalWindow
from penstock.transforms.bounded_window import TimestampedValue as TimestampedValue
from penstock.transforms.bounded_window import V as V
from penstock.utils.timestamp import MIN_TIMESTAMP, Duration, DurationTypes, Timestamp, TimestampTypes
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, HomogeneousWindowedBatch, PaneInfo, WindowedValue
from penstock.where import here

if TYPE_CHECKING:
    from penstock.coders.coders import Coder

__all__ = [
    "TimestampCombiner",
    "WindowFn",
    "BoundedWindow",
    "IntervalWindow",
    "TimestampedValue",
    "GlobalWindow",
    "NonMergingWindowFn",
    "GlobalWindows",
    "FixedWindows",
    "SlidingWindows",
    "Sessions",
]


class TimestampCombiner:
    """Which timestamp the output of a grouping gets (Beam's names and numbers).

    >>> TimestampCombiner.get_impl(TimestampCombiner.OUTPUT_AT_EOW, GlobalWindows()).assign_output_time(
    ...     IntervalWindow(0, 1), None
    ... )
    Timestamp(0.999999)
    """

    OUTPUT_AT_EOW = 1
    OUTPUT_AT_LATEST = 2
    OUTPUT_AT_EARLIEST = 3
    OUTPUT_AT_EARLIEST_TRANSFORMED = "OUTPUT_AT_EARLIEST_TRANSFORMED"

    @staticmethod
    def get_impl(timestamp_combiner: int | str, window_fn: WindowFn) -> timeutil.TimestampCombinerImpl:
        """The combiner of a constant.

        Raises:
            ValueError: It is none of the four constants.
        """
        match timestamp_combiner:
            case TimestampCombiner.OUTPUT_AT_EOW:
                return timeutil.OutputAtEndOfWindowImpl()
            case TimestampCombiner.OUTPUT_AT_EARLIEST:
                return timeutil.OutputAtEarliestInputTimestampImpl()
            case TimestampCombiner.OUTPUT_AT_LATEST:
                return timeutil.OutputAtLatestInputTimestampImpl()
            case TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED:
                return timeutil.OutputAtEarliestTransformedInputTimestampImpl(window_fn)
        what = f"invalid TimestampCombiner: {timestamp_combiner!r}"
        raise ValueError(three_parts(what, hint="use a constant such as TimestampCombiner.OUTPUT_AT_EOW"))


class WindowFn(ABC):
    """Says which windows an element is in, and which windows become one (Beam's ``WindowFn``).

    A subclass defines `assign`; one that merges also defines `merge`, one that does not derives from
    `NonMergingWindowFn`.

    >>> class Daily(NonMergingWindowFn):
    ...     def assign(self, context):
    ...         day = context.timestamp - context.timestamp % 86400
    ...         return [IntervalWindow(day, day + 86400)]
    >>> Daily().assign(WindowFn.AssignContext(90000))
    [[86400.0, 172800.0)]
    """

    class AssignContext:
        """What `assign` may look at.

        Args:
            timestamp: The element's event time.
            element: The element.
            window: The window it has been in until now.
        """

        __slots__ = ("element", "timestamp", "window")

        def __init__(
            self, timestamp: TimestampTypes, element: Any = None, window: BoundedWindow | None = None
        ) -> None:
            self.timestamp = Timestamp.of(timestamp)
            self.element = element
            self.window = window

    class MergeContext:
        """The windows that `merge` looks at; the runner's subclass takes the result.

        Args:
            windows: All current windows of a key.
        """

        def __init__(self, windows: Iterable[BoundedWindow]) -> None:
            self.windows = list(windows)

        def merge(self, to_be_merged: Iterable[BoundedWindow], merge_result: BoundedWindow) -> None:
            """Replaces `to_be_merged`, which are some of `windows`, by `merge_result`."""
            raise NotImplementedError

    @abstractmethod
    def assign(self, assign_context: WindowFn.AssignContext) -> Iterable[BoundedWindow]:
        """The windows of an element."""

    @abstractmethod
    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Calls ``merge_context.merge`` for each set of windows that becomes one."""

    def is_merging(self) -> bool:
        """Whether `merge` may do something."""
        return True

    def get_window_coder(self) -> Coder:
        """The coder of this function's windows."""
        from penstock.coders.coders import PickleCoder

        return PickleCoder()

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        """The timestamp an element counts with under ``OUTPUT_AT_EARLIEST_TRANSFORMED``: here, its own."""
        return input_timestamp


class NonMergingWindowFn(WindowFn):
    """A WindowFn whose windows stay as they are (Beam's name)."""

    def is_merging(self) -> bool:
        """False."""
        return False

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges nothing."""


class _ByFields:
    """Equality by exact class and all attributes, those of a user's subclass included."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, repr(self)))


class GlobalWindows(_ByFields, NonMergingWindowFn):
    """Puts every element into the `GlobalWindow` (Beam's ``GlobalWindows``).

    >>> GlobalWindows().assign(WindowFn.AssignContext(5))
    [GlobalWindow]
    """

    @classmethod
    def windowed_value(
        cls, value: Any, timestamp: Timestamp = MIN_TIMESTAMP, pane_info: PaneInfo = PANE_INFO_UNKNOWN
    ) -> WindowedValue:
        """An element in the global window."""
        return WindowedValue(value, timestamp, (GlobalWindow(),), pane_info)

    @classmethod
    def windowed_batch(
        cls, batch: Any, timestamp: Timestamp = MIN_TIMESTAMP, pane_info: PaneInfo = PANE_INFO_UNKNOWN
    ) -> HomogeneousWindowedBatch:
        """A batch of elements in the global window."""
        return HomogeneousWindowedBatch.of(batch, timestamp, (GlobalWindow(),), pane_info)

    @classmethod
    def windowed_value_at_end_of_window(cls, value: Any) -> WindowedValue:
        """An element in the global window, at its last moment."""
        return cls.windowed_value(value, GlobalWindow().max_timestamp())

    def assign(self, assign_context: WindowFn.AssignContext) -> list[GlobalWindow]:
        """The global window."""
        return [GlobalWindow()]

    def get_window_coder(self) -> Coder:
        """The coder of the global window."""
        from penstock.coders.coders import GlobalWindowCoder

        return GlobalWindowCoder()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _IntervalWindowFn(_ByFields, WindowFn):
    """A WindowFn that assigns intervals by the timestamp alone."""

    @abstractmethod
    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The windows of a timestamp in microseconds (penstock's own)."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        """The windows of an element."""
        return list(self.assign_micros(assign_context.timestamp.micros))

    def get_window_coder(self) -> Coder:
        """The coder of intervals."""
        from penstock.coders.coders import IntervalWindowCoder

        return IntervalWindowCoder()


@dataclass(frozen=True, init=False, eq=False)
class FixedWindows(_IntervalWindowFn, NonMergingWindowFn):
    """Windows of one size, one after the other (Beam's ``FixedWindows``).

    Args:
        size: The length of each window, in seconds.
        offset: When the windows start, counted from the epoch, in seconds; taken modulo `size`.

    Raises:
        ValueError: `size` is less than a microsecond.

    >>> FixedWindows(60, offset=5).assign_micros(-1)
    ([-55.0, 5.0),)
    """

    size: Duration
    offset: Duration
    size_micros: int = field(repr=False)
    offset_micros: int = field(repr=False)

    def __init__(self, size: DurationTypes, offset: TimestampTypes | Duration = 0) -> None:
        size_micros = _positive_micros("size", size)
        offset_micros = _offset_micros(offset, size_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            offset=Duration.from_micros(offset_micros),
            size_micros=size_micros,
            offset_micros=offset_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The one window around a timestamp in microseconds (penstock's own)."""
        start_micros = timestamp_micros - (timestamp_micros - self.offset_micros) % self.size_micros
        return (IntervalWindow.from_micros(start_micros, start_micros + self.size_micros),)


@dataclass(frozen=True, init=False, eq=False)
class SlidingWindows(_IntervalWindowFn, NonMergingWindowFn):
    """Windows of one size, one starting every period (Beam's ``SlidingWindows``).

    Where the period is the longer of the two there are gaps, and elements in a gap are in no window.

    Args:
        size: The length of each window, in seconds.
        period: The time from one window's start to the next one's, in seconds.
        offset: When the windows start, counted from the epoch, in seconds; taken modulo `period`.

    Raises:
        ValueError: `size` or `period` is less than a microsecond.

    >>> SlidingWindows(60, 30).assign_micros(0)
    ([0.0, 60.0), [-30.0, 30.0))
    """

    size: Duration
    period: Duration
    offset: Duration
    size_micros: int = field(repr=False)
    period_micros: int = field(repr=False)
    offset_micros: int = field(repr=False)

    def __init__(
        self, size: DurationTypes, period: DurationTypes, offset: TimestampTypes | Duration = 0
    ) -> None:
        size_micros = _positive_micros("size", size)
        period_micros = _positive_micros("period", period)
        offset_micros = _offset_micros(offset, period_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            period=Duration.from_micros(period_micros),
            offset=Duration.from_micros(offset_micros),
            size_micros=size_micros,
            period_micros=period_micros,
            offset_micros=offset_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The windows around a timestamp in microseconds, the latest start first (penstock's own)."""
        latest_micros = timestamp_micros - (timestamp_micros - self.offset_micros) % self.period_micros
        starts_micros = range(latest_micros, timestamp_micros - self.size_micros, -self.period_micros)
        return tuple(IntervalWindow.from_micros(start, start + self.size_micros) for start in starts_micros)


@dataclass(frozen=True, init=False, eq=False)
class Sessions(_IntervalWindowFn):
    """A window for each run of elements of a key without a long gap between them (Beam's ``Sessions``).

    Args:
        gap_size: An element this many seconds after the one before, or more, starts a new session.
        merge_touching: Whether an element exactly `gap_size` after the one before still joins its session
            (penstock's own; in Beam it never does).

    Raises:
        ValueError: `gap_size` is less than a microsecond.

    >>> Sessions(10).assign_micros(5_000_000)
    ([5.0, 15.0),)
    """

    gap_size: Duration
    merge_touching: bool
    gap_micros: int = field(repr=False)

    def __init__(self, gap_size: DurationTypes, merge_touching: bool = False) -> None:
        gap_micros = _positive_micros("gap_size", gap_size)
        vars(self).update(
            gap_size=Duration.from_micros(gap_micros), merge_touching=merge_touching, gap_micros=gap_micros
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The session of an element alone, from its timestamp in microseconds (penstock's own)."""
        return (IntervalWindow.from_micros(timestamp_micros, timestamp_micros + self.gap_micros),)

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges each run of sessions that overlap (or touch, with `merge_touching`)."""
        for run, whole in self._runs(merge_context.windows):
            if len(run) > 1:
                merge_context.merge(run, whole)

    def _runs(self, windows: Iterable[Any]) -> Iterator[tuple[list[BoundedWindow], IntervalWindow]]:
        """Each run of windows that become one session, with that session, in order of time."""
        reach_micros = 1 if self.merge_touching else 0
        run: list[BoundedWindow] = []
        start_micros = end_micros = 0
        for window in sorted(windows, key=lambda window: window.start_micros):
            if run and window.start_micros >= end_micros + reach_micros:
                yield run, IntervalWindow.from_micros(start_micros, end_micros)
                run = []
            if not run:
                start_micros = end_micros = window.start_micros
            run.append(window)
            end_micros = max(end_micros, window.end_micros)
        if run:
            yield run, IntervalWindow.from_micros(start_micros, end_micros)


def _positive_micros(noun: str, length: DurationTypes) -> int:
    micros = Duration.of(length).micros
    if micros <= 0:
        what = f"the {noun} parameter must be strictly positive, but is {length!r}"
        raise ValueError(
            three_parts(what, where=here(), hint="give seconds, at least a microsecond (0.000001)")
        )
    return micros


def _offset_micros(offset: TimestampTypes | Duration, cycle_micros: int) -> int:
    moment = offset if isinstance(offset, Duration) else Timestamp.of(offset)
    return moment.micros % cycle_micros
