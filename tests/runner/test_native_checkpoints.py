"""The changes that a program may have whose grouping is Spark's own, and how its checkpoint is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock import field
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.window import FixedWindows, SlidingWindows
from penstock_spark.checkpoints.contract.compare import compare
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.custody.folder import open_at
from penstock_spark.checkpoints.resharding import must_rewrite, operators_of, slots_of
from penstock_spark.checkpoints.spark_state import check_state
from tests.runner.disk_place import DiskPlace, note_micro_batch
from tests.runner.native_plans import AGAIN, GLOBAL, MINUTES, OUT, TOTAL, plan_of

SUM = "Sum" >> TOTAL
FIRST: list[Any] = [MINUTES, SUM, OUT]


def signature(*transforms: Any, shards: int = 2, heartbeat: str = "none", **more: Any) -> dict[str, Any]:
    """The signature of a plan."""
    return signature_of(plan_of(*transforms, **more), shards, heartbeat)


def grouped(*names: str, combine: Any = sum, value: str = "points", **named: Any) -> Any:
    """Another grouping with the label of the first one."""
    return "Sum" >> beam.GroupBy(*names, **named).aggregate_field(value, combine, "total")


UNHARMED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "nothing": (FIRST, {}),
    "a filter": ([beam.Filter(field("points") > 3), *FIRST], {}),
    "another disorder": (FIRST, {"policy": BoundedDisorder(10)}),
    "another name of the key": ([MINUTES, grouped(name=field("team")), OUT], {}),
    "another number": ([MINUTES, grouped("team", value="at"), OUT], {}),
    "a step behind it": ([MINUTES, SUM, beam.Map(str), OUT], {}),
}


@pytest.mark.parametrize("case", UNHARMED)
def test_these_changes_leave_the_state_as_it_is(case):
    transforms, more = UNHARMED[case]
    old, new = signature(*FIRST), signature(*transforms, **more)
    assert compare(old, new).refusals == []
    assert not must_rewrite(old, new)


REFUSED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "a key of another type": (
        [MINUTES, grouped("points"), OUT],
        {},
        "'Sum/CombinePerKey(TupleCombineFn)' has keys",
    ),
    "one more key": ([MINUTES, grouped("team", "points"), OUT], {}, "has keys of different types"),
    "another aggregate": ([MINUTES, grouped("team", combine=min), OUT], {}, "has another CombineFn"),
    "other windows": ([beam.WindowInto(FixedWindows(30)), SUM, OUT], {}, "has other windows"),
    "sliding windows": ([beam.WindowInto(SlidingWindows(60, 30)), SUM, OUT], {}, "has other windows"),
    "another label": ([MINUTES, "Other" >> TOTAL, OUT], {}, "Spark's own aggregate has the state of 'Sum/"),
    "another label of the source": (FIRST, {"label": "Other"}, "Spark's own aggregate keeps its source"),
    "more partitions": (FIRST, {"shards": 3}, "leave shuffle_partitions as it was"),
    "a trigger interval": (FIRST, {"heartbeat": "numbers"}, "pass a trigger_interval only if"),
    "another mode": (FIRST, {"mode": "micro_batch"}, "a different mode"),
    "Python": (FIRST, {"without": ["native_streams"]}, "Spark's own aggregate has the state of 'Sum/"),
    "Python's function": (
        [beam.Filter(lambda row: True), *FIRST],
        {},
        "Spark's own aggregate has the state of 'Sum/",
    ),
    "no grouping": ([MINUTES, OUT], {}, "Spark's own aggregate has the state of 'Sum/"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_these_changes_are_refused_by_name(case):
    transforms, more, reason = REFUSED[case]
    refusals = compare(signature(*FIRST), signature(*transforms, **more)).refusals
    assert any(reason in refusal for refusal in refusals), refusals


def test_a_grouping_of_results_is_part_of_what_the_state_depends_on(tmp_path: Path):
    first, both = signature(*FIRST), signature(MINUTES, SUM, AGAIN, OUT)
    assert operators_of(both) == 2
    [added] = compare(first, both).refusals
    assert "'GroupBy(total)/CombinePerKey(TupleCombineFn)' would be grouped by Spark's own aggregate" in added
    assert "start again with another checkpoint_location" in added
    [gone] = compare(both, first).refusals
    assert "Spark's own aggregate has the state of 'GroupBy(total)/" in gone
    hours = signature(MINUTES, SUM, "Hours" >> beam.WindowInto(FixedWindows(3600)), AGAIN, OUT)
    [changed] = compare(both, hours).refusals
    assert "'GroupBy(total)/CombinePerKey(TupleCombineFn)' has other windows" in changed


def test_the_source_is_kept_even_if_its_state_may_be_dropped():
    old, new = signature(*FIRST), signature(*FIRST, label="Other")
    assert compare(old, new, ["Read"]).refusals == [
        "Spark's own aggregate keeps its source\n  - Read\n  + Other"
    ]


@pytest.mark.parametrize("drop", [False, True])
def test_state_of_pythons_is_not_taken_over(drop):
    old, new = signature(*FIRST, without=["native_streams"]), signature(*FIRST)
    refusals = compare(old, new, ["Sum/CombinePerKey(TupleCombineFn)"] if drop else []).refusals
    assert any("pass --without=native_streams" in refusal for refusal in refusals)
    # Another hint that contradicts this one is not given.
    assert drop or len(refusals) == 1, refusals


def test_a_grouping_in_the_global_window_reads_no_commands():
    assert slots_of(signature(*FIRST)) == ["Read", "<commands"]
    assert slots_of(signature(GLOBAL, SUM, OUT, mode="micro_batch")) == ["Read"]


def test_a_micro_batch_that_is_in_the_sinks_runs_again_because_spark_notes_its_watermark(tmp_path: Path):
    place = DiskPlace(tmp_path)
    open_at(place, signature(*FIRST))
    note_micro_batch(place, 0, "offsets")
    open_at(place, signature(*FIRST), is_written=lambda plan, number: True)
    assert place.inside("spark").inside("commits").names() == []


def test_state_that_is_missing_is_refused_when_the_checkpoint_is_opened(tmp_path: Path):
    place = DiskPlace(tmp_path)
    plan = open_at(place, signature(*FIRST)).plan
    note_micro_batch(place, 0, "offsets", "commits")
    spark = place.inside("spark")
    assert operators_of(plan) == 1
    for shard in (0, 1):
        with pytest.raises(ValueError, match=f"state/0/{shard}/1.changelog"):
            check_state(spark, operators_of(plan), plan["shards"])
        folder = tmp_path / "spark" / "state" / "0" / str(shard)
        folder.mkdir(parents=True)
        (folder / "1.changelog").touch()
    check_state(spark, operators_of(plan), plan["shards"])
