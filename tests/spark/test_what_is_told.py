"""What a run tells while it goes on: on standard error, and on Spark's pages."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock_spark.process import progress
from penstock_spark.stream import level_processor


@pytest.mark.parametrize("quiet", ["PENSTOCK_QUIET", "PYTEST_VERSION"])
def test_progress_is_told_unless_it_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: str
) -> None:
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.delenv(progress.QUIET, raising=False)
    progress.print_progress("one")
    monkeypatch.setenv(quiet, "1")
    progress.print_progress("two")
    assert capsys.readouterr().err == "penstock: one\n"


def test_only_the_python_that_spark_asks_for_state_prints_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main: Any = ModuleType("__main__")
    exec("def say(): print('said')", vars(main))
    monkeypatch.setitem(sys.modules, "__main__", main)
    for name in ("pyspark.worker", "pyspark.sql.streaming.transform_with_state_driver_worker"):
        main.__spec__ = SimpleNamespace(name=name)
        level_processor.quiet_first_look()
        main.say()
    assert capsys.readouterr().out == "said\n"


def _descriptions(spark: SparkSession) -> dict[int, str | None]:
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # type: ignore[union-attr]
    told = ((jobs.apply(number).jobId(), jobs.apply(number).description()) for number in range(jobs.size()))
    return {number: text.get() if text.isDefined() else None for number, text in told}


def test_spark_says_of_each_job_which_steps_run_in_it(spark: SparkSession, tmp_path: Path) -> None:
    before = _descriptions(spark)
    spark.sparkContext.setLocalProperty("spark.job.description", "mine")
    try:
        with TestPipeline() as pipeline:
            pairs = pipeline | "Numbers" >> beam.Create(range(5)) | "Pair" >> beam.Map(lambda n: (n % 2, n))
            sums = pairs | "Group" >> beam.GroupByKey() | "Count" >> beam.Map(lambda pair: len(list(pair[1])))
            view = beam.pvalue.AsList(sums)
            lines = sums | "Line" >> beam.Map(lambda total, totals: f"{total} of {totals}", view)
            _ = lines | "Write" >> beam.io.WriteToText(str(tmp_path / "out"))
        told = [text for number, text in _descriptions(spark).items() if number not in before]
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert told
    assert all(text and text != "mine" for text in told)
    assert any("Numbers > Pair > Group > Count" in str(text) for text in told)
    assert any("side input Count" in str(text) for text in told)
    assert any(str(text).startswith("Line") and "Write" in str(text) for text in told)


def test_a_query_has_the_name_of_its_pipeline_and_its_jobs_say_what_they_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = _descriptions(spark)
    pipeline = TestPipeline(mode="streaming", app_name="scores")
    pairs = pipeline | "Scores" >> beam.Create([("a", 1)])
    for name, label in (("One", "Sum"), ("Two", "Sum again")):
        sums = pairs | label >> beam.CombinePerKey(sum) | f"{name} line" >> beam.Map(str)
        _ = sums | f"Write {name}" >> beam.io.WriteToText(str(tmp_path / name))
    result: Any = pipeline.run()
    result.wait_until_finish()
    assert result._running.started.name.startswith("scores ")
    told = {text for number, text in _descriptions(spark).items() if number not in before}
    assert {f"micro-batch 0: Write {name}" for name in ("One", "Two")} < told
    assert "micro-batch 0: Scores > Sum > Sum again > Write One > Write Two" in told
