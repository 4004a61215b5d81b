"""Which sums of a stream's rounds Spark adds up, of the parts that Python has made, and which stay Python's."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io import ReadFromText
from penstock.io.watermarks import BoundedDisorder, IdleTimeout
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.trigger import AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import CalendarWindows, FixedWindows, Sessions, SlidingWindows
from penstock_spark.plan.stream_plan import show_stream_plan
from tests.runner.native_plans import ACCUMULATING, DISCARDING, GLOBAL, OUT, TOTAL, plan_after, plan_of


def pair(row: Any) -> tuple[str, int]:
    """A pair of a team and its points."""
    return row.team, row.points


def loose_pair(row: Any) -> tuple[str, Any]:
    """A pair whose value may be anything."""
    return row.team, row.points


def of_pane(element: Any, pane: Any = beam.DoFn.PaneInfoParam) -> Any:
    """An element with its pane."""
    return element, pane


PAIRS = beam.Map(pair)
SUM = "Sum" >> beam.CombinePerKey(sum)


def windows(windowfn: Any, **more: Any) -> Any:
    return beam.WindowInto(windowfn, **{"accumulation_mode": ACCUMULATING} | more)


@pytest.mark.parametrize(
    "transforms",
    [
        (PAIRS, GLOBAL, SUM, OUT),
        (PAIRS, windows(FixedWindows(60)), SUM, OUT),
        (PAIRS, windows(FixedWindows(60), allowed_lateness=30), SUM, beam.Map(str), OUT),
        (beam.Map(loose_pair), windows(SlidingWindows(120, 60)), beam.CombinePerKey(CountCombineFn()), OUT),
    ],
)
def test_spark_adds_up(transforms):
    plan = plan_of(*transforms, mode="micro_batch")
    assert plan.sums is not None
    assert plan.levels == ()
    assert "# in parts, then by Spark" in show_stream_plan(plan)


def reasons_of(plan: Any) -> dict[str, str]:
    """Why Python does each grouping, by label, as `explain` shows it."""
    lines = show_stream_plan(plan).splitlines()
    parts = [line.strip().partition(" = ") for line in lines if "  # in Python: " in line]
    return {label: rest.partition("# in Python: ")[2].partition(";")[0] for label, _, rest in parts}


MINUTES = windows(FixedWindows(60))
IN_PYTHON: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "windows that fire once are as fast in Python's state": ([PAIRS, MINUTES, SUM], {"mode": "streaming"}),
    "native streams are switched off": ([PAIRS, MINUTES, SUM], {"without": ["native_streams"]}),
    "its elements are recorded": ([PAIRS, MINUTES, SUM], {"record_events": 100}),
    "Spark has no watermark like IdleTimeout": (
        [PAIRS, MINUTES, SUM],
        {"policy": IdleTimeout(BoundedDisorder(60), 5)},
    ),
    "the source has several outputs, or recorded times": ([PAIRS, MINUTES, SUM], {"arrival_time": "at"}),
    "a pane of a round has only what the round has added": (
        [PAIRS, windows(FixedWindows(60), accumulation_mode=DISCARDING), SUM],
        {},
    ),
    "the trigger Repeatedly(AfterCount(1)) may fire before the end": (
        [PAIRS, windows(FixedWindows(60), trigger=Repeatedly(AfterCount(1))), SUM],
        {},
    ),
    "its windows merge": ([PAIRS, windows(Sessions(60)), SUM], {}),
    "Spark has no such windows": ([PAIRS, windows(CalendarWindows.days()), SUM], {}),
    "the values to sum are Any, not int": ([beam.Map(loose_pair), GLOBAL, SUM], {}),
    "the combiner is neither a sum nor a count": (
        [PAIRS, GLOBAL, "Sum" >> beam.CombinePerKey(MeanCombineFn())],
        {},
    ),
    "it needs its values, not a sum": ([PAIRS, GLOBAL, "Sum" >> beam.GroupByKey()], {}),
    "'Map(of_pane)' reads the panes": ([PAIRS, GLOBAL, SUM, beam.Map(of_pane)], {}),
    "'Again' keeps its own state": ([PAIRS, GLOBAL, SUM, "Again" >> beam.CombinePerKey(sum)], {}),
}


@pytest.mark.parametrize("reason", IN_PYTHON)
def test_python_adds_up_and_explain_says_why(reason):
    transforms, more = IN_PYTHON[reason]
    plan = plan_of(*transforms, OUT, **{"mode": "micro_batch"} | more)
    assert plan.sums is None
    assert reasons_of(plan)["Sum"] == reason


def test_each_grouping_has_its_own_reason():
    plan = plan_of(PAIRS, GLOBAL, SUM, "Again" >> beam.CombinePerKey(sum), OUT, mode="micro_batch")
    assert reasons_of(plan)["Again"] == "it follows another grouping"
    early = beam.WindowInto(FixedWindows(60), AfterWatermark(AfterCount(1)), accumulation_mode=ACCUMULATING)
    plan = plan_of(early, TOTAL, OUT, mode="micro_batch")
    assert reasons_of(plan) == {"GroupBy(team)/CombinePerKey(TupleCombineFn)": "columns end before it"}


def test_people_see_the_steps_that_spark_takes_over():
    plan = plan_of(PAIRS, GLOBAL, SUM, OUT, mode="micro_batch")
    labels = [step.label for step in plan.all_steps.steps]
    assert "Sum" in labels
    assert "Sum" not in [step.label for step in plan.graph.steps]
    assert plan.sums is not None
    assert len(plan.sums.made_edges) == 3
    assert "columns end here: 'Map(pair)' is a function that only Python can call" in show_stream_plan(plan)


def lines(pipeline: beam.Pipeline, **more: Any) -> Any:
    return pipeline | ReadFromText("in", validate=False).as_stream(len, BoundedDisorder(60), **more)


def counted(line: str) -> tuple[str, int]:
    """A line and a one."""
    return line, 1


def test_text_is_added_up_too_and_nobody_else_may_read_what_is():
    pipeline = beam.Pipeline()
    pairs = lines(pipeline) | beam.Map(counted) | GLOBAL
    pairs | SUM | OUT
    assert plan_after(pipeline, "micro_batch").sums is not None
    pairs | "More" >> beam.Map(print)
    assert reasons_of(plan_after(pipeline, "micro_batch")) == {"Sum": "other steps read what it reads"}


def test_rejected_elements_late_ones_and_side_inputs_need_python():
    pipeline = beam.Pipeline()
    accepted, _ = lines(pipeline, rejects=True)
    accepted | beam.Map(counted) | GLOBAL | SUM | OUT
    reason = "the source has several outputs, or recorded times"
    assert reasons_of(plan_after(pipeline, "micro_batch")) == {"Sum": reason}
    pipeline = beam.Pipeline()
    pairs = lines(pipeline) | beam.Map(counted) | windows(FixedWindows(60))
    sums, _ = pairs | beam.CombinePerKey(sum).with_late_data()
    sums | OUT
    reason = "it has an output for late elements"
    assert reasons_of(plan_after(pipeline, "micro_batch")) == {"CombinePerKey(sum)": reason}
    pipeline = beam.Pipeline()
    numbers = beam.pvalue.AsIter(pipeline | beam.Create([1]))
    (
        lines(pipeline)
        | beam.Map(lambda line, _: (line, 1), numbers).with_output_types(tuple[str, int])
        | GLOBAL
        | SUM
        | OUT
    )
    reason = "a step before it has side inputs"
    assert reasons_of(plan_after(pipeline, "micro_batch")) == {"Sum": reason}
