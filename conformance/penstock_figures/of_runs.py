"""Drawings of a pipeline's own run: the recorded events of the grouping from which a PCollection comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.construction.graph_of import graph_with_edge
from penstock.error import refusal
from penstock.graph import CombinePerKey, Graph, GroupByKey, Step
from penstock.machines.recorder import ARRIVALS, PANES, EventPosition, RecordedEvents, RecordedInput, Row
from penstock.machines.records import MAX_MICROS
from penstock.metrics.execution import Snapshot, find_recordings
from penstock_figures.drawing import draw
from penstock_figures.played import STEP_MICROS
from penstock_figures.recording import Recording


@dataclass(frozen=True)
class Figure:
    """A drawing, which notebooks show."""

    recording: Recording

    @property
    def svg(self) -> str:
        """The drawing as an ``<svg>`` element."""
        return draw(self.recording)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the drawing to an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg


def recording_of_grouping(pcoll: Any, snapshot: Snapshot, mode: str) -> Recording:
    """Returns the recorded events of the grouping from which a PCollection comes, also with steps in between."""
    graph, edge = graph_with_edge(pcoll)
    group = _grouping_before(graph, edge)
    if group is None:
        what = "no grouping leads to the PCollection, and so it has no windows to draw"
        raise refusal(ValueError, what, where=_where(graph, edge), hint="pass the output of a grouping")
    # A combine may have replaced a group whose only reader it is.
    outputs = {output.edge for output in group.outputs}
    readers = [step.label for step in graph.steps if outputs.intersection(step.inputs)]
    found: RecordedEvents | None = None
    for step, seen in find_recordings(snapshot).items():
        label, _, last = step.rpartition("/")
        if {step, label if last in (ARRIVALS, PANES) else step}.intersection((group.label, *readers)):
            found = seen.combine(found)
    if found is None:
        what = "the run recorded nothing for this grouping"
        hint = "run the pipeline with record_events=1000, on input with elements"
        raise refusal(ValueError, what, where=group.where, hint=hint)
    return recording_of_run(found, group.label.removesuffix("/GroupByKey"), mode)


def _grouping_before(graph: Graph, edge: int) -> Step | None:
    """Returns the nearest grouping before an edge."""
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


def recording_of_run(happenings: RecordedEvents, title: str, mode: str) -> Recording:
    """Makes a recording of what workers reported of a grouping.

    >>> seen = RecordedEvents(9, watermarks=((EventPosition(0, 1), 5), (EventPosition(0, 2), 9)))
    >>> recording = recording_of_run(seen, "a stream without a clock", "streaming")
    >>> recording.counts_steps, recording.watermark
    (True, ((1000000, 5), (2000000, 9)))
    """
    if mode == "batch":
        happenings = _in_event_time(happenings)
    when = [at for at, _ in (*happenings.inputs, *happenings.panes, *happenings.watermarks)]
    are_steps = len({at.clock_micros for at in when}) <= 1
    steps = {step: number for number, step in enumerate(sorted({at.step for at in when}), 1)}

    def clock_of(at: EventPosition) -> int:
        return steps[at.step] * STEP_MICROS if are_steps else at.clock_micros

    watermarks = tuple(_moves(happenings.watermarks))
    return Recording(
        title,
        tuple(_inputs(happenings, clock_of, {} if are_steps else _first_steps(watermarks))),
        tuple(replace(pane, clock_micros=clock_of(at)) for at, pane in happenings.panes),
        tuple((clock_of(at), micros) for at, micros in watermarks),
        mode,
        happenings.is_complete,
        counts_steps=are_steps,
    )


def _inputs(
    happenings: RecordedEvents, clock_of: Callable[[EventPosition], int], moved: dict[int, int]
) -> Iterator[RecordedInput]:
    lost = [found for _, found in happenings.dropped]
    for at, found in happenings.inputs:
        # At one processing time elements come before the watermark, but this one came after it.
        is_after = at.step > moved.get(at.clock_micros, at.step)
        is_lost = found in lost
        if is_lost:
            lost.remove(found)
        yield replace(found, clock_micros=clock_of(at) + is_after, is_dropped=is_lost)


def _first_steps(watermarks: Iterable[Row]) -> dict[int, int]:
    """Returns the first step at which the watermark advanced, by processing time."""
    return {at.clock_micros: at.step for at, _ in reversed([*watermarks])}


def _moves(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the watermarks that differ from the one before."""
    before: int | None = None
    for at, micros in rows:
        if micros != before:
            before = micros
            yield at, micros


def _in_event_time(happenings: RecordedEvents) -> RecordedEvents:
    """Returns a batch in order of event time, with one element in each step; all panes come in the last step."""
    inputs = sorted((found for _, found in happenings.inputs), key=lambda found: found.event_micros)
    end = EventPosition(0, len(inputs))
    return replace(
        happenings,
        inputs=tuple((EventPosition(0, step), found) for step, found in enumerate(inputs)),
        panes=_at(end, happenings.panes),
        watermarks=((end, MAX_MICROS),),
    )


def _at(at: EventPosition, rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple((at, found) for _, found in rows)
