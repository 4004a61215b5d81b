"""A stream while it runs: its state, its watermarks, its metrics, how it is drained, cancelled, changed and fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.metrics.metric import MetricsFilter
from penstock.options.pipeline_options import PipelineOptions
from penstock.runners.runner import PipelineResult
from penstock.transforms.periodicsequence import PeriodicImpulse
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterSignal,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows

WAIT_SECONDS_MAX = 90


def parsed(line: str) -> tuple[str, int]:
    team, points, _ = line.split(",")
    beam.metrics.Metrics.counter("test", "lines").inc()
    return team, int(points)


def add(folder: Path, name: str, *lines: str) -> None:
    """A new file, which appears when it is complete."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / name)


def wait_for(condition: Callable[[], bool], result: PipelineResult) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        assert result.wait_until_finish(duration=50) is None, "it has ended"


def sums(folder: Path, into: list[Any], *flags: str, windows: Any = None, **arguments: Any) -> PipelineResult:
    """A running pipeline: sums per team of the scores in a folder, by default in windows of ten seconds."""
    options = PipelineOptions(["--mode=streaming", "--shuffle_partitions=2", *flags])
    pipeline = beam.Pipeline(options=options)
    arguments = {
        "event_time": lambda line: int(line.split(",")[2]),
        "watermark": BoundedDisorder(2),
    } | arguments
    read = beam.io.ReadFromText(f"{folder}/*.txt", validate=False).as_stream(**arguments)
    pairs = pipeline | "Read" >> read | "Parse" >> beam.Map(parsed)
    totals = pairs | (windows or beam.WindowInto(FixedWindows(10))) | "Sum" >> beam.CombinePerKey(sum)
    _ = totals | WriteToMemory(into)
    return pipeline.run()


def test_it_tells_its_state_its_watermarks_and_its_metrics_and_can_be_drained(spark, tmp_path):
    folder, found = tmp_path / "in", []
    folder.mkdir()
    result = sums(folder, found)
    assert result.state == "RUNNING"
    assert result.wait_until_finish(duration=1) is None
    add(folder, "a.txt", "red,1,1", "blue,2,8", "red,4,13")
    # The watermarks are those of finished micro-batches.
    wait_for(lambda: len(found) == 2 and bool(result.watermarks()), result)
    assert sorted(found) == [("blue", 2), ("red", 1)]
    [(label, watermark)] = result.watermarks().items()
    assert (label, watermark.input, watermark.output) == ("Sum", 11, 11)
    now = time.time()
    assert abs(float(watermark.clock) - now) < WAIT_SECONDS_MAX
    assert float(watermark.lag) == pytest.approx(float(watermark.clock) - 11)
    wait_for(lambda: counted(result, "lines") == 3, result)
    add(folder, "b.txt", "red,8,14", "red,16,3")
    wait_for(lambda: counted(result, "elements_dropped_as_late") == 1, result)
    assert result.drain() == "DRAINING"
    assert result.wait_until_finish() == "DRAINED"
    assert sorted(found) == [("blue", 2), ("red", 1), ("red", 12)]


def counted(result: PipelineResult, name: str) -> int:
    counters = result.metrics().query(MetricsFilter().with_name(name))["counters"]
    return sum(counter.committed for counter in counters)


def test_an_idle_source_fires_by_the_clock_and_by_signals(spark, tmp_path):
    add(tmp_path / "in", "a.txt", "red,1,1")
    by_clock: list[Any] = []
    by_signal: list[Any] = []
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming", "--shuffle_partitions=2"]))
    pairs = pipeline | beam.io.ReadFromText(f"{tmp_path}/in/*.txt").as_stream() | beam.Map(parsed)
    for name, trigger, found in (
        ("Clock", AfterProcessingTime(1), by_clock),
        ("Signal", AfterSignal("now"), by_signal),
    ):
        windows = beam.WindowInto(GlobalWindows(), Repeatedly(trigger), AccumulationMode.DISCARDING)
        sums_of = pairs | f"{name} windows" >> windows | f"{name} sum" >> beam.CombinePerKey(sum)
        _ = sums_of | f"{name} write" >> WriteToMemory(found)
    result = pipeline.run()
    wait_for(lambda: by_clock == [("red", 1)], result)
    assert by_signal == []
    result.signal("now")
    wait_for(lambda: by_signal == [("red", 1)], result)
    assert by_clock == [("red", 1)]
    assert result.cancel() == "CANCELLED"


