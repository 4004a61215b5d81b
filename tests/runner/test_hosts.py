"""The pass `choose_folds` says which host and which loop a grouping takes, and which steps its readers do."""

from __future__ import annotations

import re
from typing import Any

import pytest

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.combiners import MeanCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
)
from penstock_spark.compiler import Target, compile_graph
from penstock_spark.plan.batch_plan import Plan
from penstock_spark.plan.hosts import ByMachine, BySpark, Host, InPython, InShards, Loop, Rows, State
from penstock_spark.plan.stream_plan import StreamPlan

EARLIEST = {"timestamp_combiner": TimestampCombiner.OUTPUT_AT_EARLIEST}
EARLY = {"trigger": AfterWatermark(early=AfterCount(9)), "accumulation_mode": AccumulationMode.DISCARDING}


def plan_of(pairs: Any, combine: Any, windowfn: Any, options: dict[str, Any], target: Target) -> Any:
    windowed = pairs | "Window" >> beam.WindowInto(windowfn, **options)
    folded = windowed | "Fold" >> (beam.GroupByKey() if combine is None else beam.CombinePerKey(combine))
    _ = folded | beam.Map(print)
    return compile_graph(pairs.pipeline.to_graph(), target).plan


def batch_plan(combine: Any, windowfn: Any, without: str = "", kind: type = int, **options: Any) -> Plan:
    pairs = (
        beam.Pipeline()
        | beam.Create([("a", 1)])
        | beam.Reshuffle()
        | beam.Map(lambda pair: pair).with_output_types(tuple[str, kind])  # type: ignore[valid-type]
    )
    plan = plan_of(pairs, combine, windowfn, options, Target(without=frozenset(without.split())))
    assert isinstance(plan, Plan)
    return plan


def host_of(plan: Plan) -> Host:
    [host] = [
        writing.host
        for stage in plan.stages
        for output in stage.outputs
        for writing in output.writings
        if writing.host is not None
    ]
    return host


FLOATS = {"kind": float}
NUMBERS, PICKLES = Rows.NUMBERS, Rows.PICKLES


def shown(value: Any) -> str:
    """Returns an identifier that is the same in every process."""
    return str(getattr(value, "__name__", None) or re.sub(r" (object )?at 0x\w+", "", str(value)))


@pytest.mark.parametrize(
    ("combine", "windowfn", "options", "expected"),
    [
        (sum, FixedWindows(9), {}, BySpark(Loop.PAIRS)),
        (sum, FixedWindows(9), {"without": "shortcuts"}, BySpark(Loop.VALUES)),
        (sum, FixedWindows(9), FLOATS, (Loop.PAIRS, NUMBERS)),
        (sum, SlidingWindows(9, 3), FLOATS, (Loop.PAIRS, NUMBERS)),
        (sum, Sessions(9), {}, (Loop.SESSIONS, NUMBERS)),
        (sum, Sessions(9), EARLIEST, (Loop.VALUES, PICKLES)),
        (sum, FixedWindows(9), EARLIEST, (Loop.VALUES, PICKLES)),
        (sum, Sessions(9), {"without": "shortcuts"}, (Loop.CALLS, PICKLES)),
        (max, Sessions(9), {}, (Loop.SESSIONS, PICKLES)),
        (max, GlobalWindows(), {}, (Loop.PAIRS, PICKLES)),
        (MeanCombineFn(), GlobalWindows(), {}, (Loop.CALLS, PICKLES)),
        (len, GlobalWindows(), {}, (Loop.CALLS, PICKLES)),
        (None, FixedWindows(9), {}, (Loop.CALLS, PICKLES)),
        (sum, FixedWindows(9), EARLY, ByMachine("", False)),
    ],
    ids=shown,
)
def test_a_grouping_of_a_batch_takes_the_fastest_loop_that_its_fold_and_windows_allow(
    combine: Any, windowfn: Any, options: dict[str, Any], expected: Any
) -> None:
    host = host_of(batch_plan(combine, windowfn, **options))
    if isinstance(expected, tuple):
        assert isinstance(host, InPython)
        assert (host.loop, host.rows) == expected
    elif isinstance(expected, ByMachine):
        assert isinstance(host, ByMachine)
        assert not host.input_retracts
    else:
        assert host == expected


