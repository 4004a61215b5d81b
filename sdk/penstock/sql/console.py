"""Rows and changes as people read them: lines, aligned tables, and a table that stays in place on a terminal."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, TextIO

Order = tuple[tuple[str, bool, bool], ...]
"""The order of listed rows: names, whether they descend, and whether NULL is first."""

_BACK = "\x1b[{lines}F\x1b[J"
"""Moves the cursor to the beginning of a line above, and clears all below it."""


def format_change(change: Any) -> str:
    """Returns a change as a line: a row that is undone begins with a minus.

    >>> from penstock.elements.row import Row
    >>> format_change(Row(team="blue", total=3, Undo="undo"))
    '- blue | 3'
    """
    undone = False
    if isinstance(change, tuple) and len(change) == 2 and hasattr(change[0], "is_retraction"):
        undone, change = change[0].is_retraction, change[1]
    values = change.as_dict() if hasattr(change, "as_dict") else change._asdict()
    undone = undone or any(values.pop(name, "") == "undo" for name in ("Undo", "undo"))
    return f"{'-' if undone else '+'} {' | '.join(map(format_cell, values.values()))}"


def format_table(rows: Iterable[Any], order: Order = ()) -> Iterator[str]:
    r"""Rows as an aligned table.

    Args:
        rows: The rows.
        order: As `penstock.sql.transform.listing_order` returns it; equal rows are ordered by their cells.

    >>> from penstock.elements.row import Row
    >>> print("\n".join(format_table([Row(team="red", n=12), Row(team="blue", n=None)])))
    team | n
    -----+-----
    blue | NULL
    red  | 12
    (2 rows)
    """
    dicts = [row.as_dict() if hasattr(row, "as_dict") else row._asdict() for row in rows]
    if not dicts:
        yield "(0 rows)"
        return
    names = list(dicts[0])
    dicts.sort(key=lambda row: [format_cell(row[name]) for name in names])
    for name, descending, nulls_first in reversed(order):
        known = sorted(
            (row for row in dicts if row[name] is not None), key=itemgetter(name), reverse=descending
        )
        unknown = [row for row in dicts if row[name] is None]
        dicts = unknown + known if nulls_first else known + unknown
    yield from align_cells(names, [[format_cell(each[name]) for name in names] for each in dicts])
    yield f"({len(dicts)} row{'s' * (len(dicts) != 1)})"


def format_header(names: Iterable[str]) -> str:
    """Returns the names of columns, above lines of changes.

    >>> format_header(["team", "total"])
    '  team | total'
    """
    return f"  {' | '.join(names)}"


def align_cells(names: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yields the lines of a table.

    >>> list(align_cells(["team"], [["red"]]))
    ['team', '----', 'red']
    """
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    yield _aligned(names, widths)
    yield "-+-".join("-" * width for width in widths)
    for row in rows:
        yield _aligned(row, widths)


def _aligned(cells: list[str], widths: list[int]) -> str:
    return " | ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()


def format_cell(value: object) -> str:
    """Returns a value as the console prints it.

    >>> format_cell(None), format_cell(1.5), format_cell(True)
    ('NULL', '1.5', 'true')
    """
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


class TableOnScreen:
    """A table over a stream that stays in its place on a terminal: each change draws it again.

    Args:
        screen: The terminal.
        order: The order of rows, as in `format_table`.

    >>> import io
    >>> from penstock.elements.row import Row
    >>> from penstock.utils.windowed_value import ValueKind
    >>> screen = TableOnScreen(io.StringIO())
    >>> screen.show([(ValueKind.INSERT, Row(n=1))], 0)
    >>> screen.show([(ValueKind.UPDATE_BEFORE, Row(n=1)), (ValueKind.UPDATE_AFTER, Row(n=2))], 1)
    >>> screen.lines
    ['n', '-', '2', '(1 row)']
    """

    def __init__(self, screen: TextIO, order: Order = ()) -> None:
        self._screen = screen
        self._order = order
        self._rows: Counter[Any] = Counter()
        self.lines: list[str] = []

    def show(self, changes: list[tuple[Any, Any]], number: int) -> None:
        """Takes changes in, and draws the table."""
        for kind, row in changes:
            self._rows[row] += -1 if kind.is_retraction else 1
        self._rows += Counter()
        size = shutil.get_terminal_size()
        lines = list(format_table(self._rows.elements(), self._order))
        room = max(4, size.lines - 2)
        if len(lines) > room:
            left_out = len(lines) - room
            lines = [*lines[: room - 2], f"... {left_out + 1} more", lines[-1]]
        if self.lines:
            self._screen.write(_BACK.format(lines=len(self.lines)))
        # A line that is longer than the terminal would be two.
        self.lines = [line[: size.columns] for line in lines]
        self._screen.write("".join(f"{line}\n" for line in self.lines))
        self._screen.flush()
