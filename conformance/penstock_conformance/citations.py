"""The citations in a source line, as names: figures, examples and tables of the paper and the book, and numbered
rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_THING = re.compile(r"\b(figure|example|table)s?\s+((?:\d+(?:-\d+)?(?:, | and | to )?)+)")
_RULE = re.compile(r"\b([CDMPS]\d*)-(\d+)([a-z]?)(?: to \1-(\d+))?\b")
_NUMBER = re.compile(r"(\d+)(?:-(\d+))?( to )?")


def names_in(text: str) -> tuple[str, ...]:
    """The names that a text cites, each once, in order.

    Figures, examples and tables with two numbers are in the book, figures with one number in the paper. Rules are in
    the inventory of capabilities: ``C-100`` is a rule of the paper, ``C2-13`` of the book, ``P-24`` of the patent.

    >>> names_in("paper 2.4, figures 10 to 12; C-120 to C-122; Streaming Systems, figures 2-7 and 4-3")
    ('figure 10', 'figure 11', 'figure 12', 'figure 2-7', 'figure 4-3', 'C-120', 'C-121', 'C-122')
    """
    things = (name for match in _THING.finditer(text) for name in _things(match[1], match[2]))
    rules = (name for match in _RULE.finditer(text) for name in _rules(match))
    return tuple(dict.fromkeys((*things, *rules)))


def _things(kind: str, numbers: str) -> Iterator[str]:
    """The names in a list such as ``7 and 8``, ``10 to 12`` or ``2-7, 4-3``."""
    first: int | None = None
    for whole, within, goes_on in _NUMBER.findall(numbers):
        if within:
            yield f"{kind} {whole}-{within}"
            continue
        for number in range(int(whole) if first is None else first + 1, int(whole) + 1):
            yield f"{kind} {number}"
        first = int(whole) if goes_on else None


def _rules(match: re.Match[str]) -> Iterator[str]:
    series, first, letter, last = match.groups()
    for number in range(int(first), int(last or first) + 1):
        yield f"{series}-{number:0{len(first)}}{letter}"


def key_of(name: str) -> str:
    """A common form of all spellings of a name, which may omit the word "figure" and zeros before a number.

    >>> key_of("Figure 2-7") == key_of("2-7"), key_of("paper 7"), key_of("P-04") == key_of("p-4")
    (True, 'figure 7', True)
    """
    text = re.sub(r"^(?:paper|book|patent)\b[, ]*", "", " ".join(name.lower().split()))
    text = re.sub(r"-0+(?=\d)", "-", text)
    return f"figure {text}" if re.fullmatch(r"\d+(?:-\d+)?", text) else text


def is_figure(name: str) -> bool:
    """True if a name belongs to a figure."""
    return name.startswith("figure ")


def order_of(name: str) -> tuple[int, str, int, int, str]:
    """Sorts names as people do: figures of the paper, figures of the book, then rules by series and number.

    >>> sorted(["S-3", "figure 2-11", "C2-13", "figure 2-7", "figure 10", "C-100"], key=order_of)
    ['figure 10', 'figure 2-7', 'figure 2-11', 'C-100', 'C2-13', 'S-3']
    """
    if match := re.fullmatch(r"(figure|example|table) (\d+)(?:-(\d+))?", name):
        kind, first, second = match.groups()
        rank = ("figure", "table", "example").index(kind)
        return (2 * rank + (second is not None), "", int(first), int(second or 0), "")
    if match := re.fullmatch(r"([A-Z])(\d*)-(\d+)([a-z]?)", name):
        series, chapter, number, letter = match.groups()
        return (6, series, int(chapter or 0), int(number), letter)
    return (7, name, 0, 0, "")
