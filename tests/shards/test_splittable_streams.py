"""Splittable DoFns in a stream, without Spark: the times of outputs, and the outputs of a repeated micro-batch."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.io.watermark_estimators import ManualWatermarkEstimator
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.transforms.core import RestrictionProvider
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock.utils.timestamp import Duration, Timestamp
from penstock_spark.lowering.query import heartbeat_of
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
END = 10**9

LOGS: dict[str, list[int]] = {}
"""The logs that the DoFn reads, which grow; 0 ends a log."""


class Logs(RestrictionProvider):
    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, END)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: Any, restriction: Any) -> float:
        return 1.0

    def truncate(self, element: Any, restriction: Any) -> Any:
        return None


class ReadLog(beam.DoFn):
    """Gives the numbers of a log at their own times, until one is 0."""

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        element: Any,
        tracker: Any = beam.DoFn.RestrictionParam(Logs()),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider()),
    ) -> Any:
        log = LOGS[element]
        position = tracker.current_restriction().start
        while position < len(log):
            if not tracker.try_claim(position):
                return
            if log[position] == 0:
                tracker.try_claim(END)
                return
            estimator.set_watermark(Timestamp(log[position]))
            yield TimestampedValue((element, log[position]), log[position])
            position += 1
        tracker.defer_remainder(Duration(1))


class Twice(RestrictionProvider):
    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, 2)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: Any, restriction: Any) -> Any:
        return restriction.split(1)


SEEN: list[Any] = []
"""The values that the next DoFn has looked at, which differ at each look."""


class SeeTwice(beam.DoFn):
    """Bounded work whose outputs are never the same again."""

    def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Twice())) -> Any:
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            SEEN.append(element)
            yield element, number, len(SEEN)
            number += 1


@pytest.fixture(autouse=True)
def empty_world() -> None:
    LOGS.clear()
    SEEN.clear()


def read() -> Any:
    return "Read" >> beam.io.ReadFromText("/in/*.txt", validate=False).as_stream()


def query_of(*transforms: Any, shards: int = 2) -> ToyQuery:
    pipeline = beam.Pipeline()
    found: Any = pipeline | read()
    for number, transform in enumerate(transforms):
        found = found | f"Step {number}" >> transform
    _ = found | "Write" >> WriteToMemory([])
    return ToyQuery(pipeline, shards=shards)


class Committed:
    """A query whose micro-batches may be repeated before they are committed, as after a crash."""

    def __init__(self, query: ToyQuery) -> None:
        self.query = query
        self.out: list[Any] = []
        [self.sink] = (sink.label for sink in query.plan.sinks)

    def batch(self, second: float, read: Iterable[Any] = (), repeats: int = 0, **options: Any) -> list[Any]:
        query = self.query
        kept, number = copy.deepcopy((query._headers, query._stores)), query.number
        given = {"Read": [list(read)]} if read else {}
        first: list[Any] = query.batch(given, round(second * SECOND), **options)[self.sink]
        for _ in range(repeats):
            # Whatever the first attempt has read, the world has moved on.
            for log in (log for log in LOGS.values() if 0 not in log):
                log.append(log[-1] + 1 if log else 1)
            (query._headers, query._stores), query.number = copy.deepcopy(kept), number
            assert sorted(query.batch(given, round(second * SECOND), **options)[self.sink]) == sorted(first)
        self.out += first
        return first

    @property
    def leaving(self) -> int:
        """The earliest watermark that leaves a step."""
        return min(leaving for _, leaving in self.query.watermarks.values())


def test_what_is_read_in_a_micro_batch_leaves_in_the_next_one():
    LOGS["a"] = [1, 2]
    run = Committed(query_of(beam.ParDo(ReadLog())))
    assert run.batch(10, ["a"]) == []
    assert run.batch(11) == [("a", 1), ("a", 2)]
    LOGS["a"] += [3, 0]
    assert run.batch(12.5) == []
    assert run.leaving == 2 * SECOND
    assert run.batch(13) == [("a", 3)]


def test_the_work_ends_the_stream_only_when_it_is_done():
    LOGS["a"] = [1, 2]
    run = Committed(query_of(beam.ParDo(ReadLog())))
    run.batch(10, ["a"])
    run.batch(11, commands=[("end", "Read")])
    assert run.leaving == 2 * SECOND
    LOGS["a"].append(0)
    run.batch(13)
    run.batch(14)
    assert run.leaving == MAX_MICROS


def test_windows_close_by_the_watermark_that_the_work_reports():
    LOGS["a"] = [1, 2, 8]
    steps = (beam.WindowInto(FixedWindows(10)), beam.ParDo(ReadLog()), beam.CombinePerKey(sum))
    run = Committed(query_of(*steps))
    assert run.batch(10, ["a"]) == run.batch(11) == []
    LOGS["a"].append(12)
    assert run.batch(13) == []
    assert run.batch(14) == [("a", 11)]


@pytest.mark.parametrize("seed", range(20))
def test_a_repeated_micro_batch_gives_the_same_and_each_record_leaves_once(seed):
    rng = Random(seed)
    run = Committed(query_of(beam.ParDo(ReadLog()), beam.Reshuffle(), shards=rng.choice([1, 2, 3])))
    second = 10.0
    for name in "abc":
        LOGS[name] = [1]
    run.batch(second, [*"abc"], rng.randrange(3))
    for _ in range(12):
        second += rng.choice([0.2, 0.7, 3.0])
        log = LOGS[rng.choice("abc")]
        log += range(log[-1] + 1, log[-1] + 1 + rng.randrange(4))
        run.batch(second, repeats=rng.randrange(3))
    for name in "abc":
        LOGS[name].append(0)
    run.batch(second + 5, repeats=1)
    run.batch(second + 6, repeats=1)
    assert sorted(run.out) == sorted((name, number) for name in "abc" for number in LOGS[name] if number)


@pytest.mark.parametrize("repeats", [0, 2])
def test_work_that_leads_to_more_work_is_not_seen_before_it_is_committed(repeats):
    run = Committed(query_of(beam.ParDo(SeeTwice()), beam.ParDo(SeeTwice())))
    run.batch(10, ["a", "b"], repeats)
    for second in (11, 11.1, 12, 13):
        run.batch(second, repeats=repeats)
    assert sorted((element[0], element[1], number) for element, number, _ in run.out) == [
        (name, first, second) for name in "ab" for first in (0, 1) for second in (0, 1)
    ]
    # Each was made once among those that were committed.
    made = [number for *_, number in run.out] + [element[2] for element, *_ in run.out]
    assert len({*made}) == 8 + 4


def test_equal_elements_are_work_of_their_own():
    run = Committed(query_of(beam.ParDo(SeeTwice())))
    run.batch(10, ["a", "a", "a"])
    run.batch(11)
    assert sorted(number for _, number, _ in run.out) == [0, 0, 0, 1, 1, 1]


def test_a_drain_lets_out_what_is_stored_and_ends_the_work():
    LOGS["a"] = [1, 2]
    run = Committed(query_of(beam.ParDo(ReadLog()), beam.ParDo(SeeTwice())))
    run.batch(10, ["a"])
    run.batch(10.1, commands=[("drain", "")])
    for second in (10.2, 10.3, 10.4):
        run.batch(second)
    assert sorted(element for element, *_ in run.out) == [("a", 1), ("a", 1), ("a", 2), ("a", 2)]
    assert run.leaving == MAX_MICROS


def test_the_watermark_waits_for_work_that_has_reported_nothing():
    LOGS["a"] = []
    run = Committed(query_of(beam.ParDo(ReadLog())))
    run.batch(10, ["a"], commands=[("end", "Read")])
    run.batch(11)
    assert run.leaving == MIN_MICROS


def test_an_error_of_a_tracker_names_the_step_and_shows_no_element():
    class Back(beam.DoFn):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Twice())) -> Any:
            tracker.try_claim(tracker.current_restriction().start - 1)
            yield element

    run = Committed(query_of(beam.ParDo(Back())))
    with pytest.raises(StepFailure) as caught:
        run.batch(10, ["secret"])
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert "strictly increase" in failure.message
    assert "at step 'Step 0'" in failure.where
    assert "secret" not in str(failure.message)


def test_work_without_an_end_goes_on_once_a_second_and_other_work_at_once():
    def heartbeat(dofn: beam.DoFn) -> str:
        pipeline = beam.Pipeline()
        _ = pipeline | beam.Create(["a"]) | beam.ParDo(dofn) | WriteToMemory([])
        return heartbeat_of(ToyQuery(pipeline).plan, has_interval=False)

    assert (heartbeat(ReadLog()), heartbeat(SeeTwice())) == ("seconds", "numbers")
