"""A part of a pipeline as a machine: one stateful step and the plain steps around it, without any engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform
from penstock.elements.bounded_window import BoundedWindow
from penstock.graph import AssignWindows, Flatten, Graph, ParDo, StatefulParDo, Step
from penstock.machines.records import Dropped, Element, Emitted, Pane, Times
from penstock.machines.stateful import Reaction, StatefulMachine
from penstock.machines.stateful_keys import StatefulKey
from penstock.machines.trigger_machine import Domain
from penstock.transforms.elements.create import Create
from penstock.transforms.grouping.windowing import WindowInto
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import WindowedValue, create, unknown_pane
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing
from penstock_conformance.calls import ParameterValues, StatefulCode, process_of, results_of
from penstock_conformance.malformed import Malformed


class ProgramMachine:
    """The machine of a program: a transform from pairs of a key and a value to such pairs, with the same keys.

    It has the methods of a `penstock.machines.grouping.GroupingMachine`, so that a `ReferenceEngine` plays it. Of a
    pane only its window, its event time and its kind are known. No step learns about bundles. The program is one ParDo
    with state, and other ParDos and Flattens before and after it.

    >>> from penstock.machines.reference_engine import play
    >>> from penstock.machines.records import AddElement
    >>> from penstock.relations.validity import ValidFrom
    >>> from penstock.transforms.window import GlobalWindows
    >>> machine = ProgramMachine(ValidFrom(), Windowing(GlobalWindows()))
    >>> [one.emitted.kind.name for one in play(machine, [AddElement("a", 0), AddElement("b", 5_000_000)])]
    ['INSERT', 'UPDATE_BEFORE', 'UPDATE_AFTER', 'UPDATE_AFTER']
    """

    def __init__(self, program: PTransform[Any, Any], windowing: Windowing) -> None:
        self._windowfn = windowing.windowfn
        self._graph, self._start = _graph_of(program, windowing)
        self._stateful, plain = _steps_of(self._graph, self._start)
        self._processes = {
            step.label: process_of(step.primitive) for step in plain if isinstance(step.primitive, ParDo)
        }
        primitive: Any = self._stateful.primitive
        self._machine = StatefulMachine(StatefulCode(primitive), windowing.allowed_lateness.micros)
        self._key: object = None

    def new_key(self) -> StatefulKey:
        return self._machine.new_key()

    def assign(self, timestamp_micros: int, pair: tuple[Any, Any]) -> tuple[BoundedWindow, ...]:
        """The windows of an element that arrives next."""
        # Only this call of the player contains the key.
        self._key, _ = pair
        context = WindowFn.AssignContext(Timestamp.from_micros(timestamp_micros), element=pair)
        return tuple(self._windowfn.assign(context))

    def element(self, state: StatefulKey, element: Element, times: Times) -> list[Emitted]:
        state.key = self._key
        pane = unknown_pane(element.kind)
        pair = state.key, element.value
        ones = (create(pair, element.timestamp_micros, (window,), pane) for window in element.windows)
        return [emitted for one in ones for emitted in self._walk(self._start, one, state, times)]

    def advance_watermark(self, state: StatefulKey, times: Times) -> list[Emitted]:
        return [*self._after(self._machine.advance_watermark(state, times), state, times)]

    def advance_clock(self, state: StatefulKey, times: Times) -> list[Emitted]:
        return [*self._after(self._machine.advance_clock(state, times), state, times)]

    def signal(self, state: StatefulKey, name: str, times: Times) -> list[Emitted]:
        return []

    def end_micro_batch(self, state: StatefulKey, times: Times) -> list[Emitted]:
        return []

    def hold_micros(self, state: StatefulKey) -> int | None:
        return self._machine.hold_micros(state)

    def alarm_micros(self, state: StatefulKey, domain: Domain) -> int | None:
        return self._machine.alarm_micros(state, domain)

    def snapshot(self, state: StatefulKey) -> bytes:
        return self._machine.snapshot(state)

    def restore(self, data: bytes) -> StatefulKey:
        return self._machine.restore(data)

    def _walk(self, edge: int, one: WindowedValue, state: StatefulKey, times: Times) -> Iterator[Emitted]:
        """The output of the last steps for a value in a PCollection."""
        steps = tuple(self._graph.consumers(edge))
        if not steps:
            _, value = one.value
            yield Pane(value, one.windows[0], one.timestamp_micros, one.pane_info)
        for step in steps:
            if step is self._stateful:
                (_, value), kind = one.value, one.pane_info.kind
                element = Element(value, one.timestamp_micros, tuple(one.windows), kind)
                yield from self._after(self._machine.element(state, element, times), state, times)
                continue
            process = self._processes.get(step.label)
            results = [one] if process is None else results_of(process(ParameterValues(one)), one)
            for result in results:
                yield from self._walk(step.outputs[0].edge, result, state, times)

    def _after(self, reactions: Iterable[Reaction], state: StatefulKey, times: Times) -> Iterator[Emitted]:
        """The output of the last steps for the results of the stateful step."""
        for reaction in reactions:
            if isinstance(reaction, Dropped):
                yield reaction
                continue
            own = create(None, reaction.timestamp_micros, (reaction.window,), reaction.info)
            for one in results_of(reaction.results, own):
                yield from self._walk(self._stateful.outputs[0].edge, one, state, times)


def _graph_of(program: PTransform[Any, Any], windowing: Windowing) -> tuple[Graph, int]:
    """The graph of a pipeline with a program, and the edge that is the program's input."""
    pipeline = Pipeline()
    _ = pipeline | Create([("key", "value")]) | WindowInto(windowing) | program
    graph = pipeline.to_graph()
    assigning = next(step for step in graph.steps if isinstance(step.primitive, AssignWindows))
    return graph, assigning.outputs[0].edge


def _steps_of(graph: Graph, start: int) -> tuple[Step, list[Step]]:
    """The step with state, and the others after the program's input."""
    first = next(number for number, step in enumerate(graph.steps) if step.outputs[0].edge == start)
    steps = graph.steps[first + 1 :]
    stateful = [step for step in steps if isinstance(step.primitive, StatefulParDo)]
    strange = [step for step in steps if not isinstance(step.primitive, ParDo | Flatten) or step.side_inputs]
    if len(stateful) != 1 or strange:
        labels = ", ".join(step.label for step in strange or stateful) or "no step with state"
        what = f"a program must be one ParDo with state between ParDos and Flattens without side inputs, not {labels}"
        raise Malformed(what, hint="use a test instead")
    return stateful[0], [step for step in steps if step is not stateful[0]]
