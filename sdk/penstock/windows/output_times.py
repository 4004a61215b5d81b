"""The event time of a pane, which follows from the times of its elements, or from its window alone.

`OutputTimes` is the rule, and every engine reads it. ``TimestampCombiner`` has Beam's names of the four rules, and the
classes after it are Beam's view of a rule, one ``Timestamp`` at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.error import refusal
from penstock.utils.timestamp import Timestamp

if TYPE_CHECKING:
    from penstock.elements.bounded_window import BoundedWindow
    from penstock.windows.window_fn import WindowFn


@dataclass(frozen=True)
class OutputTimes:
    """A rule for the event time of a pane.

    Attributes:
        of_element: The time of the pane, in microseconds, if an element with this time in this window were alone.
        together: The time of several elements; None if the window alone decides.
    """

    of_element: Callable[[int, BoundedWindow], int]
    together: Callable[[Iterable[int]], int] | None

    def together_with(self, before_micros: int | None, micros: int) -> int:
        """Combines the output time so far, which may be None, with the output time of another element."""
        return (
            micros
            if before_micros is None or self.together is None
            else self.together((before_micros, micros))
        )

    def needed(self, timestamps: Iterable[int]) -> tuple[int, ...]:
        """Returns the event times among several that determine the output's.

        The earliest alone does not: if it is behind the watermark, the earliest of the others counts.

        >>> EARLIEST.needed([7, 5, 7]), LATEST.needed([7, 5, 7]), END_OF_WINDOW.needed([7, 5, 7])
        ((5, 7), (7,), ())
        """
        if self.together is None:
            return ()
        return (max(timestamps),) if self.together is max else tuple(sorted(set(timestamps)))

    def after_merge(self, window: BoundedWindow, several_micros: list[int]) -> int | None:
        """Returns the output time of a merged window; None if nothing in it was on time."""
        if not several_micros:
            return None
        return self.of_element(0, window) if self.together is None else self.together(several_micros)


def _end(timestamp_micros: int, window: BoundedWindow) -> int:
    return window.end_micros - 1


def _own(timestamp_micros: int, window: BoundedWindow) -> int:
    return timestamp_micros


END_OF_WINDOW = OutputTimes(_end, None)
EARLIEST = OutputTimes(_own, min)
LATEST = OutputTimes(_own, max)


def earliest_transformed(windowfn: WindowFn) -> OutputTimes:
    """Returns the rule for the earliest time after the WindowFn's ``get_transformed_output_time``."""

    def transformed(timestamp_micros: int, window: BoundedWindow) -> int:
        return windowfn.get_transformed_output_time(window, Timestamp.from_micros(timestamp_micros)).micros

    return OutputTimes(transformed, min)


class TimestampCombiner:
    """The names of the rules for the timestamp of a grouping's output (Beam's names and numbers).

    >>> from penstock.elements.bounded_window import IntervalWindow
    >>> from penstock.windows.window_fn import GlobalWindows
    >>> end_of_window = TimestampCombiner.get_impl(TimestampCombiner.OUTPUT_AT_EOW, GlobalWindows())
    >>> end_of_window.assign_output_time(IntervalWindow(0, 1), None)
    Timestamp(0.999999)
    """

    OUTPUT_AT_EOW = 1
    OUTPUT_AT_LATEST = 2
    OUTPUT_AT_EARLIEST = 3
    OUTPUT_AT_EARLIEST_TRANSFORMED = "OUTPUT_AT_EARLIEST_TRANSFORMED"

    @staticmethod
    def get_impl(timestamp_combiner: int | str, window_fn: WindowFn) -> TimestampCombinerImpl:
        """Returns Beam's view of the rule that one of the four constants names."""
        output_times_of(timestamp_combiner, window_fn)
        if timestamp_combiner == TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED:
            return OutputAtEarliestTransformedInputTimestampImpl(window_fn)
        return _IMPLEMENTATIONS[timestamp_combiner]()


