"""What a run has seen of a grouping, as its workers write it down: bounded, and whoever reports first, the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from penstock.figures.played import STEP_MICROS, bounds_of
from penstock.figures.recording import RecordedInput, RecordedPane, Recording, value_text
from penstock.machines.records import MAX_MICROS, Dropped, Element, Emitted, Pane


class At(NamedTuple):
    """When something happened.

    Attributes:
        clock_micros: Processing time.
        step: The step of the input; where processing time stands still, this tells before from after.
        number: Its number among all that a worker has seen.
    """

    clock_micros: int
    step: int = 0
    number: int = 0


_Row = tuple[At, Any]
"""When, and a RecordedInput, a RecordedPane or an event time in microseconds."""


@dataclass(frozen=True)
class Happenings:
    """Elements, panes and watermarks of one grouping, each in order; the first ones, if there are too many.

    Attributes:
        room: How many of each are kept.
        inputs: Elements that arrived, as (when, RecordedInput).
        dropped: Those that were dropped, likewise.
        panes: Panes, as (when, RecordedPane).
        watermarks: Where the watermark of the input was from then on, as (when, microseconds).
        is_complete: Whether nothing had to be left out.
    """

    room: int
    inputs: tuple[_Row, ...] = ()
    dropped: tuple[_Row, ...] = ()
    panes: tuple[_Row, ...] = ()
    watermarks: tuple[_Row, ...] = ()
    is_complete: bool = True

    def combine(self, other: Happenings | None) -> Happenings:
        """The union of both; queries for metrics do not show it.

        >>> one = Happenings(1, watermarks=((At(3), 7),))
        >>> both = one.combine(Happenings(1, watermarks=((At(2), 5),)))
        >>> both.watermarks, both.is_complete
        (((At(clock_micros=2, step=0, number=0), 5),), False)
        """
        if other is None:
            return self
        names = ("inputs", "dropped", "panes", "watermarks")
        kept: dict[str, tuple[_Row, ...]] = {}
        is_complete = self.is_complete and other.is_complete
        for name in names:
            rows: tuple[tuple[_Row, ...], ...] = (getattr(self, name), getattr(other, name))
            kept[name] = tuple(islice(merge(*rows, key=_order), self.room))
            is_complete = is_complete and sum(map(len, rows)) <= self.room
        return Happenings(self.room, **kept, is_complete=is_complete)


def _order(row: _Row) -> tuple[Any, ...]:
    # Of two workers' rows at one moment the text decides, so that it does not matter who reports first.
    return (*row[0], repr(row[1]))


class Recorder:
    """Writes down what one worker sees of a grouping.

    Args:
        room: How many elements, panes and watermarks are kept; the first ones.

    >>> from penstock.transforms.window import IntervalWindow
    >>> recorder = Recorder(10)
    >>> recorder.arrived(At(5), "game", Element(7, 3, (IntervalWindow(0, 60),)))
    >>> [kept.value for _, kept in recorder.happenings().inputs]
    ['7']
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._rows: dict[str, list[_Row]] = {"inputs": [], "dropped": [], "panes": [], "watermarks": []}
        self._is_complete = True
        self._number = 0

    def arrived(self, at: At, key: Any, element: Element) -> None:
        """An element arrives."""
        self._put("inputs", at, lambda: _recorded_input(at, key, element))

    def emitted(self, at: At, key: Any, emitted: Emitted) -> None:
        """A pane comes out, or an element that arrived is dropped."""
        if isinstance(emitted, Dropped):
            self._put("dropped", at, lambda: _recorded_input(at, key, emitted.element))
        else:
            self._put("panes", at, lambda: _recorded_pane(at, key, emitted))

    def watermark(self, at: At, micros: int) -> None:
        """The watermark of the input is there now."""
        self._put("watermarks", at, lambda: micros)

    def happenings(self) -> Happenings:
        """All that was seen."""
        rows = {name: tuple(sorted(found, key=_order)) for name, found in self._rows.items()}
        return Happenings(self._room, **rows, is_complete=self._is_complete)

    def _put(self, name: str, at: At, make: Any) -> None:
        rows = self._rows[name]
        if len(rows) >= self._room:
            self._is_complete = False
            return
        self._number += 1
        rows.append((at._replace(number=self._number), make()))


