"""Triggers of all kinds, made at random, with some custom ones that use whatever a custom trigger may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import (
    AfterAll,
    AfterAny,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterEach,
    AfterPattern,
    AfterProcessingTime,
    AfterPunctuation,
    AfterSignal,
    AfterSynchronizedProcessingTime,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    CustomTrigger,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
    TriggerFn,
)

PERCENTILES = (0.5, 0.9)


def is_third(value: Any) -> bool:
    return value is not None and value % 3 == 0


def is_even(value: Any) -> bool:
    return value is not None and value % 2 == 0


def size_of(value: Any) -> int:
    return 1 if value is None else 1 + value % 3


def weight(result: Any) -> int:
    """A number for whatever a pane holds, so that any two results have a distance."""
    match result:
        case None:
            return 0
        case list():
            return 2 * len(result)
        case _:
            return int(result)


def distance(before: Any, now: Any) -> int:
    return abs(weight(now) - weight(before))


@dataclass(frozen=True)
class EverySecond(CustomTrigger):
    """Counts by itself, and goes on after it has fired."""

    def start(self) -> int:
        return 0

    def on_element(self, state: int, element: Any, context: Any) -> int:
        return state + 1

    def on_merge(self, states: list[int], context: Any) -> int:
        return sum(states)

    def should_fire(self, state: int, context: Any) -> bool:
        return state >= 2

    def on_fire(self, state: int, context: Any) -> int:
        return 0


@dataclass(frozen=True)
class AfterQuiet(CustomTrigger):
    """Fires when no element has come for some seconds of processing time; each element sets the timer anew."""

    seconds: float = 2

    def on_element(self, state: Any, element: Any, context: Any) -> str:
        context.set_timer(context.clock + self.seconds)
        return "busy"

    def on_merge(self, states: list[Any], context: Any) -> Any:
        context.set_timer(context.clock + self.seconds)
        return "busy"

    def on_timer(self, state: Any, timer: Any, context: Any) -> str:
        return "quiet"

    def should_fire(self, state: Any, context: Any) -> bool:
        return bool(state == "quiet")


@dataclass(frozen=True)
class BeforeEnd(CustomTrigger):
    """Fires when the watermark is some seconds before the end of the window."""

    seconds: float = 1

    def on_element(self, state: Any, element: Any, context: Any) -> Any:
        context.set_timer(context.window.end - self.seconds, TimeDomain.WATERMARK)
        return state

    def on_merge(self, states: list[Any], context: Any) -> None:
        context.set_timer(context.window.end - self.seconds, TimeDomain.WATERMARK)

    def on_timer(self, state: Any, timer: Any, context: Any) -> str:
        return "due"

    def should_fire(self, state: Any, context: Any) -> bool:
        return bool(state == "due")

    def on_fire(self, state: Any, context: Any) -> None:
        return None


Maker = Callable[[Random], TriggerFn]

ON_ARRIVAL: tuple[Maker, ...] = (
    lambda random: AfterCount(random.randint(1, 4)),
    lambda random: AfterBytes(random.randint(2, 6), size_of),
    lambda random: AfterPunctuation(is_third),
    lambda random: AfterPattern(is_even, is_third, contiguous=random.random() < 0.5),
    lambda random: AfterSignal("flush"),
    lambda random: EverySecond(),
)
ON_TIME: tuple[Maker, ...] = (
    lambda random: AfterWatermark(),
    lambda random: AfterWatermarkPercentile(random.choice(PERCENTILES)),
    lambda random: AfterProcessingTime(random.choice((0, 0.5, 2, 5))),
    lambda random: AfterProcessingTime.aligned_to(random.choice((1, 3)), random.choice((0, 0.5))),
    lambda random: AfterQuiet(random.choice((1, 3))),
    lambda random: BeforeEnd(random.choice((0.5, 2))),
)
ENDLESS: tuple[Maker, ...] = (
    lambda random: DefaultTrigger(),
    lambda random: DefaultTrigger(),
    lambda random: Always(),
    lambda random: Never(),
    lambda random: AfterDelta(random.randint(0, 6), distance=distance),
    lambda random: Repeatedly(AfterSynchronizedProcessingTime()),
)


def random_trigger(random: Random, depth: int = 2) -> TriggerFn:
    """Any trigger, of at most so many levels."""
    if depth == 0 or random.random() < 0.3:
        return random.choice(random.choice((ON_ARRIVAL, ON_TIME, ENDLESS)))(random)
    below = depth - 1
    match random.randrange(7):
        case 0 | 1:
            return Repeatedly(random_trigger(random, below))
        case 2 | 3:
            early = random_trigger(random, below) if random.random() < 0.7 else None
            late = random_trigger(random, below) if random.random() < 0.7 else None
            return AfterWatermark(early, late)
        case 4:
            return AfterEach(*_several(random, below))
        case 5:
            return AfterAll(*_several(random, below))
        case _:
            parts = _several(random, below)
            return OrFinally(*parts) if len(parts) == 2 and random.random() < 0.5 else AfterAny(*parts)


def _several(random: Random, depth: int) -> list[TriggerFn]:
    return [random_trigger(random, depth) for _ in range(random.choice((2, 2, 3)))]
