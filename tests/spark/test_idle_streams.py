"""Streams into which nothing comes: Spark runs micro-batches only if something waits for the clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows

IDLE_SECONDS = 2.5
"""A stream in which something waits for the clock has a micro-batch in each second."""
WAIT_SECONDS_MAX = 120


def put(folder: Path, name: str, *lines: str) -> None:
    (folder / f".{name}").write_text("".join(f"{line}\n" for line in lines))
    (folder / f".{name}").rename(folder / f"{name}.txt")


def started(folder: Path, found: list[Any], waits: bool = False, **options: Any) -> Any:
    """A running pipeline: sums of ten seconds, and with `waits` also batches that wait for the clock."""
    flags = [f"--checkpoint_location={folder}/checkpoint", "--mode=streaming", "--shuffle_partitions=1"]
    pipeline = beam.Pipeline(options=PipelineOptions(flags, **options))
    lines = beam.io.ReadFromText(f"{folder}/*.txt", validate=False).as_stream(int, BoundedDisorder(0))
    pairs = pipeline | lines | beam.Map(lambda line: ("sum", int(line))) | beam.WindowInto(FixedWindows(10))
    _ = pairs | beam.CombinePerKey(sum) | "Sums" >> WriteToMemory(found)
    if waits:
        batches = pairs | beam.GroupIntoBatches(9, max_buffering_duration_secs=1)
        _ = (
            batches
            | "Few" >> beam.Map(lambda pair: ("few", list(pair[1])))
            | "Batches" >> WriteToMemory(found)
        )
    return pipeline.run()


def wait_for(condition: Any, result: Any) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        assert result.wait_until_finish(duration=50) is None, "it has ended"


def micro_batches(folder: Path) -> int:
    """How many micro-batches have begun; for another heartbeat, Spark's folder is written anew."""
    return 1 + max(int(file.name) for file in (folder / "checkpoint").glob("spark*/offsets/[0-9]*"))


def test_an_idle_stream_runs_no_micro_batch_until_something_waits_for_the_clock(
    spark: Any, tmp_path: Path
) -> None:
    found: list[Any] = []
    put(tmp_path, "first", "1", "2", "13")
    result = started(tmp_path, found)
    wait_for(lambda: ("sum", 3) in found, result)
    before = micro_batches(tmp_path)
    assert result.wait_until_finish(duration=int(IDLE_SECONDS * 1_000)) is None
    assert micro_batches(tmp_path) == before
    # What comes after the pause is read at once.
    put(tmp_path, "second", "25")
    wait_for(lambda: ("sum", 13) in found, result)
    result.cancel()
    # The checkpoint fits a program in which something waits, ...
    result = started(tmp_path, found, waits=True)
    put(tmp_path, "third", "26", "27")
    wait_for(lambda: ("few", [26, 27]) in found, result)
    before = micro_batches(tmp_path)
    wait_for(lambda: micro_batches(tmp_path) > before, result)
    result.cancel()
    # ... and one in which nothing waits any more.
    result = started(tmp_path, found, drop_state=["GroupIntoBatches/Gather"])
    put(tmp_path, "fourth", "38")
    wait_for(lambda: ("sum", 25 + 26 + 27) in found, result)
    before = micro_batches(tmp_path)
    assert result.wait_until_finish(duration=int(IDLE_SECONDS * 1_000)) is None
    assert micro_batches(tmp_path) == before
    result.drain()
    assert result.wait_until_finish() == "DRAINED"
    assert found[-1] == ("sum", 38)
