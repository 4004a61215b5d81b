"""Recordings of the bare machine, which show how a windowing behaves without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.io.streaming.recorded_stream import (
    ElementEvent,
    MicroBatchEvent,
    ProcessingTimeEvent,
    WatermarkEvent,
)
from penstock.machines.grouping import GroupingMachine
from penstock.machines.recorder import RecordedInput, RecordedPane, record_input, record_pane
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Dropped,
    EndMicroBatch,
    Event,
    EventOutput,
    Pane,
)
from penstock.machines.reference_engine import play
from penstock.testing.test_stream import TestStream
from penstock.windows.windowing import Windowing
from penstock_figures.recording import Recording

STEP_MICROS = 1_000_000


def recording_of_played(
    events: Sequence[Event],
    played: Iterable[EventOutput],
    *,
    title: str = "",
    mode: str = "streaming",
    ends_input: bool = False,
    epoch_micros: int = 0,
) -> Recording:
    """Returns a recording of a run on the bare machine.

    If processing time does not advance, each event is one step. The watermark of a micro-batch belongs to its round: it
    stays at the beginning of time until the round ends, and is then at the end of time for an instant.

    Args:
        events: The input of `penstock.machines.reference_engine.play`, or of a `ReferenceEngine`; a batch may get it in
            any order.
        played: The output.
        title: What the recording shows.
        mode: The mode in which it was played.
        ends_input: Whether the input has ended; in batch it always has.
        epoch_micros: The zero of the labels of both axes.

    >>> from penstock.transforms.window import FixedWindows
    >>> machine = GroupingMachine(Windowing(FixedWindows(10)), CombineFn.from_callable(sum))
    >>> events = [AddElement(5, 3_000_000, 8_000_000), AdvanceWatermark(10_000_000, 12_000_000)]
    >>> recording = recording_of_played(events, play(machine, events))
    >>> [(pane.value, pane.clock_micros) for pane in recording.panes], recording.watermark
    ([('5', 12000000)], ((12000000, 10000000),))
    """
    results = list(played)
    ends_input = ends_input or mode == "batch" or any(one.step >= len(events) for one in results)
    clocks = _Clocks(events)
    dropped = {one.step for one in results if isinstance(one.emitted, Dropped)}
    watermark = tuple(_watermark(events, clocks, mode, ends_input))
    return Recording(
        title,
        tuple(_inputs(events, clocks, dropped, watermark if mode == "streaming" else ())),
        tuple(_panes(results, clocks)),
        watermark,
        mode,
        epoch_micros=0 if clocks.are_steps else epoch_micros,
        counts_steps=clocks.are_steps,
    )


def recording_of_test_stream(
    test_stream: TestStream,
    windowing: Windowing,
    combine: CombineFn | Callable[..., Any] | None = None,
    mode: str = "streaming",
    *,
    title: str = "",
    tag: str | None = None,
    epoch: float = 0,
) -> Recording:
    """Returns a recording of how a grouping would process a `TestStream`, without any engine.

    Args:
        test_stream: The stream; its elements are pairs of a key and a value, or plain values without keys.
        windowing: ``Windowing(FixedWindows(60), AfterCount(2), ...)``, which takes the arguments of ``WindowInto``.
        combine: A CombineFn, or a function such as ``sum``; without it, panes are lists.
        mode: ``batch``, ``micro_batch`` or ``streaming``.
        title: What the recording shows.
        tag: The output of the stream to group; None for the main one.
        epoch: The zero of the labels of both axes, in seconds since 1970.

    >>> from penstock.transforms.window import FixedWindows
    >>> stream = TestStream().add_elements([("game", 7)], event_timestamp=3).advance_watermark_to(10)
    >>> recording = recording_of_test_stream(stream, Windowing(FixedWindows(10)), sum)
    >>> [(pane.key, pane.value) for pane in recording.panes], recording.counts_steps
    ([('game', '7')], True)
    """
    if tag not in (test_stream.output_tags or {None}):
        what = f"the TestStream has no output {tag!r}"
        raise refusal(ValueError, what, hint="pass the tag of one of its outputs")
    events = list(_events_of(test_stream, tag))
    combine = None if combine is None else CombineFn.maybe_from_callable(combine)
    played = play(GroupingMachine(windowing, combine), events, mode, finish=True)
    return recording_of_played(
        events, played, title=title, mode=mode, ends_input=True, epoch_micros=round(epoch * 1_000_000)
    )


def _events_of(test_stream: TestStream, tag: str | None) -> Iterator[Event]:
    clock_micros = 0
    tells_time = any(isinstance(event, ProcessingTimeEvent) for event in _written(test_stream))
    is_due = False
    for event in _written(test_stream):
        now = clock_micros if tells_time else None
        match event:
            case ElementEvent(values, event_tag) if event_tag == tag:
                for timestamped in values:
                    key, value = _key_and_value(timestamped.value)
                    yield AddElement(value, timestamped.timestamp_micros, now, key)
            case WatermarkEvent(new_watermark, event_tag) if event_tag == tag:
                yield AdvanceWatermark(min(new_watermark.micros, MAX_MICROS), now)
            case ProcessingTimeEvent(advance_by, due_first):
                if is_due:
                    yield AdvanceClock(clock_micros)
                clock_micros += advance_by.micros
                is_due = not due_first
                if due_first:
                    yield AdvanceClock(clock_micros)
            case MicroBatchEvent():
                yield EndMicroBatch(now)
    if is_due:
        yield AdvanceClock(clock_micros)


def _written(test_stream: TestStream) -> tuple[Any, ...]:
    source: Any = test_stream.to_primitive().source
    return tuple(source.events)


def _key_and_value(element: object) -> tuple[Any, Any]:
    match element:
        case (key, value) if isinstance(element, tuple):
            return key, value
        case _:
            return None, element


class _Clocks:
    """The places of everything on the axis of processing time."""

    def __init__(self, events: Sequence[Event]) -> None:
        told = [event.clock_micros for event in events if event.clock_micros is not None]
        self.are_steps = len(set(told)) <= 1
        self._first = told[0] if told else 0
        # Before the first event with a time, that time holds; without any, processing time does not advance.
        so_far = accumulate((event.clock_micros for event in events), _later, initial=self._first)
        times = list(so_far)[1:]
        self._by_step = [
            (step + 1) * STEP_MICROS if self.are_steps else time for step, time in enumerate(times)
        ]
        last = self._by_step[-1] if self._by_step else self._first
        self.end_micros = last + STEP_MICROS if self.are_steps else last

    def of_step(self, step: int) -> int:
        return self._by_step[step] if step < len(self._by_step) else self.end_micros

    def of_played(self, one: EventOutput) -> int:
        if self.are_steps or one.step >= len(self._by_step):
            return self.of_step(one.step)
        return max(one.clock_micros, self._first)


def _later(before: int, clock_micros: int | None) -> int:
    return before if clock_micros is None else clock_micros


def _watermark(
    events: Sequence[Event], clocks: _Clocks, mode: str, ends_input: bool
) -> Iterator[tuple[int, int]]:
    reached = MIN_MICROS
    for step, event in enumerate(events):
        match event:
            case EndMicroBatch() if mode == "micro_batch":
                yield clocks.of_step(step), MAX_MICROS
                yield clocks.of_step(step), MIN_MICROS
            case AdvanceWatermark(micros) if mode == "streaming" and micros > reached:
                reached = micros
                yield clocks.of_step(step), micros
    if ends_input and reached < MAX_MICROS:
        yield clocks.end_micros, MAX_MICROS


def _inputs(
    events: Sequence[Event], clocks: _Clocks, dropped: set[int], watermark: Sequence[tuple[int, int]]
) -> Iterator[RecordedInput]:
    moved = {clock for clock, _ in watermark}
    passed: set[int] = set()
    for step, event in enumerate(events):
        clock_micros = clocks.of_step(step)
        match event:
            case AddElement():
                # At one processing time elements come before the watermark, but this one came after it.
                clock_micros += clock_micros in passed
                yield record_input(clock_micros, event.key, event, step in dropped)
            case AdvanceWatermark() if clock_micros in moved:
                passed.add(clock_micros)


def _panes(results: Iterable[EventOutput], clocks: _Clocks) -> Iterator[RecordedPane]:
    for one in results:
        if isinstance(one.emitted, Pane):
            yield record_pane(clocks.of_played(one), one.key, one.emitted)
