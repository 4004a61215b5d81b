"""Time domains, under Beam's path (`apache_beam.transforms.timeutil`)."""

from penstock.windows.output_times import DependsOnlyOnWindow as DependsOnlyOnWindow
from penstock.windows.output_times import (
    OutputAtEarliestInputTimestampImpl as OutputAtEarliestInputTimestampImpl,
)
from penstock.windows.output_times import (
    OutputAtEarliestTransformedInputTimestampImpl as OutputAtEarliestTransformedInputTimestampImpl,
)
from penstock.windows.output_times import OutputAtEndOfWindowImpl as OutputAtEndOfWindowImpl
from penstock.windows.output_times import OutputAtLatestInputTimestampImpl as OutputAtLatestInputTimestampImpl
from penstock.windows.output_times import TimestampCombinerImpl as TimestampCombinerImpl
from penstock.windows.time_domain import TimeDomain as TimeDomain
