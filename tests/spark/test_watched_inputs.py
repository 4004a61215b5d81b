"""`Watch` on Spark: files that grow while a program reads them, is cancelled, and continues from its checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.io.watch import PollResult, Watch
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue

WAIT_SECONDS_MAX = 240


def lines_of(path: str) -> PollResult[str]:
    """The lines of a file so far, at the times 0, 1, 2, ...; the line "end" ends it."""
    lines = Path(path).read_text().split()
    found = [TimestampedValue(line, number) for number, line in enumerate(lines) if line != "end"]
    if "end" in lines:
        return PollResult.complete(found)
    return PollResult.incomplete(found).with_watermark(len(found))


def start(logs: list[Path], target: Path, checkpoint: Path) -> Any:
    options = PipelineOptions([f"--checkpoint_location={checkpoint}", "--shuffle_partitions=2"])
    pipeline = beam.Pipeline(options=options)
    lines = (
        pipeline | beam.Create([*map(str, logs)]) | Watch(lines_of, 0.2) | beam.MapTuple(lambda _, line: line)
    )
    _ = lines | "Lines" >> beam.io.WriteToText(str(target / "lines"))
    counts = lines | beam.WindowInto(FixedWindows(3)) | beam.combiners.Count.PerElement()
    _ = counts | beam.MapTuple("{} {}".format) | "Counts" >> beam.io.WriteToText(str(target / "counts"))
    return pipeline.run()


def written(target: Path, name: str) -> list[str]:
    files = (file for file in target.glob(f"{name}-*") if file.is_file())
    return sorted(line for file in files for line in file.read_text().splitlines())


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def add(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def test_each_output_is_written_once_although_the_run_is_cancelled(spark: Any, tmp_path: Path) -> None:
    logs, target = [tmp_path / "a", tmp_path / "b"], tmp_path / "out"
    for log in logs:
        add(log, f"{log.name}0", f"{log.name}1")
    run = start(logs, target, tmp_path / "checkpoint")
    wait_for(lambda: len(written(target, "lines")) == 4)
    add(logs[0], "a2")
    wait_for(lambda: len(written(target, "lines")) == 5)
    assert run.cancel() == "CANCELLED"
    add(logs[0], "a3", "end")
    add(logs[1], "b2", "end")
    assert start(logs, target, tmp_path / "checkpoint").wait_until_finish() == "DONE"
    lines = ["a0", "a1", "a2", "a3", "b0", "b1", "b2"]
    assert written(target, "lines") == lines
    assert written(target, "counts") == [f"{line} 1" for line in lines]


def letters_of(word: str) -> PollResult[str]:
    return PollResult.complete(word, timestamp=0)


def test_inputs_are_watched_in_the_mode_micro_batch(spark: Any) -> None:
    options = PipelineOptions(["--mode=micro_batch", "--shuffle_partitions=2"])
    with beam.Pipeline(options=options) as p:
        letters = p | beam.Create(["noon", "eve"]) | Watch(letters_of, 60)
        assert_that(letters, equal_to([("noon", "n"), ("noon", "o"), ("eve", "e"), ("eve", "v")]))
