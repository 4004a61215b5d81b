"""Time domains and the timestamps of groups, under Beam's path (`apache_beam.transforms.timeutil`)."""

from __future__ import annotations

from penstock.windows.timeutil import (
    DependsOnlyOnWindow,
    OutputAtEarliestInputTimestampImpl,
    OutputAtEarliestTransformedInputTimestampImpl,
    OutputAtEndOfWindowImpl,
    OutputAtLatestInputTimestampImpl,
    TimeDomain,
    TimestampCombinerImpl,
)

__all__ = [
    "DependsOnlyOnWindow",
    "OutputAtEarliestInputTimestampImpl",
    "OutputAtEarliestTransformedInputTimestampImpl",
    "OutputAtEndOfWindowImpl",
    "OutputAtLatestInputTimestampImpl",
    "TimeDomain",
    "TimestampCombinerImpl",
]
