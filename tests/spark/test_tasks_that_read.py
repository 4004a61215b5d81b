"""A stream reads in as many tasks as when it began, on whichever machine it goes on; a batch, as the session says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

import penstock as beam
from penstock.io import WriteToMemory, WriteToText
from penstock.options.pipeline_options import PipelineOptions
from penstock_spark.session.parallelism import PARALLELISM
from tests.spark import lasting

FILES = 8


def with_its_task(name: str) -> str:
    task = TaskContext.get()
    assert task is not None
    return f"{name} {task.partitionId()}"


def tasks_of(tmp_path: Path, round_: int, *options: str) -> int:
    """Runs the stream until it has read new files; returns in how many tasks it has."""
    for number in range(FILES):
        (tmp_path / f"{round_}-{number}.txt").write_text(f"{round_}\n")
    flags = ["--mode=streaming", f"--checkpoint_location={tmp_path}/checkpoint", *options]
    pipeline = beam.Pipeline(options=PipelineOptions(flags))
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream()
    _ = lines | beam.Map(with_its_task) | WriteToText(f"{tmp_path}/out/part")
    _ = (
        lines
        | beam.Map(lambda line: (line, 1))
        | beam.WindowInto(beam.window.FixedWindows(60))
        | beam.GroupByKey()
    )
    result = pipeline.run()
    try:
        found: list[str] = []
        while len(found) < FILES:
            result.wait_until_finish(duration=200)
            texts = [file.read_text().splitlines() for file in tmp_path.glob("out/part*")]
            found = [line.split()[1] for text in texts for line in text if line.startswith(f"{round_} ")]
    finally:
        result.cancel()
    assert len(found) == FILES
    return len({*found})


def test_a_stream_that_goes_on_reads_in_as_many_tasks_as_before(spark: Any, tmp_path: Path) -> None:
    try:
        spark.conf.set(PARALLELISM, str(FILES))
        assert tasks_of(tmp_path, 1) == FILES
        spark.conf.set(PARALLELISM, "1")
        assert tasks_of(tmp_path, 2) == FILES
        assert spark.conf.get(PARALLELISM) == "1"
        # State that is divided anew has a folder of its own, so the tasks of an earlier run cannot disturb it.
        assert tasks_of(tmp_path, 3, "--shuffle_partitions=3") == 1
    finally:
        spark.conf.unset(PARALLELISM)
    plan = lasting.plan_in(tmp_path / "checkpoint")
    assert (plan["shards"], plan["parallelism"]) == (3, 1)


@pytest.mark.parametrize("tasks", [1, FILES])
def test_a_batch_reads_in_as_many_tasks_as_the_session_says(spark: Any, tmp_path: Path, tasks: int) -> None:
    for number in range(FILES):
        (tmp_path / f"{number}.txt").write_text("line\n")
    found: list[str] = []
    try:
        spark.conf.set(PARALLELISM, str(tasks))
        with beam.Pipeline(spark=spark) as pipeline:
            lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt")
            _ = lines | beam.Map(with_its_task) | WriteToMemory(found)
    finally:
        spark.conf.unset(PARALLELISM)
    assert (len(found), len({*found})) == (FILES, tasks)
