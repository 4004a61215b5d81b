"""The clocks of timers, and how the timestamp of a group follows from its elements' timestamps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.error import refusal
from penstock.utils.timestamp import Timestamp

if TYPE_CHECKING:
    from penstock.base.bounded_window import BoundedWindow
    from penstock.windows.window_fn import WindowFn


class TimeDomain:
    """The clock of a timer: event time (the watermark) or the machine's clock (Beam's names).

    >>> TimeDomain.is_event_time(TimeDomain.WATERMARK), TimeDomain.is_event_time("REAL_TIME")
    (True, False)
    """

    WATERMARK = "WATERMARK"
    REAL_TIME = "REAL_TIME"
    DEPENDENT_REAL_TIME = "DEPENDENT_REAL_TIME"

    @staticmethod
    def from_string(domain: str) -> str:
        """Returns the domain, or raises a ValueError if it is unknown."""
        if domain not in (TimeDomain.WATERMARK, TimeDomain.REAL_TIME, TimeDomain.DEPENDENT_REAL_TIME):
            hint = "use TimeDomain.WATERMARK or TimeDomain.REAL_TIME"
            raise refusal(ValueError, f"unknown time domain: {domain!r}", hint=hint)
        return domain

    @staticmethod
    def is_event_time(domain: str) -> bool:
        """Whether timers of this domain fire by the watermark; a ValueError for an unknown domain."""
        return TimeDomain.from_string(domain) == TimeDomain.WATERMARK


class TimestampCombinerImpl(ABC):
    """How the timestamp of a group's output follows from its elements' timestamps (Beam's name).

    >>> at_latest = OutputAtLatestInputTimestampImpl()
    >>> at_latest.combine_all([Timestamp(1), None, Timestamp(3)]), at_latest.combine_all([])
    (Timestamp(3), None)
    """

    @abstractmethod
    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        """The output timestamp if this element were alone in its window."""

    @abstractmethod
    def combine(self, output_timestamp: Timestamp, other_output_timestamp: Timestamp) -> Timestamp:
        """The output timestamp of two groups together."""

    def combine_all(self, merging_timestamps: Iterable[Timestamp | None]) -> Timestamp | None:
        """The output timestamp of several groups together; None is a group without one."""
        combined: Timestamp | None = None
        for timestamp in merging_timestamps:
            if timestamp is not None:
                combined = timestamp if combined is None else self.combine(combined, timestamp)
        return combined

    def merge(
        self, result_window: BoundedWindow, merging_timestamps: Iterable[Timestamp | None]
    ) -> Timestamp | None:
        """The output timestamp after the groups' windows merged into `result_window`."""
        return self.combine_all(merging_timestamps)


class DependsOnlyOnWindow(TimestampCombinerImpl):
    """A combiner whose result follows from the window alone (Beam's name)."""

    def merge(
        self, result_window: BoundedWindow, merging_timestamps: Iterable[Timestamp | None]
    ) -> Timestamp | None:
        return self.assign_output_time(result_window, None)


class OutputAtEarliestInputTimestampImpl(TimestampCombinerImpl):
    """The earliest element's timestamp (Beam's name)."""

    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        return _given(input_timestamp)

    def combine(self, output_timestamp: Timestamp, other_output_timestamp: Timestamp) -> Timestamp:
        return min(output_timestamp, other_output_timestamp)


class OutputAtEarliestTransformedInputTimestampImpl(OutputAtEarliestInputTimestampImpl):
    """The earliest timestamp after the WindowFn's ``get_transformed_output_time`` (Beam's name)."""

    def __init__(self, window_fn: WindowFn) -> None:
        self.window_fn = window_fn

    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        return self.window_fn.get_transformed_output_time(window, _given(input_timestamp))


class OutputAtLatestInputTimestampImpl(TimestampCombinerImpl):
    """The latest element's timestamp (Beam's name)."""

    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        return _given(input_timestamp)

    def combine(self, output_timestamp: Timestamp, other_output_timestamp: Timestamp) -> Timestamp:
        return max(output_timestamp, other_output_timestamp)


class OutputAtEndOfWindowImpl(DependsOnlyOnWindow):
    """The latest timestamp in the window (Beam's name)."""

    def assign_output_time(self, window: BoundedWindow, input_timestamp: Timestamp | None) -> Timestamp:
        return window.max_timestamp()

    def combine(self, output_timestamp: Timestamp, other_output_timestamp: Timestamp) -> Timestamp:
        return max(output_timestamp, other_output_timestamp)


def _given(timestamp: Timestamp | None) -> Timestamp:
    if timestamp is None:
        hint = "use OUTPUT_AT_EOW if only the window is known"
        raise refusal(ValueError, "this timestamp combiner needs an element's timestamp", hint=hint)
    return timestamp
