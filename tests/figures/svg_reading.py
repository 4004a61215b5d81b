"""Reads drawings back: their texts with the room they take, their circles, and the axes as their labels tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

from penstock.diagrams.markup import measure_text
from penstock_figures.room import Area
from penstock_figures.style import BOLD, FONT_SIZES, WORD_SHARE

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Text:
    """A text, what it is, and about the room it takes."""

    content: str
    kind: str
    x: float
    y: float
    area: Area


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def classes(each: ElementTree.Element) -> list[str]:
    return each.get("class", "").split()


def number(each: ElementTree.Element, name: str) -> float:
    return float(each.attrib[name])


def texts(svg: str) -> list[Text]:
    return [_text(each) for each in parsed(svg).iter(f"{SVG}text")]


def _text(each: ElementTree.Element) -> Text:
    kind = next(name for name in classes(each) if name in FONT_SIZES)
    size, x, y = FONT_SIZES[kind], number(each, "x"), number(each, "y")
    width = measure_text(each.text or "", size, kind in BOLD)
    width += sum(measure_text(part.text or "", size * WORD_SHARE) for part in each)
    left = {None: x, "middle": x - width / 2, "end": x - width}[each.get("text-anchor")]
    area = Area(left, y - 0.72 * size, left + width, y + 0.2 * size)
    return Text("".join(each.itertext()), kind, x, y, area)


def circles(svg: str, *names: str) -> list[ElementTree.Element]:
    return [each for each in parsed(svg).iter(f"{SVG}circle") if set(names) <= set(classes(each))]


def elements_drawn(svg: str) -> list[tuple[str, float, float]]:
    """The elements that are circles in the plot: their values and centres."""
    found = []
    for group in parsed(svg).iter(f"{SVG}g"):
        circle, text = group.find(f"{SVG}circle"), group.find(f"{SVG}text")
        assert circle is not None
        value = "" if text is None else text.text or ""
        found.append((value, number(circle, "cx"), number(circle, "cy")))
    return found


def overlaps(svg: str) -> Iterator[str]:
    """The texts that lie on each other, on another element's circle, or outside of the drawing."""
    found, root = texts(svg), parsed(svg)
    everything = Area(0, 0, number(root, "width"), number(root, "height"))
    for one, other in combinations(found, 2):
        if one.area.meets(other.area):
            yield f"{one.content!r} and {other.content!r}"
    for text in found:
        if not text.area.is_within(everything):
            yield f"{text.content!r} is outside"
        if text.kind in ("value", "beside", "label"):
            for value, x, y in elements_drawn(svg):
                if text.area.meets(Area(x - 3, y - 3, x + 3, y + 3)):
                    yield f"{text.content!r} and the circle of {value!r}"


def along(svg: str, moment: Callable[[str], float], is_upright: bool) -> Callable[[float], float]:
    """Where a moment is, as the labels of an axis tell it.

    Args:
        svg: A drawing of one key.
        moment: The moment of a label.
        is_upright: Which axis.
    """
    labels = [text for text in texts(svg) if text.kind == "label" and text.content != "all input is read"]
    lowest = max(text.y for text in labels)
    ticks = [
        (moment(text.content), text.y - 4 if is_upright else text.x)
        for text in labels
        if (text.y < lowest) == is_upright
    ]
    (first, first_place), (last, last_place) = min(ticks), max(ticks)
    return lambda each: first_place + (each - first) / (last - first) * (last_place - first_place)
