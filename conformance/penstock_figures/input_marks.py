"""The elements that arrived, as circles with their values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from penstock.diagrams.markup import MINUS, element, escape, format_number, measure_text, shorten
from penstock.machines.recorder import RecordedInput
from penstock_figures.layout import Layout, Panel, Timeline
from penstock_figures.room import Area
from penstock_figures.style import FONT_SIZES

_RADIUS = 10.0
_RADIUS_LARGE = 13.0
DOT_RADIUS = 3.2
CROWD_RADIUS = 2.2
_RING_GAP = 3.0
_BESIDE_MAX = 14
_CLOSE = 0.8
"""The distance of two centres at which values stay legible, as a share of the radii: circles may overlap a little."""

_FEW = 60
"""The maximum number of elements of one key that are circles with values."""


def is_late(each: RecordedInput, timeline: Timeline) -> bool:
    """True if the watermark of a stream had passed an element's event time when it arrived.

    Of the events at one processing time, elements come first.
    """
    recording = timeline.recording
    if recording.mode != "streaming":
        return False
    before = bisect_left(recording.watermark, (each.clock_micros,))
    return before > 0 and each.event_micros < recording.watermark[before - 1][1]


def are_many(inputs: Sequence[RecordedInput]) -> bool:
    """True if there are too many elements for circles with values."""
    return len(inputs) > _FEW


def draw_crowd(
    layout: Layout, panel: Panel, timeline: Timeline, inputs: Sequence[RecordedInput]
) -> Iterator[str]:
    """Yields the marks of many elements of one key: small dots, so that values find room above; late ones are open."""
    for each in inputs:
        late = is_late(each, timeline)
        class_ = "ring" if late else "input gone" if each.is_dropped else "dot"
        title = element("title", escape(title_of_input(layout, each, late)))
        x, y = panel.events.place(each.event_micros), panel.clocks.place(each.clock_micros)
        yield element("circle", title, cx=x, cy=y, r=CROWD_RADIUS, class_=class_)


@dataclass(frozen=True)
class PlacedInput:
    """One of a few elements, and its place in the drawing."""

    input: RecordedInput
    x: float
    y: float
    radius: float  # The radius of its circle, or of its dot if the value is beside it.
    outer: float  # The radius of its whole mark.
    late: bool

    @property
    def is_dot(self) -> bool:
        """True if the element is drawn as a dot, because a circle with its value did not fit."""
        return self.radius == DOT_RADIUS


def place_inputs(panel: Panel, timeline: Timeline, inputs: Sequence[RecordedInput]) -> list[PlacedInput]:
    """Returns the elements of one key: circles with the value inside, or dots where a circle does not fit."""
    found: list[PlacedInput] = []
    for each in inputs:
        x, y = panel.events.place(each.event_micros), panel.clocks.place(each.clock_micros)
        late = is_late(each, timeline)
        radius = _radius(_shown(each))
        outer = (radius or DOT_RADIUS) + _RING_GAP * late + 1
        if radius is None or any(
            hypot(x - other.x, y - other.y) < _CLOSE * (outer + other.outer) for other in found
        ):
            radius = DOT_RADIUS
            outer = radius + _RING_GAP * late + 1
        found.append(PlacedInput(each, x, y, radius, outer, late))
    return found


def draw_circles(layout: Layout, panel: Panel, found: Sequence[PlacedInput]) -> Iterator[str]:
    """Yields the marks of elements with a place."""
    for each in found:
        panel.room.take(
            Area(each.x - each.outer, each.y - each.outer, each.x + each.outer, each.y + each.outer)
        )
        yield _circle(layout, each.input, each.x, each.y, each.radius, each.late)
    for each in found:
        if each.is_dot:
            yield from _value_beside(panel, each.input, each.x, each.y, each.outer + 2)


def _shown(each: RecordedInput) -> str:
    return f"{MINUS}{each.value}" if each.is_retraction else each.value


def _radius(text: str) -> float | None:
    """Returns the radius of the smallest circle that the value fits in; None if it fits in none."""
    width = measure_text(text, FONT_SIZES["inside"])
    return next((radius for radius in (_RADIUS, _RADIUS_LARGE) if width <= 2 * radius - 3), None)


def _circle(layout: Layout, each: RecordedInput, x: float, y: float, radius: float, late: bool) -> str:
    is_dot = radius == DOT_RADIUS
    classes = ["dot" if is_dot else "input"]
    classes += ["minus"] * each.is_retraction + ["gone"] * each.is_dropped
    marks = [element("title", escape(title_of_input(layout, each, late)))]
    marks.append(element("circle", cx=x, cy=y, r=radius, class_=" ".join(classes)))
    if late:
        marks.append(element("circle", cx=x, cy=y, r=radius + _RING_GAP, class_="ring"))
    if each.is_dropped:
        marks.append(element("path", d=draw_cross(x, y, radius), class_="cross"))
    if not is_dot:
        class_ = "inside value-gone" if each.is_dropped else "inside"
        value = escape(_shown(each))
        marks.append(element("text", value, x=x, y=y + 4, text_anchor="middle", class_=class_))
    return element("g", *marks)


def draw_cross(x: float, y: float, radius: float) -> str:
    """Returns two strokes through a circle that leave its value legible."""
    inner, outer = radius * 0.55, radius * 1.0 + 1.5
    strokes = []
    for right in (-1, 1):
        for down in (-1, 1):
            begin = f"M{format_number(x + right * inner)} {format_number(y + down * inner)}"
            strokes.append(f"{begin}L{format_number(x + right * outer)} {format_number(y + down * outer)}")
    return "".join(strokes)


def _value_beside(panel: Panel, each: RecordedInput, x: float, y: float, gap: float) -> Iterator[str]:
    text, size = shorten(_shown(each), _BESIDE_MAX), FONT_SIZES["beside"]
    width = measure_text(text, size)
    corners = [
        (x + gap, y + 4),
        (x - gap - width, y + 4),
        (x - width / 2, y - gap - 2),
        (x - width / 2, y + gap + 9),
        (x + gap, y - 6),
        (x + gap, y + 14),
    ]
    areas = [Area(left, base - 10, left + width, base + 3) for left, base in corners]
    number = panel.room.first_free(areas)
    if number is not None:
        panel.room.take(areas[number])
        left, base = corners[number]
        yield element("text", escape(text), x=left, y=base, class_="beside")


def title_of_input(layout: Layout, each: RecordedInput, late: bool) -> str:
    """Returns an element in words."""
    of_key = f" of {each.key}" if each.key else ""
    words = [f"{_shown(each)}{of_key} at {layout.event_text(each.event_micros)}"]
    words += [f"arrived at {layout.clock_text(each.clock_micros)}"]
    words += ["late"] * late + ["dropped"] * each.is_dropped
    return ", ".join(words)
