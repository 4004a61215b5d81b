"""Time domains and the timestamps of groups, under Beam's path (`apache_beam.transforms.timeutil`)."""

from penstock.windows.timeutil import DependsOnlyOnWindow as DependsOnlyOnWindow
from penstock.windows.timeutil import OutputAtEarliestInputTimestampImpl as OutputAtEarliestInputTimestampImpl
from penstock.windows.timeutil import (
    OutputAtEarliestTransformedInputTimestampImpl as OutputAtEarliestTransformedInputTimestampImpl,
)
from penstock.windows.timeutil import OutputAtEndOfWindowImpl as OutputAtEndOfWindowImpl
from penstock.windows.timeutil import OutputAtLatestInputTimestampImpl as OutputAtLatestInputTimestampImpl
from penstock.windows.timeutil import TimeDomain as TimeDomain
from penstock.windows.timeutil import TimestampCombinerImpl as TimestampCombinerImpl
