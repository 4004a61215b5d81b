"""The driver's snapshots from the reports of Spark, and of its workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.machines.pane_counts import Tally
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.metrics.execution import COUNTERS
from penstock_spark.checkpoints.custody.run_records import RunRecord
from penstock_spark.live.history import History, Line
from penstock_spark.live.snapshot import RunSnapshot, Spread
from penstock_spark.live.spark_stages import JobNow, SparkStages
from penstock_spark.live.stream_snapshots import (
    RunFacts,
    StreamFacts,
    event_speed,
    stream_snapshot,
    with_progress,
    with_tallies,
)
from penstock_spark.live.throughput import Throughput, add_work
from penstock_spark.reports.metrics import GroupingReport, Report, Watermarks, watermarks_of

ABOUT = RunFacts("a", "r", "streaming", 0, (), {"Sum": 1, "All": 2}, ("Read",), 2, True, True)


def report(batch: int, rows: int = 10, **source: Any) -> dict[str, Any]:
    """A report from Spark, with two sources of the runner's own before the pipeline's."""
    own = {"numInputRows": 3, "startOffset": "1", "endOffset": "2", "description": "RateStream"}
    kafka = {
        "description": "KafkaV2[Subscribe[scores]]",
        "startOffset": '{"scores":{"0":0,"1":0}}',
        "endOffset": '{"scores":{"0":7,"1":9}}',
        "latestOffset": '{"scores":{"0":10,"1":39}}',
        "numInputRows": rows,
        "inputRowsPerSecond": 5.0,
        **source,
    }
    return {
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:{batch:02d}.000Z",
        "durationMs": {"addBatch": 300, "triggerExecution": 400, "unknownToUs": 1},
        "sources": [own, own, kafka],
    }


def test_rows_add_up_over_micro_batches_and_each_counts_once() -> None:
    seen = StreamFacts()
    for number in (0, 1, 1, 2):
        seen = with_progress(seen, report(number), ABOUT)
    assert seen.sources[0].rows == 30
    assert [batch.number for batch in seen.batches] == [0, 1, 2]
    # Three micro-batches, from the first's beginning to the last's end.
    assert seen.rows_per_second == pytest.approx(30 / 2.4)
    assert seen.batches[-1].millis == {"triggerExecution": 400, "addBatch": 300}


def test_backlog_partitions_and_skew_come_from_offsets_of_partitions() -> None:
    [source] = with_progress(StreamFacts(), report(0), ABOUT).sources
    assert (source.backlog, source.partitions, source.skew) == (33, 2, 27)


@pytest.mark.parametrize(
    "offsets",
    [
        {"endOffset": "12", "latestOffset": "15"},
        {"endOffset": {"logOffset": 3}, "latestOffset": None},
        {"endOffset": None, "latestOffset": None, "inputRowsPerSecond": float("nan")},
        {"endOffset": "not JSON", "latestOffset": "not JSON"},
    ],
)
def test_a_source_without_partitions_tells_no_backlog(offsets: dict[str, Any]) -> None:
    [source] = with_progress(StreamFacts(), report(0, **offsets), ABOUT).sources
    assert (source.backlog, source.partitions, source.skew) == (None, None, None)


def test_a_source_of_files_tells_how_many_wait() -> None:
    metrics = {"numFilesOutstanding": "4"}
    [source] = with_progress(
        StreamFacts(), report(0, endOffset="1", latestOffset=None, metrics=metrics), ABOUT
    ).sources
    assert source.backlog == 4


def shards(*told: dict[str, GroupingReport]) -> Watermarks:
    return Watermarks({(1, number): each for number, each in enumerate(told)}, 90)


def look(watermarks: Watermarks, seen: StreamFacts = StreamFacts(), state: str = "RUNNING") -> RunSnapshot:
    counted = {
        (COUNTERS, "Sum", "penstock", "elements_dropped_as_late"): 2,
        (COUNTERS, "Read", "penstock", "elements_rejected"): 4,
    }
    return stream_snapshot(ABOUT, seen, state, watermarks, counted, 100)


def test_a_grouping_is_as_far_as_its_last_shard_and_holds_what_all_hold() -> None:
    one = GroupingReport(50, 40, {}, 3, 30, {"Read": 50})
    other = GroupingReport(60, 45, {}, 4, 10, {"Read": 60})
    now = look(shards({"Sum": one}, {"Sum": other}))
    sums = now.groupings[0]
    assert (sums.input_micros, sums.output_micros, sums.event_lag_micros) == (50, 40, 50)
    assert (sums.open_keys, sums.state_bytes, sums.dropped) == (7, 40, 2)
    assert sums.held_by == "its own windows, which have not fired yet"
    assert (now.clock_micros, now.processing_lag_micros) == (90, 10)
    assert (now.sources[0].watermark_micros, now.sources[0].rejected) == (50, 4)


@pytest.mark.parametrize(
    ("told", "held"),
    [
        (GroupingReport(50, 50, awaited={"Read": 50}), "the source 'Read'"),
        (GroupingReport(50, 50, awaited={"Read": 60, "Sum": 50}), "the grouping 'Sum'"),
        (
            GroupingReport(MIN_MICROS, MIN_MICROS, awaited={"Read": MIN_MICROS}),
            "the source 'Read', which has no watermark yet",
        ),
        (
            GroupingReport(50, 40, {"Side": 5}, awaited={"Read": 50}),
            "5 elements, which wait for the side input of 'Side'",
        ),
        (GroupingReport(MAX_MICROS, MAX_MICROS, awaited={"Read": MAX_MICROS}), ""),
    ],
)
def test_a_snapshot_says_what_holds_a_watermark(told: GroupingReport, held: str) -> None:
    assert look(shards({"All": told})).groupings[1].held_by == held


def test_before_the_first_micro_batch_nothing_is_known_and_nothing_is_made_up() -> None:
    now = look(Watermarks({}, MIN_MICROS))
    assert (now.clock_micros, now.processing_lag_micros, now.history.lines) == (None, None, ())
    assert [grouping.output_micros for grouping in now.groupings] == [None, None]
    assert RunSnapshot.from_json(now.to_json()) == now


def test_panes_add_up_and_without_somebody_who_looks_they_are_unknown() -> None:
    seen = StreamFacts()
    for clock in (1, 2):
        tally = Tally({"early": 2, "late": 1}, ((clock, 0, 10, "early", 2), (clock, 0, 10, "late", 1)))
        seen = with_tallies(seen, {"Sum": tally}, shards({"Sum": GroupingReport(5, 5)}), ABOUT)
    sums = look(shards({"Sum": GroupingReport(5, 5)}), seen).groupings[0]
    assert (sums.early, sums.on_time, sums.late, sums.retracted, sums.panes) == (4, 0, 2, 0, 6)
    assert [firing.clock_micros for firing in seen.history.firings] == [1, 1, 2, 2]
    unwatched = RunFacts("a", "r", "streaming", 0, (), {"Sum": 1})
    alone = stream_snapshot(
        unwatched, StreamFacts(), "RUNNING", shards({"Sum": GroupingReport(5, 5)}), {}, 100
    ).groupings[0]
    assert (alone.early, alone.panes) == (None, None)


def test_sparks_stages_are_asked_for_only_while_they_run() -> None:
    asked: list[int] = []
    known = {0: [4, 4, 100, 0], 1: [8, 2, 0, 0]}
    jobs = [JobNow(0, "RUNNING", (0, 1, 2))]

    def stage(number: int) -> Any:
        asked.append(number)
        return tuple(known[number]) if number in known else None

    stages = SparkStages(lambda: jobs, stage)
    found, rows, _ = stages.look((1, 2, "Sum"))
    assert (found.done, found.known, found.tasks_done, found.tasks, found.part, rows) == (1, 3, 2, 8, 1, 100)
    assert asked == [0, 1, 2]
    # Another stage of the part has not begun, so its duration is unknown.
    assert found.seconds_left is None
    known.update({1: [8, 8, 0, 0], 2: [2, 1, 0, 7]})
    found, _, written = stages.look((1, 2, "Sum"))
    assert asked == [0, 1, 2, 1, 2]
    assert (found.done, written) == (2, 7)
    assert found.seconds_left is not None
    jobs[0] = JobNow(0, "SUCCEEDED", (0, 1, 2))
    known[2] = [2, 2, 0, 9]
    found, _, written = stages.look((2, 2, "Write"))
    assert (found.done, found.known, written) == (3, 3, 9)


def test_a_report_that_there_was_nothing_to_do_takes_no_place_of_the_next_micro_batch() -> None:
    idle = {**report(1, rows=0), "durationMs": {"latestOffset": 2, "triggerExecution": 3}}
    seen = with_progress(
        with_progress(with_progress(StreamFacts(), report(0), ABOUT), idle, ABOUT), report(1), ABOUT
    )
    assert [batch.number for batch in seen.batches] == [0, 1]
    assert seen.sources[0].rows == 20
    assert seen.first_batch == 0


def test_rows_busy_time_and_backlog_are_noted_over_time() -> None:
    seen = with_progress(with_progress(StreamFacts(), report(0), ABOUT), report(1, rows=30), ABOUT)
    assert [(span.rows, span.busy_micros, span.backlog) for span in seen.throughput.spans] == [
        (10, 400_000, 33),
        (30, 400_000, 33),
    ]
    assert seen.last_rows_micros == seen.throughput.until_micros
    later = with_progress(seen, report(2, rows=0), ABOUT)
    assert later.last_rows_micros == seen.last_rows_micros


def test_a_source_with_a_limit_says_that_it_holds_the_rest_back() -> None:
    limited = replace(ABOUT, limited=frozenset({"Read"}))
    [source] = with_progress(StreamFacts(), report(0), limited).sources
    assert "its limit for a micro-batch" in source.waits
    [source] = with_progress(StreamFacts(), report(0), ABOUT).sources
    assert source.waits == ""


def test_a_source_of_an_idle_stream_waits_for_something_new_until_it_has_ended() -> None:
    seen = replace(
        with_progress(StreamFacts(), report(0), ABOUT), throughput=Throughput(), last_rows_micros=None
    )
    seen = replace(seen, throughput=add_work(Throughput(), 0, 10, 1))
    awaited = GroupingReport(50, 50, awaited={"Read": 50})
    told = Watermarks({(1, 0): {"Sum": awaited}}, 90)
    now = stream_snapshot(ABOUT, seen, "RUNNING", told, {}, 60_000_000)
    assert (now.pace and now.pace.doing, now.sources[0].waits) == (
        "idle",
        "it waits for something new to read",
    )
    ended = Watermarks({(1, 0): {"Sum": awaited._replace(awaited={"Read": MAX_MICROS})}}, 90)
    assert stream_snapshot(ABOUT, seen, "RUNNING", ended, {}, 60_000_000).sources[0].waits == ""
    over = stream_snapshot(ABOUT, seen, "DONE", told, {}, 60_000_000)
    assert (over.pace, over.sources[0].waits) == (None, "")


def test_keys_state_and_time_are_spread_over_the_shards_of_a_grouping_and_its_level() -> None:
    reports = {
        (1, 0): Report(4, 90, {"Sum": GroupingReport(5, 5, keys=9, state_bytes=90)}, 700),
        (1, 1): Report(4, 90, {"Sum": GroupingReport(5, 5, keys=1, state_bytes=10)}, 100),
        # It had nothing to do in the last micro-batch.
        (1, 2): Report(3, 90, {"Sum": GroupingReport(5, 5, keys=2, state_bytes=20)}, 5_000),
        (2, 0): Report(4, 90, {"All": GroupingReport(5, 5, keys=1, state_bytes=4)}, 50),
        (2, 1): Report(4, 90, {"All": GroupingReport(5, 5)}, 150),
    }
    sums, everything = look(watermarks_of(reports)).groupings
    assert sums.keys_by_shard == Spread(3, 12, 9, 0, 2)
    assert sums.bytes_by_shard == Spread(3, 120, 90, 0, 20)
    assert sums.micros_by_shard == Spread(3, 800, 700, 0, 100)
    assert everything.micros_by_shard == Spread(2, 200, 150, 1, 150)
    # With one shard, there is nothing to compare.
    [alone, _] = look(watermarks_of({(1, 0): reports[1, 0]})).groupings
    assert (alone.keys_by_shard, alone.micros_by_shard) == (None, None)


def test_a_snapshot_has_the_runs_of_its_checkpoint_and_this_one_last() -> None:
    about = replace(ABOUT, record=RunRecord(2, "r", 0, 0, "RUNNING", "0.1.0", "4.1.0"))
    dropped = {
        (COUNTERS, "Sum", "penstock", "elements_dropped_as_late"): 3,
        (COUNTERS, "All", "penstock", "elements_dropped_after_last_pane"): 2,
        (COUNTERS, "All", "penstock", "elements_rejected"): 9,
    }
    earlier = RunRecord(1, "before", 0, 5, "CANCELLED")
    seen = replace(with_progress(StreamFacts(), report(7), about), runs=(earlier,))
    error = ValueError("7")
    now = stream_snapshot(about, seen, "FAILED", shards(), dropped, 100, error)
    [before, own] = now.runs
    assert before == earlier
    assert (own.claim, own.state, own.rows, own.first_batch, own.last_batch) == (2, "FAILED", 10, 7, 7)
    assert (own.dropped, own.seen_micros, own.error) == (5, 100, "ValueError")
    # A checkpoint that goes with its run has no history.
    assert stream_snapshot(ABOUT, seen, "RUNNING", shards(), {}, 100).runs == ()


def test_the_speed_of_event_time_is_that_of_the_slowest_watermark_over_a_minute() -> None:
    def line(label: str, *points: tuple[int, int]) -> Line:
        return Line(label, tuple((clock * 1_000_000, micros * 1_000_000) for clock, micros in points))

    fast, slow = line("Sum", (0, 0), (100, 900)), line("All", (0, 0), (40, 100), (100, 130))
    assert event_speed(History((fast, slow))) == 0.5
    assert event_speed(History((line("Sum", (0, 0)),))) is None
    assert event_speed(History((Line("Sum", ((0, 0), (5, MAX_MICROS))),))) is None
