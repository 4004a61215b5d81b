"""Watermark policies as values: what they refuse, what they are equal to, and a policy of the user's own."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from penstock.io.streaming.watermark_policy import Recorded
from penstock.io.watermarks import (
    BoundedDisorder,
    CustomWatermark,
    EstimationBand,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
    WatermarkPolicy,
)
from penstock.utils.timestamp import Duration, Timestamp


class Slowest(CustomWatermark):
    """A policy with an argument."""

    def __init__(self, margin):
        self.margin = margin

    def summarize(self, elements):
        return min(event_time for event_time, _ in elements)

    def merge(self, summaries):
        return min(summaries)

    def advance(self, state, summary, clock):
        return state, summary and summary - self.margin


@dataclass(frozen=True)
class SlowestToo(Slowest):
    """A policy whose arguments are fields."""

    margin: int
    delay: float = 2.5


class Forgetful(CustomWatermark):
    """A policy that lacks two of its methods."""

    def summarize(self, elements):
        return None


# Each policy as it is built, shown, and how far it is behind the clock, in seconds.
POLICIES = [
    (IngressTime(), "IngressTime()", 0),
    (OrderedPartitions(), "OrderedPartitions(at_least=1)", 0),
    (BoundedDisorder(60), "BoundedDisorder(delay=Duration(60), per_partition=False, at_least=1)", 60),
    (BoundedDisorder(Duration(1.5), True, 2), None, 1.5),
    (BoundedDisorder(0), None, 0),
    (EstimationBand(), "EstimationBand(band=Duration(10))", 10),
    (IdleTimeout(EstimationBand(20)), None, 20),
    (Percentiles(IdleTimeout(BoundedDisorder(5))), None, 5),
    (IdleTimeout(Percentiles(BoundedDisorder(5), [0.9, 0.5]), 0.5), None, 5),
    (Recorded(), "Recorded()", 0),
    (Slowest(3), None, 0),
    (SlowestToo(3), "SlowestToo(margin=3, delay=2.5)", 2.5),
    (IdleTimeout(SlowestToo(3, 4)), None, 4),
]


@pytest.mark.parametrize(("policy", "shown", "seconds"), POLICIES)
def test_a_policy_is_a_value(policy, shown, seconds) -> None:
    assert isinstance(policy, WatermarkPolicy)
    assert policy.delay_micros == seconds * 1_000_000
    assert shown is None or repr(policy) == shown
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert hash(copy) == hash(policy)
    assert [other for other, _, _ in POLICIES if other == policy] == [policy]


def test_seconds_as_a_number_and_as_a_duration_make_the_same_policy() -> None:
    assert {BoundedDisorder(60), BoundedDisorder(Duration(60)), BoundedDisorder(60.0)} == {
        BoundedDisorder(60)
    }
    assert {EstimationBand(10), EstimationBand(Duration(10)), EstimationBand()} == {EstimationBand()}
    idle = IdleTimeout(IngressTime(), Duration(120))
    assert {idle, IdleTimeout(IngressTime())} == {idle}
    assert idle.timeout == Duration(120)
    assert BoundedDisorder(60) != BoundedDisorder(61)
    assert EstimationBand(10) != EstimationBand(11)
    assert idle != IdleTimeout(IngressTime(), 121)


@pytest.mark.parametrize("seconds", ["60", None, Timestamp(3)])
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (BoundedDisorder, "delay"),
        (EstimationBand, "band"),
        (lambda seconds: IdleTimeout(IngressTime(), seconds), "timeout"),
    ],
)
def test_what_is_no_time_is_refused(build, name, seconds) -> None:
    with pytest.raises(TypeError, match=f"the {name} parameter must be a duration") as caught:
        build(seconds)
    assert "\n  at test_watermark_policies.py:" in str(caught.value)
    assert "\n  hint: pass seconds" in str(caught.value)


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: BoundedDisorder(-0.001), "the delay parameter must not be negative, but is -0.001"),
        (lambda: BoundedDisorder(float("inf")), "the delay parameter must be finite, but is inf"),
        (lambda: EstimationBand(0), "the band parameter must be strictly positive, but is 0"),
        (lambda: IdleTimeout(IngressTime(), 0), "the timeout parameter must be strictly positive, but is 0"),
        (lambda: OrderedPartitions(0), "the at_least parameter must be an integer, 1 or more, but is 0"),
        (
            lambda: OrderedPartitions(True),
            "the at_least parameter must be an integer, 1 or more, but is True",
        ),
        (lambda: BoundedDisorder(1, True, 1.5), "the at_least parameter must be an integer, 1 or more"),
        (lambda: BoundedDisorder(1, at_least=2), "at_least=2 has no meaning for all partitions together"),
        (lambda: Percentiles(IngressTime(), ()), "the percentiles parameter is empty"),
        (lambda: Percentiles(IngressTime(), (0.5, 1)), "must be more than 0 and less than 1, but is 1"),
        (lambda: Percentiles(IngressTime(), (0,)), "must be more than 0 and less than 1, but is 0"),
        (
            lambda: Percentiles(IngressTime(), (float("nan"),)),
            "must be more than 0 and less than 1, but is nan",
        ),
        (lambda: Percentiles(IngressTime(), ("0.5",)), "must be more than 0 and less than 1, but is '0.5'"),
        (lambda: IdleTimeout(IdleTimeout(IngressTime())), "IdleTimeout occurs twice in the policy"),
        (
            lambda: IdleTimeout(Percentiles(IdleTimeout(IngressTime()))),
            "IdleTimeout occurs twice in the policy",
        ),
        (
            lambda: Percentiles(IdleTimeout(Percentiles(IngressTime()))),
            "Percentiles occurs twice in the policy",
        ),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(build, what) -> None:
    with pytest.raises(ValueError, match=what) as caught:
        build()
    assert "\n  at test_watermark_policies.py:" in str(caught.value)
    assert "\n  hint: " in str(caught.value)


@pytest.mark.parametrize("outer", [IdleTimeout, Percentiles])
@pytest.mark.parametrize("inner", [IngressTime, 60, None])
def test_a_policy_about_another_needs_that_other(outer, inner) -> None:
    with pytest.raises(TypeError, match=f"{outer.__name__} needs a watermark policy, but got") as caught:
        outer(inner)
    assert "\n  hint: pass one, such as BoundedDisorder" in str(caught.value)


@pytest.mark.parametrize("percentiles", [0.9, "0.9", None])
def test_percentiles_are_several(percentiles) -> None:
    with pytest.raises(TypeError, match="the percentiles parameter must be several numbers") as caught:
        Percentiles(IngressTime(), percentiles)
    assert "\n  hint: write (0.9,)" in str(caught.value)


def test_a_custom_policy_that_lacks_a_method_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="policy Forgetful does not define advance, merge") as caught:
        Forgetful()
    assert "\n  at test_watermark_policies.py:" in str(caught.value)
    assert "\n  hint: define advance" in str(caught.value)
    with pytest.raises(TypeError, match="CustomWatermark does not define advance, merge, summarize"):
        CustomWatermark()


def test_a_custom_policy_is_equal_to_another_with_the_same_parts() -> None:
    assert {Slowest(3), Slowest(3)} == {Slowest(3)}
    assert Slowest(3) != Slowest(4)
    assert Slowest(3) != SlowestToo(3)
    assert SlowestToo(3) == SlowestToo(3) != SlowestToo(4)
    assert Slowest(3).start() is None
