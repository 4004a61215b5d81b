"""The windowing of an edge."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.windows.window_fn import GlobalWindows
from penstock.windows.windowing import Windowing


def windowing_of(graph: Graph, edge: int) -> Windowing:
    """Returns the Windowing of an edge; by default, the global window with the default trigger."""
    found = graph.edge(edge).windowing
    return Windowing(GlobalWindows()) if found is None else found
