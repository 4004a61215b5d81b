"""The drawing of a recording, as SVG: the style of the literature, so that a figure of it can be held beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.figures.axes import EVENT_AXIS_HEIGHT, axes, end_of_reading, words_for_end_of_reading
from penstock.figures.boxes import PaneBox, boxes_of
from penstock.figures.description import description
from penstock.figures.input_marks import are_many, circles, crowd, placed
from penstock.figures.layout import KEYS_MAX, WIDTH, Layout, Panel, layout_of
from penstock.figures.legend import ROW_HEIGHT, entries, legend, notes
from penstock.figures.markup import element, escaped, number_text
from penstock.figures.pane_marks import area_of, edges, fills, values
from penstock.figures.recording import Recording
from penstock.figures.room import Area
from penstock.figures.style import STYLE
from penstock.figures.timeline import Timeline, timeline_of
from penstock.figures.watermark_lines import areas_of, ideal_line, watermark_line, watermark_marks

MARKS_MAX = 1000
"""So many elements, and so many panes, are drawn."""


def draw(recording: Recording) -> str:
    """A drawing of a recording: event time across, processing time up.

    Elements are circles with their values; panes are rectangles over the span of their window, with their value at
    the upper edge, which lies at the moment they came; the solid line is the watermark, the dashed one what it would
    be if everything arrived at once. Several keys have a panel each.

    Args:
        recording: What happened.

    Returns:
        An ``<svg>`` element that is complete in itself: with its style, for light and dark, and a description.

    >>> from penstock.figures.recording import RecordedInput
    >>> draw(Recording("one element", (RecordedInput(3_000_000, 5_000_000, "", "7"),), (), ()))[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    drawn = replace(recording, inputs=recording.inputs[:MARKS_MAX], panes=recording.panes[:MARKS_MAX])
    timeline = timeline_of(drawn)
    layout = layout_of(timeline)
    has_ideal = any(ideal_line(panel, timeline) for panel in layout.panels)
    below = layout.bottom + EVENT_AXIS_HEIGHT + 4
    has_watermark = bool(recording.watermark) or timeline.sweep is not None
    rows, bottom = legend(entries(layout, timeline, has_watermark, has_ideal), below)
    sentences = _sentences(recording, layout)
    bottom += ROW_HEIGHT * len(sentences) + 6
    title = recording.title or "a grouping"
    return element(
        "svg",
        element("title", escaped(title)),
        element("desc", escaped(description(layout, timeline.recording))),
        STYLE,
        element("rect", width=WIDTH, height=bottom, class_="paper"),
        *axes(layout),
        *(mark for panel in layout.panels for mark in _panel(layout, panel, timeline)),
        *rows,
        *notes(sentences, bottom - 6 - ROW_HEIGHT * len(sentences)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number_text(WIDTH)} {number_text(bottom)}",
        width=WIDTH,
        height=bottom,
        role="img",
        class_="penstock-figure",
        aria_label=title,
    )


def _panel(layout: Layout, panel: Panel, timeline: Timeline) -> Iterator[str]:
    """From back to front: areas, the watermark, edges, circles, values."""
    recording = timeline.recording
    inputs = [each for each in recording.inputs if each.key == panel.key]
    panes = [pane for pane in recording.panes if pane.key == panel.key]
    boxes = boxes_of(panes, inputs)
    read_micros = timeline.read_micros if inputs else None
    if read_micros is not None:
        yield end_of_reading(panel, read_micros)
    yield from fills(layout, panel, boxes)
    ideal = ideal_line(panel, timeline)
    if ideal is not None:
        yield element("path", d=ideal, class_="ideal")
    if are_many(inputs):
        yield from crowd(layout, panel, timeline, inputs)
    pieces = watermark_line(panel, timeline)
    yield from watermark_marks(panel, pieces)
    yield from edges(panel, panes)
    if not are_many(inputs):
        yield from circles(layout, panel, placed(panel, timeline, inputs))
    lines = [*areas_of(pieces), *(_upper_edge(panel, box) for box in boxes)]
    if read_micros is not None:
        y = panel.clocks.place(read_micros)
        lines.append(Area(panel.area.left, y - 2, panel.area.right, y + 2))
    yield from values(panel, panes, boxes, lines)
    if read_micros is not None and panel is layout.panels[0]:
        yield words_for_end_of_reading(panel, read_micros)


def _upper_edge(panel: Panel, box: PaneBox) -> Area:
    area = area_of(panel, box)
    return Area(area.left, area.top - 2, area.right, area.top + 2)


def _sentences(recording: Recording, layout: Layout) -> list[str]:
    """What is not in the drawing."""
    sentences = []
    if not recording.inputs and not recording.panes:
        sentences.append("Nothing was recorded.")
    for count, name in ((len(recording.inputs), "elements"), (len(recording.panes), "panes")):
        if count > MARKS_MAX:
            sentences.append(f"Of {count} {name}, the first {MARKS_MAX} are drawn.")
    if layout.keys_left_out:
        sentences.append(f"Of {KEYS_MAX + layout.keys_left_out} keys, {KEYS_MAX} are drawn.")
    if not recording.is_complete:
        sentences.append("There was more than the recording could take: this is the beginning.")
    return sentences
