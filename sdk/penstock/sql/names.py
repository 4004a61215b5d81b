"""Which tables and views a query may read."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.sql.language.dialect import parse_query


def names_read(text: str, views: Mapping[str, str]) -> set[str]:
    """Returns the names that a query may read, itself or through views, in lower case.

    Args:
        text: The query.
        views: The queries of views by their names.

    >>> sorted(names_read("SELECT a FROM Totals", {"totals": "SELECT a FROM goals"}))
    ['goals', 'totals']
    >>> sorted(names_read("SELECT f(goals) FROM TUMBLE(TABLE scores, DESCRIPTOR(at), INTERVAL '1' HOUR)", {}))
    ['scores']
    """
    queries = {name.lower(): query for name, query in views.items()}
    found: set[str] = set()
    waiting = _names_in(text)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in queries:
            waiting |= _names_in(queries[name]) - found
    return found


def _names_in(text: str) -> set[str]:
    """The names of the tables and views that a query may read; the arguments of window functions look like columns."""
    tree = parse_query(text)
    tables = [*tree.find_all(exp.Table)]
    named: list[exp.Expression] = [*tables]
    for table in tables:
        named += [each for each in table.this.find_all(exp.Column) if _is_argument(each)]
    return {each.name.lower() for each in named} - {""}


def _is_argument(column: exp.Column) -> bool:
    """True if a column in the call of a window function may be a table: those in a DESCRIPTOR are columns."""
    call = column.find_ancestor(exp.Anonymous)
    return call is not None and call.name.upper() != "DESCRIPTOR"
