"""Errors of SQL, which show the place in the query."""

from __future__ import annotations

import re

from penstock.error import split_hint, three_parts

_SHOWN_COLUMNS = 80
_PLACE = re.compile(r"(.*)\n  (line \d+, column \d+) of the query(\n.*\n *\^)")


class SqlError(ValueError):
    """A query cannot be read, or means nothing (penstock's own).

    Attributes:
        missing_table: The table that the query reads and that does not exist, if that is the error.
    """

    def __init__(self, text: str, missing_table: str | None = None) -> None:
        super().__init__(text)
        self.missing_table = missing_table


def make_sql_error(
    what: str,
    query: str = "",
    position: int | None = None,
    hint: str = "",
    name: str = "the query",
    *,
    missing_table: str | None = None,
) -> SqlError:
    r"""Returns the error that shows where in the query something is wrong.

    Args:
        what: What is wrong, as a short clause.
        query: The whole text of the query.
        position: The offset of the wrong part in characters.
        hint: What the user can do about it.
        name: What the text is called.
        missing_table: As in `SqlError`.

    >>> print(make_sql_error("unknown column 'scor'", "SELECT team,\n  scor FROM t", 15, "did you mean 'score'?"))
    unknown column 'scor'
      line 2, column 3 of the query
          scor FROM t
          ^
      hint: did you mean 'score'?
    """
    where = place(query, position, name) if query and position is not None else None
    return SqlError(three_parts(what, where=where, hint=hint or None), missing_table)


def place(query: str, position: int, name: str = "the query") -> str:
    """Returns the line and column of an offset, then the line with a caret below, for the second part of an error.

    Args:
        query: The whole text of the query.
        position: The offset in characters; one behind the end means the end.
        name: What the text is called.

    >>> print(place("SELECT 1 +", 99))
    line 1, column 11 of the query
        SELECT 1 +
                  ^
    """
    position = max(0, min(position, len(query)))
    start = query.rfind("\n", 0, position) + 1
    end = query.find("\n", position)
    line = query[start : len(query) if end < 0 else end].replace("\t", " ").rstrip("\r")
    column = position - start
    number = query.count("\n", 0, position) + 1
    shown, caret = _cut(line, column)
    return f"line {number}, column {column + 1} of {name}\n    {shown}\n    {' ' * caret}^"


def call_text(error: SqlError, name: str) -> SqlError:
    r"""Returns an error of a query that stands in a larger text, with the name of that, and without a step.

    Args:
        error: The error.
        name: What the text is called.

    >>> step = "no\n  line 1, column 3 of the query\n    SELECT\n      ^\n  at step 'Query'\n  hint: correct it"
    >>> print(call_text(SqlError(step), "job.sql"))
    no
      line 1, column 3 of job.sql
        SELECT
          ^
      hint: correct it
    """
    text = str(error)
    what, hint = split_hint(text)
    placed = _PLACE.match(what)
    if placed is None:
        return error
    where = f"{placed[2]} of {name}{placed[3]}"
    return SqlError(three_parts(placed[1], where=where, hint=hint or None), error.missing_table)


def _cut(line: str, column: int) -> tuple[str, int]:
    """Returns the part of a long line around a column, and the place of the column in it."""
    if len(line) <= _SHOWN_COLUMNS:
        return line, column
    first = max(0, min(column - _SHOWN_COLUMNS // 2, len(line) - _SHOWN_COLUMNS))
    last = first + _SHOWN_COLUMNS
    before = "..." if first else ""
    after = "..." if last < len(line) else ""
    return before + line[first:last] + after, column - first + len(before)
