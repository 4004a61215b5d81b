"""Plays recorded input on the bare machine in each of the paper's three engines: batch, micro-batch and streaming."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.coders.deterministic import encode_key
from penstock.error import refusal
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Element,
    Emitted,
    EndMicroBatch,
    Event,
    EventOutput,
    Signal,
    Times,
)
from penstock.machines.states import KeyState

_MODES = ("batch", "micro_batch", "streaming")


class ReferenceEngine:
    """Plays events on the machines of all keys, one after the other.

    At one processing time elements come first, then the watermark, then what waits for the clock. So an event is played
    when everything that waits for an earlier processing time has fired.

    In batch, call `play` in order of event time; only elements count. In micro-batch, `EndMicroBatch` ends a round,
    and the watermark only decides what expires.
    """

    def __init__(self, machine: GroupingMachine, mode: str = "streaming") -> None:
        if mode not in _MODES:
            raise refusal(ValueError, f"the mode {mode!r} is unknown", hint=f"use one of {', '.join(_MODES)}")
        self.machine = machine
        self.mode = mode
        self._keys: dict[bytes, tuple[Any, KeyState]] = {}
        self.step = 0  # The number of the next event.
        expiry_micros = MIN_MICROS if mode == "micro_batch" else None
        self._times = Times(clock_micros=MIN_MICROS, expiry_micros=expiry_micros)

    @property
    def hold_micros(self) -> int | None:
        """The event time that the output watermark must not pass; None if nothing holds it."""
        holds = [self.machine.hold_micros(state) for _, state in self._keys.values()]
        return min((hold for hold in holds if hold is not None), default=None)

    def play(self, event: Event) -> list[EventOutput]:
        """Plays one event."""
        played: list[EventOutput] = []
        if self.mode == "batch":
            if isinstance(event, AddElement):
                self._arrive(event, played)
        else:
            self._play(event, played)
        self.step += 1
        return played

    def finish(self) -> list[EventOutput]:
        """Ends the input: the watermark becomes infinite."""
        played: list[EventOutput] = []
        self._set_watermark(MAX_MICROS, {})
        self._for_all_keys("advance_watermark", played)
        if self.mode == "micro_batch":
            self._for_all_keys("end_micro_batch", played)
            self._for_all_keys("advance_watermark", played)
        return played

    def cut(self) -> None:
        """Stores and restores the state of every key."""
        for name, (key, state) in self._keys.items():
            self._keys[name] = key, self.machine.restore(self.machine.snapshot(state))

    def _play(self, event: Event, played: list[EventOutput]) -> None:
        clock_micros = event.clock_micros
        if clock_micros is not None:
            self._advance_clock(clock_micros, isinstance(event, AdvanceClock), played)
        match event:
            case AddElement():
                self._arrive(event, played)
            case AdvanceWatermark(watermark_micros):
                self._set_watermark(watermark_micros, event.percentile_micros)
                self._for_all_keys("advance_watermark", played)
            case Signal(name):
                for key, state in self._keys.values():
                    self._add(played, key, self.machine.signal(state, name, self._times))
            case EndMicroBatch():
                if self.mode == "micro_batch":
                    self._for_all_keys("end_micro_batch", played)
                    self._for_all_keys("advance_watermark", played)

    def _arrive(self, event: AddElement, played: list[EventOutput]) -> None:
        name = encode_key(event.key)
        if name not in self._keys:
            self._keys[name] = event.key, self.machine.new_key()
        key, state = self._keys[name]
        windows = self.machine.assign(event.timestamp_micros, (event.key, event.value))
        element = Element(event.value, event.timestamp_micros, windows, event.kind)
        self._add(played, key, self.machine.element(state, element, self._times))

    def _advance_clock(self, clock_micros: int, to_the_end: bool, played: list[EventOutput]) -> None:
        """Fires everything that is due before a processing time, and with `to_the_end` also what is due then."""
        until_micros = clock_micros if to_the_end else clock_micros - 1
        for due_micros in self._times_due(until_micros):
            self._times = self._times._replace(clock_micros=due_micros)
            self._for_all_keys("advance_clock", played)
        self._times = self._times._replace(clock_micros=clock_micros)

    def _times_due(self, until_micros: int) -> Iterable[int]:
        """Yields, in order, the times at which something is due by the clock; looks for the next after each."""
        while True:
            alarms = [self.machine.alarm_micros(state, "clock") for _, state in self._keys.values()]
            due = [alarm for alarm in alarms if alarm is not None and alarm <= until_micros]
            if not due:
                return
            yield min(due)

    def _set_watermark(self, watermark_micros: int, percentile_micros: Mapping[float, int]) -> None:
        horizon_micros = max(watermark_micros, self._times.horizon_micros)
        if self.mode == "micro_batch":
            self._times = self._times._replace(expiry_micros=horizon_micros)
        else:
            ahead = dict(self._times.percentile_micros)
            for percentile, micros in percentile_micros.items():
                ahead[percentile] = max(micros, ahead.get(percentile, MIN_MICROS))
            self._times = self._times._replace(watermark_micros=horizon_micros, percentile_micros=ahead)

    def _for_all_keys(self, name: str, played: list[EventOutput]) -> None:
        method = getattr(self.machine, name)
        for key, state in self._keys.values():
            self._add(played, key, method(state, self._times))

    def _add(self, played: list[EventOutput], key: object, emitted: Sequence[Emitted]) -> None:
        played += [EventOutput(self.step, self._times.clock_micros, key, one) for one in emitted]


def play(
    machine: GroupingMachine, events: Sequence[Event], mode: str = "streaming", finish: bool = False
) -> list[EventOutput]:
    """Plays a whole recorded input, which batch sorts by event time and always ends; `finish` ends it in other modes.

    >>> from penstock.transforms.window import FixedWindows
    >>> from penstock.transforms.grouping.windowing import Windowing
    >>> machine = GroupingMachine(Windowing(FixedWindows(10)), combine=None)
    >>> events = [AddElement("a", 3_000_000), AdvanceWatermark(10_000_000), AddElement("late", 4_000_000)]
    >>> [(played.step, type(played.emitted).__name__) for played in play(machine, events)]
    [(1, 'Pane'), (2, 'Dropped')]
    """
    player = ReferenceEngine(machine, mode)
    numbers: Iterable[int] = range(len(events))
    if mode == "batch":
        numbers = sorted(numbers, key=lambda number: getattr(events[number], "timestamp_micros", MIN_MICROS))
    played = []
    for number in numbers:
        player.step = number
        played += player.play(events[number])
    if finish or mode == "batch":
        player.step = len(events)
        played += player.finish()
    return played
