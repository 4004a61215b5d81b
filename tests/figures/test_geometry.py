"""Where the texts of all drawings of the suite are: beside what they belong to, and within the axes."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

import pytest

from penstock.diagrams.markup import MINUS, measure_text, shorten
from penstock.machines.recorder import RecordedPane
from penstock_figures import Recording, draw
from penstock_figures.layout import WIDTH, Layout, Panel, layout_of, timeline_of
from penstock_figures.pane_marks import CLASSES
from penstock_figures.room import Area
from penstock_figures.style import FONT_SIZES
from tests.figures.recorded_figures import figure, transcripts
from tests.figures.svg_reading import SVG, Text, overlaps, parsed, texts

LINE = 36
"""A value is within two lines of the upper edge of its pane."""


def is_of(text: Text, pane: RecordedPane) -> bool:
    """True if a text says what a pane holds."""
    sign = MINUS if pane.is_retraction else ""
    shown = {sign + shorten(pane.value, length) for length in (22, 10, 5)}
    word = CLASSES[pane.timing].replace("-", " ")
    return text.content in shown | {f"{value} {word}" for value in shown}


def span(panel: Panel, pane: RecordedPane) -> tuple[float, float, float]:
    """From where to where a pane's upper edge is, and its height in the drawing."""
    left, right = panel.events.place(pane.start_micros), panel.events.place(pane.end_micros)
    return left, max(right, min(left + 2, panel.area.right)), panel.clocks.place(pane.clock_micros)


def is_beside(text: Text, panel: Panel, pane: RecordedPane) -> bool:
    """True if a text stands at the upper edge of a pane, and between its sides if it has room there."""
    left, right, top = span(panel, pane)
    if not (top - LINE < text.y < top + LINE and text.area.is_within(panel.area)):
        return False
    shortest = (MINUS if pane.is_retraction else "") + shorten(pane.value, 5)
    if right - left < measure_text(shortest, FONT_SIZES["value"], is_bold=True) + 5:
        return text.area.left < right and left < text.area.right
    return left - 0.2 <= text.area.left and text.area.right <= right + 0.2


def misplaced(recording: Recording, svg: str) -> Iterator[str]:
    """The texts that are not where they belong."""
    timeline = timeline_of(recording)
    layout: Layout = layout_of(timeline)
    panels = {panel.key: panel for panel in layout.panels}
    panes = [(panels[pane.key], pane) for pane in timeline.recording.panes if pane.key in panels]
    everything = Area(0, 0, WIDTH, layout.bottom + 40)
    for text in texts(svg):
        if text.kind == "value":
            own = [(panel, pane) for panel, pane in panes if is_of(text, pane)]
            if not any(is_beside(text, panel, pane) for panel, pane in own):
                yield f"the value {text.content!r} is not at its pane"
        elif text.kind in ("label", "name") and not text.area.is_within(everything):
            yield f"the label {text.content!r} leaves the drawing"
        elif text.kind in ("label", "name") and text.area.right > layout.panels[-1].area.right + 0.2:
            yield f"the label {text.content!r} passes the end of the axis"
    yield from far_from_their_dots(svg)


def far_from_their_dots(svg: str) -> Iterator[str]:
    """The values of elements that are nearer to the dot of another one."""
    root = parsed(svg)
    dots = [
        (float(circle.attrib["cx"]), float(circle.attrib["cy"]), _value_of(group))
        for group in root.iter(f"{SVG}g")
        if group.find(f"{SVG}text") is None and (circle := group.find(f"{SVG}circle")) is not None
    ]
    for text in texts(svg):
        if text.kind == "beside":
            name = text.content.split()[0]
            own, others = (
                min((hypot(*_offset(text.area, x, y)) for x, y, value in dots if is_own(value)), default=1e9)
                for is_own in (lambda value: value.split()[0] == name, lambda value: value.split()[0] != name)
            )
            if own > others + 0.2:
                yield f"the value {text.content!r} is nearer to another dot"


def _value_of(group: object) -> str:
    title = group.findtext(f"{SVG}title")  # type: ignore[attr-defined]
    return title or ""


def _offset(area: Area, x: float, y: float) -> tuple[float, float]:
    across = max(area.left - x, 0, x - area.right)
    return across, max(area.top - y, 0, y - area.bottom)


def test_every_text_of_every_figure_is_where_it_belongs() -> None:
    assert len(transcripts()) > 300
    faults = {
        f"{title} ({mode})": found
        for (title, mode), recording in transcripts().items()
        if (found := list(misplaced(recording, svg := draw(recording))) + list(overlaps(svg)))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("number", "mode", "old", "new"),
    [
        (14, "streaming", "5<tspan", "50<tspan"),
        (14, "streaming", "12:08<", "12:08 and a long time after that<"),
    ],
)
def test_a_text_that_is_elsewhere_is_found(number: int, mode: str, old: str, new: str) -> None:
    recording = figure(number, mode)
    svg = draw(recording)
    assert old in svg
    changed = svg.replace(old, new, 1)
    assert [*misplaced(recording, changed), *overlaps(changed)]
