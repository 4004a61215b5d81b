"""The layout of a drawing: a panel for each key, one above the other, with common axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.diagrams.markup import MINUS, measure_text
from penstock.machines.recorder import RecordedPane
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_figures.moments import (
    DAY_MICROS,
    LABEL_SIZE,
    SECOND_MICROS,
    Labels,
    Style,
    format_moment,
    make_labels,
    style_of,
)
from penstock_figures.recording import Recording
from penstock_figures.room import Area, Room

_CUT = 20
"""Windows that are longer than the whole input by this factor are not shown completely."""


@dataclass(frozen=True)
class Scale:
    """One axis of a drawing.

    >>> scale = Scale(0, 100, 10.0, 110.0, low_edge=0.0, high_edge=120.0)
    >>> scale.place(50), scale.place(-1000), scale.time_at(60.0)
    (60.0, 0.0, 50)
    """

    low_micros: int  # The earliest time that must be in the drawing.
    high_micros: int
    low_place: float  # The place of the earliest time.
    high_place: float
    low_edge: float  # The beginning of the axis, which is also the place of all earlier times.
    high_edge: float

    def place(self, micros: int) -> float:
        """Returns the place of a time."""
        share = (micros - self.low_micros) / (self.high_micros - self.low_micros)
        place = self.low_place + share * (self.high_place - self.low_place)
        return min(max(place, min(self.low_edge, self.high_edge)), max(self.low_edge, self.high_edge))

    def time_at(self, place: float) -> int:
        """Returns the time at a place, to about a microsecond."""
        share = (place - self.low_place) / (self.high_place - self.low_place)
        return self.low_micros + round(share * (self.high_micros - self.low_micros))


def is_finite(micros: int) -> bool:
    """True if a time is neither the beginning nor the end of time."""
    return MIN_MICROS < micros < MAX_MICROS


def extent(times: Iterable[int]) -> tuple[int, int]:
    """Returns the earliest and the latest of the finite times, never equal; around zero without finite times.

    >>> extent([5, 1, MAX_MICROS]), extent([3]), extent([])
    ((1, 5), (-999997, 1000003), (-1000000, 1000000))
    """
    finite = [micros for micros in times if is_finite(micros)] or [0]
    low, high = min(finite), max(finite)
    return (low, high) if low < high else (low - 1_000_000, high + 1_000_000)


def event_extent(recording: Recording) -> tuple[int, int]:
    """Returns the range of event time: all inputs and, unless they are very much longer, all windows."""
    inputs = [each.event_micros for each in recording.inputs if is_finite(each.event_micros)]
    bounds = [micros for pane in recording.panes for micros in (pane.start_micros, pane.end_micros)]
    low, high = extent([*inputs, *bounds])
    length = max(inputs, default=0) - min(inputs, default=0)
    if not length or high - low <= _CUT * length:
        return low, high
    return max(low, min(inputs) - length // 2), min(high, max(inputs) + length // 2)


def clock_extent(recording: Recording) -> tuple[int, int]:
    """Returns the range of processing time."""
    return extent(
        [
            *(each.clock_micros for each in recording.inputs),
            *(pane.clock_micros for pane in recording.panes),
            *(clock_micros for clock_micros, _ in recording.watermark),
        ]
    )


_BAND_SHARE_MAX = 1.2
_STAIR_SHARE = 0.035
STEP_SHARE = 0.09
"""The processing time between two panes of a batch whose windows overlap, as a share of the input's."""

_STAIR_MICROS = 250_000
_STEP_MICROS = 450_000


@dataclass(frozen=True)
class Timeline:
    """A recording as drawn, with finite processing times only."""

    recording: Recording
    read_micros: int | None = None  # When a batch has read all input.
    # The times at which the watermark of a batch leaves the beginning of time, and reaches the end of time.
    sweep: tuple[int, int] | None = None


def timeline_of(recording: Recording) -> Timeline:
    """Places the events of a recording in time.

    A batch reads all its input before it emits panes. The drawing has the panes above all input, one after the other:
    first those that elements fire, then those that the watermark fires on its way to the end of time.

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
    """True if each pane has a later window than the one before, so that their values need no more room."""
    ends: dict[str, int] = {}
    for pane in panes:
        if not pane.is_retraction:
            if pane.start_micros < ends.get(pane.key, pane.start_micros):
                return False
            ends[pane.key] = pane.end_micros
    return True


def _ranks(panes: Sequence[RecordedPane]) -> list[int]:
    """Returns each pane's number among the panes of its key; a retraction has the number of the next pane."""
    given: Counter[str] = Counter()
    ranks = []
    for pane in panes:
        ranks.append(given[pane.key])
        given[pane.key] += not pane.is_retraction
    return ranks


WIDTH = 600.0
KEYS_MAX = 12
"""The maximum number of keys in a drawing."""

_RIGHT = 14.0
_TOP = 30.0
_SIDE_PAD = 16.0
_UPPER_PAD = 26.0
_LOWER_PAD = 16.0
_BETWEEN = 14.0
_HEADING = 20.0
_HEIGHTS = (330.0, 225.0, 185.0)
_HEIGHT_MANY = 155.0
_HEIGHT_MAX = 620.0
_PANE_HEIGHT = 26.0
_BATCH_PANE_HEIGHT = 19.0
_HEIGHT_MIN = 130.0
_STEP_HEIGHT = 44.0


@dataclass(frozen=True)
class Panel:
    """The part of a drawing that shows one key."""

    key: str
    area: Area
    events: Scale
    clocks: Scale
    room: Room


