"""Spark looks for the files of a read without a job, however many there are, also of those that a stream has read. Few
tasks read many small files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions

MANY = 40
"""By default, Spark looks at more than 32 files in a job with a task for each."""


def jobs_of(spark: Any) -> list[Any]:
    jobs = spark._jsc.sc().statusStore().jobsList(spark._jvm.java.util.ArrayList())
    return [jobs.apply(number) for number in range(jobs.size())]


def descriptions_of_jobs(spark: Any) -> list[str]:
    return [str(job.description()) for job in jobs_of(spark)]


def test_a_stream_looks_for_new_files_without_a_job_with_a_task_for_each_file(
    spark: Any, tmp_path: Path
) -> None:
    for number in range(MANY):
        (tmp_path / f"{number:02}.txt").write_text(f"{number}\n")
    found: list[str] = []
    with beam.Pipeline(options=PipelineOptions(["--mode=streaming", "--shuffle_partitions=2"])) as pipeline:
        lines = beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream(existing_only=True)
        _ = pipeline | lines | WriteToMemory(found)
    assert sorted(map(int, found)) == [*range(MANY)]
    jobs = descriptions_of_jobs(spark)
    assert jobs
    assert not [job for job in jobs if f"{MANY} paths" in job]


def test_a_batch_looks_at_many_files_without_a_job_with_a_task_for_each_file(
    spark: Any, tmp_path: Path
) -> None:
    setting = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    for number in range(MANY + 1):
        (tmp_path / f"{number:02}.json").write_text(f'{{"number": {number}}}\n')
    found: list[Any] = []
    before = spark.conf.get(setting, None)
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.io.ReadFromJson(f"{tmp_path}/*.json") | WriteToMemory(found)
    assert sorted(row.number for row in found) == [*range(MANY + 1)]
    jobs = descriptions_of_jobs(spark)
    assert jobs
    assert not [job for job in jobs if f"{MANY + 1} paths" in job]
    assert spark.conf.get(setting, None) == before


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_few_tasks_read_many_small_files(spark: Any, tmp_path: Path, mode: str) -> None:
    count = 400
    for number in range(count):
        (tmp_path / f"{number:03}.json").write_text(f'{{"number": {number}}}\n')
    read = beam.io.ReadFromJson(f"{tmp_path}/*.json")
    found: list[Any] = []
    before = max((int(job.jobId()) for job in jobs_of(spark)), default=-1)
    with beam.Pipeline(options=PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2"])) as pipeline:
        _ = (
            pipeline
            | (read if mode == "batch" else read.as_stream(existing_only=True))
            | WriteToMemory(found)
        )
    assert sorted(row.number for row in found) == [*range(count)]
    tasks = [int(job.numTasks()) for job in jobs_of(spark) if int(job.jobId()) > before]
    # With Spark's own value, a task has 32 files.
    assert tasks
    assert max(tasks) < count // 32
