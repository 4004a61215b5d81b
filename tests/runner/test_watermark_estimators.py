"""Watermark policies at work: laws that all of them keep, and what chapter 3 of the book says of each."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watermark_inputs import (
    SECOND,
    Element,
    Step,
    any_steps,
    cut,
    disordered_steps,
    late,
    micros,
    observed,
    ordered_steps,
    played,
    reordered_steps,
    ticks,
    watermarks,
)

from penstock.io.watermark_policy import Recorded, WatermarkPolicy
from penstock.io.watermarks import (
    BoundedDisorder,
    CustomWatermark,
    EstimationBand,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
)
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.utils.timestamp import Timestamp
from penstock_spark.source_watermarks import Estimator
from penstock_spark.source_watermarks.rules import Lane


class Wavering(CustomWatermark):
    """The least event time of each step, and how many elements there were in all; it does go back."""

    delay = 5

    def start(self):
        return 0

    def summarize(self, elements):
        return len(elements), min(event_time for event_time, _ in elements)

    def merge(self, summaries):
        return sum(count for count, _ in summaries), min(least for _, least in summaries)

    def advance(self, state, summary, clock):
        if summary is None:
            return state, None
        return state + summary[0], summary[1]


POLICIES = [
    IngressTime(),
    OrderedPartitions(),
    OrderedPartitions(at_least=3),
    BoundedDisorder(20),
    BoundedDisorder(5, per_partition=True, at_least=2),
    EstimationBand(16),
    Wavering(),
    IdleTimeout(BoundedDisorder(5, per_partition=True), 15),
    IdleTimeout(EstimationBand(), 20),
    IdleTimeout(Wavering(), 5),
    Percentiles(BoundedDisorder(100), (0.9, 0.3, 0.5)),
    IdleTimeout(Percentiles(OrderedPartitions(), (0.3, 0.5)), 30),
]
ALL_POLICIES = pytest.mark.parametrize("policy", POLICIES, ids=repr)


@ALL_POLICIES
@given(any_steps())
def test_watermarks_never_go_back(policy, steps) -> None:
    watermark, percentiles = MIN_MICROS, {}
    for reached in played(policy, steps):
        assert watermark <= reached.watermark_micros < MAX_MICROS
        watermark = reached.watermark_micros
        assert all(micros <= reached.percentile_micros[share] for share, micros in percentiles.items())
        percentiles = reached.percentile_micros


@ALL_POLICIES
@given(any_steps())
def test_the_lower_the_percentile_the_later_its_watermark(policy, steps) -> None:
    for reached in played(policy, steps):
        found = [reached.percentile_micros[share] for share in sorted(reached.percentile_micros)]
        assert sorted([*found, reached.watermark_micros], reverse=True) == [*found, reached.watermark_micros]


@ALL_POLICIES
@given(any_steps(), st.randoms(use_true_random=False))
def test_it_does_not_matter_how_a_step_is_cut_into_tasks_and_batches(policy, steps, chance) -> None:
    def in_pieces(estimator, elements):
        return cut(estimator, elements, chance)

    assert list(played(policy, steps, in_pieces)) == list(played(policy, steps))


@ALL_POLICIES
@given(any_steps())
def test_shards_that_pickle_everything_in_between_agree_with_those_that_do_not(policy, steps) -> None:
    estimator = pickle.loads(pickle.dumps(Estimator(policy)))
    state = estimator.start()
    for step, reached in zip(steps, played(policy, steps), strict=True):
        summary = observed(estimator, step.elements)
        state, summary = pickle.loads(pickle.dumps((state, summary)))
        before = pickle.dumps((state, summary))
        assert estimator.advance(state, summary, micros(step.clock)) == reached
        assert pickle.dumps((state, summary)) == before, "something was changed in place"
        state = reached.state


@ALL_POLICIES
@given(any_steps())
def test_the_end_of_a_source_is_the_end_of_time(policy, steps) -> None:
    *_, reached = played(policy, steps)
    estimator = Estimator(policy)
    ended = estimator.merge([estimator.end(estimator.empty_summary), observed(estimator, steps[0].elements)])
    reached = estimator.advance(reached.state, ended, micros(steps[-1].clock))
    after = estimator.advance(reached.state, None, micros(steps[-1].clock + 1))
    assert reached.watermark_micros == after.watermark_micros == MAX_MICROS
    assert set(reached.percentile_micros.values()) <= {MAX_MICROS}


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != IngressTime()], ids=repr)
def test_nothing_is_known_before_something_came(policy) -> None:
    estimator = Estimator(policy)
    assert estimator.merge([]) == estimator.observe(estimator.empty_summary, "a", [], 0) or policy
    for summary in (None, estimator.empty_summary, estimator.merge([])):
        reached = estimator.advance(estimator.start(), summary, 5 * SECOND)
        assert reached.watermark_micros == estimator.start().watermark_micros == MIN_MICROS


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_summaries_and_states_stay_small(policy) -> None:
    chance = random.Random(1)
    estimator = Estimator(policy)
    state, clock = estimator.start(), 0
    for _ in range(300):
        clock += SECOND
        events = [clock - round(chance.paretovariate(0.5) * 1000) for _ in range(300)]
        arrivals = [clock - chance.randrange(SECOND) for _ in events]
        summary = estimator.observe(estimator.empty_summary, "a", events, arrivals)
        state = estimator.advance(state, summary, clock).state
        assert len(pickle.dumps(summary)) < 4000
        assert len(pickle.dumps(state)) < 12_000


def test_ingress_time_is_the_clock_and_nothing_is_late() -> None:  # C3-05
    assert watermarks(IngressTime(), Step(3), Step(7.5, [Element(7, 7)])) == [3, 7.5]


@given(any_steps())
def test_what_is_stamped_on_arrival_is_never_late(steps) -> None:  # C3-05
    stamped = [
        Step(step.clock, [Element(element.arrival, element.arrival) for element in step.elements])
        for step in steps
    ]
    assert late(IngressTime(), stamped) == []


def test_of_ordered_partitions_the_one_that_is_furthest_behind_counts() -> None:  # C3-06
    found = watermarks(
        OrderedPartitions(at_least=2),
        Step(1, [Element(10, 1, "a"), Element(12, 1, "a")]),
        Step(2, [Element(5, 2, "b")]),
        Step(3, [Element(20, 3, "b")]),
        Step(4),
    )
    assert found == [None, 5, 12, 12]


@given(ordered_steps(late_start=False))
def test_ordered_partitions_that_are_known_make_no_late_data(steps) -> None:  # C3-06
    def announced(estimator):
        return estimator.merge(
            estimator.observe(estimator.empty_summary, partition, [], 0) for partition in "abc"
        )

    assert late(OrderedPartitions(at_least=3), steps) == []
    assert late(OrderedPartitions(), steps, first=announced) == []
