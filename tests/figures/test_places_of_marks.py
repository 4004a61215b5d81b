"""Where marks and values are in a drawing: what belongs together is together, and nothing hides anything."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from penstock.diagrams.colours import LIGHT
from penstock.diagrams.markup import MINUS
from penstock_figures import draw
from penstock_figures.room import Area
from tests.figures.recorded_figures import figure, of_inputs, transcripts
from tests.figures.svg_reading import SVG, Text, circles, classes, number, parsed, texts


def test_the_values_of_figure_14_are_in_their_panes() -> None:
    svg = draw(figure(14))
    areas = [
        (classes(each)[1], area_of_rectangle(each))
        for each in parsed(svg).iter(f"{SVG}rect")
        if "area" in classes(each)
    ]
    found = [text for text in texts(svg) if text.kind == "value"]
    assert len(found) == 12
    for text in found:
        # What is taken back belongs to the pane that takes its place.
        kinds = ("late", "on-time", "early") if text.content[0] == MINUS else (kind_of_value(svg, text),)
        within = [kind for kind, area in areas if kind in kinds and text.area.is_within(area)]
        assert within, text.content


def kind_of_value(svg: str, text: Text) -> str:
    [each] = [
        each
        for each in parsed(svg).iter(f"{SVG}text")
        if (number(each, "x"), number(each, "y")) == (text.x, text.y)
    ]
    return classes(each)[1]


def area_of_rectangle(each: ElementTree.Element) -> Area:
    x, y = number(each, "x"), number(each, "y")
    return Area(x, y, x + number(each, "width"), y + number(each, "height"))


def test_no_value_crosses_the_side_of_a_pane_that_is_wide_enough_for_it() -> None:
    for name, recording in transcripts().items():
        if "igure" not in name[0]:
            # Windows that are narrower than their values have them beside.
            continue
        svg = draw(recording)
        areas = [
            area_of_rectangle(each) for each in parsed(svg).iter(f"{SVG}rect") if "area" in classes(each)
        ]
        for text in texts(svg):
            middle = (text.area.left + text.area.right) / 2
            for area in areas:
                is_there = area.left < middle < area.right and area.top < text.y < area.bottom
                is_wide = area.right - area.left > text.area.right - text.area.left + 6
                if text.kind == "value" and is_there and is_wide:
                    assert area.left <= text.area.left, (name, text.content)
                    assert text.area.right <= area.right, (name, text.content)


def test_the_edges_of_panes_are_in_front_of_the_watermark() -> None:
    for name, recording in transcripts().items():
        found = [classes(each) for each in parsed(draw(recording)).iter(f"{SVG}path")]
        lines = [number for number, each in enumerate(found) if "watermark" in each]
        drawn = [number for number, each in enumerate(found) if "edge" in each]
        # The legend, which comes last, has one of each.
        if len(lines) == 2 and len(drawn) > 1:
            assert lines[0] < drawn[0], name


def test_a_renderer_without_custom_properties_and_without_outlines_shows_the_light_colours() -> None:
    rules, _, halo = draw(figure(12)).partition("@supports (paint-order:stroke)")
    assert "paint-order" in halo
    assert "paint-order" not in rules
    used = re.findall(r"([a-z-]+):var\(--([a-z-]+)\)", rules)
    assert len(used) > 20
    for name, colour in used:
        assert f"{name}:{LIGHT[colour]};{name}:var(--{colour})" in rules


@pytest.mark.parametrize(
    ("count", "radii"),
    [(3, {7.0}), (100, {2.2})],
    ids=["circles", "small dots"],
)
def test_the_legend_shows_elements_as_they_are_drawn(count: int, radii: set[float]) -> None:
    svg = draw(of_inputs(*((10 * number_, 20 * (number_ % 7), "5") for number_ in range(count))))
    drawn = {number(each, "r") for each in circles(svg)}
    assert radii <= drawn
    assert len(drawn) == (2 if count == 3 else 1)


def test_the_legend_has_a_dot_where_values_stand_beside_dots() -> None:
    svg = draw(of_inputs((0, 0, "5"), (100, 50, "6"), (100, 50, "7")))
    assert [text.content for text in texts(svg) if text.kind == "legend"][:2] == [
        "element",
        "element, as a dot",
    ]
    assert [number(each, "r") for each in circles(svg)] == [10.0, 10.0, 3.2, 7.0, 3.2]
