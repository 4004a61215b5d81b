"""Lines about the steps of a drawing: the transform, the windowing where that changes, and the type of the elements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from penstock.diagrams.steps import StepView, place_of
from penstock.graph import Edge, Graph, Write, type_name
from penstock.typehints.constraints import short_type
from penstock.windows.triggers import AccumulationMode, DefaultTrigger
from penstock.windows.window_fn import FixedWindows, GlobalWindows, Sessions, SlidingWindows, WindowFn
from penstock.windows.windowing import Windowing, default_windowing

_LINE_MAX = 36
_SHORT = (
    (re.compile(r"^ParDo\((Map|MapTuple|FlatMap|FlatMapTuple|Filter)DoFn\)$"), r"\1"),
    (re.compile(r"^WindowInto\(WindowIntoFn\)$"), "WindowInto"),
    (re.compile(r"^ExceptionHandlingParDo$"), "with exception handling"),
)
"""Default labels of transforms, and what says as much in fewer words."""

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"))


def notes_of(
    graph: Graph, steps: Sequence[StepView], composites: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[str, ...]]:
    """Returns lines about the steps of a graph, by their labels.

    Args:
        graph: The graph.
        steps: Its steps, of which some may be composites that are drawn as one.
        composites: The names of the transforms by the labels of the composites.
    """
    labels = {step.label for step in steps}

    def place(label: str) -> str:
        return label if label in labels else place_of(label, composites)

    read: dict[str, list[Edge]] = {label: [] for label in labels}
    made: dict[str, list[Edge]] = {label: [] for label in labels}
    tags: dict[str, list[str]] = {label: [] for label in labels}
    outputs = {
        output.edge: (place(step.label), output.tag) for step in graph.steps for output in step.outputs
    }
    readers: dict[int, set[str]] = {number: set() for number in outputs}
    for step in graph.steps:
        for number in (*step.inputs, *(side.edge for side in step.side_inputs)):
            readers[number].add(place(step.label))
        for number in step.inputs:
            source, tag = outputs[number]
            if source != place(step.label):
                read[place(step.label)].append(graph.edge(number))
                tags[place(step.label)] += [tag] if tag else []
    results = {
        output.edge for step in graph.steps if isinstance(step.primitive, Write) for output in step.outputs
    }
    for number, (source, tag) in outputs.items():
        # The results of a sink are of no interest if no step reads them.
        if tag is None and readers[number] != {source} and (readers[number] or number not in results):
            made[source].append(graph.edge(number))
    return {
        step.label: (
            *(f"← {tag}" for tag in dict.fromkeys(tags[step.label])),
            *_transform_and_type(step, read[step.label], made[step.label]),
            *_changed_windowing(read[step.label], made[step.label]),
        )
        for step in steps
    }


def _transform_and_type(step: StepView, read: Sequence[Edge], made: Sequence[Edge]) -> list[str]:
    name = step.label.rpartition("/")[2]
    kind = step.kind
    for pattern, short in _SHORT:
        kind = pattern.sub(short, kind)
    kind = "" if name == kind or name.startswith(f"{kind}(") else kind
    known = [_type_of(edge) for edge in made[-1:]]
    same = len(read) == 1 and known == [_type_of(read[0])]
    types = [f"→ {each}" for each in known if each and not same]
    line = " ".join([kind, *types]).strip()
    return [line] if line and len(line) <= _LINE_MAX else [each for each in (kind, *types) if each]


def _type_of(edge: Edge) -> str:
    """The type of the elements; empty if nothing is known of it."""
    return "" if edge.element_type is None else short_type(type_name(edge.element_type))


def _changed_windowing(read: Sequence[Edge], made: Sequence[Edge]) -> list[str]:
    """The windowing of the outputs, if the inputs have a different one."""
    before = [edge.windowing or default_windowing() for edge in read[:1]] or [default_windowing()]
    after = [edge.windowing or default_windowing() for edge in made[-1:]]
    if not after or after == before or (read and after == [before[0].after_grouping()]):
        return []
    return describe_windowing(after[0], before[0])


def describe_windowing(windowing: Windowing, before: Windowing | None = None) -> list[str]:
    """Returns a windowing in words, with what differs from the one before, if it is given.

    >>> from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
    >>> describe_windowing(Windowing(FixedWindows(60), AfterWatermark(), AccumulationMode.ACCUMULATING))
    ['fixed windows of 1 min', 'AfterWatermark()', 'accumulating']
    >>> describe_windowing(Windowing(Sessions(90), allowed_lateness=3600))
    ['sessions with gaps of 90 s', '1 h of lateness']
    """
    lines = []
    if before is None or windowing.windowfn != before.windowfn:
        lines.append(_describe_windows(windowing.windowfn))
    firing = []
    if windowing.triggerfn != DefaultTrigger():
        lines.append(repr(windowing.triggerfn))
        firing.append(AccumulationMode(windowing.accumulation_mode).name.lower().replace("_", " "))
    if windowing.allowed_lateness.micros:
        firing.append(f"{describe_micros(windowing.allowed_lateness.micros)} of lateness")
    return [*lines, *([", ".join(firing)] if firing else [])]


def _describe_windows(windows: WindowFn) -> str:
    match windows:
        case GlobalWindows():
            return "the global window"
        case FixedWindows():
            return f"fixed windows of {describe_micros(windows.size.micros)}"
        case SlidingWindows():
            size, period = windows.size.micros, windows.period.micros
            return f"windows of {describe_micros(size)}, each {describe_micros(period)}"
        case Sessions():
            return f"sessions with gaps of {describe_micros(windows.gap_size.micros)}"
    return repr(windows)


def describe_micros(micros: int) -> str:
    """Returns a duration in the largest unit that divides it.

    >>> describe_micros(60_000_000), describe_micros(90_000_000), describe_micros(7 * 86_400_000_000)
    ('1 min', '90 s', '7 d')
    """
    for size, unit in _UNITS:
        if micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} µs"
