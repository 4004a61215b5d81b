"""Beam's times, windows, panes and outputs beside penstock's; each becomes the other at the edge of user code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from apache_beam import pvalue as beam_pvalue
from apache_beam.transforms import window as beam_window
from apache_beam.utils import timestamp as beam_timestamp
from apache_beam.utils import windowed_value as beam_windowed_value

from penstock.construction.pvalue import EmptySideInput
from penstock.elements.bounded_window import (
    BoundedWindow,
    GlobalWindow,
    IntervalWindow,
    TimestampedValue,
    check_event_times,
)
from penstock.elements.tagged_output import TaggedOutput
from penstock.utils.timestamp import Duration, Timestamp
from penstock.utils.windowed_value import PaneInfo, WindowedValue, create
from penstock_spark.beam import metrics as metrics  # User code that makes these values may also count.
from penstock_spark.beam.quick_times import micros_of
from penstock_spark.worker.outputs import Timed

_KEPT_WINDOWS = 4096


class WindowAdapter(BoundedWindow):
    """A window of a class that Beam does not define.

    >>> from apache_beam.transforms.window import BoundedWindow
    >>> class Season(BoundedWindow):
    ...     def __init__(self, name, end):
    ...         super().__init__(end)
    ...         self.name = name
    >>> WindowAdapter(Season("spring", 90)).end
    Timestamp(90)
    """

    __slots__ = ("window",)

    def __init__(self, window: beam_window.BoundedWindow) -> None:
        self.window = window
        self.end_micros = window.end.micros

    @property
    def start(self) -> Timestamp:
        return Timestamp.from_micros(self.window.start.micros)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowAdapter) and bool(self.window == other.window)

    def __hash__(self) -> int:
        return hash(self.window)

    def __reduce__(self) -> tuple[type[WindowAdapter], tuple[Any]]:
        return WindowAdapter, (self.window,)

    def __repr__(self) -> str:
        return repr(self.window)


def window_of(window: beam_window.BoundedWindow) -> BoundedWindow:
    """Converts a Beam window to penstock's."""
    kind = type(window)
    if kind is beam_window.IntervalWindow:
        return IntervalWindow.from_micros(window.start.micros, window.end.micros)
    if kind is beam_window.GlobalWindow:
        return GlobalWindow()
    return WindowAdapter(window)


@functools.lru_cache(_KEPT_WINDOWS)
def beam_window_of(window: BoundedWindow) -> beam_window.BoundedWindow:
    """Converts a penstock window to Beam's."""
    if isinstance(window, WindowAdapter):
        return window.window
    if isinstance(window, GlobalWindow):
        return beam_window.GlobalWindow()
    return beam_window.IntervalWindow(beam_time_of(window.start), beam_time_of(window.end))


def time_of(time: object) -> Timestamp:
    """Converts a Beam time, or a number of seconds, to penstock's."""
    return Timestamp.from_micros(beam_timestamp.Timestamp.of(time).micros)


def beam_time_of(time: Timestamp) -> beam_timestamp.Timestamp:
    """Converts a penstock time to Beam's."""
    return beam_timestamp.Timestamp(micros=time.micros)


def duration_of(duration: object) -> Duration:
    """Converts a Beam duration, or a number of seconds, to penstock's."""
    return Duration(micros=beam_timestamp.Duration.of(duration).micros)


@functools.lru_cache(256)
def pane_of(pane: beam_windowed_value.PaneInfo) -> PaneInfo:
    """Converts a Beam pane to penstock's."""
    return PaneInfo(pane.is_first, pane.is_last, pane.timing, pane.index, pane.nonspeculative_index)


@functools.lru_cache(256)
def beam_pane_of(pane: PaneInfo) -> beam_windowed_value.PaneInfo:
    """Converts a penstock pane to Beam's."""
    fields = (pane.is_first, pane.is_last, pane.timing, pane.index, pane.nonspeculative_index)
    return beam_windowed_value.PaneInfo(*fields)


def beam_windowed_value_of(value: WindowedValue) -> beam_windowed_value.WindowedValue:
    """Converts a penstock element with its metadata to Beam's."""
    windows = tuple(map(beam_window_of, value.windows))
    pane = beam_pane_of(value.pane_info)
    return beam_windowed_value.create(value.value, value.timestamp_micros, windows, pane)


_NEW = TimestampedValue.__new__


def _times_micros(outputs: Sequence[Any]) -> list[int]:
    return check_event_times(micros_of([output.timestamp for output in outputs]))


def _translate_timestamped(output: beam_window.TimestampedValue) -> TimestampedValue[Any]:
    # There may be one for each element, and the time has been checked already.
    made: TimestampedValue[Any] = _NEW(TimestampedValue)
    made.value, [made.timestamp_micros] = output.value, check_event_times([output.timestamp.micros])
    return made


def _translate_windowed(output: beam_windowed_value.WindowedValue) -> WindowedValue:
    windows = tuple(map(window_of, output.windows))
    return create(output.value, output.timestamp.micros, windows, pane_of(output.pane_info))


def _translate_tagged(output: beam_pvalue.TaggedOutput) -> TaggedOutput[Any, Any]:
    return TaggedOutput(output.tag, output_of(output.value))


OUTPUT_KINDS: Mapping[type, Callable[[Any], Any]] = {
    beam_pvalue.TaggedOutput: _translate_tagged,
    beam_window.TimestampedValue: Timed(_translate_timestamped, _times_micros),
    beam_windowed_value.WindowedValue: _translate_windowed,
}
"""Functions that convert the outputs of a Beam DoFn with metadata to penstock's, by class."""


def output_of(output: object) -> object:
    """Converts an output of a DoFn to penstock's terms; a plain element stays unchanged."""
    change = OUTPUT_KINDS.get(type(output))
    return output if change is None else change(output)


def outputs_of(outputs: Iterable[Any] | None) -> Iterator[Any] | None:
    """Returns the outputs of a method; None if there are none."""
    return None if outputs is None else map(output_of, outputs)


_ARGUMENTS: Mapping[type, Callable[[Any], Any]] = {
    EmptySideInput: lambda _: beam_pvalue.EmptySideInput(),
    GlobalWindow: beam_window_of,
    WindowAdapter: beam_window_of,
    IntervalWindow: beam_window_of,
    PaneInfo: beam_pane_of,
    Timestamp: beam_time_of,
    WindowedValue: beam_windowed_value_of,
}


def argument_of(value: object) -> object:
    """Converts an argument from penstock's class to the one that a Beam DoFn expects; other values stay unchanged.

    >>> argument_of(Timestamp(5))
    Timestamp(5)
    >>> type(argument_of(Timestamp(5))).__module__
    'apache_beam.utils.timestamp'
    """
    change = _ARGUMENTS.get(type(value))
    return value if change is None else change(value)
