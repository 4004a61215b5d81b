"""Groupings made at random: windows, triggers, modes and what they combine, with elements for several keys."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import penstock as beam
from penstock.transforms.trigger import (
    AccumulationMode,
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
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    ClosingBehavior,
    CustomTrigger,
    DefaultTrigger,
    Never,
    OnTimeBehavior,
    OrFinally,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import (
    BoundedSessions,
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    WindowFn,
)

KEYS = ("a", 1, True, None, ("t", 1))
MODES = tuple(AccumulationMode)


@dataclass(frozen=True)
class WhenHeavy(CustomTrigger):
    """Fires, and starts again, when the values weigh enough together."""

    enough: int

    def start(self):
        return 0

    def on_element(self, state, element, context):
        return state + abs(element.value)

    def on_merge(self, states, context):
        return sum(states)

    def should_fire(self, state, context):
        return state >= self.enough and context.count > 0

    def on_fire(self, state, context):
        return 0


class Stay(IntervalWindow):
    """A window that knows what it is for."""

    def __init__(self, start, end, parity):
        super().__init__(start, end)
        self.parity = parity

    def __eq__(self, other):
        return super().__eq__(other) and self.parity == other.parity

    def __hash__(self):
        return hash((self.start, self.end, self.parity))


class Stays(WindowFn):
    """Sessions of odd and of even values, each on their own."""

    def assign(self, context):
        _, value = context.element
        return [Stay(context.timestamp, context.timestamp + 4, value % 2)]

    def merge(self, context):
        for parity in (0, 1):
            run: list[Any] = []
            end = None
            mine = (window for window in context.windows if window.parity == parity)
            for window in sorted(mine, key=lambda window: (window.start, window.end)):
                if run and window.start >= end:
                    self.join(context, run)
                    run = []
                end = window.end if not run else max(end, window.end)
                run.append(window)
            self.join(context, run)

    def join(self, context, run):
        if len(run) > 1:
            end = max(window.end for window in run)
            context.merge(run, Stay(run[0].start, end, run[0].parity))


WINDOW_FNS = (
    GlobalWindows(),
    FixedWindows(10),
    SlidingWindows(10, 4),
    Sessions(4),
    Sessions(3, merge_touching=True),
    BoundedSessions(4, 9),
    Stays(),
)
TIMESTAMP_COMBINERS = (
    TimestampCombiner.OUTPUT_AT_EOW,
    TimestampCombiner.OUTPUT_AT_EARLIEST,
    TimestampCombiner.OUTPUT_AT_LATEST,
    TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED,
)


class Sorted(beam.CombineFn):
    """All values in order; its accumulator changes in place, and is its output's list."""

    def create_accumulator(self):
        return []

    def add_input(self, accumulator, value):
        accumulator.append(value)
        accumulator.sort()
        return accumulator

    def merge_accumulators(self, accumulators):
        first, *others = accumulators
        for other in others:
            first.extend(other)
        first.sort()
        return first

    def extract_output(self, accumulator):
        return accumulator


def is_zero(value):
    return value == 0


def is_odd(value):
    return value % 2 == 1


def size(value):
    return abs(value) + 1


def distance(before, now):
    return abs(weight(before) - weight(now))


def weight(value):
    return sum(value) if isinstance(value, list) else value


def random_leaf(at: random.Random) -> TriggerFn:
    return at.choice(
        [
            *[AfterCount(at.choice([1, 2, 3]))] * 3,
            AfterBytes(at.choice([1, 5, 9]), size),
            AfterPunctuation(is_zero),
            AfterPattern(is_odd, is_zero, contiguous=at.random() < 0.5),
            AfterDelta(at.choice([0, 3]), distance=distance),
            WhenHeavy(at.choice([1, 5])),
            AfterSignal("stop"),
            AfterProcessingTime(at.choice([0, 5])),
            AfterProcessingTime.aligned_to(60),
            AfterWatermarkPercentile(0.5),
            AfterWatermark(),
            DefaultTrigger(),
            Always(),
            Never(),
        ]
    )


def random_trigger(at: random.Random, depth: int = 2) -> TriggerFn:
    if depth == 0 or at.random() < 0.3:
        return random_leaf(at)
    parts = [random_trigger(at, depth - 1) for _ in range(at.choice([2, 2, 3]))]
    match at.choice(["repeat", "repeat", "watermark", "any", "all", "each", "until"]):
        case "repeat":
            return Repeatedly(parts[0])
        case "watermark":
            return AfterWatermark(parts[0], at.choice([None, parts[1]]))
        case "any":
            return AfterAny(*parts)
        case "all":
            return AfterAll(*parts)
        case "each":
            return AfterEach(*parts)
        case _:
            return OrFinally(Repeatedly(parts[0]), parts[1])


def random_windowing(at: random.Random, trigger: TriggerFn | None = None) -> beam.Windowing:
    return beam.Windowing(
        at.choice(WINDOW_FNS),
        trigger or random_trigger(at),
        at.choice(MODES),
        at.choice(TIMESTAMP_COMBINERS),
        allowed_lateness=at.choice([0, 7]),
        on_time_behavior=at.choice(list(OnTimeBehavior)),
        closing_behavior=at.choice(list(ClosingBehavior)),
    )


def random_combine(at: random.Random) -> beam.CombineFn | None:
    return at.choice(
        [None, None, Sorted(), beam.CombineFn.from_callable(sum), beam.combiners.CountCombineFn()]
    )


def random_elements(at: random.Random, count: int = 40) -> list[tuple[Any, int, int]]:
    """Keys, values and microseconds; in no order, with many elements of the same time."""
    return [(at.choice(KEYS), at.randrange(-4, 5), at.randrange(40) * 500_000) for _ in range(count)]
