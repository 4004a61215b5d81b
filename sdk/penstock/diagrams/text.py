"""Draws the steps of a pipeline with the characters of a terminal."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

from penstock.diagrams.drawing import (
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
from penstock.diagrams.steps import StepView

_DOWNWARD = Spacing(between=2, track=1, arrow=1, dashes=1, beside=2, title=1, end=1)
_RIGHTWARD = Spacing(between=1, track=2, arrow=3, dashes=0, beside=1, title=2, end=2)
_WIDTHS = (44, 34, 26, 18, 14)
"""The widths that the text of a box may have, from the widest to the narrowest."""

READABLE = 26
"""Narrower boxes are for drawings that are too wide otherwise."""

_UP, _RIGHT, _DOWN, _LEFT = 1, 2, 4, 8
_LINES = dict(
    zip(
        (
            *(_UP | _DOWN, _LEFT | _RIGHT, _DOWN | _RIGHT, _DOWN | _LEFT, _UP | _RIGHT, _UP | _LEFT),
            *(_UP | _DOWN | _RIGHT, _UP | _DOWN | _LEFT, _DOWN | _LEFT | _RIGHT, _UP | _LEFT | _RIGHT),
            _UP | _DOWN | _LEFT | _RIGHT,
        ),
        "│─┌┐└┘├┤┬┴┼",
        strict=True,
    )
)
_DASHED = {_UP | _DOWN: "┆", _LEFT | _RIGHT: "┄"}
_ROUND = {"┌": "╭", "┐": "╮", "└": "╰", "┘": "╯"}
_ARROWS = {False: "▼", True: "►"}
_ASCII = str.maketrans(dict(zip("│─┌┐└┘├┤┬┴┼╭╮╰╯┆┄▼►→←…·", "|-+++++++++++++:.v>><~.", strict=True)))


def text_of(
    steps: Sequence[StepView],
    notes: Notes | None = None,
    *,
    columns: int = 80,
    narrowest: int = 0,
    is_horizontal: bool = False,
    is_ascii: bool = False,
) -> str:
    """Returns the steps as boxes and arrows, with a frame around each composite, and dashed lines for side inputs.

    Args:
        steps: The steps.
        notes: The lines below the labels; by default what each step does, in a word.
        columns: The width that the drawing should not exceed; long strings are shortened for it.
        narrowest: How far they may be shortened.
        is_horizontal: True to draw from left to right.
        is_ascii: True to use the characters of ASCII only.

    >>> print(text_of([StepView("Read", "Read"), StepView("Sum", "CombinePerKey", ("Read",))]))
        ┌──────┐
        │ Read │
        │ Read │
        └───┬──┘
            ▼
    ┌───────────────┐
    │ Sum           │
    │ CombinePerKey │
    └───────────────┘
    """
    members, links = members_of(steps, notes), links_of(steps)
    drawn = ""
    for width in (width for width in _WIDTHS if width >= narrowest):
        size = _size(width, is_horizontal)
        layout = lay_out(items_of(members, size), links, _RIGHTWARD if is_horizontal else _DOWNWARD)
        drawn = _Canvas(layout, is_horizontal).draw(members, width)
        if measure_width(drawn) <= columns:
            break
    return _without_others(drawn.translate(_ASCII)) if is_ascii else drawn


def measure_width(drawn: str) -> int:
    """Returns the number of columns that a drawing takes."""
    return max(map(measure_cells, drawn.splitlines()), default=0)


def measure_cells(text: str) -> int:
    r"""Returns the number of cells that a text takes in a terminal.

    >>> measure_cells("sum"), measure_cells("合計"), measure_cells("e\u0301")
    (3, 4, 1)
    """
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _without_others(text: str) -> str:
    """A text with a question mark for each character that is not in ASCII, as wide as before."""
    return "".join(each if each.isascii() else "?" * _cells(each) for each in text)


def _fit(text: str, width: int) -> str:
    """A text of printable characters, of a width at most."""
    shown = "".join(each if each.isprintable() else "·" for each in text)
    if measure_cells(shown) <= width:
        return shown
    while measure_cells(shown) >= width:
        shown = shown[:-1]
    return f"{shown}…"


def _size(width: int, is_horizontal: bool) -> Callable[[Box | Group], tuple[int, int]]:
    def size(member: Box | Group) -> tuple[int, int]:
        if isinstance(member, Group):
            # The title needs a place beside lines that come from outside.
            return (1, 0) if is_horizontal else (measure_cells(_fit(member.name, width)) + 6, 0)
        strings = [_fit(text, width) for text in (member.name, *member.lines)]
        wide, high = max(map(measure_cells, strings)) + 4, len(strings) + 2
        return (high, wide) if is_horizontal else (wide, high)

    return size


class _Canvas:
    """Cells of a terminal, each with the lines that leave it in the four directions, or with a character."""

    def __init__(self, layout: Layout, is_horizontal: bool) -> None:
        self._layout = layout
        self._is_horizontal = is_horizontal
        self._lines: dict[Point, int] = defaultdict(int)
        self._styles: dict[Point, str] = {}
        self._texts: dict[Point, str] = {}

    def draw(self, members: Sequence[Box | Group], width: int) -> str:
        for placed in self._layout.frames.values():
            self._rectangle(placed, "round")
        for placed in self._layout.boxes.values():
            self._rectangle(placed, "box")
        for link, route in self._layout.routes.items():
            self._route([self._turned(point) for point in route], link.is_side)
        for box in walk_boxes(members):
            x, y, _, _ = self._corners(self._layout.boxes[box.label])
            for number, text in enumerate((box.name, *box.lines)):
                self._write(x + 2, y + 1 + number, _fit(text, width))
        for group in walk_groups(members):
            self._title(group, width)
        return self._rows()

    def _turned(self, point: Point) -> Point:
        across, along = point
        return (along, across) if self._is_horizontal else point

    def _corners(self, placed: Placed) -> tuple[int, int, int, int]:
        """The first and the last column and row, as column, row, column, row."""
        x, y = self._turned((placed.across, placed.along))
        width, height = self._turned((placed.breadth, placed.depth))
        return x, y, x + width - 1, y + height - 1

    def _rectangle(self, placed: Placed, style: str) -> None:
        x, y, right, bottom = self._corners(placed)
        corners = [(x, y), (right, y), (right, bottom), (x, bottom), (x, y)]
        for start, end in pairwise(corners):
            self._line(start, end)
        for corner in corners:
            self._styles[corner] = style

    def _line(self, start: Point, end: Point) -> list[Point]:
        """Draws a straight line, and returns its cells."""
        (x, y), (end_x, end_y) = start, end
        step_x, step_y = (end_x > x) - (end_x < x), (end_y > y) - (end_y < y)
        ahead = {(1, 0): _RIGHT, (-1, 0): _LEFT, (0, 1): _DOWN, (0, -1): _UP}[step_x, step_y]
        back = {_RIGHT: _LEFT, _LEFT: _RIGHT, _DOWN: _UP, _UP: _DOWN}[ahead]
        cells = [(x, y)]
        while (x, y) != end:
            self._lines[x, y] |= ahead
            x, y = x + step_x, y + step_y
            self._lines[x, y] |= back
            cells.append((x, y))
        return cells

    def _route(self, route: Sequence[Point], is_side: bool) -> None:
        (x, y), end = route[-1], route[-1]
        # The arrow touches the box, whose border stays whole.
        before = (x - 1, y) if self._is_horizontal else (x, y - 1)
        for start, stop in pairwise([*route[:-1], before]):
            if start == stop:
                continue
            for cell in self._line(start, stop):
                if is_side and cell != end:
                    self._styles.setdefault(cell, "dashed")
        self._texts[before] = _ARROWS[self._is_horizontal]

    def _write(self, x: int, y: int, text: str) -> None:
        last = (x, y)
        for character in text:
            if _cells(character):
                last = (x, y)
                self._texts[last] = character
                # A wide character covers the next cell.
                for more in range(1, _cells(character)):
                    self._texts[x + more, y] = ""
                x += _cells(character)
            else:
                self._texts[last] += character

    def _title(self, group: Group, width: int) -> None:
        """Writes the name of a group into its upper border, or into the lower one, where no line crosses it."""
        x, y, right, bottom = self._corners(self._layout.frames[group.path])
        gaps = [
            (end - start, -row, start, row)
            for row in (y, bottom)
            for start, end in self._gaps(x + 1, right, row)
        ]
        wanted = measure_cells(_fit(group.name, width)) + 4
        wide = [gap for gap in gaps if gap[0] >= wanted] or sorted(gaps, reverse=True)
        for length, _, start, row in wide[:1]:
            if length > 4:
                self._write(start + 1, row, f" {_fit(group.name, min(width, length - 4))} ")

    def _gaps(self, x: int, right: int, row: int) -> list[tuple[int, int]]:
        crossed = [column for column in range(x, right) if self._lines[column, row] != _LEFT | _RIGHT]
        ends = [x - 1, *crossed, right]
        return [(start + 1, end) for start, end in pairwise(ends) if end > start + 1]

    def _rows(self) -> str:
        ends: dict[int, int] = {}
        for x, y in (*self._lines, *self._texts):
            ends[y] = max(ends.get(y, 0), x + 1)
        rows = (
            "".join(self._character((x, y)) for x in range(ends.get(y, 0)))
            for y in range(max(ends, default=-1) + 1)
        )
        return "\n".join(row.rstrip() for row in rows)

    def _character(self, place: Point) -> str:
        if place in self._texts:
            return self._texts[place]
        lines, style = self._lines.get(place, 0), self._styles.get(place)
        if not lines:
            return " "
        if style == "dashed" and lines in _DASHED:
            return _DASHED[lines]
        drawn = _LINES[lines]
        return _ROUND.get(drawn, drawn) if style == "round" else drawn
