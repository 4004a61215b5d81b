"""Completes examples with prompts as a prompt of Python shows them, so that a copy of them can be pasted."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"(^```pycon[^\n]*\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
_OPENS_A_BLOCK = re.compile(r">>> (?:async|class|def|for|if|try|while|with|@)\b|>>> @")


def end_statements_in_page(page: str) -> str:
    """Returns a page of Markdown whose examples end each statement with a block by an empty line, `...`."""
    return _BLOCK.sub(lambda found: found[1] + end_statements(found[2]) + found[3], page)


def end_statements(example: str) -> str:
    r"""Returns an example in which each statement with a block ends with an empty line, and has no other.

    Up to Python 3.12, an empty line ends such a statement at a prompt, and nothing else does.

    >>> end_statements(">>> def one():\n...     return 1\n>>> one()\n1\n").splitlines()
    ['>>> def one():', '...     return 1', '...', '>>> one()', '1']
    """
    lines: list[str] = []
    has_block = False
    for line, following in _pairs(example.splitlines()):
        if line.startswith(">>> "):
            has_block = _OPENS_A_BLOCK.match(line) is not None
        if has_block and line == "..." and following.startswith("..."):
            continue
        lines.append(line)
        if has_block and line.startswith("... ") and not following.startswith("..."):
            lines.append("...")
    return "".join(f"{line}\n" for line in lines)


def _pairs(lines: list[str]) -> zip[tuple[str, str]]:
    """Returns each line with the next one."""
    return zip(lines, [*lines[1:], ""], strict=True)
