"""Events of a grouping, as workers record them: bounded, and independent of the order of their reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow, GlobalWindow
from penstock.machines.records import MAX_MICROS, MIN_MICROS, AddElement, Dropped, Element, Emitted, Pane

ARRIVALS, PANES = "Recorded arrivals", "Recorded panes"
"""The last part of the labels of steps that record the input and the output of a grouping."""

VALUE_LENGTH_MAX = 40
"""The maximum number of characters of a value in a recording."""


@dataclass(frozen=True)
class RecordedInput:
    """An element that arrived at a grouping; its key and value are text, see `value_text`.

    The key is empty for elements without keys.
    """

    event_micros: int
    clock_micros: int
    key: str
    value: str
    is_retraction: bool = False
    is_dropped: bool = False  # Whether a window no longer took it.


@dataclass(frozen=True)
class RecordedPane:
    """A pane that a grouping emitted; its key and value are text, see `value_text`.

    The GlobalWindow extends from ``MIN_MICROS`` to ``MAX_MICROS`` of `penstock.machines.records`.
    """

    start_micros: int
    end_micros: int
    clock_micros: int
    key: str
    value: str
    timing: int  # A constant of `penstock.utils.windowed_value.PaneInfoTiming`.
    index: int  # The pane's number in its window.
    is_retraction: bool = False
    is_last: bool = False


class EventPosition(NamedTuple):
    """The time of an event, and its place among the events of that time."""

    clock_micros: int
    step: int = (
        0  # The step of the input: if processing time does not advance, it separates before from after.
    )
    number: int = 0  # Its number among all that a worker has seen.


Row = tuple[EventPosition, Any]
"""The time of an event, and the event: a RecordedInput, a RecordedPane or an event time in microseconds."""


@dataclass(frozen=True)
class RecordedEvents:
    """Elements, panes and watermarks of one grouping, each in order; the first `room` of each if there are more."""

    room: int
    inputs: tuple[Row, ...] = ()
    dropped: tuple[Row, ...] = ()
    panes: tuple[Row, ...] = ()
    watermarks: tuple[Row, ...] = ()  # Each holds from its time on.
    is_complete: bool = True  # Whether nothing had to be left out.

    def combine(self, other: RecordedEvents | None) -> RecordedEvents:
        """Returns the union of both; queries for metrics do not show it.

        >>> one = RecordedEvents(1, watermarks=((EventPosition(3), 7),))
        >>> both = one.combine(RecordedEvents(1, watermarks=((EventPosition(2), 5),)))
        >>> both.watermarks, both.is_complete
        (((EventPosition(clock_micros=2, step=0, number=0), 5),), False)
        """
        if other is None:
            return self
        names = ("inputs", "dropped", "panes", "watermarks")
        kept: dict[str, tuple[Row, ...]] = {}
        is_complete = self.is_complete and other.is_complete
        for name in names:
            rows: tuple[tuple[Row, ...], ...] = (getattr(self, name), getattr(other, name))
            kept[name] = tuple(islice(merge(*rows, key=_order), self.room))
            is_complete = is_complete and sum(map(len, rows)) <= self.room
        return RecordedEvents(self.room, **kept, is_complete=is_complete)


def _order(row: Row) -> tuple[Any, ...]:
    # The text orders two workers' rows of one time, so that the order of their reports does not matter.
    return (*row[0], repr(row[1]))


class Recorder:
    """Records what one worker sees of a grouping: the first `room` elements, panes and watermarks.

    >>> from penstock.transforms.window import IntervalWindow
    >>> recorder = Recorder(10)
    >>> recorder.arrived(EventPosition(5), "game", Element(7, 3, (IntervalWindow(0, 60),)))
    >>> [kept.value for _, kept in recorder.happenings().inputs]
    ['7']
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._rows: dict[str, list[Row]] = {"inputs": [], "dropped": [], "panes": [], "watermarks": []}
        self._is_complete = True
        self._number = 0

    def arrived(self, at: EventPosition, key: object, element: Element) -> None:
        """Records an element that arrives."""
        self._put("inputs", at, lambda: record_input(at.clock_micros, key, element))

    def emitted(self, at: EventPosition, key: object, emitted: Emitted) -> None:
        """Records a pane, or an element that a window dropped."""
        if isinstance(emitted, Dropped):
            self._put("dropped", at, lambda: record_input(at.clock_micros, key, emitted.element))
        else:
            self._put("panes", at, lambda: record_pane(at.clock_micros, key, emitted))

    def watermark(self, at: EventPosition, micros: int) -> None:
        """Records the watermark of the input."""
        self._put("watermarks", at, lambda: micros)

    def happenings(self) -> RecordedEvents:
        """Returns all recorded events."""
        rows = {name: tuple(sorted(found, key=_order)) for name, found in self._rows.items()}
        return RecordedEvents(self._room, **rows, is_complete=self._is_complete)

    def _put(self, name: str, at: EventPosition, make: Callable[[], Any]) -> None:
        rows = self._rows[name]
        if len(rows) >= self._room:
            self._is_complete = False
            return
        self._number += 1
        rows.append((at._replace(number=self._number), make()))


def record_input(
    clock_micros: int, key: object, element: Element | AddElement, is_dropped: bool = False
) -> RecordedInput:
    """Returns an element of a key, as a recording has it."""
    value, is_retraction = value_text(element.value), element.kind.is_retraction
    return RecordedInput(
        element.timestamp_micros, clock_micros, _key_text(key), value, is_retraction, is_dropped
    )


def record_pane(clock_micros: int, key: object, pane: Pane) -> RecordedPane:
    """Returns a pane of a key, as a recording has it."""
    info = pane.info
    return RecordedPane(
        *bounds_of(pane.window),
        clock_micros,
        _key_text(key),
        value_text(pane.value),
        info.timing,
        info.index,
        info.kind.is_retraction,
        info.is_last,
    )


def _key_text(key: object) -> str:
    return "" if key is None else value_text(key)


def value_text(value: object) -> str:
    """Returns a value as a drawing shows it, in at most `VALUE_LENGTH_MAX` characters.

    >>> value_text("v1"), value_text(1.283333), value_text(["a", 2])
    ('v1', '1.283', '[a, 2]')
    >>> value_text(None), len(value_text("x" * 100))
    ('None', 40)
    """
    text = _text(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[: VALUE_LENGTH_MAX - 1]}…"


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case float():
            return f"{value:.4g}" if abs(value) < 1e4 else f"{value:g}"
        case list():
            # A group may have many values: one more than fit is enough.
            return f"[{', '.join(map(_text, value[: VALUE_LENGTH_MAX + 1]))}]"
        case tuple():
            return f"({', '.join(map(_text, value[: VALUE_LENGTH_MAX + 1]))})"
        case _:
            return repr(value)


def bounds_of(window: BoundedWindow) -> tuple[int, int]:
    """Returns the bounds of a window; a user's window without a start begins at the earliest timestamp."""
    if isinstance(window, GlobalWindow):
        return MIN_MICROS, MAX_MICROS
    try:
        return window.start.micros, window.end_micros
    except NotImplementedError:
        return MIN_MICROS, window.end_micros
