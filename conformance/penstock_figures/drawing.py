"""The drawing of a recording, as SVG, in the style of the literature, so that the two can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from penstock.diagrams.markup import element, escape, format_number, measure_text, shorten
from penstock.machines.records import MIN_MICROS
from penstock_figures.input_marks import are_many, draw_circles, draw_crowd, place_inputs
from penstock_figures.layout import KEYS_MAX, WIDTH, Layout, Panel, Scale, Timeline, layout_of, timeline_of
from penstock_figures.legend import ROW_HEIGHT, draw_legend, draw_notes, list_entries
from penstock_figures.moments import LABEL_SIZE, Style
from penstock_figures.pane_marks import (
    PaneBox,
    area_of,
    boxes_of,
    draw_edges,
    draw_fills,
    title_of_pane,
    values,
)
from penstock_figures.recording import Recording
from penstock_figures.room import Area
from penstock_figures.style import STYLE

EVENT_AXIS_HEIGHT = 40.0
"""The height of the labels and the name of event time below the last panel."""

_KEY_LENGTH_MAX = 60


def axes(layout: Layout) -> Iterator[str]:
    """Yields the lines, labels and names of all panels."""
    for panel in layout.panels:
        yield from _lines(layout, panel)
        if panel.key or len(layout.panels) > 1:
            key = escape(shorten(panel.key or "no key", _KEY_LENGTH_MAX))
            yield element("text", key, x=panel.area.left, y=panel.area.top - 6, class_="key")
    name = "step" if layout.clock_style is Style.STEPS else "processing time"
    yield element("text", _name(f"↑ {name}", layout.clock_labels.unit), x=6, y=16, class_="name")
    yield from _event_labels(layout)


def _lines(layout: Layout, panel: Panel) -> Iterator[str]:
    area = panel.area
    across = [panel.clocks.place(micros) for micros, _ in layout.clock_labels.ticks]
    upright = [panel.events.place(micros) for micros, _ in layout.event_labels.ticks]
    left, right, top, bottom = map(format_number, (area.left, area.right, area.top, area.bottom))
    grid = "".join(f"M{left} {format_number(y)}H{right}" for y in across)
    grid += "".join(f"M{format_number(x)} {top}V{bottom}" for x in upright)
    if grid:
        yield element("path", d=grid, class_="grid")
    yield element("path", d=f"M{left} {top}V{bottom}H{right}", class_="axis")
    for y, (_, label) in zip(across, layout.clock_labels.ticks, strict=True):
        yield element("text", escape(label), x=area.left - 6, y=y + 4, text_anchor="end", class_="label")


def _event_labels(layout: Layout) -> Iterator[str]:
    area = layout.panels[-1].area
    for micros, label in layout.event_labels.ticks:
        x = layout.panels[-1].events.place(micros)
        half = measure_text(label, LABEL_SIZE) / 2
        if area.left - 30 <= x - half and x + half <= area.right + 1:
            yield element(
                "text", escape(label), x=x, y=area.bottom + 16, text_anchor="middle", class_="label"
            )
    name = _name("event time", layout.event_labels.unit, " →")
    yield element("text", name, x=area.right, y=area.bottom + 34, text_anchor="end", class_="name")


def _name(name: str, unit: str, after: str = "") -> str:
    return escape(f"{name}, {unit}{after}" if unit else f"{name}{after}")


def end_of_reading(panel: Panel, from_micros: int) -> str:
    """Returns the line above which a batch has read all input."""
    y = panel.clocks.place(from_micros)
    return element(
        "path",
        d=f"M{format_number(panel.area.left)} {format_number(y)}H{format_number(panel.area.right)}",
        class_="axis",
    )


def words_for_end_of_reading(panel: Panel, from_micros: int) -> str:
    """Returns the text for that line, below it if there is room; otherwise nothing."""
    area, y, text = panel.area, panel.clocks.place(from_micros), "all input is read"
    width = measure_text(text, LABEL_SIZE)
    first, last = area.left + 4, area.right - 4 - width
    for x in (last, first, *(first + share * (last - first) for share in (0.5, 0.75, 0.25))):
        if panel.room.is_free(Area(max(x - 6, area.left), y + 3, min(x + width + 6, area.right), y + 17)):
            panel.room.take(Area(x, y + 3, x + width, y + 17))
            return element("text", text, x=x, y=y + 14, class_="label")
    return ""


_IDEAL_MIN = 40.0
_HALF = 2.0
_BIT = 12.0
_STEP_MIN = 0.5
"""Shorter steps are drawn together with the next one."""


def ideal_line(panel: Panel, timeline: Timeline) -> str | None:
    """Returns the line on which event time equals processing time, as a path; None if hardly any of it is visible."""
    events, clocks = panel.events, panel.clocks
    low = max(events.time_at(events.low_edge), clocks.time_at(clocks.low_edge))
    high = min(events.time_at(events.high_edge), clocks.time_at(clocks.high_edge))
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
    return "M" + "L".join(f"{format_number(x)} {format_number(y)}" for x, y in ends)


def watermark_line(panel: Panel, timeline: Timeline) -> list[tuple[float, float, float, float]]:
    """Returns the actual watermark as straight pieces from point to point, in order of time."""
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
    """Yields the actual watermark, with an arrow where it leaves the drawing."""
    path, end = "", None
    for left, low, right, high in pieces:
        path += "" if (left, low) == end else f"M{format_number(left)} {format_number(low)}"
        if low == high:
            path += f"H{format_number(right)}"
        elif left == right:
            path += f"V{format_number(high)}"
        else:
            path += f"L{format_number(right)} {format_number(high)}"
        end = (right, high)
    if path:
        yield element("path", d=path, class_="watermark")
    for _, _, right, high in pieces:
        if right == panel.area.right:
            x, y = format_number(right), format_number(high)
            yield element("path", d=f"M{x} {y}l-8-3.5v7z", class_="arrow")


def areas_of(pieces: list[tuple[float, float, float, float]]) -> Iterator[Area]:
    """Yields the areas that lines cover; slanted lines in small pieces."""
    for left, low, right, high in pieces:
        count = 1 if left == right or low == high else ceil((right - left) / _BIT)
        for number in range(count):
            begin, end = number / count, (number + 1) / count
            across = sorted((left + begin * (right - left), left + end * (right - left)))
            upright = sorted((low + begin * (high - low), low + end * (high - low)))
            yield Area(across[0] - _HALF, upright[0] - _HALF, across[1] + _HALF, upright[1] + _HALF)


_PANES_MAX = 30
_MODES = {"batch": "In batch", "micro_batch": "In micro-batches", "streaming": "Streaming"}


def description(layout: Layout, recording: Recording) -> str:
    """Describes a drawing in words: the number of elements, and which panes came when."""
    count, panes = len(recording.inputs), recording.panes
    phrases = [f"{_MODES.get(recording.mode, recording.mode)}: {_counted(count, 'element')}"]
    dropped = sum(each.is_dropped for each in recording.inputs)
    if dropped:
        phrases.append(f", {dropped} of them dropped")
    phrases.append(f", {_counted(len(panes), 'pane')}")
    if panes:
        phrases.append(": " + "; ".join(title_of_pane(layout, pane) for pane in panes[:_PANES_MAX]))
    if len(panes) > _PANES_MAX:
        phrases.append(f"; and {len(panes) - _PANES_MAX} more")
    return "".join(phrases) + "."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


MARKS_MAX = 1000
"""The maximum number of elements and of panes in a drawing."""


def draw(recording: Recording) -> str:
    """Returns a drawing of a recording as a complete ``<svg>`` element: event time across, processing time up.

    Elements are circles with their values. Panes are rectangles over the span of their window; their value stands at
    the upper edge, which marks the time of the firing. The solid line is the watermark; the dashed one is the
    watermark if everything arrived at once. Several keys have a panel each. The style works in light and dark.

    >>> from penstock.machines.recorder import RecordedInput
    >>> draw(Recording("one element", (RecordedInput(3_000_000, 5_000_000, "", "7"),), (), ()))[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    drawn = replace(recording, inputs=recording.inputs[:MARKS_MAX], panes=recording.panes[:MARKS_MAX])
    timeline = timeline_of(drawn)
    layout = layout_of(timeline)
    has_ideal = any(ideal_line(panel, timeline) for panel in layout.panels)
    below = layout.bottom + EVENT_AXIS_HEIGHT + 4
    has_watermark = bool(recording.watermark) or timeline.sweep is not None
    rows, bottom = draw_legend(list_entries(layout, timeline, has_watermark, has_ideal), below)
    sentences = _sentences(recording, layout)
    bottom += ROW_HEIGHT * len(sentences) + 6
    title = recording.title or "a grouping"
    return element(
        "svg",
        element("title", escape(title)),
        element("desc", escape(description(layout, timeline.recording))),
        STYLE,
        element("rect", width=WIDTH, height=bottom, class_="paper"),
        *axes(layout),
        *(mark for panel in layout.panels for mark in _panel(layout, panel, timeline)),
        *rows,
        *draw_notes(sentences, bottom - 6 - ROW_HEIGHT * len(sentences)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {format_number(WIDTH)} {format_number(bottom)}",
        width=WIDTH,
        height=bottom,
        role="img",
        class_="penstock-figure",
        aria_label=title,
    )


def _panel(layout: Layout, panel: Panel, timeline: Timeline) -> Iterator[str]:
    """Yields the marks of a panel from back to front: areas, the watermark, edges, circles, values."""
    recording = timeline.recording
    inputs = [each for each in recording.inputs if each.key == panel.key]
    panes = [pane for pane in recording.panes if pane.key == panel.key]
    boxes = boxes_of(panes, inputs)
    read_micros = timeline.read_micros if inputs else None
    if read_micros is not None:
        yield end_of_reading(panel, read_micros)
    yield from draw_fills(layout, panel, boxes)
    ideal = ideal_line(panel, timeline)
    if ideal is not None:
        yield element("path", d=ideal, class_="ideal")
    if are_many(inputs):
        yield from draw_crowd(layout, panel, timeline, inputs)
    pieces = watermark_line(panel, timeline)
    yield from watermark_marks(panel, pieces)
    yield from draw_edges(panel, panes)
    if not are_many(inputs):
        yield from draw_circles(layout, panel, place_inputs(panel, timeline, inputs))
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
    """Returns sentences that name what the drawing leaves out."""
    sentences = []
    if not recording.inputs and not recording.panes:
        sentences.append("Nothing was recorded.")
    for count, name in ((len(recording.inputs), "elements"), (len(recording.panes), "panes")):
        if count > MARKS_MAX:
            sentences.append(f"Of {count} {name}, the first {MARKS_MAX} are drawn.")
    if layout.keys_left_out:
        sentences.append(f"Of {KEYS_MAX + layout.keys_left_out} keys, {KEYS_MAX} are drawn.")
    if not recording.is_complete:
        sentences.append("The recording was full: this is the beginning.")
    return sentences
