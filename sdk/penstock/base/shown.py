"""The HTML that a notebook shows: elements as a table, and facts about a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, TypeVar

T = TypeVar("T")

_ROWS_MAX = 100
_LETTERS_MAX = 200


class Elements(list[T]):
    """A list of elements, which a notebook shows as a table.

    >>> Elements([("blue", 9)])._repr_html_()
    '<table><thead><tr><th>0</th><th>1</th></tr></thead><tbody><tr><td>blue</td><td>9</td></tr></tbody></table>'
    """

    def _repr_html_(self) -> str:
        return render_elements(self)


def render_elements(elements: list[Any]) -> str:
    """Returns elements as a table in HTML: a column for each field or part if all have the same, else one column.

    >>> render_elements(["a < b"])
    '<table><thead><tr><th>element</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    >>> render_elements([])
    '<p>no elements</p>'
    """
    if not elements:
        return "<p>no elements</p>"
    shown = elements[:_ROWS_MAX]
    kinds = {_columns(element) for element in shown}
    columns = kinds.pop() if len(kinds) == 1 else None
    head = _row("th", columns or ("element",))
    body = "".join(_row("td", element if columns else (element,)) for element in shown)
    more = len(elements) - len(shown)
    rest = f"<p>and {more:,} more</p>" if more else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{rest}"


def render_facts(title: str, facts: Mapping[str, str]) -> str:
    """Facts about a value as a table in HTML.

    >>> render_facts("Pipeline", {"steps": "3"})
    '<table><caption>Pipeline</caption><tbody><tr><th>steps</th><td>3</td></tr></tbody></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_cell(fact)}</td></tr>" for name, fact in facts.items())
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns rows of text as a table in HTML.

    >>> table("Teams", ["team"], [["a < b"]]).partition("<tbody>")[2]
    '<tr><td>a &lt; b</td></tr></tbody></table>'
    """
    body = "".join(_row("td", row) for row in rows)
    head = f"<caption>{escape(title)}</caption><thead>{_row('th', columns)}</thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _columns(element: object) -> tuple[str, ...] | None:
    """Returns the names of the columns that an element fills; None if it is one value."""
    fields = getattr(element, "_fields", None)
    if fields:
        return tuple(map(str, fields))
    return tuple(map(str, range(len(element)))) if isinstance(element, tuple) and element else None


def _row(tag: str, values: Any) -> str:
    return f"<tr>{''.join(f'<{tag}>{_cell(value)}</{tag}>' for value in values)}</tr>"


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return escape(text if len(text) <= _LETTERS_MAX else f"{text[:_LETTERS_MAX]}...")
