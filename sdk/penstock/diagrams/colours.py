"""The colours of drawings, for light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

LIGHT: Mapping[str, str] = {
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
DARK: Mapping[str, str] = {
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


Scheme = Literal["both", "light", "dark"]
"""The colours of a drawing; with both, those that the reader prefers."""


def render_colours(selector: str, scheme: Scheme = "both") -> str:
    """Returns the colours as custom properties of a selector: light ones, or dark ones if the reader prefers them.

    >>> render_colours(":root").startswith(":root{color-scheme:light dark;--paper:#")
    True
    >>> render_colours(":root", "dark")[:45], "prefers" in render_colours(":root", "dark")
    (':root{color-scheme:dark;--paper:#17191d;--ink', False)
    """
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in of_scheme.items()) for of_scheme in (LIGHT, DARK)
    )
    if scheme != "both":
        return f"{selector}{{color-scheme:{scheme};{dark if scheme == 'dark' else light}}}"
    return (
        f"{selector}{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{{selector}{{{dark}}}}}"
    )