@dataclass(frozen=True)
class Layout:
    """The places of everything."""

    panels: tuple[Panel, ...]  # From top to bottom.
    keys_left_out: int  # The number of keys without a panel.
    epoch_micros: int  # The zero of the labels.
    event_style: Style
    clock_style: Style
    event_labels: Labels
    clock_labels: Labels
    read_micros: int | None = None  # When a batch has read all input; later times are not to scale.

    def event_text(self, micros: int) -> str:
        """Returns an event time in words."""
        return self._text(micros, self.event_style)

    def clock_text(self, micros: int) -> str:
        """Returns a processing time in words."""
        if self.read_micros is not None and micros >= self.read_micros:
            return "the end"
        return self._text(micros, self.clock_style)

    def _text(self, micros: int, style: Style) -> str:
        if not is_finite(micros):
            return f"{MINUS}∞" if micros < 0 else "∞"
        return format_moment(micros - self.epoch_micros, style)

    @property
    def bottom(self) -> float:
        """The lower edge of the last panel."""
        return self.panels[-1].area.bottom


def layout_of(timeline: Timeline) -> Layout:
    """Returns the places of the parts of a drawing."""
    recording = timeline.recording
    found = {each.key for each in recording.inputs} | {pane.key for pane in recording.panes}
    keys = sorted(found) or [""]
    height = _panel_height(recording, len(keys))
    event_low, event_high = event_extent(recording)
    clock_low, clock_high = clock_extent(recording)
    if timeline.sweep is not None:
        clock_high = max(clock_high, timeline.sweep[1])
    clocks = (clock_low, clock_high)
    epoch = recording.epoch_micros
    event_style, clock_style = _styles((event_low - epoch, event_high - epoch), clocks, recording)
    clock_scale = _clock_scale(clocks, 0.0, height)
    clock_labels = _labels_along(clock_scale, epoch, clock_style, True, timeline.read_micros)
    left = 14 + max((measure_text(label, LABEL_SIZE) for _, label in clock_labels.ticks), default=20.0)
    events = Scale(event_low, event_high, left + _SIDE_PAD, WIDTH - _RIGHT - _SIDE_PAD, left, WIDTH - _RIGHT)
    panels = []
    top = _TOP
    for key in keys[:KEYS_MAX]:
        top += _HEADING * (keys != [""])
        area = Area(left, top, WIDTH - _RIGHT, top + height)
        panels.append(Panel(key, area, events, _clock_scale(clocks, top, height), Room(area)))
        top += height + _BETWEEN
    event_labels = _labels_along(events, epoch, event_style, False, None)
    left_out = max(len(keys) - KEYS_MAX, 0)
    return Layout(
        tuple(panels),
        left_out,
        epoch,
        event_style,
        clock_style,
        event_labels,
        clock_labels,
        timeline.read_micros,
    )


def _panel_height(recording: Recording, key_count: int) -> float:
    """Returns the height of a panel: more if many panes follow each other in one window."""
    usual = _HEIGHTS[key_count - 1] if key_count <= len(_HEIGHTS) else _HEIGHT_MANY
    windows = Counter(
        (pane.key, pane.start_micros, pane.end_micros) for pane in recording.panes if not pane.is_retraction
    )
    wanted = _PANE_HEIGHT * max(windows.values(), default=0)
    if recording.mode == "batch" and not windows_are_apart(recording.panes):
        # Each pane needs room for its value, above all input.
        count = 2 + max(Counter(pane.key for pane in recording.panes if not pane.is_retraction).values())
        wanted = _LOWER_PAD + _UPPER_PAD + _BATCH_PANE_HEIGHT * (count + 1 / STEP_SHARE)
    if recording.counts_steps:
        low, high = clock_extent(recording)
        usual = min(usual, _UPPER_PAD + _LOWER_PAD + _STEP_HEIGHT * (high - low) / SECOND_MICROS)
        wanted = max(wanted, _HEIGHT_MIN)
    return min(max(usual, wanted), _HEIGHT_MAX)


def _clock_scale(clocks: tuple[int, int], top: float, height: float) -> Scale:
    bottom = top + height
    return Scale(*clocks, bottom - _LOWER_PAD, top + _UPPER_PAD, bottom, top)


def _styles(events: tuple[int, int], clocks: tuple[int, int], recording: Recording) -> tuple[Style, Style]:
    """Returns the styles of the event-time and processing-time labels: the same one if both are on the same day."""
    event_style = style_of(*events)
    if recording.counts_steps:
        return event_style, Style.STEPS
    epoch = recording.epoch_micros
    clock_style = style_of(clocks[0] - epoch, clocks[1] - epoch)
    are_near = all(abs(micros) < DAY_MICROS for micros in (*events, clocks[0] - epoch, clocks[1] - epoch))
    if are_near and Style.CLOCK in (event_style, clock_style):
        return Style.CLOCK, Style.CLOCK
    return event_style, clock_style


def _labels_along(
    scale: Scale, epoch_micros: int, style: Style, is_upright: bool, read_micros: int | None
) -> Labels:
    """Returns the labels of an axis from edge to edge, except where a batch emits its panes: no time passes there."""
    low = max(scale.time_at(scale.low_edge), MIN_MICROS) - epoch_micros
    high = min(scale.time_at(scale.high_edge), MAX_MICROS) - epoch_micros
    found = make_labels(low, high, abs(scale.high_edge - scale.low_edge), style, is_upright)
    last = high if read_micros is None else read_micros - epoch_micros
    ticks = tuple((micros + epoch_micros, label) for micros, label in found.ticks if micros < last)
    return Labels(ticks, found.unit)
