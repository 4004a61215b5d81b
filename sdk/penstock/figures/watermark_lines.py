"""The watermark on a drawing: the actual one as steps, the ideal one as the diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from penstock.figures.layout import Panel
from penstock.figures.markup import element, number_text
from penstock.figures.room import Area
from penstock.figures.scales import Scale
from penstock.figures.timeline import Timeline
from penstock.machines.records import MIN_MICROS

_IDEAL_MIN = 40.0
_HALF = 2.0
_BIT = 12.0
_STEP_MIN = 0.5
"""Steps that are shorter than that are drawn with the next one."""


def ideal_line(panel: Panel, timeline: Timeline) -> str | None:
    """The line on which event time is processing time, as a path; None where hardly any of it is to be seen."""
    events, clocks = panel.events, panel.clocks
    low = max(events.moment(events.low_edge), clocks.moment(clocks.low_edge))
    high = min(events.moment(events.high_edge), clocks.moment(clocks.high_edge))
    recording = timeline.recording
    is_empty = not recording.inputs and not recording.panes
    if (
        is_empty
        or recording.counts_steps
        or low >= high
        or events.place(high) - events.place(low) < _IDEAL_MIN
    ):
        return None
    ends = [(events.place(micros), clocks.place(micros)) for micros in (low, high)]
    return "M" + "L".join(f"{number_text(x)} {number_text(y)}" for x, y in ends)


def watermark_line(panel: Panel, timeline: Timeline) -> list[tuple[float, float, float, float]]:
    """The actual watermark as straight pieces, each from one point to another, in order of time."""
    if timeline.sweep is not None:
        low, high = map(panel.clocks.place, timeline.sweep)
        return [(panel.area.left, low, panel.area.right, high)]
    events, clocks = panel.events, panel.clocks
    pieces: list[tuple[float, float, float, float]] = []
    reached, since = MIN_MICROS, panel.area.bottom
    for clock_micros, micros in timeline.recording.watermark:
        x, y = events.place(reached), clocks.place(clock_micros)
        if abs(events.place(micros) - x) < _STEP_MIN and abs(since - y) < _STEP_MIN:
            continue
        if _is_inside(events, x) and since != y:
            pieces.append((x, since, x, y))
        if micros > reached and events.place(micros) != x:
            pieces.append((x, y, events.place(micros), y))
        reached, since = micros, y
    x = events.place(reached)
    if _is_inside(events, x):
        pieces.append((x, since, x, panel.area.top))
    return pieces


def _is_inside(events: Scale, x: float) -> bool:
    return events.low_edge < x < events.high_edge


def watermark_marks(panel: Panel, pieces: list[tuple[float, float, float, float]]) -> Iterator[str]:
    """The actual watermark, and an arrow wherever it leaves the drawing."""
    path, end = "", None
    for left, low, right, high in pieces:
        path += "" if (left, low) == end else f"M{number_text(left)} {number_text(low)}"
        if low == high:
            path += f"H{number_text(right)}"
        elif left == right:
            path += f"V{number_text(high)}"
        else:
            path += f"L{number_text(right)} {number_text(high)}"
        end = (right, high)
    if path:
        yield element("path", d=path, class_="watermark")
    for _, _, right, high in pieces:
        if right == panel.area.right:
            x, y = number_text(right), number_text(high)
            yield element("path", d=f"M{x} {y}l-8-3.5v7z", class_="arrow")


def areas_of(pieces: list[tuple[float, float, float, float]]) -> Iterator[Area]:
    """The areas that lines take; slanted ones bit by bit."""
    for left, low, right, high in pieces:
        count = 1 if left == right or low == high else ceil((right - left) / _BIT)
        for number in range(count):
            begin, end = number / count, (number + 1) / count
            across = sorted((left + begin * (right - left), left + end * (right - left)))
            upright = sorted((low + begin * (high - low), low + end * (high - low)))
            yield Area(across[0] - _HALF, upright[0] - _HALF, across[1] + _HALF, upright[1] + _HALF)
