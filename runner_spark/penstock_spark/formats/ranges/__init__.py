"""Sources that are written in Python: tasks read their ranges, and run the next steps in the same process."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.ranges.batch import open_ranges, open_ranges_with_rejects
from penstock_spark.formats.ranges.stream import open_range_stream

RANGES = Format(open_ranges, open_range_stream, open_with_rejects=open_ranges_with_rejects)
