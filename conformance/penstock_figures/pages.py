"""Drawings on one HTML page, which needs neither a network nor a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.diagrams.colours import render_colours
from penstock.diagrams.markup import element, escape
from penstock.error import refusal
from penstock_figures.style import STYLE

_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0 auto;max-width:78rem;padding:2.5rem clamp(1rem,4vw,3rem) 5rem;background:var(--paper);color:var(--ink);
font:1.0625rem/1.55 "Iowan Old Style","Palatino Linotype",Palatino,"Book Antiqua",Georgia,serif;
overflow-wrap:break-word}
h1{font-size:clamp(1.7rem,5vw,2.4rem);line-height:1.15;font-weight:500;margin:0 0 .75rem;letter-spacing:-.01em;
max-width:24em;text-wrap:balance}
h2{font-size:1.3rem;line-height:1.25;font-weight:600;margin:0 0 .5rem;text-wrap:balance}
p{margin:0 0 .8rem;max-width:38rem;hyphens:auto}
a{color:inherit;text-decoration-color:var(--quiet);text-decoration-thickness:1px;text-underline-offset:.2em}
a:hover{text-decoration-color:currentColor}
.summary{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;color:var(--quiet)}
.count{white-space:nowrap}
nav{border-top:1px solid var(--line);border-bottom:1px solid var(--line);margin:2rem 0 0;padding:1.1rem 0 1.2rem}
nav h2{font-size:1rem;font-variant-caps:small-caps;letter-spacing:.06em;color:var(--quiet);font-weight:500}
nav ol{margin:0;padding:0;list-style:none;columns:25rem;column-gap:3rem}
nav li{display:flex;justify-content:space-between;gap:1rem;break-inside:avoid;padding:.12rem 0}
nav li a{text-decoration:none}
nav li a:hover{text-decoration:underline}
.marks{white-space:nowrap;letter-spacing:.15em}
.mark{font-family:system-ui,"Segoe UI Symbol","DejaVu Sans",sans-serif;font-weight:600}
.mark.passed{color:var(--on-time)}
.mark.differs{color:var(--early)}
.mark.failed{color:var(--late)}
.mark.not{color:var(--quiet)}
section{margin:3.2rem 0 0;scroll-margin-top:1rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,32rem),1fr));gap:2rem 2.5rem;
margin-top:1.2rem}
figure{margin:0;min-width:0;max-width:40rem}
figcaption{margin-top:.35rem;font-size:.95rem;line-height:1.4;color:var(--quiet)}
figcaption b{color:var(--ink);font-weight:600}
.drawing{overflow-x:auto;overscroll-behavior-x:contain}
.drawing svg{display:block;width:100%;min-width:31.5rem;height:auto}
.drawing:focus-visible,a:focus-visible{outline:2px solid var(--early);outline-offset:3px}
@media (max-width:40rem){.drawing svg{min-width:34rem}}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{body{padding:0;font-size:10.5pt}figure,nav li{break-inside:avoid}h2{break-after:avoid}
.drawing svg{min-width:0}.drawing{overflow:visible}}
"""

PAGE_STYLE = element("style", render_colours(":root"), _RULES.replace("\n", ""))
"""The style of a page."""


STATUSES: Mapping[str, str] = {"passed": "✓", "differs by the model": "≈", "failed": "✗", "not built": "○"}
"""The possible results of a figure, and their marks."""


@dataclass(frozen=True)
class Section:
    """A part of a page. An empty line of the text begins a new paragraph.

    Each figure has a caption, a drawing of `penstock_figures.draw`, which may be empty, and a status: ``passed``,
    ``differs by the model``, ``failed`` or ``not built``.

    >>> Section("Figure 12", "Fixed windows.", (("streaming", "", "not built"),)).heading
    'Figure 12'
    """

    heading: str
    text: str
    figures: Sequence[tuple[str, str, str]] = ()

    def __post_init__(self) -> None:
        for caption, svg, status in self.figures:
            if status not in STATUSES:
                hint = f"use one of {', '.join(STATUSES)}"
                raise refusal(ValueError, f"the status {status!r} is unknown", hint=hint)
            if svg and not svg.startswith("<svg"):
                what = f"the drawing of {caption!r} is not an <svg>"
                raise refusal(ValueError, what, hint="pass the result of draw(recording)")


def page(title: str, sections: Sequence[Section]) -> str:
    """Returns an HTML page of sections with their figures, and a list of contents with the status of each figure.

    It escapes titles, captions and text, but not drawings. Write the page in UTF-8.

    >>> html = page("Figures & more", [Section("One", "Text.", (("streaming", "", "passed"),))])
    >>> "<h1>Figures &amp; more</h1>" in html, "1 passed" in html
    (True, True)
    """
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            element(
                "head",
                '<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                element("title", escape(title)),
                STYLE,
                PAGE_STYLE,
            ),
            "<body>",
            element("header", element("h1", escape(title)), _summary(sections)),
            _contents(sections),
            "<main>",
            *(_section(number, section) for number, section in enumerate(sections, 1)),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _summary(sections: Sequence[Section]) -> str:
    counts = Counter(status for section in sections for _, _, status in section.figures)
    parts = [
        element("span", _mark(status), f" {_counted(counts[status], status)}", class_="count")
        for status in STATUSES
        if counts[status]
    ]
    return element("p", " ".join(parts), class_="summary") if parts else ""


def _counted(count: int, status: str) -> str:
    return f"{count} {status if count == 1 else status.replace('differs', 'differ')}"


def _contents(sections: Sequence[Section]) -> str:
    entries = [
        element(
            "li",
            element("a", escape(section.heading), href=f"#section-{number}"),
            " ",
            element("span", *_marks(section), class_="marks"),
        )
        for number, section in enumerate(sections, 1)
    ]
    return element("nav", element("h2", "Contents"), element("ol", *entries)) if entries else ""


def _marks(section: Section) -> Iterator[str]:
    for caption, _, status in section.figures:
        yield _mark(status, f"{caption}: {status}")


def _mark(status: str, text: str = "") -> str:
    """Returns the mark of a status, with its meaning for screen readers and on hovering."""
    if not text:
        return element("span", STATUSES[status], class_=f"mark {_class(status)}", aria_hidden="true")
    return element(
        "span", STATUSES[status], class_=f"mark {_class(status)}", role="img", title=text, aria_label=text
    )


def _class(status: str) -> str:
    return status.split()[0]


def _section(number: int, section: Section) -> str:
    paragraphs = [each.strip() for each in section.text.split("\n\n") if each.strip()]
    figures = [_figure(caption, svg, status) for caption, svg, status in section.figures]
    return element(
        "section",
        element("h2", escape(section.heading)),
        *(element("p", escape(paragraph)) for paragraph in paragraphs),
        element("div", *figures, class_="figures") if figures else "",
        id=f"section-{number}",
    )


def _figure(caption: str, svg: str, status: str) -> str:
    # The page has the style of drawings only once.
    drawing = svg.replace(STYLE, "", 1)
    label = element("span", _mark(status), f" {status}", class_="status")
    scrolled = element("div", drawing, class_="drawing", tabindex="0", role="group", aria_label=caption)
    caption_line = element("figcaption", element("b", escape(caption)), " ", label)
    return element("figure", scrolled if svg else "", caption_line)
