"""The rule of each watermark policy: its summary of the elements, and the event time that it derives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from penstock.error import noun_for, refusal
from penstock.io.streaming.watermark_policy import Recorded, WatermarkPolicy
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
    """The lanes that are not partitions; a rule tracks the progress and silence of each lane."""

    ALL = "all partitions together"
    UNSEEN = "the partitions from which nothing has arrived yet"


Bounds = Mapping[Hashable, int]


class Rule(ABC):
    """The part of an estimator that depends on the policy; it changes nothing in place."""

    by_partition = False  # Whether each partition is a separate lane.

    def start(self) -> object:
        return None

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> object:
        """Returns the rule's summary of elements, or None; rules by partition accept an empty list of elements."""
        return None

    def merge(self, parts: list[Any]) -> object:
        """Merges several results of `observe`."""
        return None

    @abstractmethod
    def advance(self, state: Any, seen: Any, clock_micros: int) -> tuple[Any, Bounds]:
        """Returns the next state, and for each lane the event time before which no more elements will come."""

    def percentile_micros(self, state: Any) -> Mapping[float, int]:
        """Returns the percentile watermarks that the rule itself knows."""
        return {}


@dataclass(frozen=True)
class IngressRule(Rule):
    def advance(self, state: None, seen: None, clock_micros: int) -> tuple[None, Bounds]:
        return None, {Lane.ALL: clock_micros}


@dataclass(frozen=True)
class LatestRule(Rule):
    """The largest event time minus a delay, over all elements or of the partition that is furthest behind.

    Its state is the largest event time of each lane.
    """

    delay_micros: int
    by_partition: bool = False
    at_least: int = 1

    def start(self) -> Mapping[Hashable, int]:
        return {}

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> Mapping[Hashable, int]:
        return {lane: max(timestamps_micros, default=MIN_MICROS)}

    def merge(self, parts: list[Mapping[Hashable, int]]) -> Mapping[Hashable, int]:
        merged = dict(parts[0])
        for part in parts[1:]:
            for lane, micros in part.items():
                merged[lane] = max(micros, merged.get(lane, MIN_MICROS))
        return merged

    def advance(
        self, state: Mapping[Hashable, int], seen: Mapping[Hashable, int] | None, clock_micros: int
    ) -> tuple[Mapping[Hashable, int], Bounds]:
        lanes = self.merge([state, seen or {}])
        bounds = {lane: micros - self.delay_micros for lane, micros in lanes.items()}
        if len(lanes) < self.at_least:
            bounds[Lane.UNSEEN] = MIN_MICROS
        return lanes, bounds


class Band(NamedTuple):
    """The smallest and the largest event time for each sixteenth of the band, and the largest event time before it."""

    buckets: Mapping[int, tuple[int, int]] = {}
    passed_micros: int = MIN_MICROS


@dataclass(frozen=True)
class BandRule(Rule):
    """The smallest event time that arrived within the band, but at most the largest that arrived before it.

    It keeps the smallest and the largest event time by arrival time, in sixteenths of the band.
    """

    band_micros: int

    def start(self) -> Band:
        return Band()

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> dict[int, tuple[int, int]]:
        stamps = [arrivals_micros] if isinstance(arrivals_micros, int) else arrivals_micros
        first, last = self._bucket(min(stamps)), self._bucket(max(stamps))
        if first == last:
            return {first: (min(timestamps_micros), max(timestamps_micros))}
        by_bucket: dict[int, list[int]] = {}
        for arrival_micros, timestamp_micros in zip(stamps, timestamps_micros, strict=True):
            by_bucket.setdefault(self._bucket(arrival_micros), []).append(timestamp_micros)
        return {bucket: (min(times), max(times)) for bucket, times in by_bucket.items()}

    def merge(self, parts: list[Mapping[int, tuple[int, int]]]) -> dict[int, tuple[int, int]]:
        merged = dict(parts[0])
        for part in parts[1:]:
            for bucket, (least, largest) in part.items():
                before = merged.get(bucket, (least, largest))
                merged[bucket] = min(least, before[0]), max(largest, before[1])
        return merged

    def advance(
        self, state: Band, seen: dict[int, tuple[int, int]] | None, clock_micros: int
    ) -> tuple[Band, Bounds]:
        """Advances the band; elements older than the band count as passed."""
        now = self._bucket(clock_micros)
        # An arrival time ahead of the clock is a mistake, and must not stay in the band longer than others.
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
    """The recorded watermark, and the recorded percentile watermarks if there are any."""

    def announced(self, watermark_micros: int, percentile_micros: Mapping[float, int]) -> object:
        """Returns a watermark in the form that `merge` takes."""
        return watermark_micros, dict(percentile_micros)

    def merge(self, parts: list[tuple[int, dict[float, int]]]) -> tuple[int, dict[float, int]]:
        percentiles: dict[float, int] = {}
        for _, more in parts:
            percentiles |= {
                share: max(micros, percentiles.get(share, micros)) for share, micros in more.items()
            }
        return max(watermark for watermark, _ in parts), percentiles

    def start(self) -> tuple[int, dict[float, int]]:
        return MIN_MICROS, {}

    def advance(self, state: tuple[Any, ...], seen: Any, clock_micros: int) -> tuple[Any, Bounds]:
        state = self.merge([state, seen]) if seen else state
        return state, {Lane.ALL: state[0]}

    def percentile_micros(self, state: tuple[int, dict[float, int]]) -> Mapping[float, int]:
        return state[1]


@dataclass(frozen=True)
class CustomRule(Rule):
    """Delegates to the user's own policy."""

    policy: CustomWatermark

    def start(self) -> object:
        return self.policy.start()

    def observe(
        self, lane: Hashable, timestamps_micros: list[int], arrivals_micros: int | list[int]
    ) -> object:
        timestamp = Timestamp.from_micros
        if isinstance(arrivals_micros, int):
            arrivals = [timestamp(arrivals_micros)] * len(timestamps_micros)
        else:
            arrivals = list(map(timestamp, arrivals_micros))
        return self.policy.summarize(list(zip(map(timestamp, timestamps_micros), arrivals, strict=True)))

    def merge(self, parts: list[Any]) -> object:
        return self.policy.merge(parts)

    def advance(self, state: object, seen: object, clock_micros: int) -> tuple[Any, Bounds]:
        result = self.policy.advance(state, seen, Timestamp.from_micros(clock_micros))
        try:
            state, watermark = result
            bounds: Bounds = {} if watermark is None else {Lane.ALL: Timestamp.of(watermark).micros}
        except (TypeError, ValueError, OverflowError):
            name = type(self.policy).__name__
            what = f"{name}.advance returned {noun_for(result)} that is not a pair of a state and a watermark"
            hint = (
                "return (state, watermark), where the watermark is a Timestamp, a number of seconds, or None"
            )
            raise refusal(TypeError, what, hint=hint) from None
        return state, bounds


def rule_of(policy: WatermarkPolicy) -> Rule:
    """Returns the rule of a policy that does not wrap another policy."""
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
    what = f"the runner does not know the watermark policy {policy!r}"
    raise refusal(TypeError, what, hint="derive your own policy from CustomWatermark")
