"""The style of drawings, as CSS: the colours of its parts, and the sizes of fonts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.diagrams.colours import LIGHT, render_colours
from penstock.diagrams.markup import element
from penstock_figures.moments import LABEL_SIZE

FONT_SIZES: Mapping[str, float] = {
    "label": LABEL_SIZE,
    "name": 12,
    "key": 12,
    "inside": 11.5,
    "beside": 11.5,
    "value": 14,
    "legend": 11.5,
    "note": 11.5,
}
"""The size of the font of each class of text."""

BOLD = frozenset({"key", "value"})
"""The classes of text that are bold."""

WORD_SHARE = 0.8
"""The size of the word beside a value, relative to the value."""

_TONES = ("early", "on-time", "late", "unknown", "back")
"""The kinds of panes, each with its colour."""

_RULES = """
.penstock-figure{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
.penstock-figure .paper{fill:@paper}
.penstock-figure text{fill:@ink}
.penstock-figure .label,.penstock-figure .legend,.penstock-figure .note,.penstock-figure .name{fill:@quiet}
.penstock-figure .grid{stroke:@line;stroke-width:1;fill:none}
.penstock-figure .axis{stroke:@quiet;stroke-width:1;fill:none}
.penstock-figure .ideal{stroke:@quiet;stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.penstock-figure .watermark{stroke:@ink;stroke-width:1.7;stroke-linejoin:round;fill:none}
.penstock-figure .arrow{fill:@ink}
.penstock-figure .area{stroke-width:.8;stroke-opacity:.55}
.penstock-figure .edge{stroke-width:3.4;fill:none}
.penstock-figure .early.edge{stroke-width:2.4;stroke-dasharray:6 3}
.penstock-figure .late.edge{stroke-width:1.6}
.penstock-figure .back.edge{stroke-width:1.8;stroke-dasharray:2 3}
.penstock-figure .word{font-weight:400;font-size:.8em}
.penstock-figure .strike{stroke:@back;stroke-width:1.2;fill:none}
.penstock-figure .input{fill:@paper;stroke:@ink;stroke-width:1.3}
.penstock-figure .dot{fill:@ink;stroke:@paper;stroke-width:.8}
.penstock-figure .ring{fill:none;stroke:@late;stroke-width:1.4}
.penstock-figure .minus{stroke:@back;stroke-dasharray:3 2}
.penstock-figure .gone{stroke:@quiet}
.penstock-figure .cross{stroke:@quiet;stroke-width:1.6;fill:none}
.penstock-figure .value-gone{fill:@quiet}
.penstock-figure .key{fill:@ink}
"""
"""The rules; names that begin with ``@`` stand for colours."""

_RULES_OF_TONE = """
.penstock-figure .TONE.area{fill:@TONE;stroke:@TONE}
.penstock-figure .TONE.edge{stroke:@TONE}
.penstock-figure .TONE.value{fill:@TONE}
"""

# Renderers without paint-order would paint the outline over the text, which would make it illegible.
_HALO = """
@supports (paint-order:stroke){.penstock-figure .value,.penstock-figure .beside{paint-order:stroke;stroke:@paper;
stroke-width:3px;stroke-linejoin:round}}
"""


def _rules() -> str:
    """Returns all rules; each colour is also there as a plain value, for renderers without custom properties."""
    text = _RULES + "".join(_RULES_OF_TONE.replace("TONE", tone) for tone in _TONES)
    plain = re.sub(r"([a-z-]+):@([a-z-]+)", lambda m: f"{m[1]}:{LIGHT[m[2]]};{m[1]}:var(--{m[2]})", text)
    return plain.replace("\n", "") + _HALO.replace("@paper", "var(--paper)").replace("\n", "")


def _fonts() -> str:
    return "".join(
        f".penstock-figure .{name}{{font-size:{size:g}px{';font-weight:600' if name in BOLD else ''}}}"
        for name, size in FONT_SIZES.items()
    )


STYLE = element("style", render_colours(".penstock-figure"), _rules(), _fonts())
"""The style that every drawing contains."""
