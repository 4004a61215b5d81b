"""Recorded input for watermark policies: made at random, told to an estimator, and judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock_spark.source_watermarks import Estimator, ReachedWatermark, Summary

SECOND = 1_000_000
PARTITIONS = ("a", "b", "c")


class Element(NamedTuple):
    """An element; times are in seconds."""

    event: float
    arrival: float
    partition: str = "a"


class Step(NamedTuple):
    """The elements that arrive until some time, in seconds."""

    clock: float
    elements: Sequence[Element] = ()


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


def observed(estimator: Estimator, elements: Sequence[Element]) -> Summary:
    """The summary of elements, a batch for each partition."""
    summary = estimator.empty_summary
    for partition in dict.fromkeys(element.partition for element in elements):
        batch = [element for element in elements if element.partition == partition]
        events = [micros(element.event) for element in batch]
        arrivals = [micros(element.arrival) for element in batch]
        summary = estimator.observe(summary, partition, events, arrivals)
    return summary


def cut(estimator: Estimator, elements: Sequence[Element], chance: random.Random) -> Summary:
    """The summary of elements that tasks of any number have read in any order, in batches of any size."""
    rest = chance.sample(elements, len(elements))
    parts = [estimator.empty_summary]
    while rest:
        batch = rest[: chance.randint(1, len(rest))]
        rest = rest[len(batch) :]
        where = chance.randrange(len(parts) + 1)
        parts[where:where] = [observed(estimator, batch)]
    while len(parts) > 1:
        chance.shuffle(parts)
        count = chance.randint(2, len(parts))
        parts[:count] = [estimator.merge(parts[:count])]
    return parts[0]


def played(
    policy: WatermarkPolicy,
    steps: Sequence[Step],
    summary_of: Callable[[Estimator, Sequence[Element]], Summary] = observed,
    first: Callable[[Estimator], Summary] | None = None,
) -> Iterator[ReachedWatermark]:
    """The watermark after each step; `first` is said before all others."""
    estimator = Estimator(policy)
    state = estimator.start()
    if first:
        state = estimator.advance(state, first(estimator), micros(steps[0].clock) - 1).state
    for step in steps:
        reached = estimator.advance(state, summary_of(estimator, step.elements), micros(step.clock))
        state = reached.state
        yield reached


def watermarks(policy: WatermarkPolicy, *steps: Step) -> list[float | None]:
    """The watermark after each step in seconds, None if nothing is known."""
    found = (reached.watermark_micros for reached in played(policy, steps))
    return [None if watermark < -(2**62) else watermark / SECOND for watermark in found]


def late(policy: WatermarkPolicy, steps: Sequence[Step], **options: Any) -> list[Element]:
    """The elements that came behind the watermark of the steps before theirs."""
    reached = [estimate.watermark_micros for estimate in played(policy, steps, **options)]
    return [
        element
        for watermark, step in zip(reached, steps[1:], strict=False)
        for element in step.elements
        if micros(element.event) < watermark
    ]


def ticks(elements: Sequence[Element], tick: int = 1) -> list[Step]:
    """Steps of some seconds each; the first one, and such in which nothing arrives, are empty."""
    clocks = [-int(-element.arrival // tick) * tick for element in elements]
    return [
        Step(clock, [element for element, at in zip(elements, clocks, strict=True) if at == clock])
        for clock in range(min(clocks) - tick, max(clocks) + 2 * tick, tick)
    ]


@st.composite
def any_steps(draw: st.DrawFn) -> list[Step]:
    """Steps of which nothing is sure but that elements arrive in them."""
    clock, steps = draw(st.integers(0, 50)), []
    for gap in draw(st.lists(st.integers(1, 40), min_size=1, max_size=8)):
        kind = st.tuples(st.integers(0, 150), st.integers(1, gap), st.sampled_from(PARTITIONS))
        drawn = draw(st.lists(kind, max_size=12))
        steps.append(Step(clock + gap, [Element(event, clock + at, name) for event, at, name in drawn]))
        clock += gap
    return steps


@st.composite
def disordered_steps(draw: st.DrawFn, delay: int, per_partition: bool) -> list[Step]:
    """Steps whose elements are at most `delay` behind the largest event time, or behind that of their partition."""
    latest, steps = {}, []
    for clock in range(1, draw(st.integers(2, 8))):
        elements = []
        for name, ahead in draw(
            st.lists(st.tuples(st.sampled_from(PARTITIONS), st.integers(-delay, 20)), max_size=9)
        ):
            lane = name if per_partition else None
            event = latest.get(lane, 0) + ahead
            latest[lane] = max(event, latest.get(lane, event))
            elements.append(Element(event, clock, name))
        steps.append(Step(clock, elements))
    return steps


@st.composite
def reordered_steps(draw: st.DrawFn, band: int) -> list[Step]:
    """Steps whose elements arrive at most `band` seconds after one with a later event time."""
    event, due = draw(st.integers(-10_000, 10_000)), 0
    elements = []
    for ahead, wait, delay in draw(
        st.lists(
            st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, band)), min_size=1, max_size=30
        )
    ):
        event, due = event + ahead, due + wait
        elements.append(Element(event, due + delay, draw(st.sampled_from(PARTITIONS))))
    return ticks(elements, draw(st.integers(1, 4)))
