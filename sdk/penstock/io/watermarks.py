"""Watermark policies, which estimate how far event time has advanced at a source.

A source's watermark means that no element with an earlier event time is expected. A policy defines how the runner
computes it from the elements that have arrived, in `penstock_spark.source_watermarks`. With every policy, a watermark
never moves back, and at the end of a source it moves to the end of time. See the book's chapter 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from penstock.checks.window_lengths import positive_micros
from penstock.error import refusal
from penstock.io.streaming.custom_watermark import CustomWatermark
from penstock.io.streaming.watermark_policy import WatermarkPolicy, Wrapping
from penstock.utils.timestamp import Duration, DurationTypes

__all__ = [
    "BoundedDisorder",
    "CustomWatermark",
    "EstimationBand",
    "IdleTimeout",
    "IngressTime",
    "OrderedPartitions",
    "Percentiles",
    "WatermarkPolicy",
]


@dataclass(frozen=True)
class IngressTime(WatermarkPolicy):
    """A policy for elements whose event time is their arrival time: the watermark is the clock.

    No element is ever late. Example: ``ReadFromText("/logs/*.txt").as_stream(watermark=IngressTime())``.
    """

    needs_event_times: ClassVar[bool | None] = False


@dataclass(frozen=True, init=False)
class OrderedPartitions(WatermarkPolicy):
    """A policy for partitions with ascending event times: the lowest of all partitions' last event times.

    No element is ever late if every partition is known before the watermark has passed its beginning. A partition that
    has ended no longer counts; when all have ended, the watermark stays unchanged.

    Args:
        at_least: The number of partitions, if the source does not report it, from 1. The watermark waits until it has
            seen all of them.

    >>> OrderedPartitions(at_least=12)
    OrderedPartitions(at_least=12)
    """

    follows_clock: ClassVar[bool] = False
    needs_event_times: ClassVar[bool | None] = True
    at_least: int

    def __init__(self, at_least: int = 1) -> None:
        vars(self).update(at_least=_count(at_least))

    @property
    def least_partitions(self) -> int:
        return self.at_least


@dataclass(frozen=True, init=False)
class BoundedDisorder(WatermarkPolicy):
    """A policy for elements that are out of order by at most some time: the largest event time minus that time.

    By default the largest of all partitions counts, as in Spark's own watermark: an idle partition does not delay the
    watermark, but a partition that is read more slowly than the others causes late data. With `per_partition`, the
    partition that is furthest behind counts, as in Flink's sources: wrap the policy in an `IdleTimeout` if partitions
    may become idle.

    Args:
        delay: The time by which elements may be out of order, in seconds; may be 0.
        per_partition: Whether each partition is in order on its own.
        at_least: As in `OrderedPartitions`, with `per_partition`.

    >>> BoundedDisorder(60)
    BoundedDisorder(delay=Duration(60), per_partition=False, at_least=1)
    """

    follows_clock: ClassVar[bool] = False
    needs_event_times: ClassVar[bool | None] = True
    state_depends_on: ClassVar[tuple[str, ...]] = ("per_partition",)
    delay: Duration
    per_partition: bool
    at_least: int

    def __init__(self, delay: DurationTypes, per_partition: bool = False, at_least: int = 1) -> None:
        micros = positive_micros("delay parameter", delay, may_be_zero=True)
        if _count(at_least) > 1 and not per_partition:
            what = f"at_least={at_least} has no meaning for all partitions together"
            raise refusal(ValueError, what, hint="add per_partition=True, or leave it out")
        vars(self).update(
            delay=Duration.from_micros(micros), per_partition=bool(per_partition), at_least=at_least
        )

    @property
    def delay_micros(self) -> int:
        return self.delay.micros

    @property
    def least_partitions(self) -> int | None:
        return self.at_least if self.per_partition else None


@dataclass(frozen=True, init=False)
class EstimationBand(WatermarkPolicy):
    """A policy for elements that are out of order by at most some time of the clock (the book's rule for Pub/Sub).

    The watermark is the lowest event time that arrived within the band, the last seconds by the clock, but at most the
    largest event time that arrived before it: no other element can still be overtaken. (The book's rule is the first
    half, and needs dense data.) So an element that arrives at most `band` seconds after one with a later event time
    is never late, however far event time is from the clock. The actual band is up to a sixteenth wider.

    Args:
        band: Its width, in seconds.

    >>> EstimationBand()
    EstimationBand(band=Duration(10))
    """

    needs_event_times: ClassVar[bool | None] = True
    state_depends_on: ClassVar[tuple[str, ...]] = ("band",)
    band: Duration

    def __init__(self, band: DurationTypes = 10) -> None:
        vars(self).update(band=Duration.from_micros(positive_micros("band parameter", band)))

    @property
    def delay_micros(self) -> int:
        return self.band.micros


@dataclass(frozen=True, init=False)
class IdleTimeout(Wrapping):
    """A policy around another one, which limits its wait for an idle source.

    A source without elements for that time no longer holds back the watermark: it counts as if it had reached the clock
    minus the delay or band of the policy. If partitions count separately, this also applies to each idle partition. It
    is meant for event times that follow the clock: if a recording of last year pauses, the rest of it will be late.

    Args:
        policy: The other policy.
        timeout: The time, in seconds, by the clock.

    >>> IdleTimeout(EstimationBand())
    IdleTimeout(policy=EstimationBand(band=Duration(10)), timeout=Duration(120))
    """

    policy: WatermarkPolicy
    timeout: Duration

    def __init__(self, policy: WatermarkPolicy, timeout: DurationTypes = 120) -> None:
        _check_policy(type(self), policy)
        vars(self).update(
            policy=policy, timeout=Duration.from_micros(positive_micros("timeout parameter", timeout))
        )

    @property
    def idle_micros(self) -> int:
        return self.timeout.micros


@dataclass(frozen=True, init=False)
class Percentiles(Wrapping):
    """A policy around another one, with watermarks of percentiles for ``AfterWatermarkPercentile``.

    An element is in flight from its event time until it arrives. The watermark of a percentile is the clock minus the
    time within which that share of the elements arrives, as far as is known: that share of all earlier events has
    arrived. It is never behind the policy's watermark, and otherwise not ahead of the largest event time seen. Recent
    elements weigh more than old ones, and times are rounded up by at most a sixteenth. A percentile p needs at least
    1 / (1 - p) elements; before that, the policy's watermark is used.

    Args:
        policy: The other policy.
        percentiles: Shares of the elements, more than 0 and less than 1.

    >>> Percentiles(IngressTime(), percentiles=[0.5, 0.95]).percentiles
    (0.5, 0.95)
    """

    policy: WatermarkPolicy
    percentiles: tuple[float, ...]

    def __init__(self, policy: WatermarkPolicy, percentiles: Iterable[float] = (0.5, 0.9)) -> None:
        _check_policy(type(self), policy)
        vars(self).update(policy=policy, percentiles=_checked_shares(percentiles))

    @property
    def percentile_shares(self) -> tuple[float, ...]:
        return self.percentiles


def _count(at_least: int) -> int:
    if not isinstance(at_least, int) or isinstance(at_least, bool) or at_least < 1:
        what = f"the at_least parameter must be an integer, 1 or more, but is {at_least!r}"
        raise refusal(ValueError, what, hint="pass the number of partitions")
    return at_least


def _checked_shares(percentiles: Iterable[float]) -> tuple[float, ...]:
    if isinstance(percentiles, str) or not isinstance(percentiles, Iterable):
        what = f"the percentiles parameter must be several numbers, but is {percentiles!r}"
        raise refusal(TypeError, what, hint="write (0.9,) for a single one")
    shares = tuple(percentiles)
    if not shares:
        what = "the percentiles parameter is empty"
        raise refusal(ValueError, what, hint="pass a percentile, such as 0.9")
    for share in shares:
        if not (isinstance(share, Real) and 0 < share < 1):
            what = f"a percentile must be more than 0 and less than 1, but is {share!r}"
            hint = "write 0.95 for 95 percent; the policy's own watermark is at 100 percent"
            raise refusal(ValueError, what, hint=hint)
    return shares


def _check_policy(outer: type[Wrapping], policy: WatermarkPolicy) -> None:
    """Refuses anything but a policy without an `outer` policy at any depth."""
    if not isinstance(policy, WatermarkPolicy):
        what = f"{outer.__name__} needs a watermark policy, but got {policy!r}"
        raise refusal(TypeError, what, hint="pass one, such as BoundedDisorder(60)")
    while isinstance(policy, Wrapping):
        if isinstance(policy, outer):
            what = f"{outer.__name__} occurs twice in the policy"
            raise refusal(ValueError, what, hint="keep one of the two")
        policy = policy.policy
