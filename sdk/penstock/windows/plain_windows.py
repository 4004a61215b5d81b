"""The plain functions that assign elements to windows: global, fixed and sliding; and when results are stamped.

Seconds go in, as in Beam; inside, all is whole microseconds. The windows themselves are in `bounded_window`; how to
write a function of one's own is in `window_fn`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.base.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.base.window_lengths import phase_micros, positive_micros
from penstock.coders.coders import GlobalWindowCoder
from penstock.error import three_parts
from penstock.utils.timestamp import MIN_TIMESTAMP, Duration, DurationTypes, Timestamp, TimestampTypes
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, HomogeneousWindowedBatch, PaneInfo, WindowedValue
from penstock.windows import timeutil
from penstock.windows.window_fn import ByFields, ByTimestamp, NonMergingWindowFn, WindowFn, fixed_window

if TYPE_CHECKING:
    from penstock.coders.coders import Coder


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


class GlobalWindows(ByFields, NonMergingWindowFn):
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
        """An element in the global window, at its end."""
        return cls.windowed_value(value, GlobalWindow().max_timestamp())

    def assign(self, assign_context: WindowFn.AssignContext) -> list[GlobalWindow]:
        return [GlobalWindow()]

    def get_window_coder(self) -> Coder:
        """The coder of the global window."""
        return GlobalWindowCoder()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, init=False, eq=False)
class FixedWindows(ByTimestamp, NonMergingWindowFn):
    """Windows of one size, one after the other (Beam's ``FixedWindows``).

    Args:
        size: The length of each window, in seconds.
        offset: When the windows start, counted from the epoch, in seconds; taken modulo `size`.

    Raises:
        TypeError: An argument is not a number of seconds.
        ValueError: `size` is less than a microsecond, or an argument is not finite.

    >>> FixedWindows(60, offset=5).assign_micros(-1)
    ([-55.0, 5.0),)
    """

    size: Duration
    offset: Duration
    size_micros: int = field(repr=False)
    offset_micros: int = field(repr=False)

    def __init__(self, size: DurationTypes, offset: TimestampTypes | Duration = 0) -> None:
        size_micros = positive_micros("size parameter", size)
        offset_micros = phase_micros("offset parameter", offset, size_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            offset=Duration.from_micros(offset_micros),
            size_micros=size_micros,
            offset_micros=offset_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The one window around a timestamp in microseconds (penstock's own)."""
        return (fixed_window(timestamp_micros, self.size_micros, self.offset_micros),)


@dataclass(frozen=True, init=False, eq=False)
class SlidingWindows(ByTimestamp, NonMergingWindowFn):
    """Windows of one size, one starting every period (Beam's ``SlidingWindows``).

    Where the period is the longer of the two there are gaps, and elements in a gap are in no window.

    With ``TimestampCombiner.OUTPUT_AT_EARLIEST``, an open window holds time back for what follows at its earliest
    element, which is earlier than the ends of the windows before it: their results have to wait for its own. With
    ``OUTPUT_AT_EARLIEST_TRANSFORMED`` they do not.

    Args:
        size: The length of each window, in seconds.
        period: The time from one window's start to the next one's, in seconds.
        offset: When the windows start, counted from the epoch, in seconds; taken modulo `period`.

    Raises:
        TypeError: An argument is not a number of seconds.
        ValueError: `size` or `period` is less than a microsecond, or an argument is not finite.

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
        size_micros = positive_micros("size parameter", size)
        period_micros = positive_micros("period parameter", period)
        offset_micros = phase_micros("offset parameter", offset, period_micros)
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

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        """The element's timestamp, but no earlier than the end of the window before this one.

        So a window that is still open never holds back the results of the one before, which overlaps it.

        >>> SlidingWindows(60, 30).get_transformed_output_time(IntervalWindow(0, 60), Timestamp(5))
        Timestamp(30)
        """
        return Timestamp.from_micros(max(input_timestamp.micros, window.end_micros - self.period_micros))
