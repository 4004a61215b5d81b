"""Cuts the text of a transcript into blocks: a title, and the lines below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock_conformance.malformed import Malformed

_COMMENT = re.compile(r"(?:^|\s+)#(?: .*)?$")


class Line(NamedTuple):
    """A line without its comment and without the white space around it."""

    place: str  # Its file and number, such as ``fixed.transcript:3``.
    text: str


@dataclass
class Block:
    """A scenario, or a recording that scenarios share, before its lines are interpreted."""

    place: str
    title: str
    is_recording: bool
    lines: list[Line] = field(default_factory=list)


def blocks_of(name: str, text: str) -> Iterator[Block]:
    """The blocks of a file, whose name is for errors.

    >>> text = '''
    ... # Why.
    ... = One
    ... source: us
    ... ~ Two
    ... '''
    >>> [(block.title, block.is_recording, len(block.lines)) for block in blocks_of("a.transcript", text)]
    [('One', False, 1), ('Two', True, 0)]
    """
    block: Block | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = Line(f"{name}:{number}", _COMMENT.sub("", raw).strip())
        if raw.startswith(("= ", "~ ")):
            if block:
                yield block
            block = Block(line.place, line.text[2:].strip(), raw.startswith("~"))
        elif line.text and block is None:
            raise Malformed(
                f"{line.text!r} is outside a scenario", hint="begin one with `= Title`", place=line.place
            )
        # A comment leaves no blank line behind, which would end the settings.
        elif block and (line.text or not raw.strip()):
            block.lines.append(line)
    if block:
        yield block
