"""SVG and HTML as text: elements, numbers, escaping, and the approximate width of text."""

from __future__ import annotations

import html
import re
import unicodedata

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MINUS = "\u2212"
"""The minus sign, which is wider than a hyphen."""

_NARROW = frozenset("iljtfrI.,:;'|!()[]{} ·")
_WIDE = frozenset("mwMWQO@%—…")


def escape(text: str) -> str:
    r"""Returns a text for XML and HTML, also within quotes; characters that XML does not allow are replaced.

    >>> escape('<a href="x">&\x00')
    '&lt;a href=&quot;x&quot;&gt;&amp;�'
    """
    return html.escape(_NOT_XML.sub("\ufffd", text))


def format_number(number: float) -> str:
    """Returns a number with at most one decimal: a drawing needs no more, and its file stays small.

    >>> format_number(12.04), format_number(0.25), format_number(-0.01)
    ('12', '0.2', '0')
    """
    return f"{round(number, 1) + 0.0:.1f}".removesuffix(".0")


def element(name: str, *content: str, **attributes: str | float | None) -> str:
    """Returns an element of SVG or HTML.

    Content is markup already. Values of attributes are escaped, numbers are rounded, and None omits an attribute. An
    underscore in a name stands for a hyphen, and one at its end is dropped.

    >>> element("text", escape("a < b"), x=1.25, class_="key", id=None)
    '<text x="1.2" class="key">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="'
        f'{escape(value) if isinstance(value, str) else format_number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def measure_text(text: str, size: float, is_bold: bool = False) -> float:
    """Returns the approximate width of a text in a common sans-serif font of a size, rather too large than too small.

    >>> round(measure_text("12:05", 10), 1)
    28.5
    """
    return size * sum(map(_character_width, text)) * (1.1 if is_bold else 1.0)


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.33
    if character in _WIDE:
        return 0.95
    if character.isascii() and character.isprintable():
        return 0.72 if character.isupper() else 0.63
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.72


def shorten(text: str, length: int) -> str:
    """Returns a text, cut to a maximum length.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"
