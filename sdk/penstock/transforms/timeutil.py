"""Time domains, under Beam's path (`apache_beam.transforms.timeutil`)."""

from penstock.absent import hint_at_absent_names
from penstock.windows.timeutil import TimeDomain as TimeDomain

hint_at_absent_names(globals())
