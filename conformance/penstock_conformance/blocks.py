"""Cuts the text of a transcript into blocks: a title, and the lines below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock_conformance.malformed import Malformed

_COMMENT = re.compile(r"(?:^|\s+)#(?: .*)?$")


class Line(NamedTuple):
    """A line without its comment.

    Attributes:
        place: Its file and number, such as ``fixed.transcript:3``.
        text: Without the white space around it; empty for a blank line.
    """

    place: str
    text: str


@dataclass
class Block:
    """A scenario or a recording, before its lines are understood.

    Attributes:
        place: Where its title is.
        title: Its title.
        is_recording: Whether it is a recording, which scenarios share.
        lines: What follows, blank lines included.
    """

    place: str
    title: str
    is_recording: bool
    lines: list[Line] = field(default_factory=list)


def blocks_of(name: str, text: str) -> Iterator[Block]:
    """The blocks of a file.

    Args:
        name: The file's name, for errors.
        text: What is in it.

    Raises:
        Malformed: Something stands before the first title.

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
                f"{line.text!r} belongs to nothing", hint="open a scenario with `= Title`", place=line.place
            )
        # A comment leaves no blank line behind, which would end the settings.
        elif block and (line.text or not raw.strip()):
            block.lines.append(line)
    if block:
        yield block
