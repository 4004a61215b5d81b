"""Streams whose machine's clock is set back between two runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io.watermarks import BoundedDisorder, IdleTimeout
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.periodicsequence import PeriodicImpulse
from penstock.transforms.window import FixedWindows
from penstock.utils import clock

WAIT_SECONDS_MAX = 90
AHEAD_SECONDS = 5_400


def flags_of(checkpoint: Path) -> PipelineOptions:
    return PipelineOptions(
        [f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=1"]
    )


def found_in(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("[!_]*") for line in file.read_text().splitlines())


def wait_for(condition: Any, result: Any) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        assert result.wait_until_finish(duration=50) is None, "it has ended"


def seconds_read(checkpoint: Path) -> int:
    """How many seconds the heartbeat has counted in micro-batches that are done."""
    log = checkpoint / "spark" / "offsets"
    done = [int(file.name) for file in (checkpoint / "spark" / "commits").glob("[0-9]*")]
    return int((log / str(max(done))).read_text().split("\n")[2]) if done else 0


def sums(folder: Path) -> Any:
    """A running pipeline: how often each word comes in each ten seconds, counted with every new file."""
    pipeline = beam.Pipeline(options=flags_of(folder / "checkpoint"))
    lines = beam.io.ReadFromText(f"{folder}/in/*.txt", validate=False)
    stream = lines.as_stream(lambda line: int(line.split(",")[1]), IdleTimeout(BoundedDisorder(0), 10**8))
    pairs = pipeline | stream | beam.Map(lambda line: (line.split(",")[0], 1))
    counts = pairs | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum)
    _ = counts | beam.MapTuple("{} {}".format) | beam.io.WriteToText(f"{folder}/out/sums")
    return pipeline.run()


def test_a_stream_goes_on_after_the_clock_was_set_back(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("red,1\nred,2\nblue,12\n")
    first = sums(tmp_path)
    wait_for(lambda: seconds_read(tmp_path / "checkpoint") >= 2, first)
    first.cancel()
    assert found_in(tmp_path / "out") == ["red 2"]
    # As if the clock had been an hour and a half ahead, and were right again.
    start = tmp_path / "checkpoint" / "spark" / "sources" / "0" / "0"
    version, millis = start.read_text().split("\n")
    start.with_name(".0.crc").unlink(missing_ok=True)
    start.write_text(f"{version}\n{int(millis) + AHEAD_SECONDS * 1_000}")
    counted = seconds_read(tmp_path / "checkpoint")
    second = sums(tmp_path)
    (tmp_path / "in" / "b.txt").write_text("blue,13\nred,25\n")
    wait_for(lambda: found_in(tmp_path / "out") == ["blue 2", "red 2"], second)
    wait_for(lambda: seconds_read(tmp_path / "checkpoint") > counted, second)
    second.cancel()
    # And once more, by a clock that is right all the time.
    third = sums(tmp_path)
    third.drain()
    assert third.wait_until_finish() == "DRAINED"
    assert found_in(tmp_path / "out") == ["blue 2", "red 1", "red 2"]
    assert caplog.text.count("s behind the last run") == 1


def ticks(folder: Path, start: float) -> Any:
    """A running pipeline: a line for each half of a second since the start."""
    pipeline = beam.Pipeline(options=flags_of(folder / "checkpoint"))
    times = pipeline | PeriodicImpulse(start, start + 3_600, 0.5)
    numbers = times | beam.Map(lambda at: f"{round((float(at) - start) * 2):06d}")
    _ = numbers | beam.io.WriteToText(f"{folder}/out/ticks")
    return pipeline.run()


def test_what_follows_the_clock_comes_once_when_the_clock_was_set_back(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = float(int(time.time()))
    for count in (5, 9):
        run = ticks(tmp_path, start)
        wait_for(lambda count=count: len(found_in(tmp_path / "out")) >= count, run)
        run.cancel()
        # When the next run starts, the clock is an hour and a half behind; then it is set right.
        monkeypatch.setattr(clock, "micros", lambda: int((time.time() - AHEAD_SECONDS) * 1e6))
    found = found_in(tmp_path / "out")
    assert found == [f"{number:06d}" for number in range(len(found))]
    assert (tmp_path / "checkpoint" / "spark" / "sources" / "0" / "eras.json").exists()
