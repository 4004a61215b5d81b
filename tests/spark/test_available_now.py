"""A run that reads what is there continues where the run before has ended, with the same open windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.runners.runner import PipelineState
from penstock.transforms.window import FixedWindows


def line(total: tuple[str, int], window: object = beam.DoFn.WindowParam) -> str:
    return f"{int(window.start)} {total[0]} {total[1]}"  # type: ignore[attr-defined]


def run(spark: SparkSession, folder: Path, mode: str | None) -> list[str]:
    """Runs a program that reads what is there, and returns all that runs have written so far."""
    options = {"available_now": True, "checkpoint_location": f"{folder}/checkpoint"}
    pipeline = beam.Pipeline(spark=spark, **options, **({} if mode is None else {"mode": mode}))
    lines = pipeline | beam.io.ReadFromText(f"{folder}/in/*").as_stream(
        event_time=lambda text: int(text.split(",")[2]), watermark=BoundedDisorder(0)
    )
    (
        lines
        | beam.Map(lambda text: (text.split(",")[0], int(text.split(",")[1])))
        | beam.WindowInto(FixedWindows(10))
        | beam.CombinePerKey(sum)
        | beam.Map(line)
        | beam.io.WriteToText(f"{folder}/out")
    )
    result = pipeline.run()
    if mode == "batch":
        assert result.state == PipelineState.DONE
    assert result.wait_until_finish() == PipelineState.DONE
    return sorted(text for path in folder.glob("out*") for text in path.read_text().splitlines())


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_each_run_reads_what_is_new_and_open_windows_stay_open(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1").write_text("a,1,1\na,2,5\na,7,12\n")
    assert run(spark, tmp_path, mode) == ["0 a 3"]
    (tmp_path / "in" / "2").write_text("a,100,13\na,5,25\n")
    # Whatever mode the first run had, the program is the same.
    assert run(spark, tmp_path, None) == ["0 a 3", "10 a 107"]
