"""Prints elements as lines on the console of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock import graph
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.elements.bounded_window import BoundedWindow, IntervalWindow
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.io.sink_transforms import SinkTransform
from penstock.relations.changelog import Changelog
from penstock.transforms.elements.pardo import Map
from penstock.utils.timestamp import format_time

__all__ = ["ConsoleSink", "WriteToConsole"]


@dataclass(frozen=True)
class ConsoleSink(graph.Sink):
    """Strings that the driver prints as lines: at most `limit` of each micro-batch, or of a whole batch.

    One more line then shows how many are missing. None prints all.
    """

    limit: int | None = None

    def describe(self) -> str:
        return "console"


class WriteToConsole(PTransform[Any, Any]):
    """Prints each element as a line, where the program runs (penstock's own).

    If elements may be retractions, a line begins with ``+`` for a new value or ``-`` for a retracted one.

    Args:
        prefix: The beginning of each line.
        limit: The maximum number of lines to print of each micro-batch, or of a whole batch; one more line then shows
            how many were left out.
        windows: Whether a line ends with the element's window, in UTC. An element in several windows has several lines.

    Example: ``totals | WriteToConsole("total: ", windows=True)``.
    """

    def __init__(self, prefix: str = "", limit: int | None = None, *, windows: bool = False) -> None:
        super().__init__()
        if not isinstance(prefix, str):
            what = f"prefix must be a string, but is {prefix!r}"
            raise refusal(TypeError, what, hint='write prefix="total: ", for example')
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
            what = f"limit must be an integer, but is {limit!r}"
            raise refusal(TypeError, what, hint="leave it out for no limit")
        if limit is not None and limit < 1:
            what = f"limit must be 1 or more, but is {limit}"
            raise refusal(ValueError, what, hint="leave it out for no limit")
        self._prefix = prefix
        self._limit = limit
        self._windows = windows

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        has_changes = may_retract(pcoll)
        elements = pcoll | "Changes" >> Changelog() if has_changes else pcoll
        line = _Line(self._prefix, has_changes)
        to_lines = Map(_in_window, line) if self._windows else Map(line)
        lines = elements | "Lines" >> to_lines.with_output_types(str)
        result: PCollection[Any] = lines | "Print" >> SinkTransform(ConsoleSink(self._limit))
        return result


@dataclass(frozen=True)
class _Line:
    """The text of an element, or of a change.

    >>> from penstock.utils.windowed_value import ValueKind
    >>> _Line("goals: ", False)(3), _Line("", True)((ValueKind.UPDATE_BEFORE, 3))
    ('goals: 3', '- 3')
    """

    prefix: str
    is_change: bool

    def __call__(self, element: Any) -> str:
        if not self.is_change:
            return f"{self.prefix}{element}"
        kind, value = element
        return f"{self.prefix}{'-' if kind.is_retraction else '+'} {value}"


def _in_window(element: object, line: _Line, window: BoundedWindow = DoFn.WindowParam) -> str:
    return f"{line(element)} in {_window_text(window)}"


def _window_text(window: BoundedWindow) -> str:
    """A window for people to read.

    >>> _window_text(IntervalWindow(0, 60)), _window_text(IntervalWindow(0, 10**12))
    ('[1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z)', '[1970-01-01T00:00:00Z, Timestamp(1000000000000))')
    """
    if type(window) is not IntervalWindow:
        return str(window)
    return f"[{format_time(window.start)}, {format_time(window.end)})"
