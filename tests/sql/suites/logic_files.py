"""Reads files of sqllogictest: statements, and queries with their results.

The form of these files is public: https://www.sqlite.org/sqllogictest. The suites themselves are not part of this
project; `play.py` reads them from a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_UNREAD = (
    "require",
    "loop",
    "foreach",
    "concurrentloop",
    "include",
    "load",
    "restart",
    "system",
    "mode",
    "halt",
)
"""Words after which a file means more than its statements, or nothing."""


@dataclass(frozen=True)
class Statement:
    """A statement.

    Attributes:
        text: It.
        is_ok: True if it must succeed.
        line: The number of its line.
    """

    text: str
    is_ok: bool
    line: int


@dataclass(frozen=True)
class LogicQuery:
    """A query.

    Attributes:
        text: It.
        types: A letter for each column: I, R, or T and others.
        sort: How the rows are ordered before they are compared: ``nosort``, ``rowsort`` or ``valuesort``.
        lines: The lines of the result.
        digest: In place of lines, the number of values and their MD5.
        line: The number of its line.
    """

    text: str
    types: str
    sort: str
    lines: tuple[str, ...]
    digest: tuple[int, str] | None
    line: int


def records_of(text: str, dialect: str) -> Iterator[Statement | LogicQuery | str]:
    """The records of a file as a dialect reads them; a text is the reason why all after it is not read.

    >>> made = "statement ok\\nCREATE TABLE t(a INTEGER)\\n\\nskipif here\\nquery I\\nSELECT a\\nFROM t\\n----\\n1\\n"
    >>> [type(each).__name__ for each in records_of(made, "here")]
    ['Statement']
    >>> [*records_of(made, "there")][1].lines
    ('1',)
    """
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        is_skipped = False
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith(("#", "skipif", "onlyif"))):
            words = lines[at].split()
            if words[:1] == ["skipif"]:
                is_skipped |= words[1] == dialect
            elif words[:1] == ["onlyif"]:
                is_skipped |= words[1] != dialect
            at += 1
        if at >= len(lines):
            return
        start, words = at, lines[at].split()
        at += 1
        if words[0] in _UNREAD and not is_skipped:
            yield f"the word '{words[0]}' in a file"
            return
        if words[0] not in ("statement", "query"):
            continue
        body: list[str] = []
        while at < len(lines) and lines[at].strip() and not lines[at].startswith("----"):
            body.append(lines[at].split(" #")[0] if dialect == "sqlite" else lines[at])
            at += 1
        found: list[str] = []
        if at < len(lines) and lines[at].startswith("----"):
            at += 1
            while at < len(lines) and lines[at].strip():
                found.append(lines[at])
                at += 1
        if is_skipped:
            continue
        query = "\n".join(body).rstrip().rstrip(";")
        if words[0] == "statement":
            yield Statement(query, words[1:2] == ["ok"], start + 1)
        elif words[1:2] != ["error"]:
            hashed = _HASHED.fullmatch(found[0].strip()) if len(found) == 1 else None
            digest = (int(hashed[1]), hashed[2]) if hashed else None
            sort = words[2] if len(words) > 2 and words[2] in ("nosort", "rowsort", "valuesort") else "nosort"
            types = words[1] if len(words) > 1 else ""
            yield LogicQuery(query, types, sort, tuple([] if hashed else found), digest, start + 1)
