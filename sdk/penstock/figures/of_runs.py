"""Drawings of a pipeline's own run: what was recorded of the grouping that a PCollection comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.construction.graph_of import graph_with_edge
from penstock.error import three_parts
from penstock.figures.drawing import draw
from penstock.figures.happenings import Happenings, recording_of_run
from penstock.figures.recording import Recording
from penstock.graph import CombinePerKey, Graph, GroupByKey, Step
from penstock.metrics.execution import Snapshot, recordings_in

ARRIVALS, PANES = "Recorded arrivals", "Recorded panes"
"""The last part of the labels of steps that write down what goes into a grouping, and what comes out."""


@dataclass(frozen=True)
class Figure:
    """A drawing; notebooks show it.

    >>> figure = Figure(Recording("nothing", (), (), ()))
    >>> figure.svg[:4]
    '<svg'
    """

    recording: Recording

    @property
    def svg(self) -> str:
        """The drawing as an ``<svg>`` element."""
        return draw(self.recording)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the drawing to a file of SVG.

        Raises:
            OSError: It cannot be written.
        """
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg


def recording_of_grouping(pcoll: Any, snapshot: Snapshot, mode: str) -> Recording:
    """What was recorded of the grouping that a PCollection comes from.

    Args:
        pcoll: The output of a GroupByKey or of a Combine, or of steps behind one.
        snapshot: The metrics of the run.
        mode: The mode of the run.

    Raises:
        ValueError: No grouping leads to the PCollection, or the run has recorded nothing of it.
    """
    graph, edge = graph_with_edge(pcoll)
    group = _grouping_before(graph, edge)
    if group is None:
        what = "no grouping leads to the PCollection, and so there are no windows to draw"
        raise ValueError(three_parts(what, where=_where(graph, edge), hint="pass the output of a grouping"))
    # A combine may have taken the place of a group that only it reads.
    outputs = {output.edge for output in group.outputs}
    readers = [step.label for step in graph.steps if outputs.intersection(step.inputs)]
    found: Happenings | None = None
    for step, seen in recordings_in(snapshot).items():
        label, _, last = step.rpartition("/")
        if {step, label if last in (ARRIVALS, PANES) else step}.intersection((group.label, *readers)):
            found = seen.combine(found)
    if found is None:
        what = "the run has recorded nothing of this grouping"
        hint = "run the pipeline with record_events=1000, and let something arrive"
        raise ValueError(three_parts(what, where=group.where, hint=hint))
    return recording_of_run(found, group.label.removesuffix("/GroupByKey"), mode)


def _grouping_before(graph: Graph, edge: int) -> Step | None:
    """The nearest grouping on the way back from an edge."""
    makers = {output.edge: step for step in graph.steps for output in step.outputs}
    waiting, seen = [edge], {edge}
    for at in waiting:
        step = makers[at]
        if isinstance(step.primitive, GroupByKey | CombinePerKey):
            return step
        waiting += [before for before in step.inputs if before not in seen]
        seen.update(step.inputs)
    return None


def _where(graph: Graph, edge: int) -> str:
    return next(step.where for step in graph.steps if any(output.edge == edge for output in step.outputs))
