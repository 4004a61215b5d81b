"""Whole pipelines as queries, without Spark: watermark policies, ticks, commands, sinks, several levels."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.io.watermarks import BoundedDisorder, OrderedPartitions
from penstock.machines.records import MAX_MICROS
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterSignal,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from penstock_spark.stream.state.header import Header
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000


def read(**arguments: Any) -> Any:
    """Text lines as a stream; the toy query uses its own values for them."""
    return "Read" >> beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(**arguments)


def scores(pipeline: Any, *windows: Any, **arguments: Any) -> None:
    """Sums of (team, points, time) per team and ten seconds, with the pane's timing, to a list."""
    arguments = {"event_time": lambda score: score[2], "watermark": BoundedDisorder(2), **arguments}
    window = beam.WindowInto(*(windows or (FixedWindows(10),)), allowed_lateness=20)
    pairs = pipeline | read(**arguments) | beam.Map(lambda score: (score[0], score[1])) | window
    shown = pairs | beam.CombinePerKey(sum) | beam.Map(timed)
    _ = shown | "Write" >> WriteToMemory([])


def timed(element: Any, window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam) -> Any:
    timing = ("early", "on time", "late", "unknown")[pane.timing]
    return (*element, window.end.micros // SECOND if window.end.micros < 10**15 else None, timing)


def the_sink(query: ToyQuery) -> str:
    [sink] = query.plan.sinks
    return sink.label


def test_a_live_stream_closes_windows_by_its_watermark_and_drops_what_is_too_late():
    pipeline = beam.Pipeline()
    scores(pipeline)
    query = ToyQuery(pipeline)
    sink = the_sink(query)
    assert query.batch({"Read": [[("a", 1, 1), ("b", 2, 2)], [("a", 4, 9)]]}, 100 * SECOND)[sink] == []
    assert query.watermarks["CombinePerKey(sum)"][0] == 7 * SECOND
    fired = query.batch({"Read": [[("a", 8, 13)]]}, 101 * SECOND)[sink]
    assert sorted(fired) == [("a", 5, 10, "on time"), ("b", 2, 10, "on time")]
    # Late, but within the allowed lateness; then too late.
    assert query.batch({"Read": [[("a", 16, 3)]]}, 102 * SECOND)[sink] == [("a", 16, 10, "late")]
    query.batch({"Read": [[("a", 32, 40)]]}, 103 * SECOND)
    assert query.batch({"Read": [[("a", 64, 3)]]}, 104 * SECOND)[sink] == []
    assert query.counted("elements_dropped_as_late") == 1


def test_late_data_is_an_output_of_its_own():
    pipeline = beam.Pipeline()
    scores = pipeline | read(event_time=lambda score: score[2], watermark=BoundedDisorder(0))
    pairs = scores | beam.Map(lambda score: (score[0], score[1])) | beam.WindowInto(FixedWindows(10))
    sums, late = pairs | beam.CombinePerKey(sum).with_late_data()
    _ = sums | "Sums" >> WriteToMemory([])
    _ = late | beam.Map(timed) | "Late" >> WriteToMemory([])
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 1), ("a", 1, 10)]]})
    given = query.batch({"Read": [[("a", 7, 5), ("b", 8, 6), ("a", 1, 12)]]})
    assert sorted(given["Late/Write" if "Late/Write" in given else "Late"]) == [
        ("a", 7, 10, "unknown"),
        ("b", 8, 10, "unknown"),
    ]
    assert query.counted("elements_dropped_as_late") == 2


def test_drain_fires_all_windows():
    pipeline = beam.Pipeline()
    scores(pipeline)
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 1), ("b", 2, 95)]]}, SECOND)
    # The watermark was at 93 seconds before, which was enough for the first window.
    assert query.batch(clock_micros=2 * SECOND, commands=[("drain", "")])[the_sink(query)] == [
        ("b", 2, 100, "on time")
    ]
    assert set(query.watermarks.values()) == {(MAX_MICROS, MAX_MICROS)}


def test_event_times_far_ahead_do_not_move_the_watermark_and_are_counted():
    pipeline = beam.Pipeline()
    scores(pipeline, max_ahead=60)
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 100), ("a", 2, 10**9)]]}, 100 * SECOND)
    assert query.watermarks["CombinePerKey(sum)"][0] == 98 * SECOND
    assert query.counted("elements_ahead_of_the_clock") == 1


def test_what_has_no_time_is_put_aside_or_stops_the_pipeline():
    pipeline = beam.Pipeline()
    streams = pipeline | read(event_time=lambda score: score[2], watermark=BoundedDisorder(2), rejects=True)
    _ = streams["accepted"] | "Good" >> WriteToMemory([])
    _ = streams["rejected"] | beam.Map(lambda found: (found.record, found.error)) | "Bad" >> WriteToMemory([])
    query = ToyQuery(pipeline)
    given = query.batch({"Read": [[("a", 1, 1), ("a", 1, None), ("a", 1)]]})
    good, bad = (next(given[label] for label in given if label.startswith(name)) for name in ("Good", "Bad"))
    assert good == [("a", 1, 1)]
    assert bad == [("('a', 1, None)", "ValueError"), ("('a', 1)", "IndexError")]
    assert query.counted("elements_rejected") == 2
    strict = beam.Pipeline()
    scores(strict)
    with pytest.raises(StepFailure) as caught:
        ToyQuery(strict).batch({"Read": [[("a", 1, None)]]})
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert re.search("(?s)no event time.*at step 'Read'", str(to_exception(failure)))


