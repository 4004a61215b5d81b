"""Recorded inputs made at random: late elements, ties, negative times, percentiles, signals and rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from penstock.machines.records import (
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    EndMicroBatch,
    Event,
    Signal,
)
from tests.machines.generated import Case, random_windowing
from tests.machines.generated_triggers import PERCENTILES

SECOND = 1_000_000
KEYS = ("ann", "bob")
KINDS = ("arrive", "watermark", "clock", "signal", "round")
WEIGHTS = (70, 14, 8, 4, 4)


class Script:
    """Writes a recorded input, event by event.

    Attributes:
        events: What there is so far.
    """

    def __init__(self, random: Random) -> None:
        self.events: list[Event] = []
        self._random = random
        self._watermark_micros = MIN_MICROS
        self._clock_micros = 0
        self._percentile_micros = dict.fromkeys(PERCENTILES, MIN_MICROS)
        self._number = 0

    def add(self) -> None:
        """One more event."""
        match self._random.choices(KINDS, WEIGHTS)[0]:
            case "arrive":
                self.events.append(self._arrival())
            case "watermark":
                self.events.append(self._watermark())
            case "clock":
                self._clock_micros += self._half_seconds(1, 8)
                self.events.append(AdvanceClock(self._clock_micros))
            case "signal":
                name = self._random.choice(("flush", "something else"))
                self.events.append(Signal(name, self._clock()))
            case "round":
                self.events.append(EndMicroBatch(self._clock()))

    def _half_seconds(self, least: int, most: int) -> int:
        return self._random.randint(least, most) * SECOND // 2

    def _clock(self) -> int | None:
        """Processing time stands still, or moves on, maybe by nothing."""
        if self._random.random() < 0.5:
            return None
        self._clock_micros += self._half_seconds(0, 3)
        return self._clock_micros

    def _arrival(self) -> AddElement:
        self._number += 1
        present_micros = max(self._watermark_micros, -10 * SECOND)
        is_anywhere = self._random.random() < 0.2
        timestamp_micros = (
            self._half_seconds(-20, 80) if is_anywhere else present_micros + self._half_seconds(-6, 20)
        )
        value = None if self._random.random() < 0.05 else self._number
        return AddElement(value, timestamp_micros, self._clock(), self._random.choice(KEYS))

    def _watermark(self) -> AdvanceWatermark:
        before_micros = max(self._watermark_micros, -10 * SECOND)
        self._watermark_micros = before_micros + self._half_seconds(0, 12)
        for percentile, micros in self._percentile_micros.items():
            ahead_micros = self._watermark_micros + self._half_seconds(0, 10)
            self._percentile_micros[percentile] = max(micros, ahead_micros)
        return AdvanceWatermark(self._watermark_micros, self._clock(), dict(self._percentile_micros))


def random_events(random: Random, most: int = 40) -> tuple[Event, ...]:
    """Any recorded input."""
    script = Script(random)
    for _ in range(random.randint(3, most)):
        script.add()
    return tuple(script.events)


def random_case(random: Random, most: int = 40, **wishes: Any) -> Case:
    """Any grouping with any input.

    Args:
        random: Decides.
        most: So many events at most.
        wishes: Arguments of `random_windowing`.
    """
    combine = random.choice(("values", "values", "sum", "reversible sum", "listing", "largest"))
    return Case(random_windowing(random, **wishes), combine, random_events(random, most))


def only_arrivals(events: tuple[Event, ...]) -> list[AddElement]:
    """The elements of a recorded input."""
    return [event for event in events if isinstance(event, AddElement)]


def clock_apart(events: tuple[Event, ...]) -> Iterator[Event]:
    """The same input, where what the clock brings about is a step of its own, before the event that moved the clock."""
    for event in events:
        if event.clock_micros is None or isinstance(event, AdvanceClock):
            yield event
        else:
            yield Signal("which nobody waits for", event.clock_micros)
            yield replace(event, clock_micros=None)


def with_events(case: Case, events: Any) -> Case:
    """The same grouping with another input."""
    return replace(case, events=tuple(events))
