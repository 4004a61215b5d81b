"""A scenario as a part of a pipeline: its events, its grouping, and everything that is visible of the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.functions.dofn import DoFn
from penstock.io.each_batch import WriteToMemory
from penstock.machines.records import Dropped, DropReason, Element, EventOutput, Pane
from penstock.relations.changelog import Changelog
from penstock.transforms.combining.combine import CombinePerKey
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.transforms.grouping.windowing import WindowInto
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import ValueKind, WindowedValue
from penstock.windows.triggers import AccumulationMode, AfterCount, Repeatedly
from penstock.windows.window_fn import GlobalWindows
from penstock_conformance.programs import Program

GROUPING = "Grouping"
"""The label of a scenario's grouping, or of the program in its place, below the scenario's label."""

_INTO_RETRACTIONS = WindowInto(
    GlobalWindows(),
    Repeatedly(AfterCount(1)),
    AccumulationMode.ACCUMULATING_AND_RETRACTING,
)


class Branch(PTransform[Any, Any]):
    """A scenario as a part of a pipeline, whose output, for `played_of`, is appended to the list `into`.

    The source emits (key, value). If the scenario's elements may be retractions, it emits (number, (key, value, event
    time in microseconds, whether it is a retraction)). `panes` is the output of the grouping, once the branch is
    applied.

    Example: ``pipeline | Branch(TestStream(events=tape.events), program_of(scenario), found)``.
    """

    def __init__(self, source: PTransform[Any, Any], program: Program, into: list[Any]) -> None:
        super().__init__()
        self._source = source
        self._program = program
        self._into = into
        self.panes: PCollection[Any] | None = None

    def expand(self, pbegin: PBegin) -> PCollection[Any]:
        program = self._program
        elements: PCollection[Any] = pbegin | "What happens" >> self._source
        if program.input_retracts:
            # A pipeline expects retractions only from a grouping that retracts.
            one_by_one = elements | "One by one" >> _INTO_RETRACTIONS | "Each" >> GroupByKey()
            elements = one_by_one | "Taken back" >> ParDo(_TakeBack())
        windows = elements | "Windows" >> WindowInto(program.windowing)
        if program.transform is not None:
            self.panes = windows | GROUPING >> program.transform
            return self.panes | "Panes" >> _Seen(_Show()) | "Write" >> WriteToMemory(self._into)
        combine = program.combine
        grouping = GroupByKey() if combine is None else CombinePerKey(combine)
        panes, late = windows | GROUPING >> grouping.with_late_data()
        self.panes = panes
        seen = (
            panes | "Panes" >> _Seen(_Show(is_list=combine is None)),
            late | "Late" >> _Seen(_Show(is_late=True)),
        )
        return seen | Flatten() | "Write" >> WriteToMemory(self._into)


class _Seen(PTransform[Any, Any]):
    """Makes data of what is visible of elements, without windows and retractions."""

    def __init__(self, show: _Show) -> None:
        super().__init__()
        self._show = show

    def expand(self, elements: PCollection[Any]) -> PCollection[Any]:
        return elements | ParDo(self._show) | Changelog() | WindowInto(GlobalWindows())


class _TakeBack(DoFn):
    """Gives each element as what it is: an insertion or a retraction."""

    def process(
        self, element: tuple[Any, Any], windowed: WindowedValue = DoFn.WindowedValueParam
    ) -> Iterator[Any]:
        _, group = element
        pane = windowed.pane_info
        if pane.index == 0 and not pane.kind.is_retraction:
            [(key, value, micros, is_taken_back)] = group
            pane = replace(pane, kind=ValueKind.DELETE if is_taken_back else ValueKind.INSERT)
            # The time of a late pane is not the time of its elements.
            yield WindowedValue((key, value), Timestamp.from_micros(micros), windowed.windows, pane)


class _Show(DoFn):
    """Turns a pane or a late element, with everything that belongs to it, into plain data."""

    def __init__(self, is_list: bool = False, is_late: bool = False) -> None:
        self._is_list = is_list
        self._is_late = is_late

    def process(
        self, element: tuple[Any, Any], windowed: WindowedValue = DoFn.WindowedValueParam
    ) -> Iterator[tuple[Any, ...]]:
        key, value = element
        value = list(value) if self._is_list else value
        yield self._is_late, key, value, windowed.windows, windowed.timestamp_micros, windowed.pane_info


def played_of(step: int, clock_micros: int, seen: Any) -> EventOutput:
    """The output of a `Branch`, as the machines describe it, for the number of an event and a processing time.

    It does not contain why an element was dropped; each counts as expired.

    >>> from penstock.utils.windowed_value import PANE_INFO_UNKNOWN
    >>> seen = ValueKind.INSERT, (True, "key", 5, (), 3_000_000, PANE_INFO_UNKNOWN)
    >>> played_of(0, 0, seen).emitted.reason.name
    'EXPIRED'
    """
    kind, (is_late, key, value, windows, timestamp_micros, info) = seen
    emitted: Pane | Dropped
    if is_late:
        emitted = Dropped(Element(value, timestamp_micros, tuple(windows), kind), DropReason.EXPIRED)
    else:
        [window] = windows
        emitted = Pane(value, window, timestamp_micros, info)
    return EventOutput(step, clock_micros, key, emitted)