def _recorded_input(at: At, key: Any, element: Element) -> RecordedInput:
    return RecordedInput(
        element.timestamp_micros,
        at.clock_micros,
        _key_text(key),
        value_text(element.value),
        element.kind.is_retraction,
    )


def _recorded_pane(at: At, key: Any, pane: Pane) -> RecordedPane:
    info = pane.info
    return RecordedPane(
        *bounds_of(pane.window),
        at.clock_micros,
        _key_text(key),
        value_text(pane.value),
        info.timing,
        info.index,
        info.kind.is_retraction,
        info.is_last,
    )


def _key_text(key: Any) -> str:
    return "" if key is None else value_text(key)


def recording_of_run(happenings: Happenings, title: str, mode: str) -> Recording:
    """What was seen of a grouping, as a recording.

    Args:
        happenings: What the workers have written down.
        title: What the recording shows.
        mode: ``batch``, ``micro_batch`` or ``streaming``.

    >>> seen = Happenings(9, watermarks=((At(0, 1), 5), (At(0, 2), 9)))
    >>> recording = recording_of_run(seen, "a stream without a clock", "streaming")
    >>> recording.counts_steps, recording.watermark
    (True, ((1000000, 5), (2000000, 9)))
    """
    if mode == "batch":
        happenings = _in_event_time(happenings)
    when = [at for at, _ in (*happenings.inputs, *happenings.panes, *happenings.watermarks)]
    are_steps = len({at.clock_micros for at in when}) <= 1
    steps = {step: number for number, step in enumerate(sorted({at.step for at in when}), 1)}

    def clock_of(at: At) -> int:
        return steps[at.step] * STEP_MICROS if are_steps else at.clock_micros

    watermarks = tuple(_moves(happenings.watermarks))
    return Recording(
        title,
        tuple(_inputs(happenings, clock_of, {} if are_steps else _first_steps(watermarks))),
        tuple(replace(pane, clock_micros=clock_of(at)) for at, pane in happenings.panes),
        tuple((clock_of(at), micros) for at, micros in watermarks),
        mode,
        happenings.is_complete,
        counts_steps=are_steps,
    )


def _inputs(
    happenings: Happenings, clock_of: Callable[[At], int], moved: dict[int, int]
) -> Iterator[RecordedInput]:
    lost = [found for _, found in happenings.dropped]
    for at, found in happenings.inputs:
        # At one instant elements come before the watermark. This one came after it, though at the same time.
        is_after = at.step > moved.get(at.clock_micros, at.step)
        is_lost = found in lost
        if is_lost:
            lost.remove(found)
        yield replace(found, clock_micros=clock_of(at) + is_after, is_dropped=is_lost)


def _first_steps(watermarks: Iterable[_Row]) -> dict[int, int]:
    """The first step at which the watermark moved, by processing time."""
    return {at.clock_micros: at.step for at, _ in reversed([*watermarks])}


def _moves(rows: Iterable[_Row]) -> Iterator[_Row]:
    """The watermarks that differ from the one before."""
    before: int | None = None
    for at, micros in rows:
        if micros != before:
            before = micros
            yield at, micros


def _in_event_time(happenings: Happenings) -> Happenings:
    """A batch in order of event time, a step each; its end, at which all panes come, is the last step."""
    inputs = sorted((found for _, found in happenings.inputs), key=lambda found: found.event_micros)
    end = At(0, len(inputs))
    return replace(
        happenings,
        inputs=tuple((At(0, step), found) for step, found in enumerate(inputs)),
        panes=_at(end, happenings.panes),
        watermarks=((end, MAX_MICROS),),
    )


def _at(at: At, rows: Sequence[_Row]) -> tuple[_Row, ...]:
    return tuple((at, found) for _, found in rows)
