"""Draws the steps of a pipeline: as SVG, as HTML for a notebook, or as Mermaid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from penstock.diagrams.colours import render_colours
from penstock.diagrams.markup import element, escape, measure_text, shorten
from penstock.diagrams.steps import StepView, fold_composite

_HEIGHT, _GAP, _BETWEEN, _MARGIN = 38.0, 24.0, 14.0, 12.0
_WIDTH_MIN, _WIDTH_MAX = 120.0, 260.0
_LABEL_MAX = 36
_LABEL, _SMALL = 12.0, 11.0

_STYLE = """
.penstock-graph{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.penstock-graph .paper{fill:var(--paper)}
.penstock-graph text{fill:var(--ink);font-size:12px;text-anchor:middle}
.penstock-graph .small{fill:var(--quiet);font-size:11px}
.penstock-graph rect.step{fill:var(--paper);stroke:var(--line)}
.penstock-graph rect.end{stroke:var(--quiet)}
.penstock-graph path{stroke:var(--quiet);fill:none}
.penstock-graph .side{stroke-dasharray:4 3}
"""


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    width: float


Facts = Mapping[str, Sequence[str]]
"""Lines about steps, by their labels."""


def svg_of(steps: Sequence[StepView], title: str = "", facts: Facts = MappingProxyType({})) -> str:
    """Returns the steps as an ``<svg>`` element: each below those that it reads, side inputs dashed; light and dark.

    Args:
        steps: The steps.
        title: The title of the drawing.
        facts: What else is said of a step where the pointer rests on it.

    >>> drawn = svg_of([StepView("Read", "Read"), StepView("<b>", "ParDo", ("Read",))])
    >>> drawn.count("<rect"), "<b>" in drawn
    (3, False)
    """
    rows = _rows(steps)
    widths = [sum(map(_width, row)) + _BETWEEN * (len(row) - 1) for row in rows]
    whole = max(widths, default=0.0) + 2 * _MARGIN
    boxes: dict[str, _Box] = {}
    for number, (row, width) in enumerate(zip(rows, widths, strict=True)):
        left = (whole - width) / 2
        for step in row:
            boxes[step.label] = _Box(left, _MARGIN + number * (_HEIGHT + _GAP), _width(step))
            left += _width(step) + _BETWEEN
    height = 2 * _MARGIN + len(rows) * (_HEIGHT + _GAP) - _GAP
    return element(
        "svg",
        element("title", escape(title)) if title else "",
        element("style", render_colours(".penstock-graph") + _STYLE.replace("\n", "")),
        element("rect", class_="paper", width=whole, height=height),
        *_edges(steps, boxes),
        *(_box(step, boxes[step.label], facts.get(step.label, ())) for step in steps),
        xmlns="http://www.w3.org/2000/svg",
        class_="penstock-graph",
        viewBox=f"0 0 {whole:g} {height:g}",
        width=whole,
        height=height,
        role="img",
    )


def _rows(steps: Sequence[StepView]) -> list[list[StepView]]:
    """The steps by the length of the longest way to them; a source stands just above the first step that reads it."""
    depths: dict[str, int] = {}
    for step in steps:
        before = [depths[label] for label in (*step.inputs, *step.side_inputs) if label in depths]
        depths[step.label] = max(before, default=-1) + 1
    for step in steps:
        if not step.inputs and not step.side_inputs:
            readers = [each for each in steps if step.label in (*each.inputs, *each.side_inputs)]
            depths[step.label] = max(0, min((depths[each.label] for each in readers), default=1) - 1)
    rows: list[list[StepView]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    for step in steps:
        rows[depths[step.label]].append(step)
    return rows


def _width(step: StepView) -> float:
    widths = (measure_text(_name(step), _LABEL), measure_text(_below(step), _SMALL))
    return min(_WIDTH_MAX, max(_WIDTH_MIN, *widths) + 20)


def _name(step: StepView) -> str:
    return shorten(step.label.rpartition("/")[2] or step.label, _LABEL_MAX)


def _below(step: StepView) -> str:
    path = step.label.rpartition("/")[0]
    kind = f"{step.kind}, {step.windowing}" if step.windowing else step.kind
    return shorten(f"{path.replace('/', ' / ')} · {kind}" if path else kind, _LABEL_MAX)


def _box(step: StepView, box: _Box, facts: Sequence[str]) -> str:
    is_end = step.kind not in ("ParDo", "Flatten", "AssignWindows", "Reshuffle")
    middle = box.left + box.width / 2
    return element(
        "g",
        element("title", escape("\n".join((f"{step.label} = {step.kind}", *facts)))),
        element(
            "rect",
            class_="step end" if is_end else "step",
            x=box.left,
            y=box.top,
            width=box.width,
            height=_HEIGHT,
            rx=5,
        ),
        element("text", escape(_name(step)), x=middle, y=box.top + 16),
        element("text", escape(_below(step)), class_="small", x=middle, y=box.top + 30),
    )


def _edges(steps: Iterable[StepView], boxes: Mapping[str, _Box]) -> list[str]:
    drawn = []
    for step in steps:
        to = boxes[step.label]
        for labels, kind in ((step.inputs, None), (step.side_inputs, "side")):
            for box in (boxes[label] for label in labels if label in boxes):
                start, end = box.left + box.width / 2, to.left + to.width / 2
                below, middle = box.top + _HEIGHT, (box.top + _HEIGHT + to.top) / 2
                path = f"M{start:g} {below:g}C{start:g} {middle:g} {end:g} {middle:g} {end:g} {to.top:g}"
                drawn.append(element("path", d=path, class_=kind))
    return drawn


def html_of(steps: Sequence[StepView], title: str = "", facts: Facts = MappingProxyType({})) -> str:
    """Returns the steps for a notebook: composites folded into one box each, and all steps on a click; see `svg_of`.

    >>> html_of([]), "<details>" in html_of([StepView("Top/Pair", "ParDo"), StepView("Top/Sum", "CombinePerKey")])
    ('<p>no steps</p>', True)
    """
    if not steps:
        return "<p>no steps</p>"
    shown = fold_composite(steps)
    if len(shown) == len(steps):
        return svg_of(steps, title, facts)
    summary = element("summary", f"all {len(steps)} steps")
    return svg_of(shown, title, facts) + element("details", summary, svg_of(steps, title, facts))


def mermaid_of(steps: Sequence[StepView]) -> str:
    """Returns the steps in the language of Mermaid, which many documents draw.

    >>> print(mermaid_of([StepView("Read", "Read"), StepView('Say "a"', "ParDo", ("Read",))]))
    flowchart TD
        s0["Read"]
        s1["Say #quot;a#quot;"]
        s0 --> s1
    """
    names = {step.label: f"s{number}" for number, step in enumerate(steps)}
    lines = ["flowchart TD", *(f'    {names[step.label]}["{_of_mermaid(step.label)}"]' for step in steps)]
    for step in steps:
        lines += [f"    {names[label]} --> {names[step.label]}" for label in step.inputs if label in names]
        lines += [
            f"    {names[label]} -.-> {names[step.label]}" for label in step.side_inputs if label in names
        ]
    return "\n".join(lines)


def _of_mermaid(text: str) -> str:
    replaced = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "".join(replaced.get(each, each if each.isprintable() else " ") for each in text)