def output_times_of(timestamp_combiner: int | str, windowfn: WindowFn) -> OutputTimes:
    """Returns the rule that a constant of `TimestampCombiner` names; ValueError for anything else."""
    match timestamp_combiner:
        case TimestampCombiner.OUTPUT_AT_EOW:
            return END_OF_WINDOW
        case TimestampCombiner.OUTPUT_AT_LATEST:
            return LATEST
        case TimestampCombiner.OUTPUT_AT_EARLIEST:
            return EARLIEST
        case TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED:
            return earliest_transformed(windowfn)
    what = f"invalid TimestampCombiner: {timestamp_combiner!r}"
    raise refusal(ValueError, what, hint="use a constant such as TimestampCombiner.OUTPUT_AT_EOW")


class TimestampCombinerImpl:
    """A rule for the timestamp of a group's output, as Beam's classes have it (Beam's name).

    >>> at_latest = OutputAtLatestInputTimestampImpl()
    >>> at_latest.combine_all([Timestamp(1), None, Timestamp(3)]), at_latest.combine_all([])
    (Timestamp(3), None)
    """

    _times: OutputTimes

    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        """Returns the output timestamp if this element were alone in its window."""
        if input_timestamp is None and self._times.together is not None:
            hint = "use OUTPUT_AT_EOW if only the window is known"
            raise refusal(ValueError, "this timestamp combiner needs an element's timestamp", hint=hint)
        input_micros = 0 if input_timestamp is None else input_timestamp.micros
        return Timestamp.from_micros(self._times.of_element(input_micros, window))

    def combine(self, output_timestamp: Timestamp, other_output_timestamp: Timestamp) -> Timestamp:
        """Returns the output timestamp of two groups together."""
        together = self._times.together or max
        return Timestamp.from_micros(together((output_timestamp.micros, other_output_timestamp.micros)))

    def combine_all(self, merging_timestamps: Iterable[Timestamp | None]) -> Timestamp | None:
        """Returns the output timestamp of several groups together; None is a group without one."""
        known = [timestamp for timestamp in merging_timestamps if timestamp is not None]
        return functools.reduce(self.combine, known) if known else None

    def merge(
        self, result_window: BoundedWindow, merging_timestamps: Iterable[Timestamp | None]
    ) -> Timestamp | None:
        """Returns the output timestamp after the groups' windows merged into `result_window`."""
        if self._times.together is None:
            return self.assign_output_time(result_window, None)
        return self.combine_all(merging_timestamps)


class DependsOnlyOnWindow(TimestampCombinerImpl):
    """A combiner whose result follows from the window alone (Beam's name)."""


class OutputAtEndOfWindowImpl(DependsOnlyOnWindow):
    """The latest timestamp in the window (Beam's name)."""

    _times = END_OF_WINDOW


class OutputAtEarliestInputTimestampImpl(TimestampCombinerImpl):
    """The earliest element's timestamp (Beam's name)."""

    _times = EARLIEST


class OutputAtEarliestTransformedInputTimestampImpl(TimestampCombinerImpl):
    """The earliest timestamp after the WindowFn's ``get_transformed_output_time`` (Beam's name)."""

    def __init__(self, window_fn: WindowFn) -> None:
        self._times = earliest_transformed(window_fn)


class OutputAtLatestInputTimestampImpl(TimestampCombinerImpl):
    """The latest element's timestamp (Beam's name)."""

    _times = LATEST


_IMPLEMENTATIONS: dict[int | str, Callable[[], TimestampCombinerImpl]] = {
    TimestampCombiner.OUTPUT_AT_EOW: OutputAtEndOfWindowImpl,
    TimestampCombiner.OUTPUT_AT_LATEST: OutputAtLatestInputTimestampImpl,
    TimestampCombiner.OUTPUT_AT_EARLIEST: OutputAtEarliestInputTimestampImpl,
}
