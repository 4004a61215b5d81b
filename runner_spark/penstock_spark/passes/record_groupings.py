"""Records the inputs and outputs of groupings for drawings, in batch mode only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.functions.dofn import DoFn
from penstock.graph import CombinePerKey, Edge, Graph, GroupByKey, Output, ParDo, Step
from penstock.machines.recorder import ARRIVALS, PANES, EventPosition, Recorder
from penstock.machines.records import Element, Pane
from penstock.metrics.execution import current_container
from penstock.transforms.window import BoundedWindow
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfo


def record_groupings(graph: Graph, room: int) -> Graph:
    """Puts a recording step before and after each grouping, which keeps up to `room` elements or panes.

    Before: ``Group = #0 GroupByKey -> #1``. After: ``Group/Recorded arrivals = #0 ParDo -> #2``, ``Group = #2
    GroupByKey -> #3``, ``Group/Recorded panes = #3 ParDo -> #1``.
    """
    steps: list[Step] = []
    edges = list(graph.edges)

    def copy_of(edge: int) -> Edge:
        edges.append(replace(graph.edge(edge), id=len(edges)))
        return edges[-1]

    for step in graph.steps:
        if not isinstance(step.primitive, GroupByKey | CombinePerKey):
            steps.append(step)
            continue
        [into], [out, *others] = step.inputs, step.outputs
        arriving, coming = copy_of(into).id, copy_of(out.edge).id
        steps += [
            _tap(step, ARRIVALS, _Arrivals(room), into, arriving),
            replace(step, inputs=(arriving,), outputs=(replace(out, edge=coming), *others)),
            _tap(step, PANES, _Panes(room), coming, out.edge),
        ]
    return Graph(tuple(steps), tuple(edges))


def _tap(step: Step, name: str, dofn: DoFn, read: int, written: int) -> Step:
    return Step(
        f"{step.label}/{name}",
        ParDo(dofn),
        inputs=(read,),
        outputs=(Output(None, written),),
        location=step.location,
    )


class _Tap(DoFn):
    """Passes elements on, and records them until its bundle ends."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._recorder = Recorder(room)

    def start_bundle(self) -> None:
        self._recorder = Recorder(self._room)

    def finish_bundle(self) -> None:
        container = current_container()
        assert container is not None
        container.keep(self._recorder.happenings())


class _Arrivals(_Tap):
    def process(
        self,
        element: tuple[Any, Any],
        timestamp: Timestamp = DoFn.TimestampParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        key, value = element
        self._recorder.arrived(EventPosition(0), key, Element(value, timestamp.micros, (), pane.kind))
        yield element


class _Panes(_Tap):
    def process(
        self,
        element: tuple[Any, Any],
        timestamp: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        key, value = element
        self._recorder.emitted(EventPosition(0), key, Pane(value, window, timestamp.micros, pane))
        yield element
