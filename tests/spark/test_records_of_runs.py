"""Tests the last line of a run, and the record that it leaves in its checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock import field
from penstock.io import ReadFromCsv, WriteToParquet, WriteToText
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.sql.jobs.running import Job
from penstock.transforms.window import FixedWindows
from penstock_spark.checkpoints.custody.run_records import RunRecord, read_records
from penstock_spark.files.disk_place import DiskPlace
from penstock_spark.live import views
from penstock_spark.runner import SparkRunner
from penstock_spark.runs import running
from penstock_spark.session.backends import backend_of


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


def test_rows_of_a_source_that_ends_are_elements_and_not_pages(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path, "1", *(f"red,{number},1" for number in range(1_000)))
    pipeline = beam.Pipeline(spark=spark, mode="streaming", checkpoint_location=f"{tmp_path}/checkpoint")
    rows = pipeline | ReadFromCsv(f"{tmp_path}/in/*.csv")
    _ = rows | beam.Map(str) | WriteToText(f"{tmp_path}/out")
    pipeline.run().wait_until_finish()
    assert [each.rows for each in records(tmp_path)] == [1_000]


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


def columns(rows: Any, folder: Path) -> Any:
    """Spark reads, chooses and writes."""
    return rows | beam.Filter(field("points") > 2) | "Write" >> WriteToParquet(f"{folder}/out")


def elements(rows: Any, folder: Path) -> Any:
    """Python makes lines."""
    kept = rows | beam.Filter(lambda row: row.points > 2) | beam.Map(str)
    return kept | "Write" >> WriteToText(f"{folder}/out")


@pytest.mark.parametrize("steps", [columns, elements])
def test_a_stream_that_ends_well_says_what_it_has_read_and_written(
    spark: SparkSession, tmp_path: Path, steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    says: list[str] = []
    monkeypatch.setattr(running, "print_progress", says.append)
    add(tmp_path, "1", "red,2,1", "blue,3,12", "red,7,13")
    for progress in ("auto", "off"):
        pipeline = beam.Pipeline(spark=spark, mode="streaming", available_now=True, progress=progress)
        source = ReadFromCsv(f"{tmp_path}/in/*.csv").as_stream("second", BoundedDisorder(0))
        steps(pipeline | "Read" >> source, tmp_path / progress)
        assert ("# by Spark" in pipeline.explain()) is (steps is columns)
        pipeline.run().wait_until_finish()
    [own] = says
    assert re.fullmatch(r"done in [\d.]+ s, 3 rows read, 2 written by 'Write'", own)


def test_a_job_in_sql_says_what_each_table_has_got(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(views, "is_quiet", lambda: False)
    add(tmp_path, "1", "red,2,1", "blue,3,12", "red,7,13")
    text = f"""
        CREATE TABLE goals (team STRING, points BIGINT, second BIGINT)
        WITH (format = 'csv', path = '{tmp_path}/in', header = true);
        CREATE TABLE totals WITH (format = 'json', path = '{tmp_path}/totals') AS
        SELECT team, SUM(points) AS total FROM goals GROUP BY team;
        CREATE TABLE high WITH (format = 'parquet', path = '{tmp_path}/high') AS
        SELECT * FROM goals WHERE points > 6;"""
    Job(text, tells_end=True).run()
    # PySpark's client also logs there.
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("penstock: ")]
    # A server does not tell how many rows a job has read.
    read = r" \d+ rows read," if backend_of(spark).is_local else ""
    assert re.fullmatch(
        rf"penstock: done in [\d.]+ s,{read} 2 written by 'Write totals', 1 written by 'Write high'", line
    )
    Job(text.replace("totals'", "again'").replace("high'", "higher'")).run()
    assert "penstock" not in capsys.readouterr().err
    # Only a session on this machine certainly reads its disk.
    assert SparkRunner(spark=spark).reads_this_disk(PipelineOptions([])) is backend_of(spark).is_local