def test_the_clock_fires_what_waits_for_it_and_an_idle_source_stays_where_it_is():
    pipeline = beam.Pipeline()
    early = AfterWatermark(early=AfterProcessingTime(5), late=AfterCount(1))
    scores(pipeline, FixedWindows(10), early, AccumulationMode.DISCARDING)
    query = ToyQuery(pipeline)
    sink = the_sink(query)
    assert query.batch({"Read": [[("a", 1, 1)]]}, 100 * SECOND)[sink] == []
    assert query.batch(clock_micros=104 * SECOND)[sink] == []
    assert query.batch(clock_micros=105 * SECOND)[sink] == [("a", 1, 10, "early")]
    assert query.batch(clock_micros=1000 * SECOND)[sink] == []
    assert query.watermarks["CombinePerKey(sum)"][0] == -1 * SECOND


def test_a_signal_fires_all_windows_that_wait_for_it():
    pipeline = beam.Pipeline()
    scores(pipeline, GlobalWindows(), Repeatedly(AfterSignal("now")), AccumulationMode.DISCARDING)
    query = ToyQuery(pipeline)
    sink = the_sink(query)
    assert query.batch({"Read": [[("a", 1, 1), ("b", 1, 1)]]}, 1)[sink] == []
    assert query.batch(clock_micros=2, commands=[("signal", "then")])[sink] == []
    fired = query.batch(clock_micros=3, commands=[("signal", "now")])[sink]
    assert sorted(fired) == [("a", 1, None, "early"), ("b", 1, None, "early")]


def test_partitions_in_order_hold_the_watermark_by_the_slowest():
    pipeline = beam.Pipeline()
    scores(pipeline, watermark=OrderedPartitions(at_least=2), partition=lambda score: score[0])
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 50)]]}, 1)
    assert query.watermarks["CombinePerKey(sum)"][0] < 0
    query.batch({"Read": [[("b", 1, 8)]]}, 2)
    assert query.watermarks["CombinePerKey(sum)"][0] == 8 * SECOND


LOG = [(f"k{number % 3}", 1, number * 3 % 47 + number // 5, number // 4) for number in range(120)]
"""A recorded log of (team, points, event time, arrival time), four arrivals a second."""


def replay(pipeline: Any) -> None:
    early = AfterWatermark(early=AfterProcessingTime(3), late=AfterCount(1))
    window = beam.WindowInto(FixedWindows(10), early, AccumulationMode.ACCUMULATING, allowed_lateness=8)
    log = pipeline | read(
        event_time=lambda line: line[2], arrival_time=lambda line: line[3], watermark=BoundedDisorder(4)
    )
    sums = log | beam.Map(lambda line: (line[0], line[1])) | window | beam.CombinePerKey(sum)
    by_size = sums | beam.MapTuple(lambda team, total: (total, team)) | "Again" >> beam.GroupByKey()
    _ = (
        by_size
        | beam.MapTuple(lambda total, teams: (total, sorted(teams)))
        | beam.Map(timed)
        | WriteToMemory([])
    )


def replayed(random: Random | None, without: tuple[str, ...]) -> list[Any]:
    """The panes of the log, cut into micro-batches anywhere, ticks included, and each dealt out to tasks in order."""
    pipeline = beam.Pipeline()
    replay(pipeline)
    query = ToyQuery(pipeline, without=without)
    sink = the_sink(query)
    rest, found = list(LOG), []
    while rest:
        size = len(rest) if random is None else random.choice((0, 1, 2, 3, 5, 30))
        found += query.batch({"Read": [rest[:size]]}, clock_micros=7)[sink]
        rest = rest[size:]
    found += query.batch(commands=[("end", "Read")])[sink]
    return [*found, query.counted("elements_dropped_as_late")]


@cache
def replayed_at_once(without: tuple[str, ...]) -> list[Any]:
    """The panes of the log, read in one micro-batch."""
    return replayed(None, without)


@pytest.mark.parametrize(
    "without", [(), ("early_combining",), ("window_columns",), ("early_combining", "window_columns")]
)
@pytest.mark.parametrize("seed", range(12))
def test_a_recorded_log_gives_the_same_however_it_is_cut(seed, without):
    whole = replayed_at_once((*without, "window_columns"))
    assert len(whole) > 30
    assert {timing for *_, timing in whole[:-1]} == {"early", "on time", "late"}
    assert sorted(map(repr, replayed(Random(seed), without))) == sorted(map(repr, whole))


def test_the_header_keeps_what_waits():
    header = Header()
    assert Header.decoded(header.encoded()) == header
