"""Estimates the watermark of one source from its tasks' summaries of the input.

In each step, every task summarises what it read and sends the summary to every shard. Every shard merges the summaries
of the step, in any order, and advances its own state with them, so all shards reach the same watermark without
asking each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock_spark.source_watermarks import delays
from penstock_spark.source_watermarks.delays import Delays
from penstock_spark.source_watermarks.rules import Bounds, Lane, RecordedRule, rule_of


class Summary(NamedTuple):
    """The facts about elements that some tasks read in one step from which the watermark follows; plain and small."""

    seen: Any = None  # What the policy's rule keeps of them; None if nothing.
    # The lanes that elements came from: partitions, if each partition is a lane.
    heard: frozenset[Hashable] = frozenset()
    delays: Delays | None = None  # How long the elements took to arrive, if the policy has percentiles.
    ended: bool = False  # Whether this is the end of the source.


ENDED = Summary(ended=True)
"""The summary of a source that has ended; a task merges it with the summary of its last elements."""


class State(NamedTuple):
    """The state of a source's watermark in a shard; plain and small."""

    rule: object  # The state of the policy's rule.
    watermark_micros: int = MIN_MICROS
    percentile_micros: Mapping[float, int] = {}  # The percentile watermarks.
    # The last time that each lane sent elements, if the policy has an idle timeout.
    heard_micros: Mapping[Hashable, int] = {}
    delays: Delays = Delays()  # How long elements take to arrive, if the policy has percentiles.


class ReachedWatermark(NamedTuple):
    state: State  # The next state.
    # The watermark: the minimum until something is known, the maximum when the source has ended.
    watermark_micros: int
    # The percentile watermarks: lower percentiles are later, and all are at least the watermark.
    percentile_micros: Mapping[float, int]


class Estimator:
    """Runs a policy.

    Nothing changes in place: `observe` and `announce` return a new summary, and `advance` a new state.
    Merging is associative and commutative. `advance` keeps the watermark from going back, whatever the policy
    says.

    >>> from penstock.io.watermarks import BoundedDisorder
    >>> estimator = Estimator(BoundedDisorder(5))
    >>> summary = estimator.observe(estimator.empty_summary, "part 0", [30_000_000, 20_000_000], 31_000_000)
    >>> estimator.advance(estimator.start(), summary, clock_micros=31_000_000).watermark_micros
    25000000
    """

    empty_summary = Summary()

    def __init__(self, policy: WatermarkPolicy) -> None:
        self._idle_micros, self._percentiles = policy.idle_micros, policy.percentile_shares
        self._rule = rule_of(policy.innermost)
        self._delay_micros = policy.delay_micros

    def observe(
        self,
        summary: Summary,
        partition: Hashable,
        timestamps_micros: list[int],
        arrivals_micros: int | list[int],
    ) -> Summary:
        """Returns a summary with more elements.

        A partition has the same name in every step, and counts from now on, even without elements. A single
        arrival time stands for all elements.
        """
        lane = self._lane(partition)
        if not (timestamps_micros or self._rule.by_partition):
            return summary
        seen = self._rule.observe(lane, timestamps_micros, arrivals_micros)
        if not timestamps_micros:
            return self.merge([summary, Summary(seen)])
        measured = delays.measure_delays(timestamps_micros, arrivals_micros) if self._percentiles else None
        return self.merge([summary, Summary(seen, frozenset([lane]), measured)])

    def announce(
        self, summary: Summary, watermark_micros: int, percentile_micros: Mapping[float, int] = {}
    ) -> Summary:
        """Returns a summary with a recorded watermark, for the policy ``Recorded``."""
        assert isinstance(self._rule, RecordedRule)
        return self.merge([summary, Summary(self._rule.announced(watermark_micros, percentile_micros))])

    def merge(self, summaries: Iterable[Summary]) -> Summary:
        """Returns one summary of several; the empty summary for none."""
        parts = list(summaries)
        seen = [part.seen for part in parts if part.seen is not None]
        measured = [part.delays for part in parts if part.delays is not None]
        return Summary(
            self._rule.merge(seen) if len(seen) > 1 else next(iter(seen), None),
            frozenset().union(*(part.heard for part in parts)),
            delays.merge_delays(measured) if measured else None,
            any(part.ended for part in parts),
        )

    def start(self) -> State:
        return State(self._rule.start())

    def advance(self, state: State, summary: Summary | None, clock_micros: int) -> ReachedWatermark:
        """Returns the state after a step; `clock_micros` never goes back."""
        news = summary or self.empty_summary
        rule, bounds = self._rule.advance(state.rule, news.seen, clock_micros)
        bounds = bounds or {self._lane(Lane.UNSEEN): MIN_MICROS}
        heard_micros: Mapping[Hashable, int] = {}
        if self._idle_micros is not None:
            heard_micros = _last_heard(state.heard_micros, news.heard, bounds, clock_micros)
            bounds = self._without_silence(bounds, heard_micros, clock_micros)
        measured = delays.advance_delays(state.delays, news.delays)
        found_micros = MAX_MICROS if news.ended else min(*bounds.values(), MAX_MICROS)
        # This line, and nothing else, keeps watermarks from going back.
        watermark_micros = max(state.watermark_micros, found_micros)
        shares = {
            **self._rule.percentile_micros(rule),
            **delays.percentile_micros(measured, self._percentiles, clock_micros),
        }
        percentile_micros = {
            share: max(watermark_micros, micros, state.percentile_micros.get(share, MIN_MICROS))
            for share, micros in shares.items()
        }
        state = State(rule, watermark_micros, percentile_micros, heard_micros, measured)
        return ReachedWatermark(state, watermark_micros, percentile_micros)

    def _lane(self, partition: Hashable) -> Hashable:
        return partition if self._rule.by_partition else Lane.ALL

    def _without_silence(self, bounds: Bounds, heard_micros: Bounds, clock_micros: int) -> Bounds:
        """Moves the bounds of lanes that have been silent for too long to the clock minus the delay."""
        assert self._idle_micros is not None
        last_micros, usual_micros = clock_micros - self._idle_micros, clock_micros - self._delay_micros
        return {
            lane: max(micros, usual_micros) if heard_micros[lane] <= last_micros else micros
            for lane, micros in bounds.items()
        }


def _last_heard(before: Bounds, heard: frozenset[Hashable], lanes: Bounds, clock_micros: int) -> Bounds:
    """Returns the last time that each lane sent elements; a new lane counts as heard now."""
    return {lane: clock_micros if lane in heard else before.get(lane, clock_micros) for lane in lanes}
