"""Finds the steps behind a Read one after another, and the windows that columns can have."""

from __future__ import annotations

from penstock.graph import Graph, Step
from penstock.windows.window_fn import FixedWindows, GlobalWindows, SlidingWindows
from penstock_spark.plan.column_kinds import NotInColumns
from penstock_spark.plan.column_plan import Table, Windowed
from penstock_spark.plan.windowing import windowing_of


def find_only_reader(graph: Graph, edge: int) -> Step:
    """The only step that reads an edge; NotInColumns if there are several, or if it reads others too."""
    readers = list(graph.consumers(edge))
    if len(readers) != 1:
        raise NotInColumns("several steps read them" if readers else "no step reads them")
    (reader,) = readers
    if reader.inputs != (edge,) or reader.side_inputs:
        raise NotInColumns(f"{reader.label!r} has several inputs, or a side input")
    return reader


def translate_windowing(graph: Graph, step: Step, table: Table, is_stream: bool) -> Windowed:
    """The windows that a step puts elements into; NotInColumns if Spark cannot do it."""
    windowfn = windowing_of(graph, step.outputs[0].edge).windowfn
    if type(windowfn) is GlobalWindows:
        return Windowed(step, None)
    if type(windowfn) is not FixedWindows and not (is_stream and type(windowfn) is SlidingWindows):
        names = "FixedWindows or SlidingWindows" if is_stream else "FixedWindows"
        raise NotInColumns(f"{step.label!r} makes windows that are not {names}")
    if table.time == "start" or (table.time == "end" and table.windowfn is None):
        raise NotInColumns(
            f"{step.label!r} makes windows from times that are not in a column: use WithTimestamps"
        )
    return Windowed(step, windowfn)
