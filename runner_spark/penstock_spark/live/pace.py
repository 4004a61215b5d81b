"""Decides whether a stream keeps up with its sources, from its last micro-batches and backlogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock_spark.live.formatting import format_count, format_seconds
from penstock_spark.live.throughput import RECENT_WIDTH_MICROS, Span, Throughput

WINDOW_MICROS = 60_000_000
"""The time that counts as now."""

BUSY = 0.9
"""The share of the time from which on micro-batches follow one another without a pause that matters."""

_QUIET_MICROS = 3_000_000
_SLOW_MICROS = 30_000_000

STARTING, IDLE, KEEPING_UP, CATCHING_UP, FALLING_BEHIND, BUSY_ALL_THE_TIME, SLOW = PACES = (
    *("starting", "idle", "keeping up", "catching up", "falling behind", "busy all the time"),
    "waiting for a micro-batch",
)


@dataclass(frozen=True)
class Pace:
    """The present activity of a stream.

    Attributes:
        doing: One of `PACES`.
        why: The reason, as a sentence without a full stop.
        busy_share: The share of the last minute in which a micro-batch was at work; None before the first has ended.
    """

    doing: str
    why: str
    busy_share: float | None = None


@dataclass(frozen=True)
class AtWork:
    """The micro-batch that is being written now.

    Attributes:
        number: Its number.
        since_micros: When it was first seen.
    """

    number: int
    since_micros: int


def pace_of(
    throughput: Throughput,
    now_micros: int,
    last_rows_micros: int | None,
    interval_seconds: float | None = None,
    at_work: AtWork | None = None,
    event_speed: float | None = None,
) -> Pace:
    """Returns what a stream does now.

    Args:
        throughput: Its work so far.
        now_micros: The time.
        last_rows_micros: When the last micro-batch that read rows ended; None without one.
        interval_seconds: The time from the start of a micro-batch to the start of the next, if the run sets it.
        at_work: The micro-batch that is being written; None if none is.
        event_speed: How many seconds of event time pass in a second; None if unknown.

    >>> from penstock_spark.live.throughput import add_work
    >>> done = add_work(Throughput(), 0, 2_000_000, 10)
    >>> pace_of(done, 8_000_000, 2_000_000)
    Pace(doing='idle', why='no source has had anything new for 6.0 s', busy_share=0.25)
    """
    until = throughput.until_micros
    if until is None:
        if at_work is None:
            return Pace(STARTING, "no micro-batch has ended yet")
        since = format_seconds((now_micros - at_work.since_micros) / 1_000_000)
        return Pace(STARTING, f"the first micro-batch has been at work for {since}")
    share = busy_share(throughput, now_micros, at_work)
    if at_work is not None and now_micros - at_work.since_micros >= _SLOW_MICROS:
        longest = format_seconds((now_micros - at_work.since_micros) / 1_000_000)
        return Pace(SLOW, f"micro-batch {at_work.number} has been at work for {longest}", share)
    if share >= BUSY:
        return _pace_of_busy(throughput, now_micros, share, event_speed)
    quiet = None if last_rows_micros is None else now_micros - last_rows_micros
    pause = _QUIET_MICROS + round((interval_seconds or 0) * 1_000_000)
    if at_work is None and (quiet is None or quiet >= pause):
        how_long = "yet" if quiet is None else f"for {format_seconds(quiet / 1_000_000)}"
        return Pace(IDLE, f"no source has had anything new {how_long}", share)
    why = f"micro-batches take {100 * share:.0f} % of the time"
    if interval_seconds is not None:
        why += f"; one begins every {format_seconds(interval_seconds)}"
    return Pace(KEEPING_UP, why, share)


def _pace_of_busy(throughput: Throughput, now_micros: int, share: float, event_speed: float | None) -> Pace:
    known = [span for span in throughput.recent_spans if span.backlog is not None]
    if not known:
        why = "one micro-batch follows another without a pause; no source reports how much is left to read"
        if event_speed is not None:
            why += f"; event time passes {event_speed:.3g} s in a second"
        return Pace(BUSY_ALL_THE_TIME, why, share)
    left = known[-1].backlog or 0
    before = _span_before(known, now_micros - WINDOW_MICROS)
    change = left - (before.backlog or 0)
    seconds = format_seconds((known[-1].start_micros - before.start_micros) / 1_000_000)
    if not left:
        return Pace(
            KEEPING_UP, "one micro-batch follows another without a pause, and everything is read", share
        )
    waiting = f"{format_count(left)} are left to read"
    if before is known[-1]:
        return Pace(BUSY_ALL_THE_TIME, waiting, share)
    if change < 0:
        return Pace(CATCHING_UP, f"{waiting}, {format_count(-change)} fewer than {seconds} ago", share)
    if change == 0:
        return Pace(BUSY_ALL_THE_TIME, f"{waiting}, as many as {seconds} ago", share)
    return Pace(FALLING_BEHIND, f"{waiting}, {format_count(change)} more than {seconds} ago", share)


def _span_before(spans: Sequence[Span], micros: int) -> Span:
    """Returns the last span that begins at a time or before it; the first one if none does."""
    return next((span for span in reversed(spans) if span.start_micros <= micros), spans[0])


def busy_share(throughput: Throughput, now_micros: int, at_work: AtWork | None = None) -> float:
    """Returns the share of the last minute, or of a shorter run, in which micro-batches were at work.

    >>> from penstock_spark.live.throughput import add_work
    >>> busy_share(add_work(Throughput(), 0, 2_000_000, 10), 8_000_000)
    0.25
    """
    spans, width = throughput.recent_spans, RECENT_WIDTH_MICROS
    if not spans:
        return 0.0
    since = max(now_micros - WINDOW_MICROS, spans[0].start_micros)
    busy = sum(
        span.busy_micros * max(0, min(width, span.start_micros + width - since)) // width for span in spans
    )
    if at_work is not None:
        busy += max(0, now_micros - max(at_work.since_micros, throughput.until_micros or 0, since))
    elapsed = now_micros - since
    return min(1.0, busy / elapsed) if elapsed > 0 else 0.0
