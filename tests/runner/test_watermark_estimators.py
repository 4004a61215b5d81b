"""Watermark policies at work: the laws that all of them keep, and policies that come from outside."""

from __future__ import annotations

import copy
import pickle
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.io.streaming.watermark_policy import Recorded, WatermarkPolicy, Wrapping
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
from penstock_spark.source_watermarks import ENDED, Estimator, estimator
from penstock_spark.source_watermarks.rules import LatestRule
from tests.runner.watermark_inputs import (
    SECOND,
    Element,
    Step,
    any_steps,
    cut,
    micros,
    observed,
    played,
    watermarks,
)


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
FEWER = settings(max_examples=60)  # Each for all policies.


@FEWER
@given(any_steps())
def test_watermarks_never_go_back_and_lower_percentiles_are_not_behind_higher_ones(steps) -> None:
    for policy in POLICIES:
        before = {}
        for reached in played(policy, steps):
            assert MIN_MICROS <= reached.watermark_micros < MAX_MICROS, policy
            watermarks = {**reached.percentile_micros, 1: reached.watermark_micros}
            assert all(before[share] <= micros for share, micros in watermarks.items() if before), policy
            in_order = [watermarks[share] for share in sorted(watermarks)]
            assert in_order == sorted(in_order, reverse=True), policy
            before = watermarks


@FEWER
@given(any_steps(), st.randoms(use_true_random=False))
def test_it_does_not_matter_how_a_step_is_cut_into_tasks_and_batches(steps, chance) -> None:
    def in_pieces(estimator, elements):
        return cut(estimator, elements, chance)

    for policy in POLICIES:
        assert list(played(policy, steps, in_pieces)) == list(played(policy, steps)), policy


@FEWER
@given(any_steps())
def test_shards_agree_and_change_nothing_in_place(steps) -> None:
    for policy in POLICIES:
        estimator = pickle.loads(pickle.dumps(Estimator(policy)))
        state = estimator.start()
        for step, reached in zip(steps, played(policy, steps), strict=True):
            summary = observed(estimator, step.elements)
            state, summary = before = pickle.loads(pickle.dumps((state, summary)))
            untouched = copy.deepcopy(before)
            assert estimator.advance(state, summary, micros(step.clock)) == reached, policy
            assert before == untouched, policy
            state = reached.state


@FEWER
@given(any_steps())
def test_the_end_of_a_source_is_the_end_of_time(steps) -> None:
    for policy in POLICIES:
        *_, reached = played(policy, steps)
        estimator = Estimator(policy)
        ended = estimator.merge([ENDED, observed(estimator, steps[0].elements)])
        reached = estimator.advance(reached.state, ended, micros(steps[-1].clock))
        after = estimator.advance(reached.state, None, micros(steps[-1].clock + 1))
        assert reached.watermark_micros == after.watermark_micros == MAX_MICROS
        assert set(after.percentile_micros.values()) <= {MAX_MICROS}


def test_nothing_is_known_before_something_came() -> None:
    for policy in POLICIES[1:]:
        estimator = Estimator(policy)
        nothing_read = estimator.observe(estimator.empty_summary, "a", [], 0)
        for summary in (None, estimator.empty_summary, estimator.merge([]), nothing_read):
            reached = estimator.advance(estimator.start(), summary, 5 * SECOND)
            assert reached.watermark_micros == estimator.start().watermark_micros == MIN_MICROS, policy


