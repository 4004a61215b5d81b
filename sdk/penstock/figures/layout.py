"""Where the parts of a drawing are: a panel for each key, one above the other, and the axes they share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from penstock.figures.markup import MINUS, text_width
from penstock.figures.moments import (
    DAY_MICROS,
    LABEL_SIZE,
    SECOND_MICROS,
    Labels,
    Style,
    labels,
    moment_text,
    style_of,
)
from penstock.figures.recording import Recording
from penstock.figures.room import Area, Room
from penstock.figures.scales import Scale, clock_extent, event_extent, is_finite
from penstock.figures.timeline import STEP_SHARE, Timeline, windows_are_apart
from penstock.machines.records import MAX_MICROS, MIN_MICROS

WIDTH = 600.0
KEYS_MAX = 12
"""The number of keys that are drawn."""

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
    """The part of a drawing that shows one key.

    Attributes:
        key: The key.
        area: Where it is.
        events: The axis of event time, from left to right.
        clocks: The axis of processing time, upwards.
        room: What of it is taken.
    """

    key: str
    area: Area
    events: Scale
    clocks: Scale
    room: Room


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    Attributes:
        panels: The panels, from top to bottom.
        keys_left_out: The number of keys for which there is no panel.
        epoch_micros: What the labels count from.
        event_style: How event times are told.
        clock_style: How processing times are told.
        event_labels: The labels of the axis of event time.
        clock_labels: Those of each panel's axis of processing time.
        read_micros: In a batch, the processing time at which all input is read; what comes later is not to scale.
    """

    panels: tuple[Panel, ...]
    keys_left_out: int
    epoch_micros: int
    event_style: Style
    clock_style: Style
    event_labels: Labels
    clock_labels: Labels
    read_micros: int | None = None

    def event_text(self, micros: int) -> str:
        """An event time in words."""
        return self._text(micros, self.event_style)

    def clock_text(self, micros: int) -> str:
        """A processing time in words."""
        if self.read_micros is not None and micros >= self.read_micros:
            return "the end"
        return self._text(micros, self.clock_style)

    def _text(self, micros: int, style: Style) -> str:
        if not is_finite(micros):
            return f"{MINUS}∞" if micros < 0 else "∞"
        return moment_text(micros - self.epoch_micros, style)

    @property
    def bottom(self) -> float:
        """Where the last panel ends."""
        return self.panels[-1].area.bottom


def layout_of(timeline: Timeline) -> Layout:
    """Where the parts of a drawing are.

    >>> layout = layout_of(Timeline(Recording("", (), (), ())))
    >>> len(layout.panels), layout.keys_left_out
    (1, 0)
    """
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
    left = 14 + max((text_width(label, LABEL_SIZE) for _, label in clock_labels.ticks), default=20.0)
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
    """Higher where many panes follow each other in one window."""
    usual = _HEIGHTS[key_count - 1] if key_count <= len(_HEIGHTS) else _HEIGHT_MANY
    windows = Counter(
        (pane.key, pane.start_micros, pane.end_micros) for pane in recording.panes if not pane.is_retraction
    )
    wanted = _PANE_HEIGHT * max(windows.values(), default=0)
    if recording.mode == "batch" and not windows_are_apart(recording.panes):
        # Each pane needs room for its value, and all input is below all panes.
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
    """How times are labelled: alike on both axes, if both are of the same day."""
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
    """The labels of an axis, from edge to edge, but not where a batch gives its panes: there is no time there."""
    low = max(scale.moment(scale.low_edge), MIN_MICROS) - epoch_micros
    high = min(scale.moment(scale.high_edge), MAX_MICROS) - epoch_micros
    found = labels(low, high, abs(scale.high_edge - scale.low_edge), style, is_upright)
    last = high if read_micros is None else read_micros - epoch_micros
    ticks = tuple((micros + epoch_micros, label) for micros, label in found.ticks if micros < last)
    return Labels(ticks, found.unit)
