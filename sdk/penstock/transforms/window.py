"""Windows and the functions that assign them, under Beam's path (`apache_beam.transforms.window`)."""

from __future__ import annotations

from penstock.base.bounded_window import BoundedWindow as BoundedWindow
from penstock.base.bounded_window import GlobalWindow as GlobalWindow
from penstock.base.bounded_window import IntervalWindow as IntervalWindow
from penstock.base.bounded_window import TimestampedValue as TimestampedValue
from penstock.base.bounded_window import V as V
from penstock.utils.timestamp import MIN_TIMESTAMP as MIN_TIMESTAMP
from penstock.windows.calendar_windows import CalendarWindows as CalendarWindows
from penstock.windows.window_fn import BoundedSessions as BoundedSessions
from penstock.windows.window_fn import FixedWindows as FixedWindows
from penstock.windows.window_fn import GlobalWindows as GlobalWindows
from penstock.windows.window_fn import MergeScope as MergeScope
from penstock.windows.window_fn import NonMergingWindowFn as NonMergingWindowFn
from penstock.windows.window_fn import PerElementFixedWindows as PerElementFixedWindows
from penstock.windows.window_fn import Sessions as Sessions
from penstock.windows.window_fn import SlidingWindows as SlidingWindows
from penstock.windows.window_fn import TimestampCombiner as TimestampCombiner
from penstock.windows.window_fn import UnalignedFixedWindows as UnalignedFixedWindows
from penstock.windows.window_fn import WindowFn as WindowFn
