"""The record that each run of a checkpoint leaves: what it has read and dropped, and how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import ReadFromCsv, WriteToText
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.window import FixedWindows
from penstock_spark.checkpoints.custody.run_records import RunRecord, read_records
from penstock_spark.files.disk_place import DiskPlace


def add(folder: Path, name: str, *rows: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / f"in/.{name}").write_text("\n".join(["team,points,second", *rows, ""]))
    (folder / f"in/.{name}").rename(folder / f"in/{name}.csv")


def run(spark: SparkSession, folder: Path, label: str = "Sum", *, by_spark: bool = False) -> None:
    options = {
        "without": [] if by_spark else ["native_streams"],
        "checkpoint_location": f"{folder}/checkpoint",
    }
    pipeline = beam.Pipeline(spark=spark, mode="streaming", available_now=True, **options)
    source = ReadFromCsv(f"{folder}/in/*.csv")
    rows = pipeline | "Read" >> source.as_stream("second", BoundedDisorder(0), max_files_per_batch=1)
    totals = beam.GroupBy("team").aggregate_field("points", sum, "total")
    shown = rows | beam.WindowInto(FixedWindows(10)) | label >> totals | beam.Map(str)
    _ = shown | "Write" >> WriteToText(f"{folder}/out")
    assert ("# by Spark" in pipeline.explain()) is by_spark
    pipeline.run().wait_until_finish()


def records(folder: Path) -> tuple[RunRecord, ...]:
    return read_records(DiskPlace(folder / "checkpoint"), is_last_alive=False)


@pytest.mark.parametrize("by_spark", [False, True])
def test_headers_are_no_rows_and_what_comes_too_late_is_counted(
    spark: SparkSession, tmp_path: Path, by_spark: bool
) -> None:
    for name, rows in {"1": ["red,2,1", "blue,3,12"], "2": [], "3": ["red,5,4"]}.items():
        add(tmp_path, name, *rows)
    run(spark, tmp_path, by_spark=by_spark)
    [own] = records(tmp_path)
    assert (own.state, own.rows, own.dropped) == ("DONE", 3, 1)
    assert own.first_batch == 0


def test_a_run_that_fails_before_its_query_begins_is_among_the_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    add(tmp_path, "1", "red,2,1")
    (tmp_path / "out-batch-000000-00000-of-00001").write_text("not ours")
    with pytest.raises(FileExistsError):
        run(spark, tmp_path)
    [own] = records(tmp_path)
    assert (own.state, own.rows, own.first_batch) == ("FAILED", 0, None)
    assert own.error.startswith("FileExistsError at step 'Write'")
    (tmp_path / "out-batch-000000-00000-of-00001").unlink()
    run(spark, tmp_path)
    with pytest.raises(ValueError, match="the pipeline does not fit the state in its checkpoint"):
        run(spark, tmp_path, "Another sum")
    assert [(each.claim, each.state, each.error) for each in records(tmp_path)[1:]] == [
        (2, "DONE", ""),
        (3, "FAILED", "ValueError"),
    ]
