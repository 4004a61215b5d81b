"""The folders of Spark that a checkpoint refers to while one is rewritten, wherever that is cut; without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock_spark.checkpoints.custody.folder import Checkpoint, open_at
from tests.runner.checkpoint_plans import BASE, Pipeline
from tests.runner.disk_place import DiskPlace, note_micro_batch

MORE = replace(BASE, shards=8)


def begun(path: Path) -> DiskPlace:
    """A checkpoint with two finished micro-batches."""
    place = DiskPlace(path)
    open_at(place, BASE.signature())
    for batch in (0, 1):
        note_micro_batch(place, batch, folder="spark")
    return place


def opened(place: DiskPlace, pipeline: Pipeline, dies: bool = False) -> Checkpoint:
    """Opens it for a pipeline; the rewritten folder is a copy of Spark's logs."""

    def rewrite(checkpoint: Checkpoint, old: dict[str, Any]) -> None:
        for log in ("offsets", "commits"):
            before = place.inside(old["folder"]).inside(log)
            for name in before.names():
                own = DiskPlace(place.path, place.changes).inside(checkpoint.plan["folder"]).inside(log)
                own.write(name, before.read(name))
        if dies:
            raise InterruptedError

    return open_at(place, pipeline.signature(), rewrite=rewrite)


def folders(place: DiskPlace) -> list[str]:
    return [name for name in place.names() if name.startswith("spark")]


def test_the_folder_is_written_anew_only_for_what_spark_counts_by_place(tmp_path: Path) -> None:
    place = begun(tmp_path)
    assert opened(place, replace(BASE, step_label="Renamed")).plan["folder"] == "spark"
    assert opened(place, MORE).plan["folder"] == "spark-2"
    note_micro_batch(place, 2, folder="spark-2")
    assert opened(place, MORE).plan["folder"] == "spark-2"
    # A folder that the plan in force does not refer to is gone.
    assert folders(place) == ["spark-2"]
    assert opened(place, BASE).plan["folder"] == "spark-3"


def test_a_run_that_dies_while_it_writes_leaves_the_checkpoint_as_it_was(tmp_path: Path) -> None:
    place = begun(tmp_path)
    for _ in range(2):
        with pytest.raises(InterruptedError):
            opened(place, MORE, dies=True)
        place.inside("spark-2-seeds").make()
        assert folders(place) == ["spark", "spark-2", "spark-2-seeds"]
        assert opened(place, BASE).plan["folder"] == "spark"
        assert folders(place) == ["spark"]
    assert opened(place, MORE).plan["folder"] == "spark-2"


def test_wherever_it_is_cut_short_the_plan_refers_to_a_whole_folder(tmp_path: Path) -> None:
    cuts = 0
    while True:
        place = begun(tmp_path / str(cuts))
        try:
            opened(DiskPlace(place.path, [cuts]), MORE)
        except InterruptedError:
            assert opened(place, BASE).last_commit() == 1
            assert opened(place, MORE).last_commit() == 1
            cuts += 1
            continue
        break
    assert cuts > 6


def test_until_the_new_folder_has_begun_a_micro_batch_the_old_one_goes_on(tmp_path: Path) -> None:
    place = begun(tmp_path)
    assert opened(place, MORE).plan["folder"] == "spark-2"
    # The change is undone, and the new folder is written again, because the old one has continued.
    assert opened(place, BASE).plan["folder"] == "spark"
    note_micro_batch(place, 2, folder="spark")
    assert opened(place, MORE).plan["folder"] == "spark-3"
    # The same pipeline finds its own folder.
    assert opened(place, MORE).plan["folder"] == "spark-3"
    assert folders(place) == ["spark", "spark-3"]


def test_a_micro_batch_that_only_the_new_folder_knows_is_not_planned_once_more_by_the_old_one(
    tmp_path: Path,
) -> None:
    place = begun(tmp_path)
    opened(place, MORE)
    # A sink may have seen it, under this number.
    note_micro_batch(place, 2, "offsets", folder="spark-2")
    assert opened(place, BASE).plan["folder"] == "spark-3"
    assert folders(place) == ["spark-2", "spark-3"]


def test_one_that_both_folders_know_is_the_same_in_both(tmp_path: Path) -> None:
    place = begun(tmp_path)
    note_micro_batch(place, 2, "offsets", folder="spark")
    opened(place, MORE)
    assert opened(place, BASE).plan["folder"] == "spark"


def test_a_run_knows_what_was_planned_before_its_folder_was_written_anew(tmp_path: Path) -> None:
    """Otherwise it would end a source that had nothing when the micro-batch was planned, and has something since."""
    place = begun(tmp_path)
    note_micro_batch(place, 2, "offsets", folder="spark")
    assert opened(place, MORE).last_begun == 2
    # The folder is there, and no micro-batch of it has begun.
    assert opened(place, MORE).last_begun == 2
    note_micro_batch(place, 3, "offsets", folder="spark-2")
    assert opened(place, MORE).last_begun == 3
    assert opened(place, BASE).last_begun == 3
