"""The windowing of an edge, and whether its windows may fire early."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.machines.triggers import machine_of
from penstock.windows.window_fn import GlobalWindows
from penstock.windows.windowing import Windowing


def windowing_of(graph: Graph, edge: int) -> Windowing:
    """Returns the Windowing of an edge; by default, the global window with the default trigger."""
    found = graph.edge(edge).windowing
    return Windowing(GlobalWindows()) if found is None else found


def why_early(windowing: Windowing) -> str | None:
    """Returns the reason why windows may fire before the end of the input, and so more than once; None if not.

    In a batch, the watermark and the clock do not advance until then, so only elements can make a trigger fire. At the
    end, every window that has not fired fires and closes.

    >>> from penstock.windows.triggers import AccumulationMode, AfterCount
    >>> why_early(Windowing(GlobalWindows(), AfterCount(3), AccumulationMode.DISCARDING))
    'the trigger AfterCount(3) may fire before the end'
    >>> why_early(Windowing(GlobalWindows()))
    """
    trigger = windowing.triggerfn
    return f"the trigger {trigger} may fire before the end" if machine_of(trigger).fires_on_elements else None
