"""Patterns of SQL as regular expressions of Python: LIKE, and Java's regular expressions."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import NoReturn

from penstock.scalars.casting import refuse

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_ANY_CHARACTER = f"[^{_LINE_ENDS}]"
_END = r"(?:(?<!\r)(?=\n\Z)|(?=(?:\r\n|[\r\x85\u2028\u2029])?\Z))"
_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]+(?:,[0-9]*)?\}")
_GROUP = re.compile(r"\((?:\?(?::|=|!|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>))?")
_ITEM = r"(?:[^\[\]\\&]|\\[dDwWsSnrtf]|\\[^a-zA-Z0-9\s])"
_CLASS = re.compile(rf"\[\^?{_ITEM}+\]")
_KEPT_ESCAPE = re.compile(r"\\(?:[dDwWsSnrtfA]|[^a-zA-Z0-9\s])")


@functools.lru_cache(256)
def compile_like(pattern: str, escape: str) -> re.Pattern[str]:
    r"""Returns the regular expression of a pattern of LIKE, for the whole text.

    Args:
        pattern: The pattern: % stands for any text, and _ for one character.
        escape: The character before which these two, or the character itself, stand for themselves.

    >>> compile_like(r"50\%_", "\\").fullmatch("50%!") is not None
    True
    """
    parts = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            place += 1
            if place == len(pattern) or pattern[place] not in ("%", "_", escape):
                refuse(
                    "in a pattern of LIKE, the escape character precedes something other than %, _ and itself",
                    "write the escape character twice",
                )
            parts.append(re.escape(pattern[place]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        place += 1
    return re.compile("".join(parts), re.DOTALL)


@functools.lru_cache(256)
def compile_java(pattern: str) -> re.Pattern[str]:
    r"""Returns the regular expression that Java's reading of a pattern means.

    Raises:
        ArithmeticError: Python cannot read it.

    >>> compile_java(r"^\d+$").search("12\n") is not None
    True
    """
    text, _ = translate_java(pattern)
    try:
        with warnings.catch_warnings():
            # Python warns of what a later version may read differently.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError):
        refuse(
            "a regular expression of an SQL expression cannot be read",
            "use what Java's and Python's regular expressions share",
        )


@functools.lru_cache(256)
def translate_java(pattern: str) -> tuple[str, bool]:
    r"""Returns a regular expression of Java for Python, and whether it surely means the same.

    >>> translate_java("a.c"), translate_java(r"\bx")
    (('a[^\\n\\r\\x85\\u2028\\u2029]c', True), ('\\bx', False))
    """
    parts = []
    sure = True
    place = 0
    if pattern.startswith("(?i)"):
        parts.append("(?i)")
        place = 4
        # Java and Python fold all letters except these differently.
        sure = pattern.isascii()
    after_item = False
    while place < len(pattern):
        character = pattern[place]
        text = character
        if character == "\\":
            escape = _KEPT_ESCAPE.match(pattern, place)
            text = escape.group() if escape else pattern[place : place + 2]
            sure = sure and escape is not None
            place += len(text)
            text = r"\Z" if text == r"\z" else text
        elif character == "[":
            found = _CLASS.match(pattern, place)
            text = found.group() if found else character
            sure = sure and found is not None
            place += len(text)
        elif character == "(":
            group = _GROUP.match(pattern, place)
            assert group is not None
            text = group.group()
            place += len(text)
            sure = sure and pattern[place : place + 1] != "?"
            text = f"(?P<{group['name']}>" if group["name"] else text
        elif quantifier := _QUANTIFIER.match(pattern, place):
            text = quantifier.group()
            place += len(text)
            sure = sure and after_item
            if pattern[place : place + 1] == "?":
                text += "?"
                place += 1
            parts.append(text)
            after_item = False
            continue
        else:
            place += 1
            sure = sure and character not in "]{}"
            text = {".": _ANY_CHARACTER, "$": _END}.get(character, character)
        after_item = character not in "(|^$"
        parts.append(text)
    return "".join(parts), sure


def split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Returns the parts of a text between matches of a regular expression.

    Args:
        text: The text.
        pattern: The regular expression.
        limit: The number of parts, the last of which has the rest; 0 or less for all.

    >>> split("a1b2c", "[0-9]"), split("abc", ""), split("a,b,c", ",", 2)
    (['a', 'b', 'c'], ['a', 'b', 'c'], ['a', 'b,c'])
    """
    if not pattern and text:
        parts = list(text)
        return (
            parts if limit <= 0 or limit >= len(parts) else parts[: limit - 1] + ["".join(parts[limit - 1 :])]
        )
    parts = []
    start = 0
    for found in compile_java(pattern).finditer(text):
        if 0 < limit <= len(parts) + 1:
            break
        if found.end() == 0:
            # No character precedes an empty match.
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    return [*parts, text[start:]]


@functools.lru_cache(256)
def replacement(template: str, groups: int) -> str | Callable[[re.Match[str]], str]:
    r"""Returns the replacement of a match: $1 is the first group, and \ makes the next character stand for itself.

    Args:
        template: The replacement as Java reads it.
        groups: The number of groups of the regular expression.
    """
    try:
        parts = _replacement_parts(template, groups)
    except ArithmeticError:
        # Java reads a replacement at the first match.
        return lambda found: _refuse_replacement()

    def replace(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found.group(part) or "" for part in parts)

    return replace


def _replacement_parts(template: str, groups: int) -> list[str | int]:
    """Returns the strings and the numbers of groups that a replacement consists of."""
    parts: list[str | int] = []
    place = 0
    while place < len(template):
        character = template[place]
        place += 1
        if character == "\\":
            if place == len(template):
                _refuse_replacement()
            parts.append(template[place])
            place += 1
        elif character == "$":
            if not template[place : place + 1].isdecimal():
                _refuse_replacement()
            number = int(template[place])
            place += 1
            if number > groups:
                _refuse_replacement()
            while template[place : place + 1].isdecimal() and number * 10 + int(template[place]) <= groups:
                number = number * 10 + int(template[place])
                place += 1
            parts.append(number)
        else:
            parts.append(character)
    return parts


def _refuse_replacement() -> NoReturn:
    refuse(
        "a replacement of REGEXP_REPLACE names a group that the regular expression does not have, or ends too early",
        r"write \$ and \\ for the characters $ and \ ",
    )
