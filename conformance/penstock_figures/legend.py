"""The meanings of the marks that a drawing has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from penstock.diagrams.markup import element, format_number, measure_text
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_figures.input_marks import (
    CROWD_RADIUS,
    DOT_RADIUS,
    PlacedInput,
    are_many,
    draw_cross,
    is_late,
    place_inputs,
)
from penstock_figures.layout import WIDTH, Layout, Timeline
from penstock_figures.pane_marks import CLASSES
from penstock_figures.style import FONT_SIZES

ROW_HEIGHT = 20.0
_LEFT = 6.0
_SIGN_WIDTH = 24.0
_GAP = 16.0
_RADIUS = 7.0
"""The radius of a circle with a value: a legend has less room than a drawing."""
_RING_GAP = 2.6


@dataclass(frozen=True)
class Entry:
    """A mark, which `sign` draws around a point, and its meaning."""

    text: str
    sign: Callable[[float, float], str]


def list_entries(layout: Layout, timeline: Timeline, has_watermark: bool, has_ideal: bool) -> list[Entry]:
    """Returns the marks that are in a drawing."""
    panes = timeline.recording.panes
    timings = {pane.timing for pane in panes if not pane.is_retraction}
    backs = any(pane.is_retraction for pane in panes)
    found = [
        (has_watermark, Entry("watermark", _line("watermark"))),
        (has_ideal, Entry("ideal watermark", _line("ideal"))),
        (PaneInfoTiming.EARLY in timings, Entry("early pane", _pane(PaneInfoTiming.EARLY))),
        (PaneInfoTiming.ON_TIME in timings, Entry("on-time pane", _pane(PaneInfoTiming.ON_TIME))),
        (PaneInfoTiming.LATE in timings, Entry("late pane", _pane(PaneInfoTiming.LATE))),
        (PaneInfoTiming.UNKNOWN in timings, Entry("pane", _pane(PaneInfoTiming.UNKNOWN))),
        (backs, Entry("value retracted", _line("edge back"))),
    ]
    return [*_of_elements(layout, timeline), *(entry for is_there, entry in found if is_there)]


def _of_elements(layout: Layout, timeline: Timeline) -> Iterator[Entry]:
    """Yields the marks of elements that the drawing uses: circles with values, dots, or many small dots."""
    inputs = timeline.recording.inputs
    radii: set[float] = set()
    for panel in layout.panels:
        own = [each for each in inputs if each.key == panel.key]
        radii |= {CROWD_RADIUS} if are_many(own) else _radii(place_inputs(panel, timeline, own))
    usual = max(radii, default=_RADIUS)
    if _RADIUS in radii:
        yield Entry("element", _circle(_RADIUS, "input"))
    for radius in sorted(radii - {_RADIUS}, reverse=True):
        yield Entry("element, as a dot" if _RADIUS in radii else "element", _circle(radius, "dot"))
    body = "input" if usual == _RADIUS else "dot"
    if any(is_late(each, timeline) for each in inputs):
        late = _circle(usual, "ring") if usual == CROWD_RADIUS else _circle(usual, body, "ring")
        yield Entry("late element", late)
    if any(each.is_retraction for each in inputs):
        yield Entry("element retracted", _circle(usual, f"{body} minus"))
    if any(each.is_dropped for each in inputs):
        gone = "input gone" if usual == CROWD_RADIUS else f"{body} gone"
        yield Entry("dropped element", _circle(usual, gone, is_crossed=usual != CROWD_RADIUS))


def _radii(found: Sequence[PlacedInput]) -> set[float]:
    return {DOT_RADIUS if each.is_dot else _RADIUS for each in found}


def _circle(radius: float, *classes: str, is_crossed: bool = False) -> Callable[[float, float], str]:
    """Returns a mark of an element; a circle contains a value, as in the drawing."""

    def sign(x: float, y: float) -> str:
        marks = [
            element("circle", cx=x, cy=y, r=radius + _RING_GAP * number, class_=class_)
            for number, class_ in enumerate(classes)
        ]
        if is_crossed:
            marks.append(element("path", d=draw_cross(x, y, radius), class_="cross"))
        if radius == _RADIUS:
            class_ = "inside value-gone" if is_crossed else "inside"
            marks.append(element("text", "n", x=x, y=y + 3.5, text_anchor="middle", class_=class_))
        return "".join(marks)

    return sign


def _line(class_: str) -> Callable[[float, float], str]:
    def sign(x: float, y: float) -> str:
        return element("path", d=f"M{format_number(x - 10)} {format_number(y)}h20", class_=class_)

    return sign


def _pane(timing: int) -> Callable[[float, float], str]:
    kind = CLASSES[timing]

    def sign(x: float, y: float) -> str:
        area = element(
            "rect", x=x - 10, y=y - 5, width=20, height=10, class_=f"area {kind}", fill_opacity="0.12"
        )
        left = format_number(x - 10)
        lines = (y - 6, y - 3) if kind == "late" else (y - 5,)
        edge = "".join(f"M{left} {format_number(line)}h20" for line in lines)
        return area + element("path", d=edge, class_=f"edge {kind}")

    return sign


def draw_legend(found: list[Entry], top: float) -> tuple[list[str], float]:
    """Returns the legend in rows, and its lower edge."""
    x, y = _LEFT, top + ROW_HEIGHT / 2
    marks: list[str] = []
    for entry in found:
        width = _SIGN_WIDTH + measure_text(entry.text, FONT_SIZES["legend"])
        if x > _LEFT and x + width > WIDTH - _LEFT:
            x, y = _LEFT, y + ROW_HEIGHT
        marks.append(entry.sign(x + 10, y))
        marks.append(element("text", entry.text, x=x + _SIGN_WIDTH + 2, y=y + 4, class_="legend"))
        x += width + _GAP
    return marks, y + ROW_HEIGHT / 2 if found else top


def draw_notes(sentences: list[str], top: float) -> Iterator[str]:
    """Sentences below the legend, one in each row."""
    for number, text in enumerate(sentences):
        yield element("text", text, x=_LEFT, y=top + 16 + number * ROW_HEIGHT, class_="note")
