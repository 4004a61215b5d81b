"""Elements as lines of the console, where the program runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock import graph
from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.base.where import here
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import three_parts
from penstock.functions.dofn import DoFn
from penstock.io.primitive import SinkTransform
from penstock.transforms.changelog import Changelog
from penstock.transforms.pardo import Map
from penstock.transforms.retractions import may_retract
from penstock.utils.timestamp import Timestamp

__all__ = ["ConsoleSink", "WriteToConsole"]


@dataclass(frozen=True)
class ConsoleSink(graph.Sink):
    """Texts that the driver prints, each as a line.

    Attributes:
        limit: How many of each micro-batch are printed at most, or in batch mode of all, before a line that says how
            many more there are; None prints all.

    >>> ConsoleSink(20).describe()
    'console'
    """

    limit: int | None = None

    def describe(self) -> str:
        """One line for `explain`."""
        return "console"


class WriteToConsole(PTransform[Any, Any]):
    """Prints each element as a line, where the program runs (penstock's own).

    Where elements may take back earlier ones, a line begins with ``+`` or ``-``: a value comes, or goes.

    Args:
        prefix: What each line begins with.
        limit: How many lines to print of each micro-batch at most, or in batch mode of all; one more line then says how
            many there are besides.
        windows: Whether a line ends with the element's window, in UTC. An element in several windows is several lines.

    Raises:
        TypeError: `prefix` is no text, or `limit` no whole number.
        ValueError: `limit` is not positive.

    Example: ``totals | WriteToConsole("total: ", windows=True)``.

    >>> WriteToConsole("total: ").label
    'WriteToConsole'
    """

    def __init__(self, prefix: str = "", limit: int | None = None, *, windows: bool = False) -> None:
        super().__init__()
        if not isinstance(prefix, str):
            what = f"prefix must be a text, but is {prefix!r}"
            raise TypeError(three_parts(what, where=here(), hint='write prefix="total: ", for example'))
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
            what = f"limit must be a whole number, but is {limit!r}"
            raise TypeError(three_parts(what, where=here(), hint="leave it out for no limit"))
        if limit is not None and limit < 1:
            what = f"limit must be 1 or more, but is {limit}"
            raise ValueError(three_parts(what, where=here(), hint="leave it out for no limit"))
        self._prefix = prefix
        self._limit = limit
        self._windows = windows

    def expand(self, pcoll: Any) -> PCollection[Any]:
        """Changes, if there are any; lines; the console."""
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


def _in_window(element: Any, line: _Line, window: Any = DoFn.WindowParam) -> str:
    return f"{line(element)} in {_window_text(window)}"


def _window_text(window: BoundedWindow) -> str:
    """A window as people read it.

    >>> _window_text(IntervalWindow(0, 60)), _window_text(IntervalWindow(0, 10**12))
    ('[1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z)', '[1970-01-01T00:00:00Z, Timestamp(1000000000000))')
    """
    if type(window) is not IntervalWindow:
        return str(window)
    return f"[{_moment_text(window.start)}, {_moment_text(window.end)})"


def _moment_text(moment: Timestamp) -> str:
    try:
        return moment.to_rfc3339()
    except OverflowError:
        # The ends of time are no years of the calendar.
        return str(moment)
