"""Which sums of a stream's rounds Spark adds up, of the parts that Python has made, and which stay Python's."""

from __future__ import annotations

from typing import Any

import pytest
from native_plans import ACCUMULATING, DISCARDING, GLOBAL, OUT, plan_after, plan_of

import penstock as beam
from penstock.io import ReadFromText
from penstock.io.watermarks import BoundedDisorder, IdleTimeout
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.trigger import AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows, Sessions, SlidingWindows
from penstock_spark.plan.stream_plan import show_stream_plan


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


@pytest.mark.parametrize(
    ("transforms", "more"),
    [
        ((PAIRS, windows(FixedWindows(60)), SUM, OUT), {"mode": "streaming"}),
        ((PAIRS, windows(FixedWindows(60)), SUM, OUT), {"without": ["native_streams"]}),
        ((PAIRS, windows(FixedWindows(60)), SUM, OUT), {"policy": IdleTimeout(BoundedDisorder(60), 5)}),
        ((PAIRS, windows(FixedWindows(60), accumulation_mode=DISCARDING), SUM, OUT), {}),
        ((PAIRS, windows(FixedWindows(60), trigger=Repeatedly(AfterCount(1))), SUM, OUT), {}),
        ((PAIRS, windows(Sessions(60)), SUM, OUT), {}),
        ((beam.Map(loose_pair), GLOBAL, SUM, OUT), {}),
        ((PAIRS, GLOBAL, beam.CombinePerKey(MeanCombineFn()), OUT), {}),
        ((PAIRS, GLOBAL, beam.GroupByKey(), OUT), {}),
        ((PAIRS, GLOBAL, SUM, beam.Map(of_pane), OUT), {}),
        ((PAIRS, GLOBAL, SUM, "Again" >> beam.CombinePerKey(sum), OUT), {}),
    ],
)
def test_python_adds_up(transforms, more):
    assert plan_of(*transforms, **{"mode": "micro_batch"} | more).sums is None


def test_what_is_recorded_is_python_s():
    plan = plan_of(PAIRS, GLOBAL, SUM, OUT, mode="micro_batch", record_events=100)
    assert plan.sums is None
    assert len(plan.levels) == 1


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
    assert plan_after(pipeline, "micro_batch").sums is None


def test_rejected_elements_late_ones_and_side_inputs_need_python():
    pipeline = beam.Pipeline()
    accepted, _ = lines(pipeline, rejects=True)
    accepted | beam.Map(counted) | GLOBAL | SUM | OUT
    assert plan_after(pipeline, "micro_batch").sums is None
    pipeline = beam.Pipeline()
    pairs = lines(pipeline) | beam.Map(counted) | windows(FixedWindows(60))
    sums, _ = pairs | beam.CombinePerKey(sum).with_late_data()
    sums | OUT
    assert plan_after(pipeline, "micro_batch").sums is None
