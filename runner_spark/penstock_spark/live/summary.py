"""A stream in one line, for a log and for a terminal without the package rich."""

from __future__ import annotations

from penstock_spark.live.formatting import (
    escape_control_characters,
    format_count,
    format_lag,
    format_moment,
    format_seconds,
)
from penstock_spark.live.snapshot import RunSnapshot

LINE_SECONDS = (5.0, 10.0)
"""The times at which a stream prints a line; the last is the interval from then on."""


def render_stream_line(now: RunSnapshot) -> str:
    """Says in one line how far a stream has come.

    >>> from penstock_spark.live.snapshot import GroupingNow
    >>> sums = GroupingNow("Sum", 1, output_micros=60_000_000, event_lag_micros=5_000_000)
    >>> render_stream_line(RunSnapshot("", "", "streaming", "RUNNING", 0, 9_000_000, rows_in=10, groupings=(sums,)))
    'running for 9.0 s · 10 rows read · Sum at 1970-01-01 00:01:00, 5.0 s behind'
    """
    parts = [f"{now.state.lower()} for {format_seconds(now.seconds)}"]
    if now.rows_in is not None:
        parts.append(f"{format_count(now.rows_in)} rows read")
    if now.groupings:
        # The first that is behind all others says when results come.
        last = min(now.groupings, key=lambda grouping: grouping.output_micros or 0)
        lag = f", {format_lag(last.event_lag_micros)} behind" if last.event_lag_micros is not None else ""
        parts.append(f"{escape_control_characters(last.label)} at {format_moment(last.output_micros)}{lag}")
    return " · ".join(parts)
