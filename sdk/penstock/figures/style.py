"""How drawings look, as CSS: colours for light and dark, and the sizes of fonts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.figures.markup import element
from penstock.figures.moments import LABEL_SIZE

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
"""The size of the word beside a value, as a share of the value's."""

_LIGHT = {
    "paper": "#fffefa",
    "ink": "#1d1f24",
    "quiet": "#63605a",
    "line": "#dcd7cc",
    "early": "#0a5fa3",
    "on-time": "#08734f",
    "late": "#b34700",
    "unknown": "#55565c",
    "back": "#97266d",
}
_DARK = {
    "paper": "#17191d",
    "ink": "#eeece6",
    "quiet": "#a9a69e",
    "line": "#373a41",
    "early": "#74b8f4",
    "on-time": "#52cb9f",
    "late": "#f79a56",
    "unknown": "#b6b8be",
    "back": "#f097cb",
}
_RULES = """
.penstock-figure{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
.penstock-figure .paper{fill:var(--paper)}
.penstock-figure text{fill:var(--ink)}
.penstock-figure .label,.penstock-figure .legend,.penstock-figure .note,.penstock-figure .name{fill:var(--quiet)}
.penstock-figure .grid{stroke:var(--line);stroke-width:1;fill:none}
.penstock-figure .axis{stroke:var(--quiet);stroke-width:1;fill:none}
.penstock-figure .ideal{stroke:var(--quiet);stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.penstock-figure .watermark{stroke:var(--ink);stroke-width:1.7;stroke-linejoin:round;fill:none}
.penstock-figure .arrow{fill:var(--ink)}
.penstock-figure .area{stroke-width:.8;stroke-opacity:.55}
.penstock-figure .edge{stroke-width:3.4;fill:none}
.penstock-figure .early.edge{stroke-width:2.4;stroke-dasharray:6 3}
.penstock-figure .late.edge{stroke-width:1.6}
.penstock-figure .back.edge{stroke-width:1.8;stroke-dasharray:2 3}
.penstock-figure .plate{fill:var(--paper);fill-opacity:.78}
.penstock-figure .word{font-weight:400;font-size:.8em}
.penstock-figure .strike{stroke:var(--back);stroke-width:1.2;fill:none}
.penstock-figure .input{fill:var(--paper);stroke:var(--ink);stroke-width:1.3}
.penstock-figure .dot{fill:var(--ink);stroke:var(--paper);stroke-width:.8}
.penstock-figure .ring{fill:none;stroke:var(--late);stroke-width:1.4}
.penstock-figure .minus{stroke:var(--back);stroke-dasharray:3 2}
.penstock-figure .gone{stroke:var(--quiet)}
.penstock-figure .cross{stroke:var(--quiet);stroke-width:1.6;fill:none}
.penstock-figure .value-gone{fill:var(--quiet)}
.penstock-figure .key{fill:var(--ink)}
"""
_TONE_RULES = """
.penstock-figure .NAME.area{fill:var(--NAME);stroke:var(--NAME)}
.penstock-figure .NAME.edge{stroke:var(--NAME)}
.penstock-figure .NAME.value{fill:var(--NAME)}
"""
_TONES = ("early", "on-time", "late", "unknown", "back")
_COLOUR = re.compile(r"([\w-]+):var\(--([\w-]+)\)")


def colours(selector: str) -> str:
    """The colours as custom properties of a selector: light ones, and where the reader wants that, dark ones.

    >>> colours(":root").startswith(":root{color-scheme:light dark;--paper:#")
    True
    """
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in of_scheme.items()) for of_scheme in (_LIGHT, _DARK)
    )
    return (
        f"{selector}{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{{selector}{{{dark}}}}}"
    )


def _rules() -> str:
    """The rules, with light colours for renderers that know no custom properties: they pass the second of two over."""
    rules = _RULES + "".join(_TONE_RULES.replace("NAME", name) for name in _TONES)
    return _COLOUR.sub(lambda found: f"{found[1]}:{_LIGHT[found[2]]};{found[0]}", rules.replace("\n", ""))


def _fonts() -> str:
    return "".join(
        f".penstock-figure .{name}{{font-size:{size:g}px{';font-weight:600' if name in BOLD else ''}}}"
        for name, size in FONT_SIZES.items()
    )


STYLE = element("style", colours(".penstock-figure"), _rules(), _fonts())
"""The style that every drawing brings with it."""
