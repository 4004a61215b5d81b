"""What the marks of a drawing mean: only those that are in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from penstock.figures.input_marks import is_late
from penstock.figures.layout import WIDTH
from penstock.figures.markup import element, number_text, text_width
from penstock.figures.pane_marks import CLASSES
from penstock.figures.style import FONT_SIZES
from penstock.figures.timeline import Timeline
from penstock.utils.windowed_value import PaneInfoTiming

ROW_HEIGHT = 20.0
_LEFT = 6.0
_SIGN_WIDTH = 24.0
_GAP = 16.0
_SMALL = 5.0
_CIRCLE = re.compile(r'<circle[^>]*? r="([\d.]+)"[^>]*? class="([^"]+)"')


@dataclass(frozen=True)
class Entry:
    """A mark and its meaning.

    Attributes:
        text: The meaning.
        sign: Draws the mark around a point.
    """

    text: str
    sign: Callable[[float, float], str]


@dataclass(frozen=True)
class Looks:
    """How elements are drawn: the radii of circles with a value inside, and of dots and of small rings without one."""

    circles: bool
    dots: tuple[float, ...]
    rings: tuple[float, ...]


def looks_of(marks: Iterable[str]) -> Looks:
    """How elements are drawn.

    >>> looks_of(['<circle cx="1" cy="1" r="3.2" class="dot"/>', '<circle r="2.2" class="ring"/>'])
    Looks(circles=False, dots=(3.2,), rings=(2.2,))
    """
    found = {
        (float(radius), classes.split()[0]) for mark in marks for radius, classes in _CIRCLE.findall(mark)
    }

    def radii(name: str) -> tuple[float, ...]:
        return tuple(sorted(radius for radius, own in found if own == name))

    # Small circles of that class are elements of a crowd that have been dropped.
    return Looks(any(radius > _SMALL for radius in radii("input")), radii("dot"), radii("ring"))


def entries(timeline: Timeline, has_watermark: bool, has_ideal: bool, looks: Looks) -> list[Entry]:
    """The marks that are in a drawing."""
    recording = timeline.recording
    inputs, panes = recording.inputs, recording.panes
    timings = {pane.timing for pane in panes if not pane.is_retraction}
    backs = any(pane.is_retraction for pane in panes)
    found = [
        (bool(inputs), Entry("element", _elements(looks))),
        (any(is_late(each, timeline) for each in inputs), Entry("late element", _late(looks))),
        (any(each.is_retraction for each in inputs), Entry("element taken back", _circle("input minus"))),
        (any(each.is_dropped for each in inputs), Entry("dropped element", _dropped)),
        (has_watermark, Entry("watermark", _line("watermark"))),
        (has_ideal, Entry("ideal watermark", _line("ideal"))),
        (PaneInfoTiming.EARLY in timings, Entry("early pane", _pane(PaneInfoTiming.EARLY))),
        (PaneInfoTiming.ON_TIME in timings, Entry("on-time pane", _pane(PaneInfoTiming.ON_TIME))),
        (PaneInfoTiming.LATE in timings, Entry("late pane", _pane(PaneInfoTiming.LATE))),
        (PaneInfoTiming.UNKNOWN in timings, Entry("pane", _pane(PaneInfoTiming.UNKNOWN))),
        (backs, Entry("value taken back", _line("edge back"))),
    ]
    return [entry for is_there, entry in found if is_there]


def _elements(looks: Looks) -> Callable[[float, float], str]:
    """A circle, a dot, or both."""
    signs = [_dot(radius) for radius in looks.dots[-1:]]
    return _side_by_side([_circle("input"), *signs] if looks.circles or not signs else signs)


def _late(looks: Looks) -> Callable[[float, float], str]:
    if looks.circles or not looks.rings:
        return _circle("input", "ring")
    radius = looks.rings[0]

    def sign(x: float, y: float) -> str:
        dot = "".join(_dot(own)(x, y) for own in looks.dots[-1:] if own < radius)
        return dot + element("circle", cx=x, cy=y, r=radius, class_="ring")

    return sign


def _dot(radius: float) -> Callable[[float, float], str]:
    return lambda x, y: element("circle", cx=x, cy=y, r=radius, class_="dot")


def _side_by_side(signs: list[Callable[[float, float], str]]) -> Callable[[float, float], str]:
    if len(signs) == 1:
        return signs[0]
    return lambda x, y: "".join(sign(x - 4 + 12 * number, y) for number, sign in enumerate(signs))


def _circle(*classes: str) -> Callable[[float, float], str]:
    def sign(x: float, y: float) -> str:
        return "".join(
            element("circle", cx=x, cy=y, r=5 + 2.5 * number, class_=class_)
            for number, class_ in enumerate(classes)
        )

    return sign


def _dropped(x: float, y: float) -> str:
    circle = element("circle", cx=x, cy=y, r=5, class_="input gone")
    left, top = number_text(x - 5), number_text(y - 5)
    cross = element("path", d=f"M{left} {top}l10 10m0-10l-10 10", class_="cross")
    return circle + cross


def _line(class_: str) -> Callable[[float, float], str]:
    def sign(x: float, y: float) -> str:
        return element("path", d=f"M{number_text(x - 10)} {number_text(y)}h20", class_=class_)

    return sign


def _pane(timing: int) -> Callable[[float, float], str]:
    kind = CLASSES[timing]

    def sign(x: float, y: float) -> str:
        area = element(
            "rect", x=x - 10, y=y - 5, width=20, height=10, class_=f"area {kind}", fill_opacity="0.12"
        )
        left = number_text(x - 10)
        lines = (y - 6, y - 3) if kind == "late" else (y - 5,)
        edge = "".join(f"M{left} {number_text(line)}h20" for line in lines)
        return area + element("path", d=edge, class_=f"edge {kind}")

    return sign


def legend(found: list[Entry], top: float) -> tuple[list[str], float]:
    """The legend in rows, and where it ends."""
    x, y = _LEFT, top + ROW_HEIGHT / 2
    marks: list[str] = []
    for entry in found:
        width = _SIGN_WIDTH + text_width(entry.text, FONT_SIZES["legend"])
        if x > _LEFT and x + width > WIDTH - _LEFT:
            x, y = _LEFT, y + ROW_HEIGHT
        marks.append(entry.sign(x + 10, y))
        marks.append(element("text", entry.text, x=x + _SIGN_WIDTH + 2, y=y + 4, class_="legend"))
        x += width + _GAP
    return marks, y + ROW_HEIGHT / 2 if found else top


def notes(texts: list[str], top: float) -> Iterator[str]:
    """Sentences below the legend, one a row."""
    for number, text in enumerate(texts):
        yield element("text", text, x=_LEFT, y=top + 16 + number * ROW_HEIGHT, class_="note")
