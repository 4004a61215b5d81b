"""Counts of the elements that steps and composites have read and emitted, summed over edges by label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.graph import Graph, Write

RATE_SECONDS = 10.0
"""A rate is of so long a time, or of a longer one if little happens."""

_BETWEEN_MICROS = 1_000_000
_RATE_MICROS = round(RATE_SECONDS * 1_000_000)


@dataclass(frozen=True)
class StepElements:
    """The elements of a step, or of a composite as a whole; None for what is not counted.

    Attributes:
        label: The full label of the step or of the composite.
        elements_in: The elements read so far, without side inputs; None for a source.
        elements_out: The elements that all of its outputs have emitted so far.
        tagged: The elements among these from outputs with tags, by tag.
        in_per_second: The elements read per second recently; on average, if the run is over.
        out_per_second: The elements emitted per second, likewise.
    """

    label: str
    elements_in: int | None = None
    elements_out: int | None = None
    tagged: Mapping[str, int] = field(default_factory=dict)
    in_per_second: float | None = None
    out_per_second: float | None = None


@dataclass(frozen=True)
class Flow:
    """The edges of a step, or those that enter a composite and leave it.

    Attributes:
        label: Its full label.
        inputs: The edges that it reads; an edge that it reads twice is there twice.
        outputs: The tag of each output, or None, and its edge.
        side_inputs: The edges that it sees as side inputs.
    """

    label: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[tuple[str | None, int], ...] = ()
    side_inputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Counts:
    """The number of elements that each edge had carried at a time. An edge that is missing is not counted."""

    at_micros: int
    by_edge: Mapping[int, int]


def flows_of(graph: Graph) -> tuple[Flow, ...]:
    """Returns the edges of each step."""
    return tuple(
        Flow(
            step.label,
            step.inputs,
            tuple((output.tag, output.edge) for output in step.outputs),
            tuple(side.edge for side in step.side_inputs),
        )
        for step in graph.steps
    )


def flows_of_sinks(graph: Graph) -> tuple[Flow, ...]:
    """Returns the edges of the steps that write, which the workers of every run count."""
    sinks = {step.label for step in graph.steps if isinstance(step.primitive, Write)}
    return tuple(flow for flow in flows_of(graph) if flow.label in sinks)


def edges_into(flows: Iterable[Flow]) -> frozenset[int]:
    """Returns the edges that steps read as their main inputs."""
    return frozenset(edge for flow in flows for edge in flow.inputs)


def composites_of(flows: Sequence[Flow]) -> tuple[Flow, ...]:
    """Returns the edges that enter each composite and leave it, each once; a side input leaves, but does not enter.

    >>> pair, total = Flow("Top/Pair", (0,), ((None, 1),)), Flow("Top/Sum", (1,), ((None, 2),))
    >>> composites_of([Flow("Read", (), ((None, 0),)), pair, total, Flow("Write", (2,))])
    (Flow(label='Top', inputs=(0,), outputs=((None, 2),), side_inputs=()),)
    """
    inside: dict[str, list[Flow]] = {}
    for flow in flows:
        for label in _composites(flow.label):
            inside.setdefault(label, []).append(flow)
    for flow in flows:
        # A step may have the same label as a composite.
        if flow.label in inside:
            inside[flow.label].append(flow)
    readers: dict[int, int] = {}
    for flow in flows:
        for edge in {*flow.inputs, *flow.side_inputs}:
            readers[edge] = readers.get(edge, 0) + 1
    return tuple(_fold_flows(label, each, readers) for label, each in inside.items())


def _composites(label: str) -> Iterable[str]:
    """Returns the labels of the composites that a step is in, the outermost first."""
    parts = label.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _fold_flows(label: str, inside: Sequence[Flow], readers: Mapping[int, int]) -> Flow:
    made = dict.fromkeys(edge for flow in inside for _, edge in flow.outputs)
    read = dict.fromkeys(edge for flow in inside for edge in flow.inputs)
    own: dict[int, int] = {}
    for flow in inside:
        for edge in {*flow.inputs, *flow.side_inputs}:
            own[edge] = own.get(edge, 0) + 1
    leaving = ((None, edge) for edge in made if readers.get(edge, 0) > own.get(edge, 0))
    return Flow(label, tuple(edge for edge in read if edge not in made), tuple(leaving))


def elements_of(flows: Iterable[Flow], now: Counts, since: Counts) -> tuple[StepElements, ...]:
    """Returns the elements of the steps, or of the composites, of which anything is counted.

    Args:
        flows: Their edges.
        now: What has been counted so far.
        since: What had been counted before, for rates; an edge that is not there had carried nothing.

    >>> flow = Flow("Parse", (0,), ((None, 1), ("bad", 2)))
    >>> [parse] = elements_of([flow], Counts(2_000_000, {0: 8, 1: 5, 2: 1}), Counts(0, {0: 2}))
    >>> parse.elements_in, parse.elements_out, parse.tagged, parse.in_per_second, parse.out_per_second
    (8, 6, {'bad': 1}, 3.0, 3.0)
    """
    made = (_elements(flow, now, since) for flow in flows)
    return tuple(one for one in made if (one.elements_in, one.elements_out) != (None, None))


def _elements(flow: Flow, now: Counts, since: Counts) -> StepElements:
    outputs = [edge for _, edge in flow.outputs]
    elements_in, elements_out = _sum(flow.inputs, now.by_edge), _sum(outputs, now.by_edge)
    seconds = (now.at_micros - since.at_micros) / 1_000_000

    def rate(edges: Sequence[int], count: int | None) -> float | None:
        if count is None or seconds <= 0:
            return None
        return round((count - sum(since.by_edge.get(edge, 0) for edge in edges)) / seconds, 3)

    return StepElements(
        flow.label,
        elements_in,
        elements_out,
        {
            tag: now.by_edge[edge]
            for tag, edge in flow.outputs
            if tag is not None and edge in now.by_edge and len(outputs) > 1
        },
        rate(flow.inputs, elements_in),
        rate(outputs, elements_out),
    )


def _sum(edges: Sequence[int], by_edge: Mapping[int, int]) -> int | None:
    """Returns the number of elements that several edges carried; None without edges, or if one is not counted."""
    counts = [by_edge.get(edge) for edge in edges]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def add_counts(marks: tuple[Counts, ...], now: Counts) -> tuple[Counts, ...]:
    """Returns the latest counts, about a second apart, with the newest; bounded, however often counts come.

    >>> marks = ()
    >>> for tenth in range(300):
    ...     marks = add_counts(marks, Counts(tenth * 100_000, {0: tenth}))
    >>> len(marks), marks[0].at_micros, marks[-1].at_micros
    (12, 19000000, 29900000)
    """
    is_close = len(marks) > 1 and marks[-1].at_micros - marks[-2].at_micros < _BETWEEN_MICROS
    kept = [*(marks[:-1] if is_close else marks), now]
    while len(kept) > 2 and kept[1].at_micros <= now.at_micros - _RATE_MICROS:
        del kept[0]
    return tuple(kept)


def choose_counts_for_rate(marks: Sequence[Counts], at_micros: int) -> tuple[Counts, Counts]:
    """Returns the counts between which a rate is measured: the newest, and those of about ten seconds earlier.

    Counts come when a micro-batch or a task ends. Until another one has had time to end, the rates stay; then they
    sink, as the newest counts are older than the last ones were when the newest came.

    >>> marks = [Counts(0, {}), Counts(20_000_000, {0: 40}), Counts(40_000_000, {0: 80})]
    >>> spans = [choose_counts_for_rate(marks, seconds * 1_000_000) for seconds in (40, 50, 90)]
    >>> [(since.at_micros // 1_000_000, now.at_micros // 1_000_000) for now, since in spans]
    [(20, 40), (20, 40), (20, 70)]
    """
    newest = marks[-1]
    before = marks[:-1] or marks
    end_micros = max(newest.at_micros, at_micros - (newest.at_micros - before[-1].at_micros))
    early_enough = [mark for mark in before if mark.at_micros <= end_micros - _RATE_MICROS]
    return Counts(end_micros, newest.by_edge), (early_enough or before)[-1 if early_enough else 0]
