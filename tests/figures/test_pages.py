"""Pages of drawings: complete without a network, and safe."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from penstock_figures import RecordedInput, Recording, Section, draw, page
from penstock_figures.style import STYLE

DRAWING = draw(Recording("one element", (RecordedInput(3_000_000, 5_000_000, "", "7"),), (), ()))
SECTIONS = (
    Section(
        "Figure 1",
        "First.\n\nSecond.",
        (("batch", DRAWING, "passed"), ("streaming", DRAWING, "differs by the model")),
    ),
    Section("Figure 2", "", (("batch", DRAWING, "failed"), ("streaming", "", "not built"))),
    Section("Words only", "Nothing is drawn."),
)
VOID = {"meta"}


class Outline(HTMLParser):
    """The tags of a page, which must all be closed, and its text by tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for found, attributes in self.found if found == tag]


def test_a_page_lists_its_sections_with_what_came_of_each_figure() -> None:
    outline = Outline(page("The figures", SECTIONS))
    assert outline.open == []
    assert outline.texts["h1"] == ["The figures"]
    assert outline.attributes("a", "href") == ["#section-1", "#section-2", "#section-3"]
    assert outline.attributes("section", "id") == ["section-1", "section-2", "section-3"]
    told = [text for text in outline.attributes("span", "aria-label") if text]
    assert told == [
        *("batch: passed", "streaming: differs by the model"),
        *("batch: failed", "streaming: not built"),
    ]
    assert outline.texts["p"][-3:] == ["First.", "Second.", "Nothing is drawn."]


def test_a_page_counts_what_came_of_its_figures() -> None:
    twice = [*SECTIONS, *SECTIONS]
    texts = Outline(page("The figures", twice)).texts["span"]
    counts = [text.strip() for text in texts if re.match(r" \d", text)]
    assert counts == ["2 passed", "2 differ by the model", "2 failed", "2 not built"]


def test_a_page_needs_no_network_and_no_script() -> None:
    html = page("The figures", SECTIONS).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|<script|<link|@import|url\(|\bon\w+=|src=", html)


def test_the_style_of_drawings_is_in_a_page_once_and_in_each_drawing_alone() -> None:
    assert DRAWING.count(STYLE) == 1
    assert page("The figures", SECTIONS).count(STYLE) == 1


def test_texts_are_escaped() -> None:
    bad = "</title><script>alert('\"&\x00')</script>"
    html = page(bad, [Section(bad, bad, ((bad, DRAWING, "passed"),))])
    assert "<script" not in html
    outline = Outline(html)
    assert outline.open == []
    assert "".join(outline.texts["h1"]) == bad.replace("\x00", "\ufffd")


def test_a_page_is_wide_as_the_screen_and_its_figures_scroll_within_themselves() -> None:
    html = page("The figures", SECTIONS)
    assert 'name="viewport" content="width=device-width' in html
    assert ".drawing{overflow-x:auto" in html
    drawings = [each for tag, each in Outline(html).found if each.get("class") == "drawing"]
    assert [each["tabindex"] for each in drawings] == ["0", "0", "0"]


def test_a_page_without_figures_is_a_page() -> None:
    assert Outline(page("Nothing", [])).open == []


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (("batch", "", "maybe"), "the status 'maybe' is unknown"),
        (("batch", "<p>", "passed"), "the drawing of 'batch' is not an <svg>"),
    ],
)
def test_a_wrong_figure_is_refused(figure: tuple[str, str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Section("Figure 1", "", (figure,))


def test_the_same_sections_give_the_same_page() -> None:
    assert page("The figures", SECTIONS) == page("The figures", SECTIONS)
