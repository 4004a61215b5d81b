"""What happens in a scenario, as the events of a TestStream: so it can go through pipelines, and whole engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.base.bounded_window import TimestampedValue
from penstock.machines.records import (
    MAX_MICROS,
    AdvanceClock,
    AdvanceWatermark,
    Arrive,
    EndMicroBatch,
    Event,
    Signal,
)
from penstock.testing import test_stream
from penstock.utils.timestamp import MIN_TIMESTAMP, Duration, Timestamp
from penstock_conformance.malformed import Malformed
from penstock_conformance.scenario import Scenario, Step


@dataclass(frozen=True)
class Tape:
    """The events of a TestStream.

    Attributes:
        events: The events, in order.
        steps: For each of them, the number of the scenario's step that it is of.
        slack_micros: By how much processing time may differ from what the scenario says.
        end_clock_micros: Processing time at the end.
    """

    events: tuple[test_stream.Event, ...]
    steps: tuple[int, ...]
    slack_micros: int
    end_clock_micros: int

    @property
    def tells_time(self) -> bool:
        """Whether processing time passes."""
        return self.end_clock_micros > 0

    @property
    def has_signals(self) -> bool:
        """Whether signals arrive."""
        return any(isinstance(event, test_stream.SignalEvent) for event in self.events)

    @property
    def happenings(self) -> tuple[int, ...]:
        """The steps of its events, but for those that end a micro-batch: what an engine takes one after the other."""
        pairs = zip(self.events, self.steps, strict=True)
        return tuple(step for event, step in pairs if not isinstance(event, test_stream.MicroBatchEvent))

    def complete(self, happenings: int, steps: int) -> int:
        """How many of a scenario's steps are complete when an engine has taken that many of the happenings.

        Args:
            happenings: Their number; one more than there are includes the end of the input.
            steps: The number of all steps.
        """
        of_happenings = self.happenings
        if happenings < len(of_happenings):
            return of_happenings[happenings]
        return of_happenings[-1] + 1 if happenings == len(of_happenings) else steps

    def rounds(self) -> tuple[tuple[int, int], ...]:
        """For each micro-batch that its events ask for, processing time at its first and at its last event."""
        clocks: list[list[int]] = [[]]
        now = 0
        for event in self.events:
            if isinstance(event, test_stream.MicroBatchEvent):
                # One without events is where the one before has ended.
                clocks[-1] = clocks[-1] or [now]
                clocks.append([])
                continue
            if isinstance(event, test_stream.ProcessingTimeEvent):
                now += event.advance_by.micros
            clocks[-1].append(now)
        return tuple((of_round[0], of_round[-1]) for of_round in clocks if of_round)


def why_untold(scenario: Scenario, mode: str) -> str | None:
    """Why a TestStream cannot tell what happens in a scenario; None if it can.

    >>> from penstock_conformance.parsing import parse
    >>> text = '''
    ... = A
    ... source:  us
    ... windows: FixedWindows(0)
    ... fails:   size
    ... '''
    >>> why_untold(parse({"a": text})[0], "streaming")
    'it is refused before anything happens'
    """
    happens = any(step.events for step in scenario.steps(mode))
    return None if happens else "it is refused before anything happens"


def tape_of(scenario: Scenario, mode: str, stops_at_panes: bool = False) -> Tape:
    """What happens in a scenario, as a TestStream says it.

    In the model, what arrives at a moment comes before what the clock makes due just then; a TestStream's clock moves
    first, and after each of its events fires what is due. So the n-th event comes n microseconds before its time,
    unless the scenario itself counts in microseconds, and elements of one time without a pane in between are one event.

    Args:
        scenario: The scenario.
        mode: The engine mode; in ``micro_batch``, its rounds end micro-batches.
        stops_at_panes: Whether processing time also stops where panes are expected, so that it is known when they come.

    Raises:
        Malformed: A TestStream cannot tell it.

    >>> from penstock_conformance.parsing import parse
    >>> text = '''
    ... = A
    ... source:  us
    ... windows: FixedWindows(10)
    ... engine:  micro_batch
    ...
    ... 7 element 5 at 3
    ... 9 clock
    ... end of round
    ... '''
    >>> [type(event).__name__ for event in tape_of(parse({"a": text})[0], "micro_batch").events]
    ['ProcessingTimeEvent', 'ElementEvent', 'ProcessingTimeEvent', 'MicroBatchEvent', 'ElementEvent']
    """
    reason = why_untold(scenario, mode)
    if reason:
        raise Malformed(reason, hint="play it on the bare machine", place=scenario.place)
    steps = scenario.steps(mode)
    takes_back = scenario.settings.get("input_retracts") == "yes"
    recorder = _Recorder(mode == "micro_batch", takes_back, _is_moved(steps))
    slack_micros = sum(len(step.events) for step in steps) if recorder.is_moved else 0
    if stops_at_panes:
        recorder.stops = sorted(set(_stops(steps, slack_micros)), reverse=True)
    before: Event | None = None
    for number, step in enumerate(steps):
        for event in step.events:
            recorder.add(number, event, comes_with_last=_come_together(before, event))
            before = event
        before = None if step.expected else before
    if steps[-1].ends_input:
        recorder.add(len(steps) - 1, AdvanceWatermark(MAX_MICROS))
    return recorder.finished(slack_micros)


def _is_moved(steps: Sequence[Step]) -> bool:
    """Whether each event may come some microseconds early: there is room for all of them between any two times."""
    events = [event for step in steps for event in step.events]
    clocks = sorted({event.clock_micros for event in events if event.clock_micros is not None})
    return all(later - earlier > 2 * len(events) for earlier, later in pairwise(clocks))


def _come_together(before: Event | None, event: Event) -> bool:
    """Whether two elements come at one time."""
    if not (isinstance(before, Arrive) and isinstance(event, Arrive)):
        return False
    return before.clock_micros == event.clock_micros is not None


def _stops(steps: Iterable[Step], slack_micros: int) -> Iterator[int]:
    """Just before the first moment at which a pane may come, and the last such moment."""
    for step in steps:
        for expected in step.expected:
            if expected.clock_micros is not None:
                yield expected.clock_micros - expected.tolerance_micros - slack_micros - 1
                yield expected.clock_micros + expected.tolerance_micros


class _Recorder:
    """Takes down what happens, event by event."""

    def __init__(self, has_rounds: bool, takes_back: bool, is_moved: bool) -> None:
        self.has_rounds = has_rounds
        self.takes_back = takes_back
        self.is_moved = is_moved
        self.stops: list[int] = []
        self.events: list[test_stream.Event] = []
        self.steps: list[int] = []
        self.now = 0
        self.count = 0
        self.watermark = MIN_TIMESTAMP
        self.percentiles: dict[float, Timestamp] = {}

    def add(self, step: int, event: Event, comes_with_last: bool = False) -> None:
        """Takes an event of the scenario down."""
        self.count += 1
        if event.clock_micros is not None and not comes_with_last:
            is_early = self.is_moved and not isinstance(event, AdvanceClock)
            self._advance(step, event.clock_micros - self.count * is_early)
        match event:
            case Arrive() if comes_with_last:
                last = self.events.pop()
                assert isinstance(last, test_stream.ElementEvent)
                self.events.append(test_stream.ElementEvent((*last.timestamped_values, self._element(event))))
                self.steps[-1] = step
            case Arrive():
                self._write(step, test_stream.ElementEvent((self._element(event),)))
            case AdvanceWatermark():
                self._advance_watermark(step, event)
            case Signal(name):
                self._write(step, test_stream.SignalEvent(name))
            case EndMicroBatch() if self.has_rounds:
                self._write(step, test_stream.MicroBatchEvent())

    def finished(self, slack_micros: int) -> Tape:
        """The tape."""
        if isinstance(self.events[-1], test_stream.MicroBatchEvent):
            # An engine ends the input with the last event; that is not to be a part of the micro-batch that ends here.
            self._write(self.steps[-1] + 1, test_stream.ElementEvent(()))
        return Tape(tuple(self.events), tuple(self.steps), slack_micros, self.now)

    def _advance(self, step: int, clock_micros: int) -> None:
        while self.stops and self.stops[-1] <= clock_micros:
            self._go_to(step, self.stops.pop())
        self._go_to(step, clock_micros)

    def _go_to(self, step: int, clock_micros: int) -> None:
        if clock_micros > self.now:
            moved = Duration.from_micros(clock_micros - self.now)
            self._write(step, test_stream.ProcessingTimeEvent(moved))
            self.now = clock_micros

    def _advance_watermark(self, step: int, event: AdvanceWatermark) -> None:
        """Those that advance; a scenario may also say where one stays, or that one would go back, which is nothing."""
        watermark = max(self.watermark, Timestamp.from_micros(event.watermark_micros))
        times = {share: Timestamp.from_micros(micros) for share, micros in event.percentile_micros.items()}
        ahead = {
            share: time
            for share, time in times.items()
            if time > max(watermark, self.percentiles.get(share, MIN_TIMESTAMP))
        }
        if ahead or watermark > self.watermark:
            self._write(step, test_stream.WatermarkEvent(watermark, percentiles=tuple(ahead.items())))
        self.watermark = watermark
        self.percentiles |= ahead

    def _element(self, event: Arrive) -> TimestampedValue[Any]:
        pair: Any = (event.key, event.value)
        if self.takes_back:
            pair = self.count, (*pair, event.timestamp_micros, event.kind.is_retraction)
        return TimestampedValue(pair, Timestamp.from_micros(event.timestamp_micros))

    def _write(self, step: int, event: test_stream.Event) -> None:
        self.events.append(event)
        self.steps.append(step)