def test_a_user_error_comes_with_its_step(spark, tmp_path):
    folder = tmp_path / "in"
    add(folder, "a.txt", "red,1,1", "red,many,2")
    result = sums(folder, [])
    with pytest.raises(ValueError, match=r"(?s)invalid literal.*while running 'Parse'"):
        result.wait_until_finish()
    assert result.state == "FAILED"
    assert result.cancel() == "FAILED"


def test_a_periodic_source_ends_by_itself(spark):
    found: list[Any] = []
    # All but the last second is over when the stream begins.
    start = int(time.time()) - 2
    options = PipelineOptions(["--mode=streaming", "--shuffle_partitions=2"])
    with beam.Pipeline(options=options) as pipeline:
        heartbeats = (
            pipeline | PeriodicImpulse(start, start + 4, 1) | beam.Map(lambda heartbeat: ("beats", 1))
        )
        windows = beam.WindowInto(FixedWindows(100, start % 100))
        _ = heartbeats | windows | beam.CombinePerKey(sum) | WriteToMemory(found)
    assert found == [("beats", 4)]
    assert pipeline.result.state == "DONE"


def test_a_batch_pipeline_runs_unchanged(spark, tmp_path):
    (tmp_path / "a.txt").write_text("red 1\nblue 2\nred 3\n")
    for mode in ("batch", "micro_batch", "streaming"):
        found: list[Any] = []
        options = PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2"])
        with beam.Pipeline(options=options) as pipeline:
            factors = pipeline | "Factors" >> beam.Create([("red", 10), ("blue", 100)])
            lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt") | beam.Map(str.split)
            scaled = lines | beam.MapTuple(
                lambda team, points, factor=None: (team, int(points) * factor[team]),
                factor=beam.pvalue.AsDict(factors),
            )
            more = pipeline | "More" >> beam.Create([("red", 5)])
            _ = (scaled, more) | beam.Flatten() | beam.CombinePerKey(sum) | WriteToMemory(found)
        assert sorted(found) == [("blue", 200), ("red", 45)], mode


def test_a_changed_pipeline_goes_on_where_its_state_fits(spark, tmp_path):
    folder, checkpoint = tmp_path / "in", f"--checkpoint_location={tmp_path}/checkpoint"
    add(folder, "a.txt", "red,1,1")
    found: list[Any] = []
    result = sums(folder, found, checkpoint)
    wait_for(lambda: counted(result, "lines") == 1, result)
    assert result.cancel() == "CANCELLED"
    add(folder, "b.txt", "red,2,2", "red,4,30")
    other = beam.WindowInto(FixedWindows(20))
    with pytest.raises(ValueError, match=r"(?s)Sum.*FixedWindows"):
        sums(folder, found, checkpoint, windows=other)
    with pytest.raises(ValueError, match="streaming"):
        sums(folder, found, checkpoint, "--mode=micro_batch")
    result = sums(folder, found, checkpoint)
    wait_for(lambda: found == [("red", 3)], result)
    result.drain()
    assert result.wait_until_finish() == "DRAINED"
    assert found == [("red", 3), ("red", 4)]


def test_a_source_that_is_faster_than_the_pipeline_is_read_bit_by_bit(spark, tmp_path):
    folder, found = tmp_path / "in", []
    for number in range(6):
        add(folder, f"{number}.txt", f"red,1,{number * 10}")
    each = beam.WindowInto(
        FixedWindows(10),
        AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        AccumulationMode.DISCARDING,
        allowed_lateness=1000,
    )
    result = sums(folder, found, windows=each, max_files_per_batch=2, existing_only=True)
    assert result.wait_until_finish() == "DONE"
    assert [element for element in found if element[1]] == [("red", 1)] * 6


@pytest.mark.parametrize("files", [(), ("a\n", "", "b\n")], ids=["no file", "an empty file between others"])
def test_a_finite_source_ends_when_there_is_nothing_more_to_read(spark, tmp_path, files: tuple[str, ...]):
    for number, content in enumerate(files):
        (tmp_path / f"{number}.txt").write_text(content)
    read: list[Any] = []
    counted: list[Any] = []
    pipeline = beam.Pipeline(spark=spark, mode="streaming")
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt", validate=False).as_stream(
        existing_only=True, max_files_per_batch=1
    )
    _ = lines | "Read" >> beam.io.WriteToMemory(read)
    per_line = lines | beam.Map(lambda line: (line, 1)) | beam.WindowInto(FixedWindows(60))
    _ = per_line | beam.CombinePerKey(sum) | "Counted" >> beam.io.WriteToMemory(counted)
    pipeline.run().wait_until_finish()
    assert sorted(read) == [line for content in files for line in content.split()]
    assert sorted(counted) == [(line, 1) for line in sorted(read)]