def test_summaries_and_states_stay_small() -> None:
    chance = random.Random(1)
    clocks = [number * SECOND for number in range(1, 200)]
    delays = [[round(chance.paretovariate(0.5) * 1000) for _ in range(100)] for _ in clocks]
    for policy in POLICIES:
        estimator = Estimator(policy)
        state = estimator.start()
        for clock, found in zip(clocks, delays, strict=True):
            arrivals = [clock - delay % 7 * SECOND // 7 for delay in found]
            events = [arrival - delay for arrival, delay in zip(arrivals, found, strict=True)]
            summary = estimator.observe(estimator.empty_summary, "a", events, arrivals)
            state = estimator.advance(state, summary, clock).state
            assert len(pickle.dumps(summary)) < 2000, policy
            assert len(pickle.dumps(state)) < 5000, policy


def test_what_is_written_down_is_the_watermark() -> None:
    estimator = Estimator(Recorded())
    one = estimator.announce(estimator.empty_summary, 5 * SECOND, {0.9: 7 * SECOND})
    other = estimator.announce(estimator.empty_summary, 4 * SECOND, {0.9: 9 * SECOND})
    for parts in ([one, other], [other, one]):
        ignored = estimator.observe(estimator.merge(parts), "a", [100 * SECOND], 0)
        reached = estimator.advance(estimator.start(), ignored, 0)
        assert reached.watermark_micros == 5 * SECOND
        assert reached.percentile_micros == {0.9: 9 * SECOND}
    infinity = estimator.announce(estimator.empty_summary, MAX_MICROS)
    reached = estimator.advance(reached.state, infinity, 0)
    assert reached.watermark_micros == reached.percentile_micros[0.9] == MAX_MICROS


class Answers(CustomWatermark):
    """A policy that answers what it is built with."""

    def __init__(self, answer):
        self.answer = answer

    def summarize(self, elements):
        return None

    def merge(self, summaries):
        raise AssertionError("there is none to merge")

    def advance(self, state, summary, clock):
        assert summary is None
        return self.answer


def test_a_policy_of_the_users_own_sees_moments() -> None:
    seen = []

    class Seeing(Wavering):
        def summarize(self, elements):
            seen.extend(elements)
            return super().summarize(elements)

        def advance(self, state, summary, clock):
            seen.append(clock)
            return super().advance(state, summary, clock)

    *_, reached = played(Seeing(), [Step(2, [Element(5, 1), Element(4, 2)])])
    assert seen == [(Timestamp(5), Timestamp(1)), (Timestamp(4), Timestamp(2)), Timestamp(2)]
    assert reached.state.rule == 2
    assert reached.watermark_micros == 4 * SECOND
    estimator = Estimator(Seeing())
    seen.clear()
    estimator.observe(estimator.empty_summary, "a", [SECOND, 2 * SECOND], 3 * SECOND)
    assert seen == [(Timestamp(1), Timestamp(3)), (Timestamp(2), Timestamp(3))]


@pytest.mark.parametrize(
    ("watermark", "seconds"), [(None, None), (7, 7), (7.5, 7.5), (Timestamp(3), 3), (Timestamp(2**50), 2**63)]
)
def test_a_watermark_of_the_users_own_is_a_moment_or_seconds_or_none(watermark, seconds) -> None:
    [found] = watermarks(Answers((None, watermark)), Step(1, [Element(1, 1)]))
    assert found == (seconds if seconds != 2**63 else MAX_MICROS / SECOND)


@pytest.mark.parametrize("answer", [None, 7, (1, 2, 3), (None, "7"), (None, float("nan"))])
def test_an_answer_that_is_no_watermark_is_refused(answer) -> None:
    with pytest.raises(
        TypeError, match=r"Answers.advance returned .* that is not a pair of a state and a"
    ) as caught:
        watermarks(Answers(answer), Step(1))
    assert "\n  hint: return (state, watermark)" in str(caught.value)


def test_a_policy_that_is_none_of_these_is_refused() -> None:
    class Unknown(WatermarkPolicy):
        pass

    with pytest.raises(
        TypeError, match=r"the runner does not know the watermark policy .*\n  at .*\n  hint: derive"
    ):
        Estimator(IdleTimeout(Unknown()))


@dataclass(frozen=True)
class Slowest(WatermarkPolicy):
    """A policy that the runner does not have yet."""

    needs_event_times = True
    at_least: int

    @property
    def least_partitions(self) -> int:
        return self.at_least


@dataclass(frozen=True)
class Cautious(Wrapping):
    """A policy around another one that nothing but its own delay tells from it."""

    policy: WatermarkPolicy
    seconds: int

    @property
    def delay_micros(self) -> int:
        return self.seconds * SECOND


def test_a_new_policy_needs_its_declarations_and_a_rule(monkeypatch) -> None:
    monkeypatch.setattr(estimator, "rule_of", lambda policy: LatestRule(0, True, policy.least_partitions))
    policy = Cautious(IdleTimeout(Slowest(2), 30), 5)
    assert policy.describe() == "Cautious(IdleTimeout(Slowest))"
    steps = [Step(10, [Element(7, 10, "a")]), Step(20, [Element(9, 20, "b")]), Step(55)]
    # The second partition completes them; after the timeout of what it wraps, its own delay counts.
    assert watermarks(policy, *steps) == [None, 7, 50]
    percentiles = list(played(Cautious(Percentiles(Slowest(1), (0.5,)), 0), steps))
    assert [list(reached.percentile_micros) for reached in percentiles] == [[0.5]] * 3
