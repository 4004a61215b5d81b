"""A scenario as a part of a pipeline: what happens, its grouping, and all that can be seen of what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.functions.dofn import DoFn
from penstock.io.each_batch import WriteToMemory
from penstock.machines.records import Dropped, DropReason, Element, Pane, Played
from penstock.transforms.changelog import Changelog
from penstock.transforms.combine import CombinePerKey
from penstock.transforms.grouping import Flatten, GroupByKey
from penstock.transforms.pardo import ParDo
from penstock.transforms.windowing import WindowInto
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import ValueKind, WindowedValue
from penstock.windows.triggers import AccumulationMode, AfterCount, Repeatedly
from penstock.windows.window_fn import GlobalWindows
from penstock_conformance.programs import Program

GROUPING = "Grouping"
"""The label of a scenario's grouping, or of what stands in its place, below its own."""

_INTO_RETRACTIONS = WindowInto(
    GlobalWindows(),
    Repeatedly(AfterCount(1)),
    AccumulationMode.ACCUMULATING_AND_RETRACTING,
)


class Branch(PTransform[Any, Any]):
    """A scenario as a part of a pipeline.

    Args:
        source: What happens: elements are (key, value); or (number, (key, value, event time in microseconds, whether
            it is taken back)) where the scenario's elements may be retractions.
        program: The grouping.
        into: A list for what comes out, which `played_of` understands.

    Attributes:
        panes: What comes out of the grouping, once the branch is a part of a pipeline.

    Example: ``pipeline | Branch(TestStream(events=tape.events), program_of(scenario), found)``.
    """

    def __init__(self, source: PTransform[Any, Any], program: Program, into: list[Any]) -> None:
        super().__init__()
        self._source = source
        self._program = program
        self._into = into
        self.panes: PCollection[Any] | None = None

    def expand(self, pbegin: PBegin) -> Any:
        """The written elements."""
        program = self._program
        elements: PCollection[Any] = pbegin | "What happens" >> self._source
        if program.input_retracts:
            # A pipeline knows that elements may take others back if they come from a grouping that gives such.
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
    """What can be seen of elements, as data that no windows and no retractions belong to any more.

    Args:
        show: Makes data of an element.
    """

    def __init__(self, show: _Show) -> None:
        super().__init__()
        self._show = show

    def expand(self, elements: PCollection[Any]) -> Any:
        """The data, each with its kind."""
        return elements | ParDo(self._show) | Changelog() | WindowInto(GlobalWindows())


class _TakeBack(DoFn):
    """Gives each element as what it is: one that adds its value, or one that takes it back."""

    def process(self, element: Any, windowed: Any = DoFn.WindowedValueParam) -> Iterator[Any]:
        """The element, unless it has come before."""
        _, group = element
        pane = windowed.pane_info
        if pane.index == 0 and not pane.kind.is_retraction:
            [(key, value, micros, is_taken_back)] = group
            pane = replace(pane, kind=ValueKind.DELETE if is_taken_back else ValueKind.INSERT)
            # A pane of late elements has not their time.
            yield WindowedValue((key, value), Timestamp.from_micros(micros), windowed.windows, pane)


class _Show(DoFn):
    """Makes plain data of a pane, or of an element that came too late, and of all that belongs to it."""

    def __init__(self, is_list: bool = False, is_late: bool = False) -> None:
        self._is_list = is_list
        self._is_late = is_late

    def process(self, element: Any, windowed: Any = DoFn.WindowedValueParam) -> Iterator[tuple[Any, ...]]:
        """The data, as `played_of` takes it."""
        key, value = element
        value = list(value) if self._is_list else value
        yield self._is_late, key, value, windowed.windows, windowed.timestamp_micros, windowed.pane_info


def played_of(step: int, clock_micros: int, seen: Any) -> Played:
    """What came out, as the machines tell it.

    Args:
        step: The number of the event that caused it.
        clock_micros: Processing time.
        seen: What a `Branch` wrote. It does not tell why an element was dropped; each is said to have been too late.

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
    return Played(step, clock_micros, key, emitted)
