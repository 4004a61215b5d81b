"""When things are drawn to happen: as they were recorded, except for a batch, which gives all at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.figures.recording import RecordedPane, Recording
from penstock.figures.scales import clock_extent, extent, is_finite
from penstock.utils.windowed_value import PaneInfoTiming

_BAND_SHARE_MAX = 1.2
_STAIR_SHARE = 0.035
STEP_SHARE = 0.09
"""The processing time between two panes of a batch whose windows overlap, as a share of that of all input."""

_STAIR_MICROS = 250_000
_STEP_MICROS = 450_000


@dataclass(frozen=True)
class Timeline:
    """A recording as it is drawn.

    Attributes:
        recording: The recording; all its processing times are finite.
        read_micros: In a batch, the processing time at which all input is read; None in other modes.
        sweep: In a batch, the processing times from which and until which the watermark goes from the beginning to the
            end of time; None in other modes.
    """

    recording: Recording
    read_micros: int | None = None
    sweep: tuple[int, int] | None = None


def timeline_of(recording: Recording) -> Timeline:
    """When things are drawn to happen.

    A batch reads all its input, and only then gives panes. They are drawn above all input, one after the other:
    those that fire by their data, then those that the watermark brings on its way to the end of time.

    >>> panes = tuple(RecordedPane(start, start + 10, 0, "", "7", 1, 0) for start in (0, 10))
    >>> timeline = timeline_of(Recording("", (), panes, (), mode="batch"))
    >>> [pane.clock_micros > 0 for pane in timeline.recording.panes], timeline.sweep is None
    ([True, True], False)
    """
    low, high = clock_extent(recording)

    def within(clock_micros: int) -> int:
        return min(max(clock_micros, low), high)

    if recording.mode == "batch":
        return _batch(replace(recording, watermark=()))
    return Timeline(
        replace(
            recording,
            inputs=tuple(replace(each, clock_micros=within(each.clock_micros)) for each in recording.inputs),
            panes=tuple(replace(each, clock_micros=within(each.clock_micros)) for each in recording.panes),
            watermark=tuple((within(clock), micros) for clock, micros in recording.watermark),
        )
    )


def _batch(recording: Recording) -> Timeline:
    clocks = [each.clock_micros for each in recording.inputs if is_finite(each.clock_micros)]
    low, high = extent(clocks)
    high = max(clocks, default=high)
    inputs = tuple(
        each if is_finite(each.clock_micros) else replace(each, clock_micros=high)
        for each in recording.inputs
    )
    ranks = _ranks(recording.panes)
    count = max(ranks, default=0) + 1
    are_apart = windows_are_apart(recording.panes)
    share = _STAIR_SHARE if are_apart else STEP_SHARE
    step = max(round((high - low) * min(share, _BAND_SHARE_MAX / (count + 1))), 1)
    if recording.counts_steps:
        step = max(step, _STAIR_MICROS if are_apart else _STEP_MICROS)
    ranked = list(zip(ranks, recording.panes, strict=True))
    panes = tuple(replace(pane, clock_micros=high + (rank + 2) * step) for rank, pane in ranked)
    by_data = max((rank for rank, pane in ranked if pane.timing == PaneInfoTiming.EARLY), default=-1)
    sweep = high + (by_data + 2) * step, high + (count + 2) * step
    return Timeline(replace(recording, inputs=inputs, panes=panes), high + step, sweep)


def windows_are_apart(panes: Sequence[RecordedPane]) -> bool:
    """Whether each pane has a later window than the pane before: then their values need no more room."""
    ends: dict[str, int] = {}
    for pane in panes:
        if not pane.is_retraction:
            if pane.start_micros < ends.get(pane.key, pane.start_micros):
                return False
            ends[pane.key] = pane.end_micros
    return True


def _ranks(panes: Sequence[RecordedPane]) -> list[int]:
    """For each pane its number among the panes of its key; what it takes back goes with it."""
    given: Counter[str] = Counter()
    ranks = []
    for pane in panes:
        ranks.append(given[pane.key])
        given[pane.key] += not pane.is_retraction
    return ranks
