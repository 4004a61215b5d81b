"""A drawing of a run that moves: processing time rises, and what has not happened yet is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

CYCLE_SECONDS = 14
RISE_PERCENT = 80.0
"""The share of a cycle in which time rises; then the complete drawing stays."""

BEGIN_SECONDS = 4
"""The moment of the cycle at which the drawing begins, so that there is something to see at once."""

_AXIS = re.compile(r'<path d="M([\d.]+) ([\d.]+)V([\d.]+)H[\d.]+" class="axis"/>')
_PANE = re.compile(
    r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" class="area ([\w-]+)"[^>]*>'
    r"<title>(\S+) in "
)
_VALUE = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" class="value ([\w-]+)"( xml:space="preserve")?>([^<]+)')


class Plot(NamedTuple):
    """The area of a drawing between its axes."""

    left: float
    top: float
    bottom: float

    def percent_at(self, y: float) -> float:
        """Returns the percentage of a cycle after which time has risen to a height."""
        return round((self.bottom - y) / (self.bottom - self.top) * RISE_PERCENT, 1)


def plot_of(svg: str) -> Plot:
    """Returns the area between the axes of a drawing with one panel."""
    [(left, top, bottom)] = _AXIS.findall(svg)
    return Plot(float(left), float(top), float(bottom))


def percents_of_values(svg: str) -> list[float]:
    """Returns, for each value in the order of the drawing, the percentage of a cycle after which its pane fires."""
    plot = plot_of(svg)
    return [plot.percent_at(_top_of_pane(svg, value)) for value in _VALUE.finditer(svg)]


def _top_of_pane(svg: str, value: re.Match[str]) -> float:
    x, y, kind, _, text = value.groups()
    [top] = [
        float(top)
        for left, top, width, height, timing, number in _PANE.findall(svg)
        if (timing, number) == (kind, text)
        and float(left) <= float(x) <= float(left) + float(width)
        and float(top) <= float(y) <= float(top) + float(height)
    ]
    return top


def animate(svg: str) -> str:
    """Returns a drawing of one panel that plays its run again and again, with CSS alone.

    A curtain hides what lies above the present. A value appears when its pane fires. If the reader prefers less
    motion, the drawing is complete and does not move.
    """
    plot = plot_of(svg)
    count = iter(range(len(percents_of_values(svg))))
    moving = _VALUE.sub(
        lambda found: found[0].replace('class="value', f'class="v{next(count)} value', 1), svg
    )
    first = moving.index('<text x="', moving.index("</g><text"))
    height = plot.bottom - plot.top + 10
    place = f'x="{plot.left + 1:.1f}" y="{plot.top - 10:.1f}" width="600" height="{height:.1f}"'
    curtain = (
        f'<rect class="curtain paper" {place}/><path class="now" d="M{plot.left:.1f} {plot.bottom:.1f}H600"/>'
    )
    style = "".join(_rules(plot, percents_of_values(svg)))
    moving = moving[:first] + curtain + moving[first:]
    return moving.replace("</style>", f"{style}</style>", 1)


def _rules(plot: Plot, percents: list[float]) -> Iterator[str]:
    yield f".curtain{{transform:scaleY(0);transform-origin:0 {plot.top - 10:.1f}px}}"
    yield ".now{stroke:#63605a;stroke:var(--quiet);stroke-width:1;opacity:0}"
    names = ["curtain", "now", *(f"v{number}" for number in range(len(percents)))]
    rules = "".join(
        f".{name}{{animation:{name} {CYCLE_SECONDS}s linear -{BEGIN_SECONDS}s infinite}}" for name in names
    )
    yield f"@media (prefers-reduced-motion:no-preference){{{rules}}}"
    share = (plot.bottom - plot.top) / (plot.bottom - plot.top + 10)
    up = plot.bottom - plot.top
    # The curtain reaches above the plot, so it opens that far last.
    yield (
        f"@keyframes curtain{{0%{{transform:scaleY(1)}}{RISE_PERCENT}%{{transform:scaleY({1 - share:.4f})}}"
        f"{RISE_PERCENT + 1}%,100%{{transform:scaleY(0)}}}}"
    )
    yield (
        f"@keyframes now{{0%{{opacity:1;transform:translateY(0)}}{RISE_PERCENT}%{{opacity:1;"
        f"transform:translateY(-{up:.1f}px)}}{RISE_PERCENT + 1}%,100%{{opacity:0;transform:translateY(-{up:.1f}px)}}}}"
    )
    for number, percent in enumerate(percents):
        yield f"@keyframes v{number}{{0%,{percent}%{{opacity:0}}{round(percent + 1, 1)}%,100%{{opacity:1}}}}"
