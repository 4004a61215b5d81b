"""Tables for people, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are aligned; all but the first are numbers.

    >>> print(markdown(("who", "seconds"), [("penstock", "1.5"), ("by hand", "12")]))
    | who      | seconds |
    | -------- | ------: |
    | penstock |     1.5 |
    | by hand  |      12 |
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    rule = [
        f"{'-' * width}" if number == 0 else f"{'-' * (width - 1)}:" for number, width in enumerate(widths)
    ]
    return "\n".join([line(head), line(rule), *map(line, rows)])
