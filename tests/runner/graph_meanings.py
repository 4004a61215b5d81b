"""The meaning of a graph of integers, without any of the compiler: each window fires once, at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock import graph
from penstock.functions.signature import signature_of
from penstock.io.streaming.recorded_stream import ElementEvent, RecordedStream
from penstock.pvalue import TaggedOutput
from penstock.transforms.core import CombineValuesDoFn, Windowing
from penstock.transforms.window import GlobalWindow, GlobalWindows, TimestampedValue, WindowFn
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import WindowedValue


class Element(NamedTuple):
    """An element of one window; one of several windows is several elements."""

    value: Any
    at: Timestamp
    window: Any


Meaning = dict[int, list[Element]]


def meaning(found: graph.Graph) -> dict[int, list[Any]]:
    """The values of each edge."""
    return {
        edge: [element.value for element in elements] for edge, elements in meaning_in_time(found).items()
    }


def meaning_in_time(found: graph.Graph) -> Meaning:
    """The elements of each edge, with their times and windows."""
    edges: Meaning = {}
    for step in found.steps:
        elements = [element for edge in step.inputs for element in edges[edge]]
        outputs: dict[str | None, list[Element]] = {output.tag: [] for output in step.outputs}
        for tag, element in _results(found, step, elements, edges):
            outputs.setdefault(tag, []).append(element)
        edges |= {output.edge: outputs[output.tag] for output in step.outputs}
    return edges


def _results(
    found: graph.Graph, step: graph.Step, elements: list[Element], edges: Meaning
) -> Iterator[tuple[str | None, Element]]:
    match step.primitive:
        case graph.Read(RecordedStream(events)):
            for event in events:
                if isinstance(event, ElementEvent):
                    for each in event.timestamped_values:
                        yield event.tag, Element(each.value, each.timestamp, GlobalWindow())
        case graph.Read(source):
            for value in source.values:
                yield from _outputs(value, MIN_TIMESTAMP, GlobalWindow(), GlobalWindows())
        case graph.StatefulParDo(dofn):
            windowing = _windowing_of(found, step.inputs[0])
            for (_, window), values in _groups(windowing, elements).items():
                for value in dofn.given([value for _, value in values]):
                    yield None, Element(value, window.max_timestamp(), window)
        case graph.ParDo(CombineValuesDoFn() as dofn):
            for (key, values), at, window in elements:
                yield None, Element((key, dofn.combinefn.apply(values)), at, window)
        case graph.ParDo(dofn) if signature_of(dofn).is_splittable:
            for value, at, window in elements:
                for given in dofn.given(value):
                    yield None, Element(given, at, window)
        case graph.ParDo():
            windowfn = _windowing_of(found, step.inputs[0]).windowfn
            for element in elements:
                for given in _called(found, step, element, edges) or ():
                    yield from _outputs(given, element.at, element.window, windowfn)
        case graph.GroupByKey() | graph.CombinePerKey() as grouping:
            windowing = _windowing_of(found, step.inputs[0])
            combine = grouping.fn.apply if isinstance(grouping, graph.CombinePerKey) else list
            for (key, window), values in _groups(windowing, elements).items():
                result = key, combine([value for _, value in values])
                yield None, Element(result, window.max_timestamp(), window)
        case graph.AssignWindows():
            windowfn = _windowing_of(found, step.outputs[0].edge).windowfn
            for value, at, window in elements:
                for new in windowfn.assign(WindowFn.AssignContext(at, value, window)):
                    yield None, Element(value, at, new)
        case graph.Write():
            return
        case _:
            yield from ((None, element) for element in elements)


def _outputs(value: Any, at: Timestamp, window: Any, windowfn: Any) -> Iterator[tuple[str | None, Element]]:
    """The elements of a DoFn's output, which is in new windows if it has another time, as in Beam."""
    tag = None
    if isinstance(value, TaggedOutput):
        tag, value = value.tag, value.value
    windows = [window]
    if isinstance(value, WindowedValue):
        value, at, windows = value.value, value.timestamp, value.windows
    elif isinstance(value, TimestampedValue):
        value, at = value.value, value.timestamp
        windows = list(windowfn.assign(WindowFn.AssignContext(at, value, window)))
    yield from ((tag, Element(value, at, each)) for each in windows)


def _windowing_of(found: graph.Graph, edge: int) -> Any:
    return found.edge(edge).windowing or Windowing(GlobalWindows())


def _called(found: graph.Graph, step: graph.Step, element: Element, edges: Meaning) -> Any:
    """Returns the outputs of a DoFn for an element in one window."""
    primitive: Any = step.primitive
    views = [_view(found, side, edges[side.edge], element.window) for side in step.side_inputs]

    def argument(given: Any) -> Any:
        return views[given.index] if isinstance(given, graph.SideInputSlot) else given

    asked = {
        "TimestampParam": element.at,
        "WindowParam": element.window,
        "WindowedValueParam": WindowedValue(element.value, element.at, (element.window,)),
    }
    process = signature_of(primitive.dofn).process
    named = {each.name: asked[each.kind] for each in process.parameters if each.kind in asked}
    named.update((name, argument(given)) for name, given in primitive.kwargs)
    return primitive.dofn.process(element.value, *map(argument, primitive.args), **named)


def _view(found: graph.Graph, side: graph.SideInput, elements: list[Element], main: Any) -> Any:
    windowfn = _windowing_of(found, side.edge).windowfn
    window = list(windowfn.assign(WindowFn.AssignContext(main.max_timestamp())))[-1]
    values = [element.value for element in elements if element.window == window]
    match side.view:
        case "singleton":
            [value] = values or side.default
            return value
        case "dict":
            return dict(values)
        case "multimap":
            return {key: [value for own, value in values if own == key] for key, _ in values}
        case _:
            return values


def _groups(windowing: Any, elements: Iterable[Element]) -> dict[tuple[Any, Any], list[Any]]:
    """The pairs of each key and window, after its windows have merged."""
    groups: dict[tuple[Any, Any], list[Any]] = {}
    merged = _merged(elements) if windowing.windowfn.is_merging() else {}
    for element in elements:
        key = element.value[0]
        window = merged.get((key, element.window), element.window)
        groups.setdefault((key, window), []).append(element.value)
    return groups


def _merged(elements: Iterable[Element]) -> dict[tuple[Any, Any], Any]:
    """The session that each window of a key becomes a part of."""
    windows: dict[Any, set[Any]] = {}
    for element in elements:
        windows.setdefault(element.value[0], set()).add(element.window)
    found: dict[tuple[Any, Any], Any] = {}
    for key, own in windows.items():
        session: list[Any] = []
        for window in sorted(own, key=lambda each: each.start):
            if session and window.start < max(each.end for each in session):
                session.append(window)
            else:
                session = [window]
            whole = session[0]
            for each in session[1:]:
                whole = whole.union(each)
            found.update(((key, each), whole) for each in session)
    return found
