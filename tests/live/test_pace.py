"""The pace of a stream, and its work over time: from micro-batches and backlogs alone."""

from __future__ import annotations

import pytest

from penstock_spark.live.pace import (
    BUSY_ALL_THE_TIME,
    CATCHING_UP,
    FALLING_BEHIND,
    IDLE,
    KEEPING_UP,
    SLOW,
    STARTING,
    AtWork,
    pace_of,
)
from penstock_spark.live.throughput import RECENT_WIDTH_MICROS, SPANS_MAX, Throughput, add_work

SECOND = 1_000_000


def worked(seconds: int, busy: float, *backlogs: int | None) -> Throughput:
    """The work of a micro-batch in each second; backlogs are those of its parts of equal length."""
    done = Throughput()
    for second in range(seconds):
        left = backlogs[second * len(backlogs) // seconds] if backlogs else None
        began = second * SECOND
        done = add_work(done, began, began + round(busy * SECOND), 10, left)
    return done


@pytest.mark.parametrize(
    ("done", "doing", "why"),
    [
        (worked(60, 0.2), KEEPING_UP, "micro-batches take 20 % of the time"),
        (worked(60, 1.0), BUSY_ALL_THE_TIME, "no source reports how much is left to read"),
        (worked(60, 1.0, 10, 200, 300), FALLING_BEHIND, "300 are left to read, 290 more than 55.0 s ago"),
        (worked(60, 1.0, 300, 200, 10), CATCHING_UP, "10 are left to read, 290 fewer than 55.0 s ago"),
        (worked(60, 1.0, 300), BUSY_ALL_THE_TIME, "300 are left to read, as many as 55.0 s ago"),
        (worked(60, 1.0, 300, 0), KEEPING_UP, "without a pause, and everything is read"),
    ],
    ids=["pauses", "no backlog known", "grows", "sinks", "stays", "all read"],
)
def test_a_stream_says_whether_it_keeps_up_and_why(done: Throughput, doing: str, why: str) -> None:
    found = pace_of(done, 60 * SECOND, 60 * SECOND)
    assert found.doing == doing
    assert why in found.why


def test_a_busy_stream_without_a_backlog_says_how_fast_event_time_passes() -> None:
    assert (
        "event time passes 0.25 s in a second"
        in pace_of(worked(60, 1.0), 60 * SECOND, 60, event_speed=0.25).why
    )


def test_a_stream_is_idle_only_after_a_pause_that_its_interval_does_not_explain() -> None:
    done = worked(10, 0.2)
    assert pace_of(done, 20 * SECOND, 10 * SECOND).doing == IDLE
    assert pace_of(done, 20 * SECOND, 10 * SECOND, interval_seconds=30).doing == KEEPING_UP
    assert pace_of(done, 20 * SECOND, 10 * SECOND, at_work=AtWork(11, 19 * SECOND)).doing == KEEPING_UP
    assert pace_of(done, 20 * SECOND, None).why == "no source has had anything new yet"


def test_a_micro_batch_that_does_not_end_is_named() -> None:
    found = pace_of(worked(10, 0.2), 100 * SECOND, 10 * SECOND, at_work=AtWork(11, 12 * SECOND))
    assert (found.doing, found.why) == (SLOW, "micro-batch 11 has been at work for 1 min 28 s")
    # It counts as busy, though nothing has reported it yet.
    assert found.busy_share == 1.0
    assert pace_of(Throughput(), 9 * SECOND, None).doing == STARTING
    assert "the first micro-batch" in pace_of(Throughput(), 9 * SECOND, None, at_work=AtWork(0, 0)).why


def test_the_spans_of_a_long_run_are_bounded_and_lose_no_row() -> None:
    done = Throughput()
    for second in range(20_000):
        done = add_work(done, second * SECOND, second * SECOND + 300_000, 7, second)
    assert len(done.spans) <= SPANS_MAX
    assert len(done.recent_spans) <= SPANS_MAX + 1
    assert sum(span.rows for span in done.spans) == 7 * 20_000
    assert sum(span.busy_micros for span in done.spans) == 300_000 * 20_000
    assert done.spans[-1].backlog == done.recent_spans[-1].backlog == 19_999
    assert done.recent_spans[0].start_micros >= 20_000 * SECOND - (SPANS_MAX + 1) * RECENT_WIDTH_MICROS


def test_a_micro_batch_of_hours_is_in_all_spans_of_its_time_and_in_the_recent_ones_by_its_part() -> None:
    done = add_work(Throughput(), 0, 36_000 * SECOND, 36_000)
    assert sum(span.rows for span in done.spans) == pytest.approx(36_000, abs=1)
    assert sum(span.rows for span in done.recent_spans) == pytest.approx(900, abs=10)


def test_a_clock_that_is_set_back_makes_no_work_twice() -> None:
    done = add_work(worked(10, 1.0), 3 * SECOND, 4 * SECOND, 5)
    assert sum(span.rows for span in done.spans) == 105
    assert [span.start_micros for span in done.spans] == sorted({span.start_micros for span in done.spans})
