"""The rows of other steps that a query reads as tables."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import Graph


@dataclass(frozen=True, eq=False)
class RowsOfGraph:
    """The rows of a graph whose last step writes them into a frame, as a table of a query.

    Attributes:
        table: A name of the table that no other one in the pipeline has.
        graph: The graph.
    """

    table: str
    graph: Graph
