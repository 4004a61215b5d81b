"""Which streams of columns Spark does on its own, and why it does not do others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as beam
from penstock import field
from penstock.io import ReadFromParquet, ReadFromText, WriteToParquet
from penstock.io.watermarks import BoundedDisorder, IdleTimeout, IngressTime
from penstock.pvalue import AsSingleton
from penstock.transforms.trigger import (
    AfterCount,
    AfterWatermark,
    ClosingBehavior,
    Repeatedly,
)
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
)
from penstock_spark.lowering.query import heartbeat_of
from penstock_spark.plan.stream_plan import show_stream_plan
from tests.runner.native_plans import (
    ACCUMULATING,
    AGAIN,
    DISCARDING,
    GLOBAL,
    MINUTES,
    OUT,
    RETRACTING,
    TOTAL,
    plan_after,
    plan_of,
)


def pane_of(element: Any, pane: Any = beam.DoFn.PaneInfoParam) -> Any:
    """An element with its pane."""
    return element, pane


def window_of(element: Any, window: Any = beam.DoFn.WindowParam, time: Any = beam.DoFn.TimestampParam) -> Any:
    """An element with its window and time."""
    return element, window, time


def windows(windowfn: Any = None, trigger: Any = None, mode: Any = ACCUMULATING, **more: Any) -> Any:
    return beam.WindowInto(windowfn or FixedWindows(60), trigger, mode, **more)


def parquet(**more: Any) -> WriteToParquet:
    return WriteToParquet("out", pa.schema([("team", pa.string()), ("total", pa.int64())]), **more)


SINK = WriteToParquet("out", pa.schema([("team", pa.string())]))
"""A sink of teams."""

DONE: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "windows fire once": ([MINUTES, TOTAL, OUT], {}),
    "AfterWatermark": ([windows(trigger=AfterWatermark()), TOTAL, OUT], {}),
    "discarding": ([windows(mode=DISCARDING), TOTAL, OUT], {}),
    "retracting, where nothing is retracted": ([windows(mode=RETRACTING), TOTAL, OUT], {}),
    "windows with an offset": ([beam.WindowInto(FixedWindows(60, offset=7)), TOTAL, OUT], {}),
    "sliding windows": ([beam.WindowInto(SlidingWindows(60, 30)), TOTAL, OUT], {}),
    "sliding windows in rounds": ([windows(SlidingWindows(60, 30)), TOTAL, OUT], {"mode": "micro_batch"}),
    "two groupings": ([MINUTES, TOTAL, AGAIN, OUT], {}),
    "two groupings with other windows": (
        [MINUTES, TOTAL, "Hours" >> beam.WindowInto(FixedWindows(3600)), AGAIN, OUT],
        {},
    ),
    "filters and a selection": (
        [beam.Filter(field("points") > 0), beam.Select("team", "points"), MINUTES, TOTAL, OUT],
        {},
    ),
    "a filter of results": ([MINUTES, TOTAL, beam.Filter(field("total") > 0), OUT], {}),
    "Python behind it": ([MINUTES, TOTAL, beam.Map(window_of), OUT], {}),
    "Python that reads panes": ([MINUTES, TOTAL, beam.Map(pane_of), OUT], {}),
    "a sink of columns": ([MINUTES, TOTAL, parquet()], {}),
    "a sink of columns in several files": ([MINUTES, TOTAL, parquet(num_shards=2)], {}),
    "rounds": ([windows(), TOTAL, OUT], {"mode": "micro_batch"}),
    "rounds with lateness": ([windows(allowed_lateness=60), TOTAL, OUT], {"mode": "micro_batch"}),
    "rounds of the global window": ([GLOBAL, TOTAL, OUT], {"mode": "micro_batch"}),
    "rounds by the clock": ([GLOBAL, TOTAL, OUT], {"mode": "micro_batch", "policy": IngressTime()}),
}


@pytest.mark.parametrize("case", DONE)
def test_spark_does_it(case):
    transforms, more = DONE[case]
    plan = plan_of(*transforms, **more)
    assert plan.columns is not None
    assert plan.columns.grouping is not None
    assert not plan.levels
    assert plan.updates is (more.get("mode") == "micro_batch")
    assert "/CombinePerKey(TupleCombineFn) = CombinePerKey(TupleCombineFn)  # by Spark" in show_stream_plan(
        plan
    )


def test_spark_does_a_stream_without_a_grouping_if_a_sink_takes_the_columns():
    plan = plan_of(beam.Filter(field("points") > 0), beam.Select("team"), SINK)
    assert plan.columns is not None
    assert plan.columns.is_written
    assert plan.native_grouping is None


NOT_DONE: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "early panes": (
        [windows(trigger=AfterWatermark(early=AfterCount(1))), TOTAL, OUT],
        {},
        "the trigger AfterWatermark(early=AfterCount(1)) may fire before the end",
    ),
    "counts": (
        [windows(trigger=Repeatedly(AfterCount(2))), TOTAL, OUT],
        {},
        "the trigger Repeatedly(AfterCount(2)) may fire before the end",
    ),
    "lateness": ([windows(allowed_lateness=60), TOTAL, OUT], {}, "windows may emit several panes"),
    "a last pane": (
        [windows(closing_behavior=ClosingBehavior.FIRE_ALWAYS), TOTAL, OUT],
        {},
        "windows always emit a last pane",
    ),
    "discarding rounds": (
        [windows(mode=DISCARDING), TOTAL, OUT],
        {"mode": "micro_batch"},
        "a pane of a round has only what the round has added",
    ),
    "the global window, by the clock": ([GLOBAL, TOTAL, OUT], {}, "windows may emit several panes"),
    "the global window": ([TOTAL, OUT], {}, "the global window ends with the stream"),
    "two groupings, of which one waits for the end of the stream": (
        [MINUTES, TOTAL, "Global" >> beam.WindowInto(GlobalWindows()), AGAIN, OUT],
        {},
        "'GroupBy(total)/CombinePerKey(TupleCombineFn)' keeps its own state",
    ),
    "two groupings of rounds": (
        [GLOBAL, TOTAL, AGAIN, OUT],
        {"mode": "micro_batch"},
        "'GroupBy(total)/CombinePerKey(TupleCombineFn)' follows another grouping",
    ),
    "a grouping of Python's behind it": (
        [MINUTES, TOTAL, beam.Map(lambda row: (row.team, row.total)), beam.GroupByKey(), OUT],
        {},
        "'GroupByKey' keeps its own state",
    ),
    "rounds whose panes are read": (
        [windows(), TOTAL, beam.Map(pane_of), OUT],
        {"mode": "micro_batch"},
        "'Map(pane_of)' reads the panes",
    ),
    "other times": (
        [beam.WithTimestamps("points"), MINUTES, TOTAL, OUT],
        {},
        "elements get different times than the watermark has",
    ),
    "a watermark that waits for the clock": (
        [MINUTES, TOTAL, OUT],
        {"policy": IdleTimeout(BoundedDisorder(60), 5)},
        "Spark has no watermark like IdleTimeout",
    ),
    "a watermark of each partition": (
        [MINUTES, TOTAL, OUT],
        {"policy": BoundedDisorder(60, per_partition=True)},
        "Spark has no watermark like BoundedDisorder",
    ),
    "event time by a function": (
        [MINUTES, TOTAL, OUT],
        {"event_time": lambda row: row.at},
        "event_time is a function that only Python can call",
    ),
    "event time as a fraction": (
        [MINUTES, TOTAL, OUT],
        {"event_time": "weight"},
        "weight is neither whole seconds nor an instant",
    ),
    "event time as a day": (
        [MINUTES, TOTAL, OUT],
        {"event_time": "day"},
        "day is neither whole seconds nor an instant",
    ),
    "event time without a zone": (
        [MINUTES, TOTAL, OUT],
        {"event_time": "local"},
        "the column local has the type timestamp_ntz",
    ),
    "recorded times": ([MINUTES, TOTAL, OUT], {"arrival_time": "at"}, "elements arrive at recorded times"),
    "no times": ([MINUTES, TOTAL, OUT], {"policy": IngressTime()}, "times that are not in a column"),
    "sliding windows without a grouping": (
        [beam.WindowInto(SlidingWindows(60, 30)), beam.Select("team"), SINK],
        {},
        "'WriteToParquet' takes elements that are in several windows",
    ),
    "sliding windows that are left": (
        [beam.WindowInto(SlidingWindows(60, 30)), "Minutes" >> MINUTES, TOTAL, OUT],
        {},
        "'Minutes' takes elements that are in several windows",
    ),
    "sliding windows before a function of Python's": (
        [beam.WindowInto(SlidingWindows(60, 30)), beam.Map(window_of), OUT],
        {},
        "'Map(window_of)' is a function that only Python can call",
    ),
    "sessions": (
        [beam.WindowInto(Sessions(60)), TOTAL, OUT],
        {},
        "makes windows that are not FixedWindows or SlidingWindows",
    ),
    "another output time": (
        [windows(timestamp_combiner=TimestampCombiner.OUTPUT_AT_LATEST), TOTAL, OUT],
        {},
        "its output time is not the end of the window",
    ),
    "a function of Python's first": (
        [beam.Filter(lambda row: True), MINUTES, TOTAL, OUT],
        {},
        "is a function that only Python can call",
    ),
    "a function of Python's in between": (
        [MINUTES, beam.Filter(lambda row: True), TOTAL, OUT],
        {},
        "is a function that only Python can call",
    ),
    "floats": (
        [MINUTES, beam.GroupBy("team").aggregate_field("weight", sum, "total"), OUT],
        {},
        "total is a sum of float",
    ),
    "a key of floats": (
        [MINUTES, beam.GroupBy("weight").aggregate_field("points", sum, "total"), OUT],
        {},
        "the key weight has the type double",
    ),
    "files of each window": (
        [MINUTES, TOTAL, parquet(triggering_frequency=30, num_shards=1)],
        {},
        "keeps its own state",
    ),
}


@pytest.mark.parametrize("case", NOT_DONE)
def test_python_does_it_and_the_reason_is_said(case):
    transforms, more, reason = NOT_DONE[case]
    plan = plan_of(*transforms, **more)
    assert plan.columns is None
    text = show_stream_plan(plan)
    [line] = [line for line in text.splitlines() if "  Read = " in line]
    assert "columns end here: " in line
    assert reason in line
    assert "# by Spark" not in text


def test_results_in_sliding_windows_are_python_s_again():
    plan = plan_of(
        MINUTES, TOTAL, "Again" >> beam.WindowInto(SlidingWindows(60, 30)), beam.Map(window_of), OUT
    )
    assert plan.columns is not None
    assert [step.label for step in plan.columns.steps][-1] == "GroupBy(team)/Result"
    assert "'Map(window_of)' is a function that only Python can call" in show_stream_plan(plan)


def test_rejects_and_several_readers_and_side_inputs_are_python_s():
    pipeline = beam.Pipeline()
    read = ReadFromParquet("in", validate=False, as_rows=True)
    good, _ = pipeline | "Read" >> read.as_stream("at", BoundedDisorder(60), rejects=True)
    _ = good | MINUTES | TOTAL | OUT
    plan = plan_after(pipeline, "streaming")
    assert plan.columns is None
    assert "elements that are wrong have a separate output" in show_stream_plan(plan)
    twice = beam.Pipeline()
    rows = twice | "Read" >> read.as_stream("at", BoundedDisorder(60))
    for name in "ab":
        _ = rows | f"Windows {name}" >> MINUTES | f"Total {name}" >> TOTAL | name >> OUT
    assert "several steps read them" in show_stream_plan(plan_after(twice, "streaming"))
    waiting = beam.Pipeline()
    rows = waiting | "Read" >> read.as_stream("at", BoundedDisorder(60))
    side = waiting | "Side" >> beam.Create([1])
    _ = rows | MINUTES | TOTAL | beam.Map(lambda row, view: row, AsSingleton(side)) | OUT
    assert plan_after(waiting, "streaming").columns is not None


def test_two_sources_and_sources_without_columns_are_python_s():
    pipeline = beam.Pipeline()
    for name in "ab":
        read = ReadFromParquet("in", validate=False, as_rows=True).as_stream("at", BoundedDisorder(60))
        _ = (
            pipeline
            | f"Read {name}" >> read
            | f"Windows {name}" >> MINUTES
            | f"Total {name}" >> TOTAL
            | name >> OUT
        )
    assert plan_after(pipeline, "streaming").columns is None
    lines = beam.Pipeline()
    _ = lines | ReadFromText("in", validate=False).as_stream() | OUT
    assert plan_after(lines, "streaming").columns is None


def test_it_is_switched_off():
    plan = plan_of(MINUTES, TOTAL, OUT, without=["native_streams"])
    assert plan.columns is None
    assert len(plan.levels) == 1


@pytest.mark.parametrize("case", [case for case in DONE if case != "rounds by the clock"])
def test_nothing_waits_for_the_clock(case):
    transforms, more = DONE[case]
    assert heartbeat_of(plan_of(*transforms, **more), has_interval=False) == "none"
