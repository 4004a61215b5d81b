"""The panes, as rectangles with their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.diagrams.markup import MINUS, element, escape, format_number, measure_text, shorten
from penstock.machines.recorder import RecordedInput, RecordedPane
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_figures.layout import Layout, Panel, is_finite
from penstock_figures.room import Area, Room
from penstock_figures.style import FONT_SIZES, WORD_SHARE


@dataclass(frozen=True)
class PaneBox:
    """A pane of one key, and its rectangle."""

    pane: RecordedPane
    # The left end of its rectangle: the processing time of the previous pane, or of the first new element in it.
    from_micros: int
    refinements: int  # The number of earlier panes that it refines.
    is_taken_back: bool


def boxes_of(panes: Sequence[RecordedPane], inputs: Sequence[RecordedInput]) -> list[PaneBox]:
    """Returns the rectangles of all panes of one key that give a value, in their order.

    A pane refines earlier panes of its window, and of windows inside it that have merged into it.

    >>> inputs = [RecordedInput(3, 100, "", "7"), RecordedInput(4, 300, "", "8")]
    >>> panes = [RecordedPane(0, 10, 200, "", "7", 0, 0), RecordedPane(0, 10, 400, "", "15", 1, 1)]
    >>> [(box.from_micros, box.refinements) for box in boxes_of(panes, inputs)]
    [(100, 0), (200, 1)]
    """
    taken_back = _taken_back(panes)
    given: list[RecordedPane] = []
    boxes: list[PaneBox] = []
    for number, pane in enumerate(panes):
        if not pane.is_retraction:
            refined = [before for before in given if _is_within(before, pane)]
            boxes.append(PaneBox(pane, _begin(pane, refined, inputs), len(refined), number in taken_back))
            given.append(pane)
    return boxes


def _is_within(inner: RecordedPane, outer: RecordedPane) -> bool:
    return outer.start_micros <= inner.start_micros and inner.end_micros <= outer.end_micros


def _begin(pane: RecordedPane, refined: Sequence[RecordedPane], inputs: Sequence[RecordedInput]) -> int:
    """Returns the time of the latest earlier pane, or of the first element that is in none of them, if earlier."""
    earlier = [before.clock_micros for before in refined if before.clock_micros < pane.clock_micros]
    new = [
        each.clock_micros
        for each in inputs
        if pane.start_micros <= each.event_micros < pane.end_micros
        and each.clock_micros <= pane.clock_micros
        # Backwards, because the last pane has seen most.
        and not any(_has_seen(before, each) for before in reversed(refined))
    ]
    return min([*earlier[-1:], *new[:1]], default=pane.clock_micros)


def _has_seen(pane: RecordedPane, element: RecordedInput) -> bool:
    return (
        element.clock_micros <= pane.clock_micros
        and pane.start_micros <= element.event_micros < pane.end_micros
    )


def _taken_back(panes: Sequence[RecordedPane]) -> set[int]:
    """Returns the numbers of retracted panes: each retraction retracts the latest pane with its value."""
    standing: dict[tuple[int, int, str], list[int]] = {}
    found: set[int] = set()
    for number, pane in enumerate(panes):
        of_the_same = standing.setdefault((pane.start_micros, pane.end_micros, pane.value), [])
        if not pane.is_retraction:
            of_the_same.append(number)
        elif of_the_same:
            found.add(of_the_same.pop())
    return found


CLASSES = {
    PaneInfoTiming.EARLY: "early",
    PaneInfoTiming.ON_TIME: "on-time",
    PaneInfoTiming.LATE: "late",
    PaneInfoTiming.UNKNOWN: "unknown",
}
WORDS = {
    PaneInfoTiming.EARLY: "early",
    PaneInfoTiming.ON_TIME: "on time",
    PaneInfoTiming.LATE: "late",
    PaneInfoTiming.UNKNOWN: "",
}
_HEIGHT_MIN = 5.0
_ASCENT = 11.0
_DESCENT = 3.0
_GAP = 2.5
_LENGTHS = (22, 10, 5)


def area_of(panel: Panel, box: PaneBox) -> Area:
    """Returns the rectangle of a pane."""
    left, right = _across(panel, box.pane)
    top, bottom = panel.clocks.place(box.pane.clock_micros), panel.clocks.place(box.from_micros)
    return Area(left, top, right, max(bottom, top + _HEIGHT_MIN))


def _across(panel: Panel, pane: RecordedPane) -> tuple[float, float]:
    """Returns the left and the right edge of its window; a short window stays visible."""
    left, right = panel.events.place(pane.start_micros), panel.events.place(pane.end_micros)
    return left, max(right, min(left + 2, panel.area.right))


def draw_fills(layout: Layout, panel: Panel, boxes: Sequence[PaneBox]) -> Iterator[str]:
    """Yields the areas of the panes; the more a pane refines, the darker."""
    for box in boxes:
        area = area_of(panel, box)
        yield element(
            "rect",
            element("title", escape(title_of_pane(layout, box.pane))),
            x=area.left,
            y=area.top,
            width=area.right - area.left,
            height=area.bottom - area.top,
            class_=f"area {CLASSES[box.pane.timing]}",
            fill_opacity=f"{min(0.09 + 0.06 * box.refinements, 0.33):.2f}",
        )


def draw_edges(panel: Panel, panes: Sequence[RecordedPane]) -> Iterator[str]:
    """Yields the upper edges, which show the kind of pane; a retraction without a new value has one as well."""
    replaced = {_place(pane) for pane in panes if not pane.is_retraction}
    for pane in panes:
        if pane.is_retraction and _place(pane) in replaced:
            continue
        kind = "back" if pane.is_retraction else CLASSES[pane.timing]
        y = panel.clocks.place(pane.clock_micros)
        left, right = map(format_number, _across(panel, pane))
        lines = (y - 1, y + 2) if kind == "late" else (y,)
        path = "".join(f"M{left} {format_number(line)}H{right}" for line in lines)
        yield element("path", d=path, class_=f"edge {kind}")


def _place(pane: RecordedPane) -> tuple[int, int, int]:
    return pane.start_micros, pane.end_micros, pane.clock_micros


def values(
    panel: Panel, panes: Sequence[RecordedPane], boxes: Sequence[PaneBox], lines: Sequence[Area]
) -> Iterator[str]:
    """Yields the values at the upper edges, new ones before retracted ones; away from the `lines` if there is room."""
    soft = Room(panel.area)
    for line in lines:
        soft.take(line)
    for box in reversed(boxes):
        yield from _value(panel, soft, box.pane, area_of(panel, box), box.is_taken_back)
    for pane in panes:
        if pane.is_retraction:
            left, right = _across(panel, pane)
            top = panel.clocks.place(pane.clock_micros)
            yield from _value(panel, soft, pane, Area(left, top, right, top + 40), False)


def _value(panel: Panel, soft: Room, pane: RecordedPane, area: Area, taken: bool) -> Iterator[str]:
    """Yields the value of a pane where there is room: inside its rectangle if possible, otherwise at its upper edge.

    The word for its timing is beside it if it fits. A value rather crosses a line than leaves its pane.
    """
    word = "" if pane.is_retraction else WORDS[pane.timing]
    wordings = [
        (value, with_word, _width(value, word, with_word)) for value, with_word in _wordings(pane, word)
    ]
    for places_of in (_places_within, _places_below, _places_around):
        for is_strict in (True, False):
            for value, with_word, width in wordings:
                for x, base in places_of(area, width):
                    place = Area(x - _GAP, base - _ASCENT, x + width + _GAP, base + _DESCENT)
                    if panel.room.is_free(place) and (not is_strict or soft.is_free(place)):
                        panel.room.take(place)
                        yield _text(pane, value, f" {word}" if with_word else "", x, base, taken)
                        return


def _width(value: str, word: str, with_word: bool) -> float:
    size = FONT_SIZES["value"]
    width = measure_text(value, size, is_bold=True)
    return width + measure_text(f" {word}", size * WORD_SHARE) if with_word else width


def _wordings(pane: RecordedPane, word: str) -> Iterator[tuple[str, bool]]:
    """Yields a value, and whether the word for the timing is beside it, the longest first."""
    sign = MINUS if pane.is_retraction else ""
    values = list(dict.fromkeys(sign + shorten(pane.value, length) for length in _LENGTHS))
    if word:
        yield values[0], True
    for value in values:
        yield value, False


def _places_within(area: Area, width: float) -> Iterator[tuple[float, float]]:
    """Yields the places of a text that lies inside the rectangle, near its upper edge."""
    if width + 2 * _GAP <= area.right - area.left:
        bases = [base for base in (area.top + 16, area.top + 31) if base + _DESCENT <= area.bottom]
        yield from ((x, base) for base in bases for x in _columns(area, width))


def _places_below(area: Area, width: float) -> Iterator[tuple[float, float]]:
    """Yields the places of a text that lies inside the rectangle, near its lower edge."""
    if width + 2 * _GAP <= area.right - area.left and area.bottom - 5 - _ASCENT >= area.top:
        yield from ((x, area.bottom - 5) for x in _columns(area, width))


def _places_around(area: Area, width: float) -> Iterator[tuple[float, float]]:
    """Yields the places of a text at the upper edge: below or above it."""
    is_wide = width > area.right - area.left
    columns = [(area.left + area.right - width) / 2] if is_wide else _columns(area, width)
    for base in (area.top + 16, area.top - 5, area.top + 31):
        yield from ((x, base) for x in columns)
    if is_wide:
        yield from ((x, area.top + 16) for x in (area.left, area.right - width))


def _columns(area: Area, width: float) -> list[float]:
    middle = (area.left + area.right - width) / 2
    first, last = area.left + _GAP, area.right - width - _GAP
    sides = [min(area.left + 5, last), max(area.right - width - 5, first)]
    return [middle, *sides, (area.left + middle) / 2, (area.right - width + middle) / 2]


def _text(pane: RecordedPane, value: str, word: str, x: float, base: float, taken: bool) -> str:
    kind = "back" if pane.is_retraction else CLASSES[pane.timing]
    beside = element("tspan", escape(word), class_="word") if word else ""
    # Some renderers drop the space before the word.
    kept: dict[str, str] = {"xml:space": "preserve"} if word else {}
    text = element("text", escape(value) + beside, x=x, y=base, class_=f"value {kind}", **kept)
    if not taken:
        return text
    width = measure_text(value, FONT_SIZES["value"], is_bold=True)
    begin, end = (
        f"{format_number(x - 2)} {format_number(base + 2)}",
        f"{format_number(x + width + 1)} {format_number(base - 12)}",
    )
    return text + element("path", d=f"M{begin}L{end}", class_="strike")


def title_of_pane(layout: Layout, pane: RecordedPane) -> str:
    """Returns a pane in words."""
    value = f"{MINUS if pane.is_retraction else ''}{pane.value}{f' of {pane.key}' if pane.key else ''}"
    bounds = f"[{layout.event_text(pane.start_micros)}, {layout.event_text(pane.end_micros)})"
    is_global = not is_finite(pane.start_micros) and not is_finite(pane.end_micros)
    words = [f"{value} in {'the global window' if is_global else bounds}"]
    if pane.is_retraction:
        words += ["retracted"]
    else:
        words += [WORDS[pane.timing]] * bool(WORDS[pane.timing])
        words += [f"pane {pane.index}"] * (pane.index >= 0) + ["the last one"] * pane.is_last
    return ", ".join([*words, f"at {layout.clock_text(pane.clock_micros)}"])
