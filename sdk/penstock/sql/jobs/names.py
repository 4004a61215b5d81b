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
    named: list[exp.Expression] = [*tree.find_all(exp.Table)]
    for call in tree.find_all(exp.Anonymous):
        named += call.find_all(exp.Column)
    return {each.name.lower() for each in named}
