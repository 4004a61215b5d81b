"""The axes of a drawing: lines, labels and names."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.figures.layout import Layout, Panel
from penstock.figures.markup import element, escaped, number_text, shortened, text_width
from penstock.figures.moments import LABEL_SIZE, Style
from penstock.figures.room import Area

EVENT_AXIS_HEIGHT = 40.0
"""How much room the labels and the name of event time take below the last panel."""

_KEY_LENGTH_MAX = 60


def axes(layout: Layout) -> Iterator[str]:
    """The lines, labels and names of all panels."""
    for panel in layout.panels:
        yield from _lines(layout, panel)
        if panel.key or len(layout.panels) > 1:
            key = escaped(shortened(panel.key or "no key", _KEY_LENGTH_MAX))
            yield element("text", key, x=panel.area.left, y=panel.area.top - 6, class_="key")
    name = "step" if layout.clock_style is Style.STEPS else "processing time"
    yield element("text", _name(f"↑ {name}", layout.clock_labels.unit), x=6, y=16, class_="name")
    yield from _event_labels(layout)


def _lines(layout: Layout, panel: Panel) -> Iterator[str]:
    area = panel.area
    across = [panel.clocks.place(micros) for micros, _ in layout.clock_labels.ticks]
    upright = [panel.events.place(micros) for micros, _ in layout.event_labels.ticks]
    left, right, top, bottom = map(number_text, (area.left, area.right, area.top, area.bottom))
    grid = "".join(f"M{left} {number_text(y)}H{right}" for y in across)
    grid += "".join(f"M{number_text(x)} {top}V{bottom}" for x in upright)
    if grid:
        yield element("path", d=grid, class_="grid")
    yield element("path", d=f"M{left} {top}V{bottom}H{right}", class_="axis")
    for y, (_, label) in zip(across, layout.clock_labels.ticks, strict=True):
        yield element("text", escaped(label), x=area.left - 6, y=y + 4, text_anchor="end", class_="label")


def _event_labels(layout: Layout) -> Iterator[str]:
    area = layout.panels[-1].area
    for micros, label in layout.event_labels.ticks:
        x = layout.panels[-1].events.place(micros)
        half = text_width(label, LABEL_SIZE) / 2
        if area.left - 30 <= x - half and x + half <= area.right + 1:
            yield element(
                "text", escaped(label), x=x, y=area.bottom + 16, text_anchor="middle", class_="label"
            )
    name = _name("event time", layout.event_labels.unit, " →")
    yield element("text", name, x=area.right, y=area.bottom + 34, text_anchor="end", class_="name")


def _name(name: str, unit: str, after: str = "") -> str:
    return escaped(f"{name}, {unit}{after}" if unit else f"{name}{after}")


def end_of_reading(panel: Panel, from_micros: int) -> str:
    """In a batch, the line above which all input is read."""
    y = panel.clocks.place(from_micros)
    return element(
        "path",
        d=f"M{number_text(panel.area.left)} {number_text(y)}H{number_text(panel.area.right)}",
        class_="axis",
    )


def words_for_end_of_reading(panel: Panel, from_micros: int) -> str:
    """What that line means, below it where there is room; else nothing."""
    area, y, text = panel.area, panel.clocks.place(from_micros), "all input is read"
    width = text_width(text, LABEL_SIZE)
    first, last = area.left + 4, area.right - 4 - width
    for x in (last, first, *(first + share * (last - first) for share in (0.5, 0.75, 0.25))):
        if panel.room.is_free(Area(max(x - 6, area.left), y + 3, min(x + width + 6, area.right), y + 17)):
            panel.room.take(Area(x, y + 3, x + width, y + 17))
            return element("text", text, x=x, y=y + 14, class_="label")
    return ""
