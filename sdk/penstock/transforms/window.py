"""Windows and the functions that assign them, under Beam's path (`apache_beam.transforms.window`)."""

from penstock.elements.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow, TimestampedValue, V
from penstock.utils.timestamp import MIN_TIMESTAMP
from penstock.utils.timestamp import Duration as Duration
from penstock.utils.timestamp import Timestamp as Timestamp
from penstock.utils.windowed_value import WindowedValue as WindowedValue
from penstock.windows.calendar_windows import CalendarWindows
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.window_fn import (
    BoundedSessions,
    FixedWindows,
    GlobalWindows,
    MergeScope,
    NonMergingWindowFn,
    PerElementFixedWindows,
    Sessions,
    SlidingWindows,
    UnalignedFixedWindows,
    WindowFn,
)

__all__ = [
    "BoundedSessions",
    "BoundedWindow",
    "CalendarWindows",
    "FixedWindows",
    "GlobalWindow",
    "GlobalWindows",
    "IntervalWindow",
    "MIN_TIMESTAMP",
    "MergeScope",
    "NonMergingWindowFn",
    "PerElementFixedWindows",
    "Sessions",
    "SlidingWindows",
    "TimestampCombiner",
    "TimestampedValue",
    "UnalignedFixedWindows",
    "V",
    "WindowFn",
]
