"""What each watermark policy keeps of elements, and how far it takes event time to have come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from penstock.error import three_parts
from penstock.io.watermark_policy import Recorded, WatermarkPolicy
from penstock.io.watermarks import (
    BoundedDisorder,
    CustomWatermark,
    EstimationBand,
    IngressTime,
    OrderedPartitions,
)
from penstock.machines.records import MIN_MICROS
from penstock.utils.timestamp import Timestamp


class Lane(Enum):
    """What is watched for progress and silence, where it is not a partition."""

    ALL = "all partitions together"
    UNSEEN = "the partitions of which nothing is known yet"


Bounds = Mapping[Hashable, int]


class Rule(ABC):
    """The part of an estimator that depends on the policy; it changes nothing in place.

    Attributes:
        by_partition: Whether partitions count one by one, each as a lane of its own.
    """

    by_partition = False

    def start(self) -> Any:
        """The state before anything came."""
        return None

    def observe(self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]) -> Any:
        """What matters of some elements, None if nothing; there may be none where partitions count one by one."""
        return None

    def end(self, partition: Hashable) -> Any:
        """What matters of the end of a partition, None if nothing."""
        return None

    def merge(self, parts: list[Any]) -> Any:
        """One for several such."""
        return None

    @abstractmethod
    def advance(self, state: Any, seen: Any, clock_micros: int) -> tuple[Any, Bounds]:
        """The next state, and for each lane the event time before which it has no more elements."""

    def percentile_micros(self, state: Any) -> Mapping[float, int]:
        """The watermarks of percentiles that the rule itself knows."""
        return {}


@dataclass(frozen=True)
class IngressRule(Rule):
    """The clock."""

    def advance(self, state: None, seen: None, clock_micros: int) -> tuple[None, Bounds]:
        """Whatever came, it came by now."""
        return None, {Lane.ALL: clock_micros}


class Latest(NamedTuple):
    """The largest event time of each lane that has not ended, the minimum where there is none, and how many have."""

    micros: Mapping[Hashable, int] = {}
    ended_count: int = 0


@dataclass(frozen=True)
class LatestRule(Rule):
    """The largest event time less a delay, of all together or of the partition that is furthest behind.

    It keeps, for each lane, the largest event time and whether it has ended.
    """

    delay_micros: int
    by_partition: bool = False
    at_least: int = 1

    def start(self) -> Latest:
        """Nothing is known."""
        return Latest()

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> dict[Hashable, tuple[int, bool]]:
        """The largest event time."""
        return {lane: (max(timestamps_micros, default=MIN_MICROS), False)}

    def end(self, partition: Hashable) -> dict[Hashable, tuple[int, bool]]:
        """The end of its lane; one that does not exist has nothing to end."""
        return {partition: (MIN_MICROS, True)}

    def merge(self, parts: list[dict[Hashable, tuple[int, bool]]]) -> dict[Hashable, tuple[int, bool]]:
        """The largest of each lane, and whether any part has seen its end."""
        merged = dict(parts[0])
        for part in parts[1:]:
            for lane, (micros, ended) in part.items():
                before_micros, ended_before = merged.get(lane, (MIN_MICROS, False))
                merged[lane] = max(micros, before_micros), ended or ended_before
        return merged

    def advance(
        self, state: Latest, seen: dict[Hashable, tuple[int, bool]] | None, clock_micros: int
    ) -> tuple[Latest, Bounds]:
        """Lanes that have just ended still count if no other is left, such as files that are read at once."""
        lanes = self.merge([{lane: (micros, False) for lane, micros in state.micros.items()}, seen or {}])
        still = {lane: micros for lane, (micros, ended) in lanes.items() if not ended}
        counted = still or {lane: micros for lane, (micros, _) in lanes.items() if micros > MIN_MICROS}
        bounds = {lane: micros - self.delay_micros for lane, micros in counted.items()}
        ended_count = state.ended_count + len(lanes) - len(still)
        if len(still) + ended_count < self.at_least:
            bounds[Lane.UNSEEN] = MIN_MICROS
        return Latest(still, ended_count), bounds


class Band(NamedTuple):
    """The least and the largest event time by sixteenth of the band, and the largest of those that are behind it."""

    buckets: Mapping[int, tuple[int, int]] = {}
    passed_micros: int = MIN_MICROS


@dataclass(frozen=True)
class BandRule(Rule):
    """The least event time that arrived within the band, but no more than the largest that arrived before it.

    It keeps the least and the largest event time by arrival time, in sixteenths of the band.
    """

    band_micros: int

    def start(self) -> Band:
        """Nothing is known."""
        return Band()

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> dict[int, tuple[int, int]]:
        """The least and the largest event time by arrival time."""
        stamps = [arrivals_micros] if isinstance(arrivals_micros, int) else arrivals_micros
        first, last = self._bucket(min(stamps)), self._bucket(max(stamps))
        if first == last:
            return {first: (min(timestamps_micros), max(timestamps_micros))}
        by_bucket: dict[int, list[int]] = {}
        for arrival_micros, timestamp_micros in zip(stamps, timestamps_micros, strict=True):
            by_bucket.setdefault(self._bucket(arrival_micros), []).append(timestamp_micros)
        return {bucket: (min(times), max(times)) for bucket, times in by_bucket.items()}

    def merge(self, parts: list[Mapping[int, tuple[int, int]]]) -> dict[int, tuple[int, int]]:
        """The least and the largest of each bucket."""
        merged = dict(parts[0])
        for part in parts[1:]:
            for bucket, (least, largest) in part.items():
                before = merged.get(bucket, (least, largest))
                merged[bucket] = min(least, before[0]), max(largest, before[1])
        return merged

    def advance(
        self, state: Band, seen: dict[int, tuple[int, int]] | None, clock_micros: int
    ) -> tuple[Band, Bounds]:
        """What has become older than the band is counted as passed."""
        now = self._bucket(clock_micros)
        # A stamp ahead of the clock is a mistake, and must not stay in the band for longer than others.
        news = [{min(bucket, now): times} for bucket, times in (seen or {}).items()]
        buckets = self.merge([state.buckets, *news])
        first_within = self._bucket(clock_micros - self.band_micros)
        passed_micros = max(
            (largest for bucket, (_, largest) in buckets.items() if bucket < first_within),
            default=MIN_MICROS,
        )
        within = {bucket: times for bucket, times in buckets.items() if bucket >= first_within}
        state = Band(within, max(state.passed_micros, passed_micros))
        bound_micros = min((least for least, _ in within.values()), default=state.passed_micros)
        return state, {Lane.ALL: min(bound_micros, state.passed_micros)}

    def _bucket(self, arrival_micros: int) -> int:
        return arrival_micros // max(1, self.band_micros // 16)


@dataclass(frozen=True)
class RecordedRule(Rule):
    """What is written down: a watermark, and perhaps those of percentiles."""

    def announced(self, watermark_micros: int, percentile_micros: Mapping[float, int]) -> Any:
        """A watermark, as `merge` takes it."""
        return watermark_micros, dict(percentile_micros)

    def merge(self, parts: list[tuple[int, dict[float, int]]]) -> tuple[int, dict[float, int]]:
        """The largest of each."""
        percentiles: dict[float, int] = {}
        for _, more in parts:
            percentiles |= {
                share: max(micros, percentiles.get(share, micros)) for share, micros in more.items()
            }
        return max(watermark for watermark, _ in parts), percentiles

    def start(self) -> tuple[int, dict[float, int]]:
        """Nothing is written down."""
        return MIN_MICROS, {}

    def advance(self, state: Any, seen: Any, clock_micros: int) -> tuple[Any, Bounds]:
        """As it is written."""
        state = self.merge([state, seen]) if seen else state
        return state, {Lane.ALL: state[0]}

    def percentile_micros(self, state: tuple[int, dict[float, int]]) -> Mapping[float, int]:
        """As it is written."""
        return state[1]


@dataclass(frozen=True)
class CustomRule(Rule):
    """What the user's own policy says."""

    policy: CustomWatermark

    def start(self) -> Any:
        """As the policy says."""
        return self.policy.start()

    def observe(self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]) -> Any:
        """As the policy says."""
        moment = Timestamp.from_micros
        if isinstance(arrivals_micros, int):
            arrivals = [moment(arrivals_micros)] * len(timestamps_micros)
        else:
            arrivals = list(map(moment, arrivals_micros))
        return self.policy.summarize(list(zip(map(moment, timestamps_micros), arrivals, strict=True)))

    def merge(self, parts: list[Any]) -> Any:
        """As the policy says."""
        return self.policy.merge(parts)

    def advance(self, state: Any, seen: Any, clock_micros: int) -> tuple[Any, Bounds]:
        """As the policy says."""
        result = self.policy.advance(state, seen, Timestamp.from_micros(clock_micros))
        try:
            state, watermark = result
            bounds: Bounds = {} if watermark is None else {Lane.ALL: Timestamp.of(watermark).micros}
        except (TypeError, ValueError, OverflowError):
            name = type(self.policy).__name__
            what = f"{name}.advance returned a {type(result).__name__}, which is no pair of a state and a watermark"
            hint = "return (state, watermark), the watermark as a Timestamp, in seconds, or None"
            raise TypeError(three_parts(what, hint=hint)) from None
        return state, bounds


def rule_of(policy: WatermarkPolicy) -> Rule:
    """The rule of a policy that is not one about another."""
    match policy:
        case IngressTime():
            return IngressRule()
        case OrderedPartitions(at_least):
            return LatestRule(0, True, at_least)
        case BoundedDisorder(per_partition=per_partition, at_least=at_least):
            return LatestRule(policy.delay_micros, per_partition, at_least)
        case EstimationBand():
            return BandRule(policy.delay_micros)
        case Recorded():
            return RecordedRule()
        case CustomWatermark():
            return CustomRule(policy)
    what = f"{policy!r} is no watermark policy that the runner knows"
    raise TypeError(three_parts(what, hint="derive a policy of your own from CustomWatermark"))