@pytest.mark.parametrize(
    ("combine", "windowfn", "options", "is_left"),
    [
        (sum, FixedWindows(9), {}, True),
        (sum, Sessions(9), {}, True),
        (max, FixedWindows(9), {}, True),
        (sum, SlidingWindows(9, 3), {}, False),
        (sum, FixedWindows(9), EARLIEST, False),
        (MeanCombineFn(), FixedWindows(9), {}, False),
        (sum, FixedWindows(9), {"without": "shortcuts"}, False),
        (None, FixedWindows(9), {}, False),
    ],
    ids=shown,
)
def test_a_step_in_front_of_a_loop_is_left_to_it(
    combine: Any, windowfn: Any, options: dict[str, Any], is_left: bool
) -> None:
    left = {label for stage in batch_plan(combine, windowfn, **options).stages for label in stage.left}
    assert left == ({"Window"} if is_left else set())


def test_a_step_with_another_reader_is_left_to_none() -> None:
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([("a", 1)]) | beam.Reshuffle() | beam.Map(lambda pair: pair)
    windowed = pairs | "Window" >> beam.WindowInto(FixedWindows(9))
    _ = windowed | "Fold" >> beam.CombinePerKey(sum)
    _ = windowed | "Values" >> beam.Map(print) | beam.io.WriteToMemory([])
    plan = compile_graph(pipeline.to_graph(), Target()).plan
    assert isinstance(plan, Plan)
    assert not any(stage.left for stage in plan.stages)


def stream_host(combine: Any, windowfn: Any, without: str = "", **options: Any) -> tuple[InShards, set[str]]:
    lines = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
        event_time=len, watermark=BoundedDisorder(5)
    )
    pairs = beam.Pipeline() | lines | beam.Map(lambda line: (line, 1)).with_output_types(tuple[str, int])
    plan = plan_of(pairs, combine, windowfn, options, Target("streaming", frozenset(without.split())))
    assert isinstance(plan, StreamPlan)
    return plan.hosts["Fold"], {label for part in plan.parts for label in part.left}


@pytest.mark.parametrize(
    ("combine", "windowfn", "options", "state", "arriving", "is_left"),
    [
        (sum, FixedWindows(9), {}, State.BY_WINDOW, Loop.PAIRS, True),
        (sum, SlidingWindows(9, 3), {}, State.BY_WINDOW, Loop.PAIRS, False),
        (sum, Sessions(9), {}, State.BY_KEY, Loop.SESSIONS, False),
        (sum, FixedWindows(9), EARLIEST, State.BY_KEY, Loop.VALUES, False),
        (MeanCombineFn(), FixedWindows(9), {}, State.BY_WINDOW, Loop.CALLS, False),
        (None, FixedWindows(9), {}, State.BY_WINDOW, Loop.CALLS, False),
        (sum, FixedWindows(9), EARLY, State.BY_WINDOW, None, False),
        (sum, FixedWindows(9), {"without": "window_columns"}, State.BY_KEY, Loop.PAIRS, True),
        (sum, FixedWindows(9), {"without": "early_combining"}, State.BY_WINDOW, None, False),
    ],
    ids=shown,
)
def test_a_grouping_of_a_stream_is_kept_by_window_and_folded_before_it_is_sent_if_it_can(
    combine: Any, windowfn: Any, options: dict[str, Any], state: State, arriving: Loop | None, is_left: bool
) -> None:
    host, left = stream_host(combine, windowfn, **options)
    assert (host.state, host.arriving) == (state, arriving)
    assert left == ({"Window"} if is_left else set())


def test_rounds_keep_each_key_apart() -> None:
    pairs = (
        beam.Pipeline()
        | beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
            event_time=len, watermark=BoundedDisorder(5)
        )
        | beam.Map(lambda line: (line, line))
    )
    plan = plan_of(pairs, max, FixedWindows(9), {}, Target("micro_batch"))
    host = plan.hosts["Fold"]
    assert (host.state, host.arriving) == (State.BY_KEY, Loop.PAIRS)
