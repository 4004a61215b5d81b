"""Tables, views and functions that queries may use: `Catalog`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.scalars.types import ANY, from_hint
from penstock.sql.language.dialect import parse_query
from penstock.sql.user_functions import UserFunction
from penstock.typehints.annotations import annotations_of


class Catalog:
    """Tables, views and functions by their names (penstock's own).

    A view is a query with a name, which another query reads like a table (*Streaming Systems*, chapter 8: materialized
    views). It may read inputs of the `SqlTransform` and other views, and changes when they change.

    >>> catalog = Catalog()
    >>> catalog.create_view("totals", "SELECT team, SUM(points) AS total FROM goals GROUP BY team")
    >>> catalog.create_view("winners", "SELECT team FROM totals WHERE total > 10")
    >>> list(catalog.views)
    ['totals', 'winners']
    """

    def __init__(self) -> None:
        self.tables: dict[str, object] = {}
        self.views: dict[str, str] = {}
        self.functions: dict[str, UserFunction] = {}

    def create_table(self, name: str, source: object) -> None:
        """Registers a table that queries can read by its name, without passing a PCollection for it.

        Args:
            name: The name.
            source: A transform that reads, such as ``ReadFromParquet(path, as_rows=True)``; the path of a file whose
                name ends with ``.csv``, ``.json``, ``.parquet``, ``.orc`` or ``.avro``; or a list of rows, dicts or
                NamedTuples.

        Raises:
            ValueError: A table or a view of this name exists.

        >>> catalog = Catalog()
        >>> catalog.create_table("goals", [{"team": "red", "points": 3}])
        >>> list(catalog.tables)
        ['goals']
        """
        if any(each.lower() == name.lower() for each in (*self.tables, *self.views)):
            hint = "choose another name"
            raise refusal(ValueError, f"a table or a view {name!r} already exists", hint=hint)
        self.tables[name] = source

    def create_view(self, name: str, query: str, replace: bool = False) -> None:
        """Registers a query under a name, so that other queries can read it like a table.

        Args:
            name: The name, by which queries read the view.
            query: The query.
            replace: Whether it may replace a view of this name.

        Raises:
            ValueError: A view of this name exists.
            SqlError: The query breaks the grammar.
        """
        if not replace and any(each.lower() == name.lower() for each in self.views):
            hint = "pass replace=True, or choose another name"
            raise refusal(ValueError, f"the view {name!r} already exists", hint=hint)
        parse_query(query)
        self.drop_view(name)
        self.views[name] = query

    def drop_view(self, name: str) -> None:
        """Removes a view; queries that were applied earlier keep it."""
        self.views = {each: query for each, query in self.views.items() if each.lower() != name.lower()}

    def create_function(
        self, name: str, fn: Callable[..., Any] | CombineFn, result_type: object = None
    ) -> None:
        """Registers a Python function or a CombineFn that queries can call.

        A function gets the values of one row, None for NULL. A CombineFn aggregates the values that are not NULL. If a
        function raises an exception, the run ends with an error that shows the call in the query.

        Args:
            name: The name in queries; case does not matter.
            fn: The function, which returns the same result for the same values; or a CombineFn.
            result_type: The type of the result; by default it follows from the type hints.

        Raises:
            TypeError: It is neither a function nor a CombineFn.

        >>> catalog = Catalog()
        >>> def shout(text: str) -> str:
        ...     return text.upper()
        >>> catalog.create_function("shout", shout)
        >>> print(catalog.functions["SHOUT"].type)
        STRING NOT NULL
        """
        aggregates = isinstance(fn, CombineFn)
        if not aggregates and not callable(fn):
            what = f"the function {name!r} is of type {type(fn).__name__}"
            raise refusal(TypeError, what, hint="pass a function or a CombineFn")
        if result_type is not None:
            kind = from_hint(result_type)
        else:
            hints = {} if aggregates else annotations_of(fn)
            kind = from_hint(hints["return"]) if "return" in hints else ANY
        self.functions[name.upper()] = UserFunction(fn, kind, aggregates)
