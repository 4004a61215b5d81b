"""Draws the steps of a pipeline as SVG, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil

from penstock.diagrams.colours import Scheme, render_colours
from penstock.diagrams.drawing import (
    NO_NOTES,
    Box,
    Group,
    Notes,
    items_of,
    links_of,
    members_of,
    walk_boxes,
    walk_groups,
)
from penstock.diagrams.layered import Layout, Placed, Point, Spacing, lay_out
from penstock.diagrams.markup import element, escape, format_number, measure_text, shorten
from penstock.diagrams.steps import StepView, fold_composites

_CELL = 6.0
"""The size of a cell of the layout, in pixels."""

_DOWNWARD = Spacing(between=4, track=2, arrow=4, dashes=0, beside=3, title=5, end=3)
_RIGHTWARD = Spacing(between=3, track=2, arrow=5, dashes=0, beside=5, title=3, end=3)
_MARGIN = 12.0
_WIDTH_MIN, _WIDTH_MAX = 120.0, 300.0
_LABEL_MAX = 40
_LABEL, _SMALL = 12.0, 11.0
_LINE, _AROUND = 14.0, 10.0
_ROUND = 5.0

_STYLE = """
.penstock-graph{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.penstock-graph .paper{fill:var(--paper)}
.penstock-graph text{fill:var(--ink);font-size:12px;text-anchor:middle}
.penstock-graph .small{fill:var(--quiet);font-size:11px}
.penstock-graph text.name{fill:var(--quiet);font-size:11px;text-anchor:start}
.penstock-graph rect.step{fill:var(--paper);stroke:var(--line)}
.penstock-graph rect.end{stroke:var(--quiet)}
.penstock-graph rect.group{fill:none;stroke:var(--line)}
.penstock-graph path{stroke:var(--quiet);fill:none}
.penstock-graph path.arrow{stroke:none;fill:var(--quiet)}
.penstock-graph .side{stroke-dasharray:4 3}
"""


def svg_of(
    steps: Sequence[StepView],
    title: str = "",
    facts: Notes = NO_NOTES,
    notes: Notes | None = None,
    *,
    scheme: Scheme = "both",
    is_horizontal: bool = False,
) -> str:
    """Returns the steps as an ``<svg>`` element: each below those that it reads, composites framed, side inputs dashed.

    Args:
        steps: The steps.
        title: The title of the drawing.
        facts: What else is said of a step where the pointer rests on it.
        notes: The lines below the labels; by default what each step does, in a word.
        scheme: The colours; by default those that the reader prefers, light or dark.
        is_horizontal: True to draw from left to right.

    >>> drawn = svg_of([StepView("Read", "Read"), StepView("<b>", "ParDo", ("Read",))])
    >>> drawn.count("<rect"), "<b>" in drawn
    (3, False)
    """
    members, links = members_of(steps, notes), links_of(steps)
    spacing = _RIGHTWARD if is_horizontal else _DOWNWARD
    layout = lay_out(items_of(members, _size(is_horizontal)), links, spacing)
    place = _Place(is_horizontal)
    cells = (layout.depth, layout.breadth) if is_horizontal else (layout.breadth, layout.depth)
    width, height = (length * _CELL + 2 * _MARGIN for length in cells)
    kinds = {step.label: step.kind for step in steps}
    return element(
        "svg",
        element("title", escape(title)) if title else "",
        element("style", render_colours(".penstock-graph", scheme) + _STYLE.replace("\n", "")),
        element("rect", class_="paper", width=width, height=height),
        *(
            part
            for group in walk_groups(members)
            for part in _frame(group, place.of(layout.frames[group.path]))
        ),
        *_lines(layout, place, is_horizontal),
        *(
            _box(box, kinds[box.label], place.of(layout.boxes[box.label]), facts.get(box.label, ()))
            for box in walk_boxes(members)
        ),
        xmlns="http://www.w3.org/2000/svg",
        class_="penstock-graph",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
    )


Pixels = tuple[float, float, float, float]
"""Left, top, width and height."""


class _Place:
    """Turns cells of the layout into pixels."""

    def __init__(self, is_horizontal: bool) -> None:
        self._is_horizontal = is_horizontal

    def point(self, point: Point) -> tuple[float, float]:
        """The middle of a cell."""
        x, y = reversed(point) if self._is_horizontal else point
        return _MARGIN + (x + 0.5) * _CELL, _MARGIN + (y + 0.5) * _CELL

    def of(self, placed: Placed) -> Pixels:
        """A rectangle, whose borders are in the middle of its outer cells."""
        left, top = self.point((placed.across, placed.along))
        last = placed.across + placed.breadth - 1, placed.along + placed.depth - 1
        right, bottom = self.point(last)
        return left, top, right - left, bottom - top


def _size(is_horizontal: bool) -> Callable[[Box | Group], tuple[int, int]]:
    def size(member: Box | Group) -> tuple[int, int]:
        if isinstance(member, Group):
            name = measure_text(shorten(member.name, _LABEL_MAX), _SMALL)
            return (1 if is_horizontal else ceil(name / _CELL) + 4), 0
        widths = [measure_text(shorten(member.name, _LABEL_MAX), _LABEL)]
        widths += [measure_text(shorten(line, _LABEL_MAX), _SMALL) for line in member.lines]
        width = min(_WIDTH_MAX, max(_WIDTH_MIN, *widths) + 20)
        height = _AROUND + _LINE * (1 + len(member.lines))
        cells = ceil(width / _CELL) + 1, ceil(height / _CELL) + 1
        return (cells[1], cells[0]) if is_horizontal else cells

    return size


def _frame(group: Group, pixels: Pixels) -> Iterator[str]:
    left, top, width, height = pixels
    yield element("rect", class_="group", x=left, y=top, width=width, height=height, rx=8)
    name = shorten(group.name, max(int(width / 6.5), 4))
    yield element("text", escape(name), class_="name", x=left + 10, y=top + 15)


def _box(box: Box, kind: str, pixels: Pixels, facts: Sequence[str]) -> str:
    left, top, width, height = pixels
    middle, first = left + width / 2, top + (height - _LINE * (1 + len(box.lines))) / 2 + 11
    lines = (
        element("text", escape(shorten(line, _LABEL_MAX)), class_="small", x=middle, y=first + _LINE * number)
        for number, line in enumerate(box.lines, 1)
    )
    return element(
        "g",
        element("title", escape("\n".join((f"{box.label} = {kind}", *facts)))),
        element(
            "rect",
            class_="step end" if box.is_end else "step",
            x=left,
            y=top,
            width=width,
            height=height,
            rx=5,
        ),
        element("text", escape(shorten(box.name, _LABEL_MAX)), x=middle, y=first),
        *lines,
    )


def _lines(layout: Layout, place: _Place, is_horizontal: bool) -> Iterator[str]:
    for link, route in layout.routes.items():
        points = [place.point(point) for point in route]
        yield element("path", d=_path(points), class_="side" if link.is_side else None)
        x, y = points[-1]
        wings = (-7, -3.5, 0, 7) if is_horizontal else (-3.5, -7, 7, 0)
        start_x, start_y, across_x, across_y = wings
        tip = f"M{format_number(x)} {format_number(y)}l{start_x:g} {start_y:g}l{across_x:g} {across_y:g}z"
        yield element("path", d=tip, class_="arrow")


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line with round corners."""
    parts = [f"M{_pair(points[0])}"]
    for number, (before, corner) in enumerate(pairwise(points), 1):
        if number + 1 == len(points):
            parts.append(f"L{_pair(corner)}")
            break
        after = points[number + 1]
        near, far = _towards(corner, before), _towards(corner, after)
        parts.append(f"L{_pair(near)}Q{_pair(corner)} {_pair(far)}")
    return "".join(parts)


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """A point near a corner, on the way to another point."""
    length = abs(other[0] - corner[0]) + abs(other[1] - corner[1])
    share = min(_ROUND, length / 2) / length if length else 0.0
    return corner[0] + (other[0] - corner[0]) * share, corner[1] + (other[1] - corner[1]) * share


def _pair(point: tuple[float, float]) -> str:
    return f"{format_number(point[0])} {format_number(point[1])}"


def html_of(steps: Sequence[StepView], title: str = "", facts: Notes = NO_NOTES) -> str:
    """Returns the steps for a notebook: composites folded into one box each, and all steps on a click; see `svg_of`.

    >>> html_of([]), "<details>" in html_of([StepView("Top/Pair", "ParDo"), StepView("Top/Sum", "CombinePerKey")])
    ('<p>no steps</p>', True)
    """
    if not steps:
        return "<p>no steps</p>"
    shown = fold_composites(steps)
    if len(shown) == len(steps):
        return svg_of(steps, title, facts)
    summary = element("summary", f"all {len(steps)} steps")
    return svg_of(shown, title, facts) + element("details", summary, svg_of(steps, title, facts))
