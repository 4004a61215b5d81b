"""A run that stood still, and was taken for dead, does not change the plan of the run in its place; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from penstock_spark.checkpoints.custody.folder import Checkpoint, open_at
from penstock_spark.checkpoints.custody.lease import CheckpointInUse
from penstock_spark.checkpoints.custody.plans import read_latest_plans
from tests.runner.checkpoint_plans import BASE, Pipeline, grouped, written
from tests.runner.disk_place import DiskPlace, note_micro_batch

MORE_SHARDS = replace(BASE, shards=BASE.shards + 1)
WITH_A_SINK = replace(BASE, more=written("Out"))


@dataclass
class Held:
    """The claim of a run that no other run displaces."""

    number: int

    def check(self) -> None:
        """The run may continue."""


@dataclass
class DisplacedAfter:
    """The claim of a run that stands still behind one of its looks at the claims, and is displaced by then."""

    number: int
    looks: int
    meanwhile: Callable[[], Any]

    def check(self) -> None:
        self.looks -= 1
        if self.looks == 0:
            self.meanwhile()
        if self.looks < 0:
            raise CheckpointInUse("another run has it")


def copy_of_logs(checkpoint: Checkpoint, old: dict[str, Any]) -> None:
    """Copies Spark's logs instead of rewriting them."""
    for log in ("offsets", "commits"):
        before = checkpoint.place.inside(old["folder"]).inside(log)
        for name in before.names():
            checkpoint.spark_place.inside(log).write(name, before.read(name))


def opened(place: DiskPlace, pipeline: Pipeline, lease: Any) -> Checkpoint:
    return open_at(place, pipeline.signature(), lease=lease, rewrite=copy_of_logs)


def plans_of(place: DiskPlace) -> list[str]:
    return [name for name in place.names() if name.startswith("plan")]


def test_a_plan_that_is_written_too_late_is_not_the_latest(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    found: list[Checkpoint] = []
    lease = DisplacedAfter(1, 1, lambda: found.append(opened(place, BASE, Held(2))))
    with pytest.raises(CheckpointInUse):
        opened(place, BASE, lease)
    # It has overwritten nothing.
    assert plans_of(place) == ["plan-1.json", "plan-2.json"]
    note_micro_batch(place, 0)
    # The stream has the identity that the sinks know it by, and its own bounded sources.
    again = opened(place, BASE, Held(3))
    assert (again.is_new, again.plan) == (False, found[0].plan)
    assert plans_of(place) == ["plan-3.json"]


def test_a_plan_that_is_written_too_late_is_not_in_force(tmp_path: Path) -> None:
    """Its folder may be gone by then, so that nothing seems to have begun."""
    place = DiskPlace(tmp_path)
    opened(place, BASE, Held(1))
    note_micro_batch(place, 0)
    with pytest.raises(CheckpointInUse):
        opened(place, MORE_SHARDS, DisplacedAfter(2, 2, lambda: opened(place, WITH_A_SINK, Held(3))))
    assert plans_of(place) == ["plan-1.json", "plan-2.json", "plan-3.json"]
    assert "spark-2" not in place.names()
    assert [plan.number for plan in read_latest_plans(place)] == [3, 1]
    # The update that has finished nothing is undone.
    again = opened(place, BASE, Held(4))
    assert (again.is_new, again.plan["folder"], again.plan["since"]) == (False, "spark", 0)


def test_where_the_run_in_its_place_has_died_without_a_plan_nothing_begins_anew(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    opened(place, BASE, Held(1))
    note_micro_batch(place, 0)
    with pytest.raises(CheckpointInUse):
        opened(place, MORE_SHARDS, DisplacedAfter(2, 2, lambda: place.delete("spark-2")))
    assert [plan.number for plan in read_latest_plans(place)] == [2, 1]
    again = opened(place, MORE_SHARDS, Held(4))
    assert (again.is_new, again.plan["folder"], again.last_commit()) == (False, "spark-4", 0)


def test_a_reader_looks_again_when_a_run_has_just_begun(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    opened(place, BASE, Held(1))
    note_micro_batch(place, 0)
    opened(place, WITH_A_SINK, Held(2))

    class Slow(DiskPlace):
        is_slow = True

        def read(self, name: str) -> bytes:
            if self.is_slow:
                self.is_slow = False
                opened(place, replace(BASE, more=grouped("More")), Held(3))
            return super().read(name)

    assert [plan.number for plan in read_latest_plans(Slow(tmp_path))] == [3, 1]


def test_a_plan_that_is_gone_is_named(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    opened(place, BASE, Held(1))
    note_micro_batch(place, 0)
    opened(place, WITH_A_SINK, Held(2))
    place.delete("plan-1.json")
    with pytest.raises(ValueError, match=r"plan-1\.json is not the plan of a checkpoint \(it is missing\)"):
        opened(place, BASE, Held(3))
