"""The description of a query that the engine computes whole, over sources that it reads on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.graph import Source


@dataclass(frozen=True)
class QuerySource(Source):
    """The rows of a query over sources.

    Attributes:
        query: The query as the user wrote it.
        text: The query in Spark's SQL, over tables named ``input0``, ``input1`` and up.
        inputs: What these tables are read from.
        fields: The names of the result's columns, with their types in Spark's SQL.
    """

    query: str
    text: str
    inputs: tuple[Any, ...]
    fields: tuple[tuple[str, str], ...]

    has_fields = True
    is_table = True

    def describe(self) -> str:
        """Returns one line for `explain`."""
        return f"sql, computed by Spark: {' '.join(self.query.split())}"
