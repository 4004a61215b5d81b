"""The events of a scenario, as the events of a TestStream, for pipelines and so for whole engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.elements.bounded_window import TimestampedValue
from penstock.machines import records
from penstock.testing import test_stream
from penstock.utils.timestamp import MIN_TIMESTAMP, Duration, Timestamp
from penstock_conformance.malformed import Malformed
from penstock_conformance.scenario import Scenario, Step


@dataclass(frozen=True)
class Tape:
    """The events of a TestStream."""

    events: tuple[test_stream.Event, ...]
    steps: tuple[int, ...]  # The number of each event's step in the scenario.
    slack_micros: int  # By how much processing time may differ from the scenario's.
    end_clock_micros: int  # Processing time at the end.

    @property
    def tells_time(self) -> bool:
        return self.end_clock_micros > 0

    @property
    def has_signals(self) -> bool:
        return any(isinstance(event, test_stream.SignalEvent) for event in self.events)

    @property
    def happenings(self) -> tuple[int, ...]:
        """The steps of its events, except for ends of micro-batches: what an engine takes one after the other."""
        pairs = zip(self.events, self.steps, strict=True)
        return tuple(step for event, step in pairs if not isinstance(event, test_stream.MicroBatchEvent))

    def complete(self, happenings: int, steps: int) -> int:
        """Returns how many steps of a scenario are complete when an engine has taken the given number of happenings.

        One more than all happenings includes the end of the input.
        """
        of_happenings = self.happenings
        if happenings < len(of_happenings):
            return of_happenings[happenings]
        return of_happenings[-1] + 1 if happenings == len(of_happenings) else steps

    def rounds(self) -> tuple[tuple[int, int], ...]:
        """The processing time of the first and the last event of each micro-batch."""
        clocks: list[list[int]] = [[]]
        now = 0
        for event in self.events:
            if isinstance(event, test_stream.MicroBatchEvent):
                # A micro-batch without events is at the end of the one before.
                clocks[-1] = clocks[-1] or [now]
                clocks.append([])
                continue
            if isinstance(event, test_stream.ProcessingTimeEvent):
                now += event.advance_by.micros
            clocks[-1].append(now)
        return tuple((of_round[0], of_round[-1]) for of_round in clocks if of_round)


def why_not_expressible(scenario: Scenario, mode: str) -> str | None:
    """Why a TestStream cannot express a scenario; None if it can.

    >>> from penstock_conformance.parsing import parse
    >>> text = '''
    ... = A
    ... source:  us
    ... windows: FixedWindows(0)
    ... fails:   size
    ... '''
    >>> why_not_expressible(parse({"a": text})[0], "streaming")
    'it is refused before anything happens'
    """
    happens = any(step.events for step in scenario.steps(mode))
    return None if happens else "it is refused before anything happens"


def tape_of(scenario: Scenario, mode: str, stops_at_panes: bool = False) -> Tape:
    """The events of a scenario, as a TestStream has them.

    In the model, elements of a processing time come before what the clock makes due at this time. A TestStream's
    clock advances first, and fires after each of its events what is due. So the n-th event comes n microseconds
    before its time, unless the scenario itself counts in microseconds, and elements of one time without a pane in
    between are one event.

    In ``micro_batch``, rounds end micro-batches. With `stops_at_panes`, processing time also stops where panes are
    expected, so that their time is known.

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
    reason = why_not_expressible(scenario, mode)
    if reason:
        raise Malformed(reason, hint="play it on the bare machine", place=scenario.place)
    steps = scenario.steps(mode)
    takes_back = scenario.settings.get("input_retracts") == "yes"
    recorder = _Recorder(mode == "micro_batch", takes_back, _is_moved(steps))
    slack_micros = sum(len(step.events) for step in steps) if recorder.is_moved else 0
    if stops_at_panes:
        recorder.stops = sorted(set(_stops(steps, slack_micros)), reverse=True)
    before: records.Event | None = None
    for number, step in enumerate(steps):
        for event in step.events:
            recorder.add(number, event, comes_with_last=_come_together(before, event))
            before = event
        before = None if step.expected else before
    if steps[-1].ends_input:
        recorder.add(len(steps) - 1, records.AdvanceWatermark(records.MAX_MICROS))
    return recorder.finished(slack_micros)


def _is_moved(steps: Sequence[Step]) -> bool:
    """True if each event may come some microseconds early: all of them fit between any two times."""
    events = [event for step in steps for event in step.events]
    clocks = sorted({event.clock_micros for event in events if event.clock_micros is not None})
    return all(later - earlier > 2 * len(events) for earlier, later in pairwise(clocks))


def _come_together(before: records.Event | None, event: records.Event) -> bool:
    """True if two elements come at one time."""
    if not (isinstance(before, records.AddElement) and isinstance(event, records.AddElement)):
        return False
    return before.clock_micros == event.clock_micros is not None


def _stops(steps: Iterable[Step], slack_micros: int) -> Iterator[int]:
    """Just before the first time at which a pane may come, and the last such time."""
    for step in steps:
        for expected in step.expected:
            if expected.clock_micros is not None:
                yield expected.clock_micros - expected.tolerance_micros - slack_micros - 1
                yield expected.clock_micros + expected.tolerance_micros


class _Recorder:
    """Records what happens, event by event."""

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

    def add(self, step: int, event: records.Event, comes_with_last: bool = False) -> None:
        self.count += 1
        if event.clock_micros is not None and not comes_with_last:
            is_early = self.is_moved and not isinstance(event, records.AdvanceClock)
            self._advance(step, event.clock_micros - self.count * is_early)
        match event:
            case records.AddElement() if comes_with_last:
                last = self.events.pop()
                assert isinstance(last, test_stream.ElementEvent)
                self.events.append(test_stream.ElementEvent((*last.timestamped_values, self._element(event))))
                self.steps[-1] = step
            case records.AddElement():
                self._write(step, test_stream.ElementEvent((self._element(event),)))
            case records.AdvanceWatermark():
                self._advance_watermark(step, event)
            case records.Signal(name):
                self._write(step, test_stream.SignalEvent(name))
            case records.EndMicroBatch() if self.has_rounds:
                self._write(step, test_stream.MicroBatchEvent())

    def finished(self, slack_micros: int) -> Tape:
        if isinstance(self.events[-1], test_stream.MicroBatchEvent):
            # An engine ends the input with the last event, which must not be a part of the micro-batch that ends here.
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

    def _advance_watermark(self, step: int, event: records.AdvanceWatermark) -> None:
        """Records watermarks that advance; others in a scenario have no effect."""
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

    def _element(self, event: records.AddElement) -> TimestampedValue[Any]:
        pair = (event.key, event.value)
        if self.takes_back:
            pair = self.count, (*pair, event.timestamp_micros, event.kind.is_retraction)
        return TimestampedValue(pair, Timestamp.from_micros(event.timestamp_micros))

    def _write(self, step: int, event: test_stream.Event) -> None:
        self.events.append(event)
        self.steps.append(step)
