"""What happens in a scenario, as the events of a TestStream: so it can go through pipelines, and whole engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.machines.records import AdvanceClock, AdvanceWatermark, Arrive, EndRound, Event, Signal
from penstock.testing import test_stream
from penstock.transforms.window import TimestampedValue
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
    def happenings(self) -> tuple[int, ...]:
        """The steps of its events, but for those that end a micro-batch: what an engine takes one after the other."""
        pairs = zip(self.events, self.steps, strict=True)
        return tuple(step for event, step in pairs if not isinstance(event, test_stream.MicroBatchEvent))

    def rounds(self) -> tuple[tuple[int, int], ...]:
        """For each micro-batch that its events ask for, processing time at its first and at its last event."""
        now, found, begun = 0, [(0, 0)], False
        for event in self.events:
            match event:
                case test_stream.MicroBatchEvent():
                    found.append((now, now))
                    begun = False
                    continue
                case test_stream.ProcessingTimeEvent(advance_by):
                    now += advance_by.micros
            found[-1] = (found[-1][0] if begun else now, now)
            begun = True
        return tuple(found)


def why_untold(scenario: Scenario, mode: str) -> str | None:
    """Why a TestStream cannot tell what happens in a scenario; None if it can.

    >>> from penstock_conformance.parsing import parse
    >>> text = "= A\\nsource: us\\nwindows: FixedWindows(10)\\n\\nelement 5 at 3\\nsignal flush\\n"
    >>> why_untold(parse({"a": text})[0], "streaming")
    'a TestStream has no signals'
    """
    events = [event for step in scenario.steps(mode) for event in step.events]
    if not events:
        return "it is refused before anything happens"
    if any(isinstance(event, Signal) for event in events):
        return "a TestStream has no signals"
    if any(isinstance(event, AdvanceWatermark) and event.percentile_micros for event in events):
        return "a TestStream has no watermarks of percentiles"
    return None


def tape_of(scenario: Scenario, mode: str, stops_at_panes: bool = False) -> Tape:
    """What happens in a scenario, as a TestStream says it.

    In the model, what arrives at a moment comes before what the clock makes due just then; a TestStream's clock moves
    first. So the n-th event comes n microseconds before its time, unless the scenario itself counts in microseconds.

    Args:
        scenario: The scenario.
        mode: ``streaming`` or ``micro_batch``; in the latter, its rounds end micro-batches.
        stops_at_panes: Whether processing time also stops where panes are expected, so that it is known when they come.

    Raises:
        Malformed: A TestStream cannot say it.

    >>> from penstock_conformance.parsing import parse
    >>> text = "= A\\nsource: us\\nwindows: FixedWindows(10)\\n\\n7 element 5 at 3\\n9 clock\\nend of round\\n"
    >>> [type(event).__name__ for event in tape_of(parse({"a": text})[0], "micro_batch").events]
    ['ProcessingTimeEvent', 'ElementEvent', 'ProcessingTimeEvent', 'MicroBatchEvent', 'ElementEvent']
    """
    reason = why_untold(scenario, mode)
    if reason:
        raise Malformed(reason, hint="play it on the bare machine", place=scenario.place)
    steps = scenario.steps(mode)
    recorder = _Recorder(mode == "micro_batch", scenario.settings.get("input_retracts") == "yes", _spacing(steps))
    if stops_at_panes:
        recorder.stops = sorted(set(_stops(steps, recorder.slack_micros)), reverse=True)
    for number, step in enumerate(steps):
        for event in step.events:
            recorder.add(number, event)
    return recorder.finished(len(steps) - 1)


def _spacing(steps: Sequence[Step]) -> tuple[int, int]:
    """How many microseconds each event is moved by, and the number of events."""
    events = [event for step in steps for event in step.events]
    clocks = sorted({event.clock_micros for event in events if event.clock_micros is not None})
    has_room = all(later - earlier > 2 * len(events) for earlier, later in pairwise(clocks))
    return int(has_room), len(events)


def _stops(steps: Iterable[Step], slack_micros: int) -> Iterator[int]:
    """Just before the first moment at which a pane may come, and the last such moment."""
    for step in steps:
        for expected in step.expected:
            if expected.clock_micros is not None:
                yield expected.clock_micros - expected.tolerance_micros - slack_micros - 1
                yield expected.clock_micros + expected.tolerance_micros


class _Recorder:
    """Takes down what happens, event by event."""

    def __init__(self, has_rounds: bool, takes_back: bool, spacing: tuple[int, int]) -> None:
        self.has_rounds = has_rounds
        self.takes_back = takes_back
        self.moved_micros, count = spacing
        self.slack_micros = self.moved_micros * count
        self.stops: list[int] = []
        self.events: list[test_stream.Event] = []
        self.steps: list[int] = []
        self.now = 0
        self.count = 0
        self.watermark = MIN_TIMESTAMP

    def add(self, step: int, event: Event) -> None:
        """Takes an event of the scenario down."""
        self.count += 1
        if event.clock_micros is not None:
            early = 0 if isinstance(event, AdvanceClock) else self.count * self.moved_micros
            self._advance(step, event.clock_micros - early)
        match event:
            case Arrive():
                self._write(step, test_stream.ElementEvent((self._element(event),)))
            case AdvanceWatermark(micros) if Timestamp.from_micros(micros) > self.watermark:
                self.watermark = Timestamp.from_micros(micros)
                self._write(step, test_stream.WatermarkEvent(self.watermark))
            case EndRound() if self.has_rounds:
                self._write(step, test_stream.MicroBatchEvent())

    def finished(self, last: int) -> Tape:
        """The tape."""
        if self.events and isinstance(self.events[-1], test_stream.MicroBatchEvent):
            # The end of the input comes with the last event; it is not to end what this micro-batch has.
            XX
        return Tape(tuple(self.events), tuple(self.steps), self.slack_micros, self.now)

    def _advance(self, step: int, clock_micros: int) -> None:
        while self.stops and self.stops[-1] <= clock_micros:
            self._go_to(step, self.stops.pop())
        self._go_to(step, clock_micros)

    def _go_to(self, step: int, clock_micros: int) -> None:
        if clock_micros > self.now:
            moved = Duration.from_micros(clock_micros - self.now)
            self._write(step, test_stream.ProcessingTimeEvent(moved))
            self.now = clock_micros

    def _element(self, event: Arrive) -> TimestampedValue[Any]:
        pair: Any = (event.key, event.value)
        if self.takes_back:
            pair = self.count, (*pair, event.kind.is_retraction)
        return TimestampedValue(pair, Timestamp.from_micros(event.timestamp_micros))

    def _write(self, step: int, event: test_stream.Event) -> None:
        self.events.append(event)
        self.steps.append(step)
